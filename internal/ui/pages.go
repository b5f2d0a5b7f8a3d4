package ui

// pages are the pages, in the order of the navigation.
func pages() []page {
	return []page{
		{path: "", nav: "Overview", show: (*visit).overview},
		{path: "audit", nav: "Audit", show: (*visit).audit},
		{path: "reports", nav: "Reports", show: (*visit).reports},
		{path: "report", nav: "Reports", show: (*visit).report},
		{path: "codes", nav: "Codes", show: (*visit).codes},
	}
}

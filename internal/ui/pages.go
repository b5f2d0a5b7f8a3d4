package ui

// pages are the pages, in the order of the navigation.
func pages() []page {
	return []page{
		{path: "", nav: "Overview", show: (*visit).overview},
		{path: "pause", nav: "Overview", show: (*visit).pause, act: (*visit).doPause},
		{path: "flow-resume", nav: "Overview", show: (*visit).flowResume, act: (*visit).doFlowResume},
		{path: "documents", nav: "Documents", show: (*visit).documents},
		{path: "document", nav: "Documents", show: (*visit).document},
		{path: "evidence", nav: "Documents", show: (*visit).evidence},
		{path: "retry", nav: "Documents", show: (*visit).retry, act: (*visit).doRetry},
		{path: "runs", nav: "Runs", show: (*visit).runs},
		{path: "run", nav: "Runs", show: (*visit).run},
		{path: "findings", nav: "Findings", show: (*visit).findings},
		{path: "finding", nav: "Findings", show: (*visit).finding},
		{path: "audit", nav: "Audit", show: (*visit).audit},
		{path: "codes", nav: "Codes", show: (*visit).codes},
	}
}

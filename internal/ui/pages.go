package ui

// pages are the pages, in the order of the navigation.
func pages() []page {
	return []page{
		{path: "", nav: "Overview", show: (*visit).overview},
	}
}

package ui

// pages are the pages, in the order of the navigation, and then the actions.
func pages() []page {
	return []page{
		{path: "", nav: "Overview", show: (*visit).overview},
		{path: "documents", nav: "Documents", show: (*visit).documents},
		{path: "document", nav: "Documents", show: (*visit).document},
		{path: "runs", nav: "Runs", show: (*visit).runs},
		{path: "run", nav: "Runs", show: (*visit).run},
		{path: "findings", nav: "Findings", show: (*visit).findings},

		{path: "retry", nav: "Documents", show: (*visit).retry, act: (*visit).doRetry},
		{path: "pause", nav: "Overview", show: (*visit).pause, act: (*visit).doPause},
		{path: "resume", nav: "Overview", show: (*visit).resume, act: (*visit).doResume},
	}
}

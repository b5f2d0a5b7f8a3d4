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
		{path: "run-replay", nav: "Runs", show: (*visit).replay, act: (*visit).doReplay},
		{path: "runs", nav: "Runs", show: (*visit).runs},
		{path: "run", nav: "Runs", show: (*visit).run},
		{path: "batch", nav: "Runs", show: (*visit).batch},
		{path: "cancel", nav: "Runs", show: (*visit).cancel, act: (*visit).doCancel},
		{path: "resume", nav: "Runs", show: (*visit).resume, act: (*visit).doResume},
		{path: "requeue", nav: "Runs", show: (*visit).requeue, act: (*visit).doRequeue},
		{path: "findings", nav: "Findings", show: (*visit).findings},
		{path: "finding", nav: "Findings", show: (*visit).finding},
		{path: "accept", nav: "Findings", show: (*visit).accept, act: (*visit).doAccept},
		{path: "audit", nav: "Audit", show: (*visit).audit},
		{path: "reports", nav: "Reports", show: (*visit).reports},
		{path: "report", nav: "Reports", show: (*visit).report},
		{path: "codes", nav: "Codes", show: (*visit).codes},
	}
}

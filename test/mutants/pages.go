package main

import "runtime"

// pagesTable has mutants of what pages show.
func pagesTable() []mutant {
	const says = "TestPagesSayWhatIsSo"
	return []mutant{
		{"a group that waits has no retry", "internal/ops/counts.go", " || (g.Status == invoice.RetryScheduled && !deferred(g.Kind))", "", "internal/ops", "TestCountsSayWhatWaitsLongestAndWhatFailsNow"},
		{"a page without SQL stays away", "internal/ui/problem.go", "Live: t.Away", "Live: false", "test/storybook", says},
		{"a reader's page asks for values", "internal/ui/documents.go", "if v.Who.May() { // a reader's", "if true { // a reader's", "test/storybook", "TestAPageAsksForContentOnlyForAnOperator"},
		{"the page of a finding asks for a reader's values", "internal/ui/findings.go", "if !v.Who.May() {", "if false {", "test/storybook", "TestAPageAsksForContentOnlyForAnOperator"},
		{"the overview has words of its own", "internal/ui/overview.go", "v.site.says(f.Says)", "f.Reason", "test/storybook", "TestTheOverviewHasTheWordsOfStatus"},
		{"a retry loses a filter of its list", "internal/ui/documents.go", `{"request", "--request"}, `, "", "internal/ui", "TestAListsFiltersGoWithItsRetry"},
		{"a reader sees an action", "internal/ui/overview.go", "if v.Who.May() && g.Retry", "if g.Retry", "test/storybook", says},
	}
}

// browserTable has the mutants that only a browser sees. There are none where the browser of the tests does not run.
func browserTable() []mutant {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil
	}
	const script, style = "internal/ui/static/script.js", "internal/ui/static/style.css"
	const pkg, place, typed = "test/browser", "TestALivePageChangesInItsPlace", "TestWhatIsTypedDuringAPollStays"
	const seen, keys = "TestEveryStoryIsForEverybody/overview-busy", "TestEveryStoryByKeyboard/documents-mixed"
	return []mutant{
		{"the overview is not polled", "internal/ui/overview.go", "Main: p, Live: true}", "Main: p}", pkg, place},
		{"a page is loaded anew", script, "place(await answer.text())", "(location.reload(), true)", pkg, place},
		{"a poll loses the focus", script, "again.focus({ preventScroll: true })", "again.blur()", pkg, place},
		{"a poll moves a table", script, "s.scrollLeft = scrolled[i] || 0", "s.scrollLeft = 0", pkg, place},
		{"a poll closes what is open", script, "d.open = true", "d.open = false", pkg, place},
		{"a hidden page is polled", script, "busy || document.hidden ||", "busy ||", pkg, "TestAHiddenPageAsksForNothing"},
		{"a page that was hidden stays old", script, "if (!document.hidden && loadedAt() - last > every) poll()", "", pkg, "TestAHiddenPageAsksForNothing"},
		{"a form that somebody fills is replaced", script, "document.hidden || typed()", "document.hidden", pkg, "TestAFormThatSomebodyFillsIsLeftAlone"},
		{"a select as it came passes for changed", script, "Math.max(0, ", "Math.max(-1, ", pkg, "TestAFormThatSomebodyFillsIsLeftAlone"},
		{"a poll replaces what was typed meanwhile", script, " && !typed() && place", " && place", pkg, typed},
		{"a poll does not wait for the one before", script, "if (busy || ", "if (", pkg, typed},
		{"a page whose polls fail seems fresh", script, "age * 1000 > 2 * every + 5000", "false", pkg, "TestAPageWhosePollsFailIsStale"},
		{"one does not see the focus", style, ":focus-visible { outline: 2px solid", ":focus-visible { outline: 0 solid", pkg, keys},
		{"texts are too pale", style, "--soft: light-dark(#59636b,", "--soft: light-dark(#8f9aa2,", pkg, seen},
		{"texts are too pale in the dark", style, "--soft: light-dark(#59636b, #9aa5ad)", "--soft: light-dark(#59636b, #5a656d)", pkg, seen},
		{"a table makes a page wide", style, ".scroll { overflow-x: auto;", ".scroll {", pkg, seen},
	}
}

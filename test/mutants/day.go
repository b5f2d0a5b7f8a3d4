package main

// dayTable are mutants of the samples of a day, and of the count and the stops that they are made of.
func dayTable() []mutant {
	const (
		pkg     = "internal/ops"
		day     = pkg + "/day.go"
		flow    = "internal/breaker"
		status  = flow + "/status.go"
		bounded = "TestSamplesAreBoundedAndAddUp"
		sampled = "TestADayIsSampled"
		hour    = "TestTheLastHourIsWhatTheSamplesOfAnHourSay"
		stops   = "TestStopsAddUpToTheTimeThatWasNotClosed"
		site    = "internal/ui"
		graph   = site + "/day.go"
		adds    = "TestWindowsOfADayAddUp"
	)
	return []mutant{
		{"samples have no bound", day, " || n > 1 && s.At.Sub(all[n-2].At) < twoSamples", "", pkg, bounded},
		{"samples stay for ever", day, "now.Sub(s.At) > sampledFor", "false", pkg, bounded},
		{"samples that become one lose a count", day, "s.Committed, s.StoppedSeconds = s.Committed+last.Committed, s.StoppedSeconds+last.StoppedSeconds", "s.StoppedSeconds += last.StoppedSeconds", pkg, bounded},
		{"a clock that is behind turns the samples around", day, "n > 0 && !s.At.After(all[n-1].At) || ", "", pkg, bounded},
		{"a late tick has no sample of its own", day, "twoSamples = 2 * sampledFor / (maxSamples - 2)", "twoSamples = 600 * time.Second", pkg, "TestEachTickOfTheScheduleIsASample"},
		{"at least is stored as exactly", day, "			more = \"+\"\n", "", pkg, bounded},
		{"failed documents wait", day, "status != invoice.Failed", "status != invoice.Processing", pkg, sampled},
		{"a stop that goes on has ended", day, "			stop.To = time.Time{}\n", "", pkg, sampled},
		{"the first sample says what was committed before it", day, "		s.Committed = 0 // nobody", "		_ = 0 // nobody", pkg, sampled},
		{"an instance that began anew uncommits", day, "			n = is.Committed\n", "", pkg, hour},
		{"the last hour has thirteen ticks", day, "<= time.Hour+hourSlack", "<= time.Hour+10*hourSlack+10*hourSlack", pkg, hour},
		{"a long silence has no last hour", day, "(i == last || ", "(false || ", pkg, hour},
		{"a tick that cannot read the day stores another", pkg + "/counts.go", "	if err != nil && fault.CodeOf(err) != \"unreadable\" {\n", "	if false {\n", pkg, "TestATickKeepsTheDay"},
		{"a day that cannot be read stays so", pkg + "/counts.go", " && fault.CodeOf(err) != \"unreadable\"", "", pkg, "TestATickKeepsTheDay"},
		{"what is rewritten is committed again", "internal/commit/tally.go", " && d.State.Status != invoice.Committed {", " {", "internal/commit", "TestADocumentBecomesCommittedOnce"},
		{"an orderly end loses the count", "internal/app/app.go", "	a.breaker.Tell(ending)\n", "	_ = ending\n", "internal/app", "TestAnInstanceSaysWhatItCommitted"},
		{"stops have no bound", status, "	return all[max(0, len(all)-maxStops):]\n", "	return all\n", flow, "TestAShortStopIsRemembered"},
		{"a pause hides the stop before it", status, "was.name() == Closed || !is.Since.After(was.Since)", "was.name() == Closed || is.name() != Closed", flow, stops},
		{"a stop that several saw counts for each", status, "	m.Stops = slices.CompactFunc(m.Stops, func(a, b Stop) bool { return a.From.Equal(b.From) })\n", "", flow, "TestAStopThatSeveralSawIsOne"},
		{"a stop that goes on does not count", status, "s.name() != Closed && s.Since.Before(now)", "false", flow, stops},
		{"a forced resume stopped since the last outage", flow + "/state.go", "		if s.name() == Closed {\n			s.Since = now\n		}\n		return s.halfOpen", "		return s.halfOpen", flow, "TestAForcedResumeOfARunningFlowIsNoLongStop"},
		{"the graph counts what was before its first sample", graph, "	for i := 1; i < len(samples); i++ {\n		s := samples[i]\n", "	for i := 1; i < len(samples); i++ {\n		s := samples[i-1]\n", site, adds},
		{"points that are taken together lose a count", graph, "last.Committed+w.Committed", "w.Committed", site, adds},
		{"a line goes over a silence", graph, "if i == 0 || w.Silent {", "if i == 0 {", site, "TestASilenceOfTheTimerIsAGap"},
		{"a stop of the day before is longer than the day", graph, "latest(s.From, from)", "s.From", site, "TestStopsAreDrawn"},
		{"stops that are not kept are forgotten", graph, "max(stopped, known)", "known", site, "TestStopsAreDrawn"},
		{"a reader is told that failed documents retry by themselves", site + "/templates/overview.html", "{{if not .ByItself}}not {{end}}by itself", "by itself", "test/storybook", "TestAReaderIsNotToldThatFailedDocumentsRetryByThemselves"},
		{"a probe is offered to a database that is refused", site + "/overview.go", "f.Code == breaker.CodeWentBack || ", "", "test/storybook", "TestTheOverviewSaysWhatAWokenPersonAsks"},
	}
}

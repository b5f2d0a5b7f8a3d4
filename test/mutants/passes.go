package main

// passesTable are mutants of the passes of a comparison.
func passesTable() []mutant {
	const (
		pkg    = "internal/reconcile"
		look   = pkg + "/look.go"
		passes = pkg + "/passes.go"
		steps  = pkg + "/steps.go"
		mend   = pkg + "/mend.go"
		report = pkg + "/report.go"
	)
	const (
		exact    = "TestEachCorruptionIsFoundAndGone"
		changes  = "TestADocumentThatChangesIsLookedAtAgain"
		kill     = "TestAKillAtEveryCallChangesNothing"
		nights   = "TestThreeNightsQueueNothingTwice"
		window   = "TestWhichDocumentsAreCompared"
		one      = "TestTwoLinesWithOneKey"
		none     = "TestWhatIsNoFindingOfOneKey"
		lost     = "TestALostContinuationBeginsThePassAgain"
		named    = "TestARunThatNamesDocuments"
		changing = "TestWhatChangesEachTimeIsCounted"
		thousand = "TestANightQueuesAThousand"
		waits    = "TestAFindingThatWaitsIsKeptWhileTheFlowIsNew"
	)
	return []mutant{
		{"a document that changed while it was looked at is judged", look, "	return there == s.there && head.ETag == s.doc.ETag", "	return there == s.there || head.ETag == s.doc.ETag", pkg, changes},
		{"a line is judged with a document of another moment", look, "!read || !s.still(heads) {", "!read || !s.still(heads) && false {", pkg, "TestALineWhoseDocumentChangesIsLookedAtAgain"},
		{"a finding whose document changes each time is gone", look, "			for _, id := range again {\n				l.undecidedDocuments[id] = true", "			for _, id := range again {\n				l.undecidedDocuments[id] = false", pkg, changing},
		{"a finding whose line changes each time is gone", look, "				l.undecidedLines[id] = true", "				l.undecidedLines[id] = false", pkg, changing},
		{"evidence is asked for of no document", look, "if cell.Document == DocFailed || cell.Document == DocUnmarkable {", "if cell.Document == DocUnmarkable {", pkg, exact},
		{"a head without attempts explains no evidence", look, "s, read := whole[key.Document]; read {", "s, read := whole[key.Document]; read && false {", pkg, "TestEvidenceOfATryIsExplained"},
		{"duplicates are not compared", look, "		for _, line := range s.doc.Duplicates {", "		for _, line := range s.doc.Duplicates[:0] {", pkg, "TestADocumentOfManyLines"},
		{"lines are asked for without a bound", look, "slices.Chunk(links, MaxLines) {", "slices.Chunk(links, 1<<20) {", pkg, "TestADocumentOfManyLines"},
		{"what is no longer true stays a finding", passes, "			gone = append(gone, key)\n", "", pkg, exact},
		{"accepted findings are not looked at", passes, "		done.next = &position{State: Accepted}\n", "", pkg, "TestAnAcceptedFindingOpensWhenItsRowChanges"},
		{"what waits is gone when the flow is new", passes, "	if key.Class == PendingTooLong && (l.FlowSince", "	if key.Class == LeftBehind && (l.FlowSince", pkg, waits},
		{"a run of named documents compares the ledger", passes, "func (w *work) rows(ctx context.Context) (stepped, error) {\n	if w.names() {", "func (w *work) rows(ctx context.Context) (stepped, error) {\n	if false {", pkg, named},
		{"a run of named documents looks at no line", passes, "	if w.names() { // no pass over rows has looked at their lines", "	if false {", pkg, named},
		{"a comparison begins where the last one began", passes, "began.Add(-overlap)", "began.Add(0)", pkg, window},
		{"a comparison goes back an hour", steps, "overlap = 3 * time.Hour", "overlap = time.Hour", pkg, "TestARetryThatNobodyTakesIsFound"},
		{"each comparison begins with the first document", passes, "	if compared {", "	if compared && false {", pkg, window},
		{"a pass that begins again counts twice", passes, "			taken[class] = -n\n", "			taken[class] = 0 * n\n", pkg, lost},
		{"a pass begins again for ever", passes, `== "continuation" && at.Again < restarts {`, `== "continuation" {`, pkg, lost},
		{"the ledger's gone documents are not counted", passes, "			done.counts[DocumentGone]++\n", "", pkg, "TestAGoneDocumentIsCounted"},
		{"a run does not wait for another", steps, "	case waits:", "	case waits && false:", pkg, "TestARunWaits"},
		{"a step does not ask the breaker", steps, "	if err := r.p.Breaker.Permit(ctx); err != nil {", "	if err := r.p.Breaker.Permit(ctx); err != nil && false {", pkg, "TestAStepAsksTheBreakerFirst"},
		{"findings are chosen again after a crash", mend, "		if f.compare(*at.UpTo) <= 0 {", "		if f.compare(*at.UpTo) <= 1 {", pkg, "TestAStepThatIsRepeatedQueuesNoOthers"},
		{"findings are queued in every night", mend, "State: Open, Unqueued: true, Mend", "State: Open, Mend", pkg, nights},
		{"a night queues without a bound", mend, "mendedAtOnce-at.Queued)", "mendedAtOnce)", pkg, thousand},
		{"only the finding's document of a line is written", mend, "	if mend == WithWrite {", "	if false {", pkg, nights},
		{"a person's run mends", mend, "	if !w.filter.Mend || at", "	if at", pkg, nights},
		{"a report lists every finding", report, "State: Open}, nil, listed)", "State: Open}, nil, 1000)", pkg, "TestTheReport"},
		{"request units are spent at once", pkg + "/pace.go", "	if p.PerSecond <= 0 || charge <= 0 {", "	if p.PerSecond >= 0 {", pkg, "TestThePaceOfRequestUnits"},
		{"29 days are long enough", "internal/config/setting.go", "leastKept, mostKept  = 30, 3650", "leastKept, mostKept  = 29, 3650", "internal/config", "TestEachSettingIsChecked"},
		{"a step's pause is forgotten", "internal/run/passes.go", ", Wait: done.Wait}", "}", "internal/run", "TestAStepWaitsAndTakesCountsBack"},
	}
}

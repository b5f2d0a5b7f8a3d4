package main

// passesTable are mutants of the passes of a comparison.
func passesTable() []mutant {
	const (
		pkg    = "internal/reconcile"
		look   = pkg + "/look.go"
		passes = pkg + "/passes.go"
		steps  = pkg + "/steps.go"
	)
	const (
		exact   = "TestEachCorruptionIsFoundAndGone"
		between = "TestWhatChangesBetweenTheLooks"
		window  = "TestWhichDocumentsAreCompared"
		lost    = "TestALostContinuationBeginsThePassAgain"
		named   = "TestAComparisonOfNamedDocuments"
		night   = "TestOneComparisonANight"
		first   = "TestAFindingKeepsItsFirstSight"
	)
	return []mutant{
		{"what changed between the looks is found", look, "case same && v.seen.Mark == f.Mark:", "case same:", pkg, between},
		{"a mark leaves out the document", look, `d.ETag + "\n"`, `"\n"`, pkg, between},
		{"a mark leaves out the ledger", look, `line.Ledger.WriteID + "\n"`, `"\n"`, pkg, between},
		{"a mark leaves out the rows", look, `"\n" + line.RowHash`, `"\n"`, pkg, between},
		{"what is no finding any more stays one", look, "	default:\n		a.drop[f.Key] = true\n", "	default:\n", pkg, exact},
		{"every edit is new", look, "v.class == Edited && !f.Sure {", "v.class == Edited {", pkg, first},
		{"a line that a document does not name is compared with it", look, "case slices.Contains(linesOf([]invoice.Document{doc}), f.Line):", "default:", pkg, "TestAFindingOfALineThatIsNotNamed"},
		{"lines are asked for without a bound", look, "slices.Values(ids))), MaxLines) {", "slices.Values(ids))), 1<<20) {", pkg, "TestADocumentOfManyLines"},
		{"a first look finds", passes, "	case w.at.Looked == 0:\n", "	case w.at.Looked < 0:\n", pkg, "TestAWriteUnderWayIsNoFinding"},
		{"a comparison of named documents compares the ledger", passes, "func (w *work) rows(ctx context.Context) (stepped, error) {\n	if w.names() {", "func (w *work) rows(ctx context.Context) (stepped, error) {\n	if false {", pkg, named},
		{"a comparison of named documents looks at no line", passes, "	if w.names() { // the pass over the ledger", "	if false { // the pass over the ledger", pkg, named},
		{"a comparison of named documents judges others", passes, "	if w.names() {\n		known =", "	if false {\n		known =", pkg, named},
		{"a comparison begins where the last one began", passes, "last.BegunAt.Add(-overlap)", "last.BegunAt.Add(0)", pkg, window},
		{"each comparison begins with the first document", passes, "	if compared {", "	if compared && false {", pkg, window},
		{"a pass that begins again counts twice", passes, "			taken[class] = -n\n", "			taken[class] = 0 * n\n", pkg, lost},
		{"a pass begins again for ever", passes, `== "continuation" && at.Again < restarts {`, `== "continuation" {`, pkg, lost},
		{"a person's comparison mends", passes, "	if !w.Night {", "	if false {", pkg, "TestANightMends"},
		{"a tick does not ask the breaker", steps, "	if r.p.Breaker.Permit(ctx) != nil {", "	if r.p.Breaker.Permit(ctx) != nil && false {", pkg, "TestATickAsksTheBreakerFirst"},
		{"the night is UTC's", steps, "r.o.Now().In(r.o.Location)", "r.o.Now()", pkg, night},
		{"a night begins at midnight", steps, "!now.Before(begins)", "!begins.IsZero()", pkg, night},
		{"a night begins beside one that is late", steps, "there && open.Night", "false && open.Night", pkg, "TestALongNightKeepsTheOthersWaiting"},
		{"a tick goes on with a step that another did", steps, "fault.Has(err, fault.Changed)", "fault.Has(err, fault.Gone)", pkg, "TestAStepThatAnotherTickDid"},
		{"request units are spent at once", pkg + "/pace.go", "	if p.PerSecond <= 0 || charge <= 0 {", "	if p.PerSecond >= 0 {", pkg, "TestThePaceOfRequestUnits"},
		{"29 days are long enough", "internal/config/setting.go", "leastKept, mostKept  = 30, 3650", "leastKept, mostKept  = 29, 3650", "internal/config", "TestEachSettingIsChecked"},
	}
}

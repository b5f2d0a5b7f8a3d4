package main

// nightlyTable has the mutants of what operators see and do of comparisons.
func nightlyTable() []mutant {
	const nightly, found, findings = "internal/ops/nightly.go", "internal/ops/found.go", "internal/ops/findings.go"
	const evidence = "internal/ops/evidence.go"
	const ops, ctl = "internal/ops", "cmd/sqlwriterctl"
	return []mutant{
		{"the night is UTC's", nightly, "o.o.Now().In(o.o.Location)", "o.o.Now()", ops, "TestTheNightlyRunIsStartedOnceADay"},
		{"the night mends nothing", nightly, "run.Filter{Mend: true}", "run.Filter{}", ops, "TestTheNightlyRunIsStartedOnceADay"},
		{"a run that another instance started fails the tick", nightly, `fault.CodeOf(err) == "run_exists"`, "false", ops, "TestANightlyRunThatAnotherInstanceStartedIsFound"},
		{"a shadow compares", nightly, `if o.o.ReadOnly != "" {`, "if false {", ops, "TestAShadowComparesNothing"},
		{"counting findings asks SQL while the flow is stopped", found, "flow.Name == breaker.Open || ", "", ops, "TestFindingsThatCannotBeCountedKeepTheirLastNumbers"},
		{"findings that cannot be counted are forgotten", "internal/ops/counts.go", "c.Findings = last.Findings", "c.Findings = nil", ops, "TestFindingsThatCannotBeCountedKeepTheirLastNumbers"},
		{"what the night mends asks for attention at once", found, "now.Sub(c.First) < mendWithin", "false", ops, "TestWhatTheNightMendsAsksForAttentionADayLater"},
		{"what the night mends never asks for attention", found, "now.Sub(c.First) < mendWithin", "true", ops, "TestWhatTheNightMendsAsksForAttentionADayLater"},
		{"accepted findings are open", found, "f.Open+c.Open,", "f.Open+c.Open+c.Accepted,", ops, "TestTheStatusSaysWhetherSQLEqualsCosmos"},
		{"a finding that is gone can be accepted", findings, "case f.State == reconcile.Gone:", "case false:", ops, "TestFindingsAreAcceptedTogetherAndAudited"},
		{"a name of several findings means the first", findings, "	case 1:\n", "	default:\n", ops, "TestAFindingIsShownByItsName"},
		{"a list without a state shows all", findings, "selected.State = reconcile.Open", `selected.State = ""`, ops, "TestFindingsAreListedByClassStateAndLine"},
		{"all of a comparison is what changed", "internal/ops/run_start.go", "Whole: r.All && kind.Compares,", "Whole: false,", ops, "TestWhatAComparisonIsStartedWith"},
		{"evidence of another document is given", evidence, "case path.Base(path.Dir(folder)) != evidenceName(q.ID):", "case false:", ops, "TestWrongRequestsForEvidence"},
		{"evidence that may not be the newest is given", evidence, "len(found.Episodes) == 0 || found.More:", "len(found.Episodes) == 0:", ops, "TestEvidenceIsSearchedForABoundedTime"},
		{"incomplete evidence is given as the newest", evidence, "return !e.Incomplete })", "return true })", ops, "TestAFileOfEvidenceIsGivenAsItIs"},
		{"evidence of a document whose id begins alike is shown", evidence, "p[2] != name", "!strings.HasPrefix(p[2], name)", ops, "TestAllEvidenceOfADocumentIsShown"},
		{"readers see the content of evidence", "internal/opsapi/call.go", "c.Role = Operator", "c.Role = Reader", "internal/opsapi", "TestTheTableIsSound"},
		{"the place of evidence has the signature", "internal/blob/reconcile_evidence.go", `strings.Cut(s.client.URL(), "?")`, `strings.Cut(s.client.URL(), "\n")`, "internal/blob", "TestWithARightToFilesOnly"},
		{"open findings do not change the exit code", ctl + "/finding.go", "if err == nil && f.State == reconcile.Open {", "if f.State == reconcile.Gone {", ctl, "TestFindingsAreListedAndAccepted"},
		{"several findings are accepted unasked", ctl + "/finding.go", "if len(c.Names) > 1 {\n		if err := a.mayConfirm", "if false {\n		if err := a.mayConfirm", ctl, "TestFindingsAreListedAndAccepted"},
	}
}

package main

// nightlyTable has the mutants of what operators see and do of comparisons.
func nightlyTable() []mutant {
	const nightly, found, findings, prune = "internal/ops/nightly.go", "internal/ops/found.go", "internal/ops/findings.go", "internal/ops/prune.go"
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
		{"all of a comparison is what changed", "internal/ops/run_start.go", "r.Whole = r.All && kind.Compares", "r.Whole = false", ops, "TestWhatAComparisonIsStartedWith"},
		{"evidence of a document that exists is deleted", prune, "return there[e.DocumentID]", "return false", ops, "TestOnlyOldEvidenceWithoutADocumentIsPruned"},
		{"young evidence is deleted", prune, "return !e.At.Before(before)", "return false", ops, "TestOnlyOldEvidenceWithoutADocumentIsPruned"},
		{"a dry run deletes evidence", prune, "		if !r.DryRun {\n			files", "		if true {\n			files", ops, "TestOnlyOldEvidenceWithoutADocumentIsPruned"},
		{"evidence is deleted without an entry", prune, "return Pruned{}, unaudited(err)", "_ = err", ops, "TestEvidenceIsNotPrunedWithoutAuditReasonOrAge"},
		{"open findings do not change the exit code", ctl + "/finding.go", "if err == nil && f.State == reconcile.Open {", "if f.State == reconcile.Gone {", ctl, "TestFindingsAreListedShownAndAccepted"},
		{"several findings are accepted unasked", ctl + "/finding.go", "if len(c.Names) > 1 {\n		if err := a.mayConfirm", "if false {\n		if err := a.mayConfirm", ctl, "TestFindingsAreListedShownAndAccepted"},
	}
}

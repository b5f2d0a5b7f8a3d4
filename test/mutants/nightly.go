package main

// nightlyTable has the mutants of what operators see and do of comparisons.
func nightlyTable() []mutant {
	const compare, found, findings = "internal/ops/compare.go", "internal/ops/found.go", "internal/ops/findings.go"
	const evidence = "internal/ops/evidence.go"
	const ops, ctl = "internal/ops", "cmd/sqlwriterctl"
	return []mutant{
		{"a shadow compares", compare, `if o.o.ReadOnly != "" {`, "if false {", ops, "TestAComparisonIsBegun"},
		{"all of a comparison is what changed", compare, "Whole: r.All,", "Whole: false,", ops, "TestAComparisonIsBegun"},
		{"edits ask for a person", found, "c.Class == reconcile.Edited || (", "false || (", ops, "TestTheStatusSaysWhetherSQLEqualsCosmos"},
		{"a night mends what is people's", "internal/ops/run_findings.go", ", Mends: true}", "}", ops, "TestTheNightMends"},
		{"edits change the exit code", ctl + "/finding.go", "if err == nil && f.Class != reconcile.Edited {", "if err == nil {", ctl, "TestFindingsAreListed"},
		{"counting findings asks SQL while the flow is stopped", found, "flow.Name == breaker.Open || ", "", ops, "TestFindingsThatCannotBeCountedKeepTheirLastNumbers"},
		{"findings that cannot be counted are forgotten", "internal/ops/counts.go", "c.Findings = last.Findings", "c.Findings = nil", ops, "TestFindingsThatCannotBeCountedKeepTheirLastNumbers"},
		{"what the night mends asks for attention at once", found, "now.Sub(c.First) < mendWithin", "false", ops, "TestWhatTheNightMendsAsksForAttentionADayLater"},
		{"what the night mends never asks for attention", found, "now.Sub(c.First) < mendWithin", "true", ops, "TestWhatTheNightMendsAsksForAttentionADayLater"},
		{"a name of several findings means the first", findings, "	case 1:\n", "	default:\n", ops, "TestAFindingIsShownByItsName"},
		{"evidence of another document is given", evidence, "case path.Base(path.Dir(folder)) != evidenceName(q.ID):", "case false:", ops, "TestWrongRequestsForEvidence"},
		{"evidence that may not be the newest is given", evidence, "len(found.Episodes) == 0 || found.More:", "len(found.Episodes) == 0:", ops, "TestEvidenceIsSearchedForABoundedTime"},
		{"incomplete evidence is given as the newest", evidence, "return !e.Incomplete })", "return true })", ops, "TestAFileOfEvidenceIsGivenAsItIs"},
		{"evidence of a document whose id begins alike is shown", evidence, "p[2] != name", "!strings.HasPrefix(p[2], name)", ops, "TestAllEvidenceOfADocumentIsShown"},
		{"readers see the content of evidence", "internal/opsapi/call.go", "c.Role = Operator", "c.Role = Reader", "internal/opsapi", "TestTheTableIsSound"},
		{"the place of evidence has the signature", "internal/blob/list.go", `strings.Cut(s.client.URL(), "?")`, `strings.Cut(s.client.URL(), "\n")`, "internal/blob", "TestWithARightToFilesOnly"},
	}
}

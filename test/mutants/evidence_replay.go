package main

// evidenceReplayTable has the mutants of a replay from evidence.
func evidenceReplayTable() []mutant {
	const (
		file, start, ops = "internal/ops/run_evidence.go", "internal/ops/run_start.go", "internal/ops"
		thousand         = "TestAThousandPoisonMessagesAreReplayedFromEvidence"
		filtered         = "TestPoisonMessagesAreFilteredByTheirNewestEvidence"
		named            = "TestNamedPoisonMessagesThatAreNotReplayedAreNamed"
		restored         = "TestDeletedDocumentsArePutBackFromTheirNewestEvidence"
		meanwhile        = "TestADocumentThatCameBackMeanwhileWins"
		again            = "TestPuttingBackGoesOnAfterAFailure"
		refused          = "TestEvidenceThatCannotBeUsedIsRefused"
		bad              = "TestBadRequestsForEvidenceAreRefused"
		most             = "TestMorePoisonMessagesThanARunTakes"
	)
	return []mutant{
		{"from evidence: documents of any status are replayed", file, "case doc.State.Status == invoice.Failed:", "case true:", ops, thousand},
		{"from evidence: documents of other environments are replayed", file, "case doc.SysName != o.o.SysName:", "case false:", ops, named},
		{"from evidence: deleted documents are left out of the run", file, "slices.Concat(idsOf(p.replay), p.gone)", "idsOf(p.replay)", ops, thousand},
		{"from evidence: a run without a failed document is started", file, "if len(pills.replay) == 0 {", "if false {", ops, thousand},
		{"from evidence: an older episode counts", file, "e.After(last)", "last.After(e)", ops, filtered},
		{"from evidence: filters ask for any episode", file, "(len(asked) == 0 || asked[e.DocumentID]) &&", "!e.At.Before(r.From) && (r.To.IsZero() || e.At.Before(r.To)) && (len(asked) == 0 || asked[e.DocumentID]) &&", ops, filtered},
		{"from evidence: any kind matches", file, `(r.ErrorKind == "" || f.Kind == r.ErrorKind)`, "true", ops, filtered},
		{"from evidence: any code matches", file, `(r.Code == "" || strings.EqualFold(f.Code, r.Code))`, "true", ops, filtered},
		{"from evidence: what cannot be read matches nothing", file, "	if err != nil && !fault.Has(err, fault.Gone) {\n		return f, err\n", "	if err != nil && !fault.Has(err, fault.Gone) {\n		return f, nil\n", ops, "TestEvidenceThatCannotBeReadStopsTheStart"},
		{"from evidence: a document without evidence is not named", file, `NotTaken{id, "no evidence of it is stored"}`, "p.notTaken[:0]...", ops, named},
		{"from evidence: a run names more than it may", file, "if len(p.replay)+len(p.gone) > maxRunIDs {", "if false {", ops, most},
		{"from evidence: all heads are read for a run that is full", file, "if len(p.replay) >= maxRunIDs {", "if false {", ops, most},
		{"from evidence: a file that was not written is not told", file, "	if len(problems) == 0 {\n", "	if len(problems) >= 0 {\n", ops, "TestARunFromEvidenceGoesOnWithoutItsFile"},
		{"from evidence: the job is the same for other evidence", file, `+ "\n" + files[i].ETag`, "", ops, thousand},
		{"from evidence: the run's row lacks the counts", start, "}{r.Filter, res.Evidence})", "}{Filter: r.Filter})", ops, thousand},
		{"from evidence: the run's entry lacks the counts", start, "err == nil && res.Evidence != nil {", "err != nil {", ops, thousand},
		{"put back: a dry run creates documents", file, "		if !r.DryRun {\n			err :=", "		if true {\n			err :=", ops, restored},
		{"put back: there is no entry before it", file, "			return unaudited(err)\n", "			_ = err\n", ops, "TestAShadowAndAnAuditLogThatIsAwayPutNothingBack"},
		{"put back: documents keep the container's members", file, "slices.Contains(systemMembers(), name)", "false", ops, restored},
		{"put back: signs are escaped", file, "	out.SetEscapeHTML(false)\n", "", ops, restored},
		{"put back: a document waits for a retry", file, "	state = failed.Restored(state)\n", "	_ = failed\n", ops, restored},
		{"put back: an existing document is replaced", file, "Submit(ctx, doc, false)", "Submit(ctx, doc, true)", ops, meanwhile},
		{"put back: a document that came is not looked at", file, "o.judge(ctx, p, true, came)", "error(nil)", ops, meanwhile},
		{"put back: another document's content is taken", file, " || found != id {", " {", ops, refused},
		{"put back: the entry and the error forget what was done", file, "	if documents == 0 {\n", "	if documents >= 0 {\n", ops, again},
		{"put back: a failed start says that nothing was done", start, "case err != nil && res.Evidence != nil && res.Evidence.Restored > 0:", "case false:", ops, again},
		{"put back: more documents than it may", file, " || len(r.IDs) > maxRestored)", ")", ops, bad},
		{"from evidence: another run's documents", file, `r.Run != "" || len(r.Statuses)`, "len(r.Statuses)", ops, bad},
		{"from evidence: any kind of run", file, "case r.Kind != replays:", "case false:", ops, bad},
		{"put back: the failure is another one", "internal/commit/evidence.go", "s.FailedAt, s.LastErrorAt, s.Attempts = e.FailedAt, e.FailedAt, e.Attempts", "s.FailedAt, s.LastErrorAt = e.FailedAt, e.FailedAt", "internal/commit", "TestAStateIsRestoredFromItsEvidence"},
	}
}

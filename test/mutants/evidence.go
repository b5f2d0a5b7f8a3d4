package main

// evidenceTable has the mutants of what comes back from evidence.
func evidenceTable() []mutant {
	const (
		file, ops = "internal/ops/evidence_restore.go", "internal/ops"
		restored  = "TestADeletedDocumentIsPutBack"
		forged    = "TestForgedEvidenceIsNotPutBack"
		written   = "TestADocumentThatWasWrittenSinceIsNotPutBack"
		changes   = "TestARestoreThatCannotBeDoneChangesNothing"
	)
	return []mutant{
		{"put back: a dry run creates a document", file, "	if r.DryRun {\n		return done, nil\n	}\n	detail", "	detail", ops, restored},
		{"put back: there is no entry before it", file, "		return Restored{}, unaudited(err)\n", "		_ = err\n", ops, changes},
		{"put back: documents keep the container's members", file, "slices.Contains(systemMembers(), name)", "slices.Contains(systemMembers(), name) && false", ops, restored},
		{"put back: signs are escaped", file, "	out.SetEscapeHTML(false)\n", "", ops, restored},
		{"put back: a document waits for a retry", file, "e.failed.Restored(doc.State)", "doc.State", ops, restored},
		{"put back: an existing document is replaced", file, "Submit(ctx, doc, false)", "Submit(ctx, doc, true)", ops, changes},
		{"put back: another document's content is taken", file, "err != nil || doc.ID != id:", "err != nil:", ops, forged},
		{"put back: another environment's document is taken", file, "case doc.SysName != o.o.SysName:", "case false:", ops, forged},
		{"put back: forged content is taken", file, "case doc.Hash != hash:", "case false:", ops, forged},
		{"put back: content of another recipe is taken", file, "case e.Metadata.HashVersion != invoice.HashVersion:", "case e.Metadata.HashVersion < 0:", ops, forged},
		{"put back: old content is written over newer", file, "row.SourceTS >= ts", "row.SourceTS < ts", ops, written},
		{"put back: a mark counts as content", file, `row.Outcome != "failed" && `, "", ops, "TestADocumentThatFailedLastIsPutBack"},
		{"put back: the failure is another one", "internal/commit/evidence.go", "s.FailedAt, s.LastErrorAt, s.Attempts = e.FailedAt, e.FailedAt, e.Attempts", "s.FailedAt, s.LastErrorAt = e.FailedAt, e.FailedAt", "internal/commit", "TestAStateIsRestoredFromItsEvidence"},
	}
}

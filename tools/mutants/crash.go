package main

// crashTable are the mutants that the crash test kills: their rule holds only when something fails at the wrong moment.
func crashTable() []mutant {
	return []mutant{
		{
			"evidence that cannot be kept is taken for kept", "internal/writer/poison.go",
			"if err := p.keep(ctx, pill, raw); err != nil {",
			"if err := p.keep(ctx, pill, raw); err != nil && false {",
			"internal/crashtest", "TestEverySingleFault/poison",
		},
		{
			"the last file of the evidence has another name", "internal/writer/poison.go",
			"{\"metadata.json\", metadata}} {",
			"{\"metadata2.json\", metadata}} {",
			"internal/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a document that changed before its evidence is buried as it was", "internal/writer/poison.go",
			"if now.ETag != cur.ETag {",
			"if now.ETag != cur.ETag && false {",
			"internal/crashtest", "TestADocumentCorrectedWhileItIsBuried",
		},
		{
			"a document corrected while its version is kept is buried all the same", "internal/writer/poison.go",
			"if !sameContent(kept, cur) {",
			"if false {",
			"internal/crashtest", "TestADocumentCorrectedWhileItIsBuried",
		},
		{
			"a second poisoning has the evidence of the first", "internal/writer/poison.go",
			"folder: EvidenceFolder(cur, s.ReprocessCount),",
			"folder: EvidenceFolder(cur, 0),",
			"internal/crashtest", "TestEverySingleFault/reprocess",
		},
		{
			"a poison pill whose lines hold something newer fails", "internal/writer/poison.go",
			"out.Verdict == Unchanged || out.Verdict == Superseded {",
			"out.Verdict == Unchanged {",
			"internal/crashtest", "TestEverySingleFault/poison",
		},
		{
			"missing lines are not named in final_error", "internal/writer/poison.go",
			"len(missing) > 0 {",
			"len(missing) > 9 {",
			"internal/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a refused mark asks nobody for a review", "internal/writer/poison.go",
			"finalError = fmt.Sprintf(\"MANUAL REVIEW: AI-ERROR could not be set for lines %s: %s\", lines(cur), sentence(err))",
			"finalError = sentence(err)",
			"internal/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a document is blamed although nothing else was written", "internal/writer/poison.go",
			"case !p.c.gate.contrast(ctx, since):",
			"case !p.c.gate.contrast(ctx, since) && false:",
			"internal/crashtest", "TestEverySingleFault/blame",
		},
		{
			"finished work is recorded over", "internal/writer/settle.go",
			"if was.Status == invoice.Committed {",
			"if false {",
			"internal/crashtest", "TestEverySingleFault/commit",
		},
		{
			"snapshots have no time of their own in the ledger", "internal/writer/ports.go",
			"SourceTS: d.TS, Hash: d.Hash",
			"SourceTS: 0, Hash: d.Hash",
			"internal/crashtest", "TestEverySingleFault/commit",
		},
		{
			"a claimed probe keeps nobody away", "internal/writer/gate.go",
			"s.OpenUntil, s.HeldBy = now.Add(probeEvery), in.by",
			"s.HeldBy = in.by",
			"internal/crashtest", "TestEverySingleFault/gate",
		},
	}
}

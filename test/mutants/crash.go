package main

// crashTable has the mutants that test/crashtest detects: their rules matter only when a fault comes at the wrong moment.
func crashTable() []mutant {
	return []mutant{
		{
			"evidence that cannot be kept is taken for kept", "internal/commit/poison.go",
			"if err := p.keep(ctx, pill, raw); err != nil {",
			"if err := p.keep(ctx, pill, raw); err != nil && false {",
			"test/crashtest", "TestEverySingleFault/poison",
		},
		{
			"the last file of the evidence has another name", "internal/commit/poison.go",
			"{EvidenceMetadata, metadata}} {",
			"{\"metadata2.json\", metadata}} {",
			"test/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a document that changed before its evidence becomes poison as it was", "internal/commit/poison.go",
			"if now.ETag != w.doc.ETag {",
			"if now.ETag != w.doc.ETag && false {",
			"test/crashtest", "TestADocumentCorrectedWhileItIsPoisoned",
		},
		{
			"a second poisoning has the evidence of the first", "internal/commit/poison.go",
			"folder: EvidenceFolder(cur.Document, s.ReprocessCount),",
			"folder: EvidenceFolder(cur.Document, 0),",
			"test/crashtest", "TestEverySingleFault/replay",
		},
		{
			"a poison pill whose lines hold something newer fails", "internal/commit/poison.go",
			"out.Verdict == Unchanged || out.Verdict == Superseded {",
			"out.Verdict == Unchanged {",
			"test/crashtest", "TestEverySingleFault/poison",
		},
		{
			"missing lines are not named in final_error", "internal/commit/poison.go",
			"len(missing) > 0 {",
			"len(missing) > 9 {",
			"test/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a refused mark asks nobody for a review", "internal/commit/poison.go",
			"finalError = fmt.Sprintf(\"MANUAL REVIEW: AI-ERROR could not be set for lines %s: %s\", lines(cur), sentence(err))",
			"finalError = sentence(err)",
			"test/crashtest", "TestEverySingleFault/poison",
		},
		{
			"a document is blamed although nothing else was written", "internal/commit/judge.go",
			"known && j.breaker.Proven(ctx, last) {",
			"known && !last.IsZero() {",
			"test/crashtest", "TestEverySingleFault/blame",
		},
		{
			"finished work is recorded over", "internal/commit/judge.go",
			"	case was.Status == invoice.Committed:\n",
			"	case false:\n",
			"test/crashtest", "TestEverySingleFault/commit",
		},
		{
			"snapshots have no time of their own in the ledger", "internal/commit/ports.go",
			"SourceTS: d.TS, Hash: d.Hash",
			"SourceTS: 0, Hash: d.Hash",
			"test/crashtest", "TestEverySingleFault/commit",
		},
		{
			"five failures end a document", "internal/commit/states.go",
			"s.Postponed = s.RetryCount >= MaxRetries",
			"s.Postponed = s.RetryCount+1 >= MaxRetries",
			"test/crashtest", "TestEverySingleFault/blame",
		},
		{
			"an outage is charged", "internal/commit/states.go",
			"	case fault.Has(err, fault.OthersAnswered):\n		return t.again(",
			"	case fault.Has(err, fault.OthersAnswered):\n		s.RetryCount++\n		return t.again(",
			"test/crashtest", "TestEverySingleFault/recover",
		},
		{
			"a claim of the probe is over at once", "internal/breaker/state.go",
			"			s = s.until(now.Add(probeEvery + in.jitter))\n",
			"",
			"test/crashtest", "TestEverySingleFault/breaker",
		},
		{
			"nobody claims the first request for documents", "internal/breaker/breaker.go",
			"case state.Name == HalfOpen && state.Limit == 1 && !b.claim(ctx, state):",
			"case state.Name == \"\" && !b.claim(ctx, state):",
			"test/crashtest", "TestEverySingleFault/breaker",
		},
	}
}

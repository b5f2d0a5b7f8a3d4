package main

// diffTable are mutants of the diffs of documents.
func diffTable() []mutant {
	const (
		ops        = "internal/ops"
		lines      = ops + "/diff.go"
		documents  = ops + "/documents_diff.go"
		builder    = "internal/commit/outcome_builder.go"
		comparison = "test/comparison"
		isTheWrite = "TestADiffIsWhatTheWriteThenDoes"
		explains   = "TestADiffExplainsEachDocument"
		mark       = "TestADiffWarnsOfAFailureMark"
	)
	return []mutant{
		{"a diff says what a rewrite would do", documents, "s.diff(ctx, commit.Write, items, nil)", "s.diff(ctx, commit.Rewrite, items, nil)", comparison, isTheWrite},
		{
			"a diff takes a document that is not due for one of the next request", documents,
			"		d.others = append(d.others, commit.ItemOf(doc))\n", "		d.taken = append(d.taken, commit.ItemOf(doc))\n", comparison, isTheWrite,
		},
		{
			"a diff writes", "internal/app/open/sql.go", "d.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})", "d.Apply(ctx, items, commit.Write, breaker.Heartbeat{})",
			"cmd/sqlwriterctl", "TestADocumentIsComparedBeforeItIsTriedAgain",
		},
		{"a diff says that all lines are written", lines, "line.Verdict == commit.Applied, line.says(mode)", "true, line.says(mode)", comparison, isTheWrite},
		{"a diff shows NULL as an empty text", lines, "	if v.Null {\n		return nil\n	}\n", "", comparison, isTheWrite},
		{"a diff hides the columns of IVCE_TRKG_MSTR", lines, "		if before[i] != after[i] {\n", "		if before[i] != after[i] && c.Table == invoice.Detail {\n", comparison, isTheWrite},
		{
			"a diff compares with the values that the line gets", lines, "			after := row.Want\n", "			after := row.After\n", comparison, isTheWrite,
		},
		{
			"a diff of another environment's document is a write", documents, "case eligibility == invoice.NotOurs, ", "case ", comparison, isTheWrite,
		},
		{"a diff says that a document is committed whose clock went back", lines, "row.By == it.DocumentID && mode", "false && mode", comparison, isTheWrite},
		{"a diff names one missing line of several", lines, "case len(missing) == 1:", "case len(missing) > 0:", comparison, isTheWrite},
		{"a diff leaves out what is gone", documents, "		if !there {\n", "		if !there && id == \"\" {\n", ops, explains},
		{"a diff answers in the order of the container", documents, "ids := distinct(q.IDs)", "ids := slices.Sorted(slices.Values(distinct(q.IDs)))", ops, explains},
		{"a diff divides many lines silently", documents, "len(items) > 1 && rows > maxDiffRows", "false", ops, "TestADiffIsRefused"},
		{"a diff does not warn of constraints", documents, "notANumber == nil && ", "notANumber != nil && ", ops, "TestADiffWarnsOfConstraints"},
		{"a diff does not warn of a poison message", documents, "commit.Spent(doc.State, doc.Problem)", "false", ops, mark},
		{"a diff warns of a poison message too early", "internal/commit/states.go", "return s.Postponed || (", "return s.RetryCount+1 >= MaxRetries || (", ops, mark},
		{
			"a diff of a failed document counts its old retries", "internal/commit/states.go",
			"usedUp(transitions{reprocess: true}.begin(s), err)", "usedUp(s, err)", "internal/commit", "TestSpent",
		},
		{
			"a preview compares values that the columns keep otherwise", builder, "			row.Before = stored(now)\n", "			row.Before = now\n",
			"internal/commit", "TestAPreviewHasValuesAsTheColumnsKeepThem",
		},
	}
}

package main

// documentsTable are mutants of the lists of documents.
func documentsTable() []mutant {
	const (
		ops    = "internal/ops"
		newest = ops + "/newest.go"
		lists  = ops + "/documents.go"
		cosmos = "internal/cosmos"
	)
	return []mutant{
		{
			"a list shows what a window brought first", newest,
			"			return !n.cut\n", "			return !n.cut && n.matched < limit\n", ops, "TestAListIsTheNewest",
		},
		{
			"a document that changes while its window is read comes twice", newest,
			"		seen[d.ID] = true\n", "", ops, "TestADocumentThatMovesWithinItsWindowComesOnce",
		},
		{
			"a list has no bound", newest, "			n.cut = late()\n", "", ops, "TestAListThatIsCutSaysSo",
		},
		{
			"a line of another environment is hidden", lists, "		s.SysName = \"\"\n", "", ops, "TestAListIsOfThisEnvironment",
		},
		{
			"a number is taken for a line that JSON writers round to it", ops + "/search.go", "n >= 0 && n <= maxExact", "n >= 0", cosmos, "TestSearch",
		},
		{
			"duplicates are not searched", cosmos + "/search.go",
			"			query += \" OR ARRAY_CONTAINS(\" + duplicates + \", \" + name + \")\"\n", "			_ = name\n", cosmos, "TestSearch",
		},
		{
			"a replay leaves waiting documents that were asked for", "internal/run/kinds.go",
			"named || slices.Contains(asked, s)", "named", "internal/run", "TestAReplayTakesScheduledRetriesOnlyWhenNamed",
		},
		{
			"a retry takes more than its list shows", ops + "/documents_retry.go",
			"	if other == (Search{}) {", "	if true {", ops, "TestEachMemberOfAFilterNarrowsAListAndARetry",
		},
		{
			"a retry of few documents waits for the workers", ops + "/run_start.go",
			"res.Matched <= atOnce", "res.Matched < 0", ops, "TestARetryOfFewDocumentsIsExecutedHere",
		},
		{
			"a run waits for a queue that is away", ops + "/run_start.go",
			"		if res.Note, sent = o.notify(ctx, row); sent {", "		if res.Note, sent = o.notify(ctx, row); sent || !sent {", ops, "TestARunIsExecutedHereWhileTheQueueIsAway",
		},
	}
}

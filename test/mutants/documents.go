package main

// documentsTable are mutants of the lists of documents.
func documentsTable() []mutant {
	const (
		ops    = "internal/ops"
		page   = ops + "/documents_page.go"
		lists  = ops + "/documents.go"
		cosmos = "internal/cosmos"
	)
	return []mutant{
		{
			"a page begins with documents that were given", page,
			"d.TS == l.To-1 && d.Version.Key <= l.After", "false", ops, "TestAListHasEachDocumentOnce",
		},
		{
			"a page leaves out the rest of its last second", page,
			"	l.To, l.After = last.TS+1, last.Version.Key\n", "	l.To, l.After = last.TS, \"\"\n", ops, "TestAListHasEachDocumentOnce",
		},
		{
			"the sample does not cut the window", page,
			"	l.Width = l.To - enough.TS - 1\n", "	l.Width = min(width/widthFactor, l.To-enough.TS)\n", ops, "TestAListHasEachDocumentOnce",
		},
		{
			"a document that changes while its window is read comes twice", page,
			"		seen[d.ID] = true\n", "", ops, "TestADocumentThatMovesWithinItsWindowComesOnce",
		},
		{
			"a call has no bound", page, "l.requests >= searchMost", "l.requests >= 100*searchMost", ops, "TestACallEndsBeforeItsListDoes",
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
	}
}

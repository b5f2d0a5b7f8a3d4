package main

// kindsTable are mutants of the table of SQL Server's errors and of the code pages.
func kindsTable() []mutant {
	const (
		sqlserver = "internal/sqlserver"
		classify  = sqlserver + "/classify.go"
		tables    = sqlserver + "/codepage.go"
		pages     = sqlserver + "/codepages.go"
	)
	return []mutant{
		{
			"an unlisted error of severity 17 is the document's", classify,
			"const severe = 17\n", "const severe = 18\n", sqlserver, "TestUnlistedErrorsBySeverity",
		},
		{
			"severity goes before the table", classify,
			"	for _, r := range rules() {\n		if slices.Contains(r.numbers, e.Number) {\n",
			"	for _, r := range rules() {\n		if e.Class < severe && slices.Contains(r.numbers, e.Number) {\n", sqlserver, "TestUnlistedErrorsBySeverity",
		},
		{
			"a clock that lags in a temporal table is the document's", classify, "3961, 13535, 41301", "3961, 41301", sqlserver, "TestErrorsByNumber",
		},
		{
			"a document is refused by what was read five minutes ago", pages,
			"	if !some || fresh {\n", "	if !some || !fresh {\n", sqlserver, "TestCodePagesAreReadAgain",
		},
		{
			"code pages are read once", pages,
			"known != nil && p.now().Sub(known.at) < codePagesAge", "known != nil", sqlserver, "TestCodePagesAreReadAgain",
		},
		{
			"936 has what GB 18030 has", tables, " || code >= 0xFE50", "", sqlserver, "TestWhatACodePageHolds",
		},
		{
			"950 has what HKSCS has", tables, "(code >= 0xC6A1 && code <= 0xC8FE) || ", "", sqlserver, "TestWhatACodePageHolds",
		},
		{
			"a refused document is written all the same", sqlserver + "/apply.go",
			"			outcomes[i] = writer.Outcome{DocumentID: it.DocumentID, Refused: refused[i]}\n			continue\n",
			"			outcomes[i] = writer.Outcome{DocumentID: it.DocumentID, Refused: refused[i]}\n", sqlserver, "TestOnlyTheDocumentWithTheCharacterIsRefused",
		},
		{
			"what the sink refused counts as written", "internal/writer/apply.go",
			"		return o.Refused\n", "		return nil\n", "internal/writer", "TestARefusedDocumentNeedsNoBisect",
		},
	}
}

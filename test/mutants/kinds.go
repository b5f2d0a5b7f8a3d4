package main

// kindsTable are mutants of the table of SQL Server's errors and of the user's column widths.
func kindsTable() []mutant {
	const (
		sqlserver = "internal/store/sqlserver"
		classify  = sqlserver + "/classify.go"
		tables    = sqlserver + "/codepage.go"
		limits    = sqlserver + "/limits.go"
	)
	return []mutant{
		{
			"an unlisted error of severity 17 is the document's", classify,
			"const severityOfServer = 17\n", "const severityOfServer = 18\n", sqlserver, "TestUnlistedErrorsBySeverity",
		},
		{
			"severity goes before the table", classify,
			"	for _, r := range rules() {\n		if slices.Contains(r.numbers, e.Number) {\n",
			"	for _, r := range rules() {\n		if e.Class < severityOfServer && slices.Contains(r.numbers, e.Number) {\n", sqlserver, "TestUnlistedErrorsBySeverity",
		},
		{
			"a clock that lags in a temporal table is the document's", classify, "3961, 13535, 41301", "3961, 41301", sqlserver, "TestErrorsByNumber",
		},
		{
			"a document is refused by what was read five minutes ago", limits,
			"	if !some || fresh {\n", "	if !some || !fresh {\n", sqlserver, "TestColumnsAreReadAgain",
		},
		{
			"the columns are read once", limits,
			"known != nil && l.now().Sub(known.at) < limitsAge", "known != nil", sqlserver, "TestColumnsAreReadAgain",
		},
		{
			"a refused value has no column read again", limits,
			"		l.expireAfter(err)\n", "", sqlserver, "TestARefusedRequestHasTheColumnsReadAgain",
		},
		{
			"a NULL goes to a column that does not take it", limits,
			"		if !l.nullable {\n", "		if false {\n", sqlserver, "TestWhatAColumnHolds",
		},
		{
			"a character of two bytes counts once in a varchar", tables,
			"p.has[r] = len(code)", "p.has[r] = 1", sqlserver, "TestWhatAColumnHolds",
		},
		{
			"a character of 4 bytes counts once in an nvarchar", limits,
			"			size += utf16.RuneLen(r)\n", "			size += min(1, utf16.RuneLen(r))\n", sqlserver, "TestWhatAColumnHolds",
		},
		{
			"a decimal is rounded by its column without a word", limits,
			"	if behind > l.scale {\n", "	if false {\n", sqlserver, "TestWhatAColumnHolds",
		},
		{
			"only the main line is compared with the columns", limits,
			"range min(it.Rows(), 2)", "range 1", sqlserver, "TestTheValuesOfDuplicatesAreComparedToo",
		},
		{
			"a mark is compared with columns that it does not write", limits,
			"has == nil || (it.FailureMark && values[i].Null)", "has == nil", sqlserver, "TestAMarkIsComparedWithTheStatusOnly",
		},
		{
			"what nobody can write is compared", limits,
			"if !ok || has.computed || has.identity {", "if !ok {", sqlserver, "TestOnlyTheDocumentWithTheValueIsRefused",
		},
		{
			"a mark that the sink refused counts as made", "internal/commit/poison.go",
			"		if err == nil {\n			err = outcomes[0].Refused\n		}\n", "", "internal/commit", "TestAMarkThatIsRefusedIsManualReview",
		},
		{
			"936 has what GB 18030 has", tables, " || code >= 0xFE50", "", sqlserver, "TestWhatACodePageHolds",
		},
		{
			"950 has what HKSCS has", tables, "(code >= 0xC6A1 && code <= 0xC8FE) || ", "", sqlserver, "TestWhatACodePageHolds",
		},
		{
			"a refused document is written all the same", limits,
			"			outcomes[i] = commit.Outcome{DocumentID: it.DocumentID, Refused: refused[i]}\n			continue\n",
			"			outcomes[i] = commit.Outcome{DocumentID: it.DocumentID, Refused: refused[i]}\n", sqlserver, "TestOnlyTheDocumentWithTheValueIsRefused",
		},
		{
			"what the sink refused counts as written", "internal/commit/write.go",
			"		return o.Refused\n", "		return nil\n", "internal/commit", "TestARefusedDocumentNeedsNoBisect",
		},
	}
}

package main

// sqliteTable are mutants of how the embedded database runs a write.
func sqliteTable() []mutant {
	const (
		sqlite  = "internal/store/sqlite"
		prune   = sqlite + "/sql/prune.sql"
		stamped = sqlite + "/sql/stamped.sql"
	)
	return []mutant{
		{
			"SQLite compiles its statements for every request", sqlite + "/statements.go",
			"strings.TrimSpace(b.String())", `b.String() + "\n"`, sqlite, "TestStatementsAreCompiledOnceForAConnection",
		},
		{
			"a new connection has no temp tables", sqlite + "/prepared.go", "		_, err = script.Exec(nil)", "		_, err = script.Close(), error(nil)",
			sqlite, "TestAConnectionThatIsReplaced",
		},
		{
			"statements that could not be prepared stay so", sqlite + "/prepared.go",
			`			return nil, classify("sqlite: apply: "+name, err)`, `			p.done = done
			return nil, classify("sqlite: apply: "+name, err)`, sqlite, "TestARequestBeforeTheTables",
		},
		{
			"one stamped line is evidence for all", sqlite + "/verdict.go", "if stamped == lines {", "if stamped > 0 {",
			sqlite, "TestSink/the_newer_of_two_on_one_line_is_good:_the_older_one's_other_lines_are_written",
		},
		{
			"somebody else's stamp is evidence", stamped, " AND l.write_id = w.write_id", "",
			sqlite, "TestSink/with_a_ledger_row:_a_still_newer_one_whole_after_newer's_UPDATE_ends_on_top",
		},
		{
			"the oldest of several on one line wins", prune,
			"(o.version_us, o.document_key, o.source_ts, o.doc) > (i", "(o.version_us, o.document_key, o.source_ts, o.doc) < (i",
			sqlite, "TestSink/the_newer_of_two_on_one_line_is_good:_the_older_one's_other_lines_are_written",
		},
		{
			"a document that is left out wins its other lines", prune,
			"    OR EXISTS (SELECT 1 FROM {{.Item}} AS i WHERE i.doc = r.doc AND i.left_out = 1)\n", "",
			sqlite, "TestSink/a_missing_duplicate_leaves_the_whole_document_out",
		},
		{
			"a document that is left out keeps others from its lines", prune, " AND o.left_out = 0", "",
			sqlite, "TestSink/the_newer_of_two_on_one_line_is_missing_another:_the_older_one_is_written",
		},
		{
			"a missing line of a mark wins", prune, "    r.missing = 1\n    OR r.verdict", "    r.verdict",
			sqlite, "TestSink/a_mark_loses_only_the_line_that_is_missing",
		},
		{
			"duplicates have the values of the main line", "internal/store/shared/request.go", "if position < 2 {", "if position < 1 {",
			sqlite, "TestSink/10_duplicates",
		},
		{
			"a document's first line has the values of the one before", "internal/store/shared/request.go", "if position < 2 {", "if position == 1 || doc == 0 {",
			sqlite, "TestSink/a_batch_of_100",
		},
	}
}

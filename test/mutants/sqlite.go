package main

// sqliteTable are mutants of how the embedded database runs a write.
func sqliteTable() []mutant {
	const (
		sqlite  = "internal/store/sqlite"
		prune   = sqlite + "/sql/prune.sql"
		stamped = sqlite + "/sql/stamped.sql"
		rewrite = "internal/store/shared/rewrite.go"
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
			"a line that is left alone keeps others from it", prune, " AND c.verdict = 'applied'", "",
			sqlite, "TestSink/two_documents_on_an_edited_line_are_both_left_alone",
		},
		{
			"a line that is left alone wins", prune, "    OR r.verdict <> 'applied'\n", "",
			sqlite, "TestSink/a_rewrite_writes_lines_that_nobody_edited,_and_no_others",
		},
		{
			"a line that is left alone gets another verdict", sqlite + "/sql/verdict.sql", "    WHEN r.verdict <> 'applied' THEN r.verdict\n", "",
			sqlite, "TestSink/a_rewrite_writes_lines_that_nobody_edited,_and_no_others",
		},
		{
			"a rewrite overlooks edits of IVCE_DTL", rewrite, "detail != p.DetailHash || ", `detail == "" || `,
			sqlite, "TestSink/a_rewrite_leaves_an_edit_of_either_table_alone,_whatever_differs",
		},
		{
			"a rewrite overlooks edits of IVCE_TRKG_MSTR", rewrite, " && tracking != p.TrackingHash)", ` && tracking == "")`,
			sqlite, "TestSink/a_rewrite_leaves_an_edit_of_either_table_alone,_whatever_differs",
		},
		{
			"a lost tracking row is an edit", rewrite, "(p.Tracked && tracking != ", "(tracking != ",
			sqlite, "TestSink/a_rewrite_writes_a_line_that_has_lost_its_tracking_row,_and_keeps_the_other_row's_status",
		},
		{
			"a tracking row without values does not count as one", "internal/store/sqlite/sql/rewrite_read.sql",
			"t.{{.TrackingKey}} IS NOT NULL AS tracked", "t.DUP_IND IS NOT NULL AS tracked",
			sqlite, "TestSink/a_line_without_its_tracking_row_whose_other_row_was_edited_is_left_alone",
		},
		{
			"a rewrite compares hashes of another version", rewrite, "p.HashVersion != invoice.HashVersion || ", "",
			sqlite, "TestSink/a_line_of_another_hash_version_is_not_comparable,_and_is_written_when_that_is_allowed",
		},
		{
			"a rewrite takes what it cannot compare for edited", rewrite, ` || p.DetailHash == ""`, "",
			sqlite, "TestSink/an_adopted_line_is_not_comparable,_and_is_written_when_that_is_allowed",
		},
		{
			"a rewrite may overwrite edits where it may write what it cannot compare", rewrite, "if it.Overwrites(line) {", "if it.Overwrites(line) || it.NotComparable {",
			sqlite, "TestSink/what_cannot_be_compared_may_be_written,_and_an_edit_still_may_not",
		},
		{
			"a rewrite keeps the status of a line that an operator named", sqlite + "/rewrite.go", " && !it.Overwrites(l.line)", "",
			sqlite, "TestSink/a_rewrite_writes_an_edited_line_that_an_operator_named,_with_its_status,_and_no_other",
		},
		{
			"a changed status is an edit", "internal/invoice/hash.go", " && !c.IsStatus()", "",
			sqlite, "TestSink/a_rewrite_keeps_a_status_that_a_steward_set,_on_each_line_and_in_both_tables",
		},
		{
			"a rewrite compares a number's text", sqlite + "/rewrite.go", "shared.Decimal(c, text.String); err == nil {", "shared.Decimal(c, text.String); err != nil {",
			sqlite, "TestSink/unedited_lines_in_columns_of_other_types_are_not_edited,_and_edited_ones_are",
		},
		{
			"a document with an edited line is applied", "internal/commit/outcome_builder.go", "n[Edited] > 0", "n[Edited] > len(rows)",
			sqlite, "TestSink/a_rewrite_writes_lines_that_nobody_edited,_and_no_others",
		},
		{
			"an adopted row keeps the row hashes", sqlite + "/adoption/update.sql", "    detail_row_hash = NULL,\n", "",
			sqlite, "TestLedger/a_page_is_in_the_ledger_as_it_was_sent,_and_the_user's_tables_are_as_they_were",
		},
		{
			"SQL Server's columns store what was sent", "internal/store/sqlserver/limits.go", `l.kind == "char" || l.kind == "nchar"`, `l.kind == "char"`,
			"internal/store/sqlserver", "TestAStoredValueHasTheHashOfTheSentOne",
		},
		{
			"datetime is not rounded", "internal/store/sqlserver/limits.go", `c.Kind == invoice.Time && l.kind == "datetime"`, `c.Kind == invoice.Time && l.kind == "date"`,
			"internal/store/sqlserver", "TestAStoredValueHasTheHashOfTheSentOne",
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

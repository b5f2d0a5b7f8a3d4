package main

// rowsTable are mutants of how the ledger is compared with the rows.
func rowsTable() []mutant {
	const (
		sqlite  = "internal/store/sqlite"
		compare = "internal/store/shared/reconcile.go"
		scan    = sqlite + "/sql/reconcile_scan.sql"
		pages   = "TestRows/rows:_a_scan_takes_1,000_ledger_rows_whatever_their_environment,_and_counts_its_own"
		edited  = "TestRows/rows:_an_edit_of_either_table_is_edited,_whatever_differs"
		unknown = "TestRows/rows:_what_was_written_is_unknown_of_a_mark,_an_adopted_line,_another_hash_version_and_no_ledger_row"
		byID    = "TestRows/rows:_1,000_lines_by_their_ids,_some_twice_and_some_without_any_row"
		hashes  = "TestRows/rows:_the_hash_of_the_rows_follows_every_change,_and_the_write_id_every_write"
	)
	return []mutant{
		{"a scan compares the lines of other environments", compare, "if l.Ledger.SysName != r.engine.SysName {", "if l.Ledger.SysName == \"\" {", sqlite, pages},
		{"a scan passes over other environments without a bound", scan, "WHERE detail_id > @after ORDER", "WHERE detail_id > @after AND sys_name = @sys_name ORDER", sqlite, pages},
		{"a scan begins with the line after which it should", scan, "detail_id > @after", "detail_id >= @after", sqlite, pages},
		{"a comparison overlooks edits of IVCE_DTL", compare, "case detail != l.DetailHash:", "case detail == \"\":", sqlite, edited},
		{"a comparison overlooks edits of IVCE_TRKG_MSTR", compare, "case tracking != l.TrackingHash:", "case tracking == \"\":", sqlite, edited},
		{"a missing tracking row is an edit", compare, "case !l.Tracking:", "case false:", sqlite, "TestRows/rows:_a_line_without_its_tracking_row"},
		{"a missing tracking row hides an edit", compare, "	case detail != l.DetailHash:\n", "	case detail != l.DetailHash && l.Tracking:\n", sqlite, "TestRows/rows:_a_line_without_its_tracking_row"},
		{"a missing detail row is unknown without hashes", compare, "case !l.Detail:", "case !l.Detail && l.DetailHash != \"\":", sqlite, "TestRows/rows:_a_line_without_its_detail_row"},
		{"a steward's status is not seen", compare, "case l.reviewed():", "case false:", sqlite, "TestRows/rows:_a_status_that_no_document_gives_is_reviewed,_in_either_table"},
		{"no status is one that a document gives", compare, "l.Values[i].Null || !slices.Contains(c.Values", "!l.Values[i].Null && !slices.Contains(c.Values", sqlite, "TestRows/rows:_a_status_that_no_document_gives_is_reviewed,_in_either_table"},
		{"hashes of another version are compared", compare, "l.Ledger.HashVersion != invoice.HashVersion || ", "", sqlite, unknown},
		{"what has no hashes is compared", compare, ` || l.DetailHash == "" || l.TrackingHash == ""`, "", sqlite, unknown},
		{"a line is given as often as it is asked for", compare, "	ids = slices.Compact(ids)\n", "", sqlite, byID},
		{"the caller's list is sorted", compare, "	ids = slices.Clone(ids)\n", "", sqlite, byID},
		{"the hash of the rows leaves the status out", compare, "if l.Values[i].Null {", "if l.Values[i].Null || c.IsStatus() {", sqlite, hashes},
		{"the hash of the rows leaves a missing row out", compare, "strconv.AppendBool(strconv.AppendBool(nil, l.Detail), l.Tracking)", "strconv.AppendBool(nil, l.Detail)", sqlite, hashes},
		{"a tracking row alone has no hash", compare, "if !l.Detail && !l.Tracking {", "if !l.Detail {", sqlite, "TestATrackingRowAlone"},
		{"a comparison reads on the writer's connection", sqlite + "/reconcile.go", "s.reader.QueryContext", "s.writer.QueryContext", sqlite, "TestACallerWhoHoldsTheWritersConnectionKeepsNoReaderWaiting"},
		{"a comparison's error is a document's", sqlite + "/reconcile.go", "	if err != nil {\n		return classifyDependency(", "	if err != nil {\n		return classify(", sqlite, "TestRows/rows:_a_missing_table_is_infrastructure"},
		{"a comparison compares a number's text", sqlite + "/rewrite.go", "shared.Decimal(c, text.String); err == nil {", "shared.Decimal(c, text.String); err != nil {", sqlite, "TestRows/rows:_unedited_lines_in_columns_of_other_types_are_the_same,_and_edited_ones_are_not"},
	}
}

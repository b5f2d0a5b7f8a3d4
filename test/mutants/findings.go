package main

// findingsTable are mutants of how findings are kept.
func findingsTable() []mutant {
	const (
		sqlite   = "internal/store/sqlite"
		code     = "internal/store/shared/findings.go"
		files    = "internal/store/shared/findings/"
		anew     = "TestFindings/one_that_is_found_again_after_it_was_gone_begins_anew"
		gone     = "TestFindings/what_the_same_run_saw_does_not_become_gone"
		accepted = "TestFindings/an_accepted_one_stays_so_until_its_rows_change"
		whole    = "TestFindings/an_acceptance_is_whole,_with_its_entry,_or_nothing"
		bound    = "TestFindings/a_class_has_a_bounded_number_of_open_ones"
		pages    = "TestFindings/a_list_goes_on_after_any_key"
		queries  = "TestFindings/a_list_has_what_was_asked_for"
		counts   = "TestFindings/counts_are_of_open_and_accepted_ones"
		others   = "TestFindings/two_environments_in_one_database_see_only_their_own"
		last     = "TestFindings/the_last_completed_run_of_a_kind"
		waits    = "TestFindings/which_run_waits"
	)
	return []mutant{
		{"findings: an accepted finding opens each night", files + "findings_open.sql", " AND x.accepted_hash <> l.listed_hash{{.BinaryCollation}}", "", sqlite, accepted},
		{"findings: an accepted finding never opens", files + "findings_open.sql", " OR (x.state = 'accepted' AND x.accepted_hash <> l.listed_hash{{.BinaryCollation}})", "", sqlite, accepted},
		{"findings: what is gone never opens", files + "findings_open.sql", "x.state = 'gone' OR ", "", sqlite, anew},
		{"findings: a finding that opens again keeps its first sight", files + "findings_open.sql", ", first_seen = {{.Now}}", "", sqlite, anew},
		{"findings: a finding that opens again is queued already", files + "findings_open.sql", ", queued_by = NULL", "", sqlite, anew},
		{"findings: a chunk of new findings passes the bound", files + "parts/room.sql", "n.place <=", "1 <=", sqlite, bound},
		{"findings: known findings take no room", files + "findings_open.sql", "ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place", "0 AS place", sqlite, bound},
		{"findings: findings of all states take room", files + "parts/room.sql", " AND o.state = 'open'", "", sqlite, bound},
		{"findings: findings of all classes share their room", files + "parts/room.sql", " AND o.class = @class", "", sqlite, bound},
		{"findings: environments share their room", files + "parts/room.sql", "o.sys_name = @sys_name AND o.state", "o.state", sqlite, bound},
		{"findings: what does not open has a new sight", files + "findings_see.sql", "\n    AND f.state <> 'gone'", "", sqlite, bound},
		{"findings: a run closes what it saw", files + "findings_close.sql", "f.state <> 'gone' AND f.run_id <> @run", "f.state <> 'gone'", sqlite, gone},
		{"findings: a repeated step closed nothing", files + "findings_close.sql", "(f.state = 'gone' AND f.run_id = @run) OR ", "", sqlite, gone},
		{"findings: a gone finding names no run", files + "findings_close.sql", ", run_id = @run", "", sqlite, anew},
		{"findings: what is gone is accepted", files + "findings_accept.sql", "\n    AND f.state <> 'gone'", "", sqlite, whole},
		{"findings: an acceptance of a part counts", code, "if n < int64(len(list)) {", "if n == 0 {", sqlite, whole},
		{"findings: an acceptance without findings has an entry", code, "	if len(list) == 0 {\n", "	if false {\n", sqlite, whole},
		{"findings: an acceptance has no entry", code, "		return s.audit(ctx, tx, a)\n", "		return nil\n", sqlite, accepted},
		{"findings: an acceptance's words are not cut", code, "	a, err := normalizedAudit(a)\n", "	_, err := normalizedAudit(a)\n", sqlite, whole},
		{"findings: a finding is queued again", files + "findings_queued.sql", " AND f.queued_by IS NULL", "", sqlite, "TestFindings/a_run_that_mends_is_named_once"},
		{"findings: what is accepted is queued", files + "findings_queued.sql", "f.state = 'open' AND ", "", sqlite, "TestFindings/a_run_that_mends_is_named_once"},
		{"findings: a page has the row before it again", files + "findings_list.sql", "f.document_key > @after", "f.document_key >= @after", sqlite, pages},
		{"findings: a page passes over documents of its first line", files + "findings_list.sql", " OR f.document_key > @after", "", sqlite, pages},
		{"findings: a list of a line has later lines", files + "findings_list.sql", " AND f.detail_id <= @to", "", sqlite, queries},
		{"findings: a list of a line goes on with an earlier key", code, " || class == after.Class && from > after.Line", "", sqlite, pages},
		{"findings: a list of unqueued findings has queued ones", files + "findings_list.sql", "(@unqueued = 0 OR f.queued_by IS NULL)", "@unqueued >= 0", sqlite, queries},
		{"findings: a list for one way to mend has others", files + "findings_list.sql", "(@mend = '' OR f.mend = @mend)", "@mend IS NOT NULL", sqlite, queries},
		{"findings: a class that comes twice is listed twice", code, "slices.Compact(classes)", "classes", sqlite, queries},
		{"findings: a limit is one for each class", code, "limit-len(list)", "limit", sqlite, pages},
		{"findings: what is gone is counted", files + "findings_count.sql", "('open', 'accepted')", "('open', 'accepted', 'gone')", sqlite, counts},
		{"findings: the oldest of a class is the newest", files + "findings_count.sql", "MIN(f.first_seen)", "MAX(f.first_seen)", sqlite, counts},
		{"findings: counts are of all environments", files + "findings_count.sql", "f.sys_name = @sys_name AND ", "", sqlite, others},
		{"findings: a list is of all environments", files + "findings_list.sql", "f.sys_name = @sys_name AND ", "", sqlite, others},
		{"findings: a run of another environment was the last", files + "last_completed.sql", " AND r.sys_name = @sys_name", "", sqlite, last},
		{"findings: a run that named documents was the last", files + "last_completed.sql", " AND r.named_count = 0", "", sqlite, last},
		{"findings: a running run was the last", files + "last_completed.sql", " AND {{.NoIndex}}r.status = 'completed'", "", sqlite, last},
		{"findings: a run waits for younger ones", files + "run_waits.sql", "\n            AND r.run_number < (SELECT x.run_number FROM {{.Run}} AS x WHERE x.run_id = @run)", "", sqlite, waits},
		{"findings: a run waits for other environments", files + "run_waits.sql", " AND r.sys_name = @sys_name", "", sqlite, waits},
		{"findings: a run waits for other kinds", files + "run_waits.sql", " AND {{.NoIndex}}r.kind = @kind", "", sqlite, waits},
		{"findings: a run waits for a run that has ended", files + "run_waits.sql", "r.run_id = @follows AND r.status = 'running'", "r.run_id = @follows", sqlite, waits},
	}
}

package main

// findingsTable are mutants of how comparisons and findings are kept.
func findingsTable() []mutant {
	const (
		sqlite  = "internal/store/sqlite"
		code    = "internal/store/shared/findings.go"
		files   = "internal/store/shared/findings/"
		steps   = "TestFindings/a_step_is_saved_once"
		order   = "TestFindings/the_oldest_comes_next,_and_the_last_that_ended_well_is_the_last"
		begun   = "TestFindings/a_comparison_is_begun_once,_with_its_entry_of_the_audit_log"
		stay    = "TestFindings/a_known_one_keeps_its_first_sight_and_stays_sure"
		bound   = "TestFindings/a_class_has_a_bounded_number"
		pages   = "TestFindings/a_list_goes_on_after_any_key"
		queries = "TestFindings/a_list_has_what_was_asked_for"
		counts  = "TestFindings/counts_are_of_findings,_not_of_suspects"
		others  = "TestFindings/two_environments_in_one_database_see_only_their_own"
	)
	return []mutant{
		{"findings: a late step is saved", files + "comparison_save.sql", " AND step = @step", "", sqlite, steps},
		{"findings: a comparison that has ended goes on", files + "comparison_save.sql", " AND ended_at IS NULL", "", sqlite, steps},
		{"findings: a comparison begins twice", files + "comparison_begin.sql", "NOT EXISTS", "EXISTS", sqlite, begun},
		{"findings: a begin has no entry", code, "		return s.audit(ctx, tx, a)\n", "		return nil\n", sqlite, begun},
		{"findings: the youngest comes next", files + "comparison_next.sql", "ORDER BY c.begun_at, ", "ORDER BY c.begun_at DESC, ", sqlite, order},
		{"findings: one that failed is the last", files + "comparison_last.sql", " AND c.error IS NULL", "", sqlite, order},
		{"findings: one that named documents is the last", files + "comparison_last.sql", " AND c.named = 0", "", sqlite, order},
		{"findings: one of another environment is the last", files + "comparison_last.sql", "c.sys_name = @sys_name AND ", "", sqlite, order},
		{"findings: a first look takes a finding back", files + "findings_see.sql", "CASE WHEN n.listed_sure = 1 THEN 1 ELSE f.sure END", "n.listed_sure", sqlite, stay},
		{"findings: a chunk of new findings passes the bound", files + "findings_insert.sql", "n.place <=", "1 <=", sqlite, bound},
		{"findings: findings of all classes share their room", files + "findings_insert.sql", " AND o.class = @class", "", sqlite, bound},
		{"findings: environments share their room", files + "findings_insert.sql", "o.sys_name = @sys_name AND ", "", sqlite, bound},
		{"findings: another environment's is dropped", files + "findings_drop.sql", "sys_name = @sys_name AND ", "", sqlite, others},
		{"findings: a page has the row before it again", files + "findings_list.sql", "f.document_key > @after", "f.document_key >= @after", sqlite, pages},
		{"findings: a page passes over documents of its first line", files + "findings_list.sql", " OR f.document_key > @after", "", sqlite, pages},
		{"findings: a list of a line has later lines", files + "findings_list.sql", " AND f.detail_id <= @to", "", sqlite, queries},
		{"findings: a list of a line goes on with an earlier key", code, " || class == after.Class && from > after.Line", "", sqlite, pages},
		{"findings: a list has suspects unasked", files + "findings_list.sql", "(@suspects = 1 OR f.sure = 1)", "@suspects >= 0", sqlite, queries},
		{"findings: a list of what the night mends has others", files + "findings_list.sql", "(@mends = 0 OR f.mends = 1)", "@mends >= 0", sqlite, queries},
		{"findings: a class that comes twice is listed twice", code, "slices.Compact(classes)", "classes", sqlite, queries},
		{"findings: a limit is one for each class", code, "limit-len(list)", "limit", sqlite, pages},
		{"findings: suspects are counted", files + "findings_count.sql", " AND f.sure = 1", "", sqlite, counts},
		{"findings: the oldest of a class is the newest", files + "findings_count.sql", "MIN(f.first_seen)", "MAX(f.first_seen)", sqlite, counts},
		{"findings: counts are of all environments", files + "findings_count.sql", "f.sys_name = @sys_name AND ", "", sqlite, others},
		{"findings: a list is of all environments", files + "findings_list.sql", "f.sys_name = @sys_name AND ", "", sqlite, others},
	}
}

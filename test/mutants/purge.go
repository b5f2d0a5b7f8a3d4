package main

// purgeTable are mutants of what a purge deletes, on the embedded database.
func purgeTable() []mutant {
	const (
		sqlite  = "internal/store/sqlite"
		tick    = "internal/retention/retention.go"
		code    = sqlite + "/retention.go"
		files   = sqlite + "/sql/purge_"
		younger = "TestRetention/never:_what_is_younger"
		running = "TestRetention/never:_a_running_run_and_its_error_details"
		named   = "TestRetention/never:_a_run_that_a_running_run_names"
		last    = "TestRetention/never:_the_last_comparison_that_ended_well,_and_one_that_goes_on"
		others  = "TestRetention/never:_another_environment's_rows"
		refused = "TestRetention/never:_rows_of_the_last_30_days,_whoever_asks"
		limit   = "TestRetention/a_limit_is_kept,_and_repeated_calls_go_on"
		chunks  = "TestRetention/2,500_documents_go_in_chunks,_and_the_run's_row_last"
		order   = "TestRetention/the_run_that_ended_first_goes_first"
		purged  = "TestRetention/nothing_continues_a_run_whose_rows_begin_to_go"
		whole   = "TestRetention/a_purge_that_fails_in_its_middle_deletes_nothing"
		store   = "internal/store/shared/run_store_batches.go"
		recover = "internal/store/shared/runs/"
		replay  = "TestAReplayOfADeletedRunFails"
		ops     = "TestARunThatRetentionDeletesIsLeftAlone"
	)
	return []mutant{
		{"purge: 0 days keep nothing", tick, "	if days == 0 {", "	if days < 0 {", "internal/retention", "TestNoDaysKeepAll"},
		{"purge: a tick has no end", tick, "now().Sub(began) < within", "true", "internal/retention", "TestATickPurgesForHalfASecond"},
		{"purge: a part waits for another", tick, "			i++\n", "			i += 0\n", "internal/retention", "TestATickPurgesForHalfASecond"},
		{"purge: the audit log goes with the rest", tick, "max(days, LeastAudit)", "days", "internal/retention", "TestTheAuditLogIsKeptAYear"},
		{"purge: fewer than 30 days are taken", code, "	if err := retention.CheckDays(opPurge, days); err != nil {\n		return 0, err\n	}\n", "", sqlite, refused},
		{"purge: any limit is taken", tick, "limit < 1 || limit > MaxPurge", "false", sqlite, refused},
		{"purge: the days are hours", sqlite + "/sql/shared.sql", "@days || ' days'", "@days || ' hours'", sqlite, younger},
		{"purge: error details of a running run go", files + "error_details.sql", "\n        AND NOT EXISTS (SELECT 1 FROM sqlwriter_run AS r WHERE r.run_id = e.run_id AND r.status = 'running')", "", sqlite, running},
		{"purge: error details of all environments go", files + "error_details.sql", "e.sys_name = @sys_name AND ", "", sqlite, others},
		{"purge: young error details go", files + "error_details.sql", ` AND e.created_at < {{template "before"}}`, " AND @days > 0", sqlite, younger},
		{"purge: the newest error details go first", files + "error_details.sql", "ORDER BY e.created_at", "ORDER BY e.created_at DESC", sqlite, limit},
		{"purge: a chunk of error details has no limit", files + "error_details.sql", "LIMIT @limit", "LIMIT @limit + 1", sqlite, limit},
		{"purge: entries of all environments go", files + "audit_log.sql", "a.sys_name = @sys_name AND ", "", sqlite, others},
		{"purge: young entries go", files + "audit_log.sql", `a.done_at < {{template "before"}}`, "@days > 0", sqlite, younger},
		{"purge: the newest entries go first", files + "audit_log.sql", "ORDER BY a.done_at", "ORDER BY a.done_at DESC", sqlite, limit},
		{"purge: young runs go", files + "run.sql", `r.ended_at < {{template "before"}}`, "@days > 0", sqlite, younger},
		{"purge: runs of all environments go", files + "run.sql", "    r.sys_name = @sys_name AND r.ended_at", "    r.ended_at", sqlite, others},
		{"purge: a run goes that a running one names", files + "run.sql", "o.status = 'running' AND o.filter ->> '$.run' = r.run_id", "1 = 0", sqlite, named},
		{"purge: a run stays that an ended one names", files + "run.sql", "o.status = 'running' AND ", "", sqlite, named},
		{"purge: the last comparison goes", files + "comparisons.sql", "c.comparison_id IS NOT (", "'' IS NOT (", sqlite, last},
		{"purge: the last comparison is one that named documents", files + "comparisons.sql", " AND l.named = 0", "", sqlite, last},
		{"purge: the last comparison is one that failed", files + "comparisons.sql", " AND l.error IS NULL", "", sqlite, last},
		{"purge: the first comparison stays, not the last", files + "comparisons.sql", "ORDER BY l.begun_at DESC, l.comparison_id DESC", "ORDER BY l.begun_at, l.comparison_id", sqlite, last},
		{"purge: comparisons of all environments go", files + "comparisons.sql", "c.sys_name = @sys_name AND ", "", sqlite, others},
		{"purge: a run that is not the oldest goes first", files + "run.sql", "ORDER BY r.ended_at", "ORDER BY r.ended_at DESC", sqlite, order},
		{"purge: a run whose rows go is not marked", code, `p.text["purge_run_begin"]`, `"SELECT @run"`, sqlite, purged},
		{"purge: the run's row goes first", code, `"purge_batches", "purge_items", "purge_workers", "purge_run_end"`, `"purge_run_end", "purge_batches", "purge_items", "purge_workers"`, sqlite, chunks},
		{"purge: each table of a run has the whole limit", code, "	p.left -= int(n)\n", "	p.left -= min(1, int(n))\n", sqlite, chunks},
		{"purge: workers stay", code, `"purge_workers", `, "", sqlite, chunks},
		{"purge: failed workers stay", files + "workers.sql", ", 'FAILED'", "", sqlite, "TestRetention/each_part_goes_by_its_own_age"},
		{"purge: a purge that failed is committed", code, "	if err == nil {\n		err = tx.Commit()\n	}\n", "	if failed := tx.Commit(); err == nil {\n		err = failed\n	}\n", sqlite, whole},
		{"purge: a dead letter fails a batch of a run that is deleted", store, "of.Status == run.RunPurged", "of.Status == \"\"", sqlite, purged},
		{"purge: a batch of a run that is deleted is rescued", recover + "jobs_dead.sql", " AND r.status <> 'purged'", "", sqlite, purged},
		{"purge: a worker of a run that is deleted is rescued", recover + "workers_dead.sql", " AND r.status <> 'purged'", "", sqlite, purged},
		{"purge: a replay takes what is left of a run that is deleted", "internal/run/source.go", "row.Status == RunPurged", "row.Status == \"\"", "internal/run", replay},
		{"purge: a replay of a run that was deleted completes", "internal/run/source.go", "!there || row.Status", "there && row.Status", "internal/run", replay},
		{"purge: a replay of a run that is deleted begins", "internal/ops/run_preview.go", "row.Status == run.RunPurged", "row.Status == \"\"", "internal/ops", ops},
		{"purge: a requeue in a run that is deleted tells to resume it", "internal/ops/batches.go", "row.Status == run.RunPurged", "row.Status == \"\"", "internal/ops", ops},
	}
}

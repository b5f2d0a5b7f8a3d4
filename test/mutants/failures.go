package main

// failureTable are mutants of what reports say of failures.
func failureTable() []mutant {
	const (
		shared  = "internal/store/shared"
		sqlite  = "internal/store/sqlite"
		reports = "TestReports"
	)
	return []mutant{
		{"a report has another environment's failures", shared + "/reports/error-codes.sql", "e.sys_name = @sys_name", "@sys_name = @sys_name", sqlite, reports},
		{"a report has another environment's lines", shared + "/reports/same-key.sql", "l.sys_name = @sys_name", "@sys_name = @sys_name", sqlite, reports},
		{"a report takes a failed line's old values", shared + "/reports/same-key.sql", "l.outcome <> 'failed'", "l.outcome <> ''", sqlite, reports},
		{"a report is sure of each code", shared + "/reports/same-key.sql", "unspsc_confidence\"}} AS float) >= 0.8", "unspsc_confidence\"}} AS float) >= 0", sqlite, reports},
		{"a report is sure of each manufacturer", shared + "/reports/same-key.sql", "manufacturer_name_confidence\"}} AS float) >= 0.8", "manufacturer_name_confidence\"}} AS float) >= 0", sqlite, reports},
		{"a report has all failures", shared + "/reports/error-codes.sql", "ORDER BY e.created_at DESC{{.LimitErrors}}", "ORDER BY e.created_at DESC", sqlite, reports},
		{"batches that have not begun are not counted", shared + "/run_store_rows.go", "stats.Outcomes[\"\"] += documents", "stats.Outcomes[\"\"] += 0", sqlite, "TestRunStore"},
		{"the counts of a batch that failed are final", shared + "/run_store_batches.go", "run.Failed, run.WorkerFailed, nil", "run.Failed, run.WorkerFailed, outcomes", sqlite, "TestRunStore"},
	}
}

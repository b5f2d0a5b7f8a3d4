package sqlite

import (
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// reportDialect is SQLite's syntax. Times are texts that sort by time.
func reportDialect() shared.ReportDialect {
	return shared.ReportDialect{
		Run: "sqlwriter_run", Batch: "sqlwriter_batch", ProcessingBatch: "sqlwriter_processing_job", Worker: "sqlwriter_worker",
		ErrorDetail: "sqlwriter_error_detail", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit",
		AgoFormat:     "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-%d seconds')",
		SecondsFormat: "(julianday(%[2]s) - julianday(%[1]s)) * 86400",
		DayFormat:     "date(%s)",
		NoIndex:       "+",
	}
}

// Reports returns the monitoring queries about the runs of an environment. Codes are those of AuditLog.
func (s *Store) Reports(sysName string) run.Reports {
	return shared.NewReports(shared.ReportEngine{
		ReportDialect: reportDialect(), Name: "sqlite", SysName: sysName, Read: s.reader, Classify: classifyDependency,
	})
}

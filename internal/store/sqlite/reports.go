package sqlite

import (
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// reportWords are this engine's. Moments are texts that sort as they follow each other.
func reportWords() shared.ReportWords {
	return shared.ReportWords{
		Run: "sqlwriter_run", Batch: "sqlwriter_batch", ProcessingBatch: "sqlwriter_processing_job", Worker: "sqlwriter_worker",
		ErrorDetail: "sqlwriter_error_detail", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit",
		AgoFormat:     "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-%d seconds')",
		SecondsFormat: "(julianday(%[2]s) - julianday(%[1]s)) * 86400",
		DayFormat:     "date(%s)",
		Late:          "+",
	}
}

// Reports are the monitoring queries over the bookkeeping of this file, about the runs of an environment. Codes are those of
// Journal.
func (s *Store) Reports(sysName string) run.Reports {
	return shared.NewReports(shared.ReportDialect{
		ReportWords: reportWords(), Name: "sqlite", SysName: sysName, Read: s.reader, Classify: outside,
	})
}

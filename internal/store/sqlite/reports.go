package sqlite

import (
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// reportDialect is SQLite's syntax. Times are texts that sort by time.
func reportDialect(l invoice.Layout) shared.ReportDialect {
	return shared.ReportDialect{
		Run: "sqlwriter_run", Batch: "sqlwriter_processing_job", Worker: "sqlwriter_worker",
		ErrorDetail: "sqlwriter_error_detail", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit",
		AgoFormat:     "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-%d seconds')",
		SecondsFormat: "(julianday(%[2]s) - julianday(%[1]s)) * 86400",
		DayFormat:     "date(%s)",
		NoIndex:       "+",
		Ledger:        ledgerTable, DetailTable: quote(string(invoice.Detail)), DetailKey: quote(l.Key(invoice.Detail)),
		Columns: l.Columns, Quote: quote,
	}
}

// Reports returns the monitoring queries about an environment. Codes are those of AuditLog.
func (s *Store) Reports(sysName string) run.Reports {
	return shared.NewReports(shared.ReportEngine{
		ReportDialect: reportDialect(s.layout), Name: "sqlite", SysName: sysName, Read: s.reader, Classify: classifyDependency,
	})
}

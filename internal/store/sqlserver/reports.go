package sqlserver

import (
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

func (t tables) reportDialect() shared.ReportDialect {
	return shared.ReportDialect{
		Run: "sqlwriter.run", Batch: "sqlwriter.processing_job", Worker: "sqlwriter.worker",
		ErrorDetail: "sqlwriter.error_detail", AuditLog: "sqlwriter.audit_log",
		Now: "SYSUTCDATETIME()", Top: " TOP (@limit)",
		AgoFormat:     "CAST(DATEADD(SECOND, -%d, SYSUTCDATETIME()) AS datetime2(3))",
		SecondsFormat: "CAST(DATEDIFF_BIG(MILLISECOND, %s, %s) AS float) / 1000",
		DayFormat:     "CONVERT(char(10), %s, 23)",
		Ledger:        ledgerTable, DetailTable: t.table(invoice.Detail), DetailKey: quote(t.layout.Key(invoice.Detail)),
		Columns: t.layout.Columns, Quote: quote,
	}
}

// Reports returns the monitoring queries about an environment. Codes are those of classify, or of
// run.Reports.
func (s *Store) Reports(sysName string) run.Reports {
	return shared.NewReports(shared.ReportEngine{
		ReportDialect: s.tables.reportDialect(), Name: "sqlserver", SysName: sysName, Read: s.db,
		Classify: func(op string, err error) error { return s.closeIdleIfBroken(classifyDependency(op, err)) },
	})
}

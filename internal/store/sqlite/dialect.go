package sqlite

import (
	"fmt"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// dialect is SQLite's syntax. Times are texts that sort by time.
func dialect(m *invoice.Mapping) shared.Dialect {
	return shared.Dialect{
		Prefix: "sqlwriter_", Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit", NoIndex: "+",
		FromNowFormat: "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', (%s / 1000.0) || ' seconds')",
		SecondsFormat: "(julianday(%[2]s) - julianday(%[1]s)) * 86400",
		DayFormat:     "date(%s)",
		ListOf:        listOf, HashFormat: "%s",
		DetailTable: quote(string(invoice.Detail)), Mapping: m, Quote: quote,
	}
}

// listOf reads a JSON array of arrays. The values keep their JSON types.
func listOf(parameter string, columns []string) string {
	var b strings.Builder
	for i, c := range columns {
		name, _, _ := strings.Cut(c, " ")
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "e.value ->> %d AS %s", i, name)
	}
	return "(SELECT " + b.String() + " FROM json_each(" + parameter + ") AS e)"
}

func (s *Store) engine(sysName string) shared.Engine {
	return shared.Engine{
		Dialect: dialect(s.mapping), Name: "sqlite", SysName: sysName, Write: s.writer, Read: s.reader,
		Bind: func(_ shared.ParameterType, text string) any { return text }, Classify: classifyDependency,
	}
}

// AuditLog returns the audit log of an environment, which includes its runs. Own codes: "schema", "timeout" and
// "cancelled" (infrastructure). Every other code is SQLite's extended result code, or one of ops.AuditLog.
func (s *Store) AuditLog(sysName string) ops.AuditLog { return shared.NewAuditLog(s.engine(sysName)) }

// RunStore returns the run store of an environment. Codes are those of AuditLog, or of run.Store.
func (s *Store) RunStore(sysName string) run.Store { return shared.NewRunStore(s.engine(sysName)) }

// Findings returns the findings of an environment. Codes are those of AuditLog.
func (s *Store) Findings(sysName string) *shared.Findings {
	return shared.NewFindings(s.engine(sysName))
}

// Reports returns the monitoring queries about an environment. Codes are those of AuditLog.
func (s *Store) Reports(sysName string) run.Reports { return shared.NewReports(s.engine(sysName)) }

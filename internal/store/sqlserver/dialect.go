package sqlserver

import (
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// dialect is the server's syntax.
func (t tables) dialect() shared.Dialect {
	return shared.Dialect{
		Prefix: "sqlwriter.", Now: "SYSUTCDATETIME()", Top: " TOP (@limit)",
		FromNowFormat:   "CAST(DATEADD(MILLISECOND, %s, SYSUTCDATETIME()) AS datetime2(3))",
		SecondsFormat:   "CAST(DATEDIFF_BIG(MILLISECOND, %s, %s) AS float) / 1000",
		DayFormat:       "CONVERT(char(10), %s, 23)",
		BinaryCollation: " COLLATE Latin1_General_BIN2",
		LockTimeout:     t.lockTimeout.Milliseconds(),
		ListOf:          listOf, HashFormat: "CAST(%s AS binary(32))", UpdateByAlias: true,
		ForceOrder:     "\nOPTION (LOOP JOIN, FORCE ORDER)",
		AuditProcedure: "sqlwriter.audit_add",
		DetailTable:    t.table(invoice.Detail), Mapping: t.mapping, Quote: quote,
	}
}

func listOf(parameter string, columns []string) string {
	typed := make([]string, len(columns))
	for i, c := range columns {
		typed[i] = fmt.Sprintf("        %s '$[%d]'", c, i)
	}
	return "OPENJSON (" + parameter + ") WITH (\n" + strings.Join(typed, ",\n") + "\n    )"
}

func (s *Store) engine(sysName string) shared.Engine {
	return shared.Engine{
		Dialect: s.tables.dialect(), Name: "sqlserver", SysName: sysName, Write: s.db, Read: s.db, Bind: bind,
		Classify: func(op string, err error) error { return s.closeIdleIfBroken(classifyDependency(op, err)) },
	}
}

// bind makes the parameter of a text with its type on the server.
func bind(t shared.ParameterType, text string) any {
	switch t {
	case shared.Code:
		return mssql.VarChar(text)
	case shared.LongText:
		return mssql.NVarCharMax(text)
	case shared.Text, shared.Bytes, shared.Number:
	}
	return text
}

// AuditLog returns the audit log of an environment, which includes its runs. Codes are those of classify, or of
// ops.AuditLog.
func (s *Store) AuditLog(sysName string) ops.AuditLog { return shared.NewAuditLog(s.engine(sysName)) }

// RunStore returns the run store of an environment. Codes are those of classify, or of run.Store.
func (s *Store) RunStore(sysName string) run.Store { return shared.NewRunStore(s.engine(sysName)) }

// Findings returns the findings of an environment. Codes are those of classify.
func (s *Store) Findings(sysName string) *shared.Findings {
	return shared.NewFindings(s.engine(sysName))
}

// Reports returns the monitoring queries about an environment. Codes are those of classify, or of run.Reports.
func (s *Store) Reports(sysName string) run.Reports { return shared.NewReports(s.engine(sysName)) }

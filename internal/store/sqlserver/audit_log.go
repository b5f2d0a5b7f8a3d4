package sqlserver

import (
	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/shared"
)

func (t tables) dialect() shared.Dialect {
	return shared.Dialect{
		Run: "sqlwriter.run", AuditLog: "sqlwriter.audit_log", Now: "SYSUTCDATETIME()", Top: " TOP (@limit)",
		BinaryCollation: " COLLATE Latin1_General_BIN2",
		LockTimeout:     t.lockTimeout.Milliseconds(),
	}
}

func (s *Store) engine(sysName string) shared.Engine {
	return shared.Engine{
		Dialect: s.tables.dialect(), Name: "sqlserver", SysName: sysName, Write: s.db, Read: s.db,
		Bind:     bind,
		Classify: func(op string, err error) error { return s.closeIdleIfBroken(classifyDependency(op, err)) },
	}
}

// AuditLog returns the audit log of an environment, which includes its runs. Codes are those of classify, or of
// ops.AuditLog.
func (s *Store) AuditLog(sysName string) ops.AuditLog {
	return shared.NewAuditLog(s.engine(sysName))
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

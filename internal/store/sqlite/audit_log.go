package sqlite

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/shared"
)

func dialect() shared.Dialect {
	return shared.Dialect{
		Run: "sqlwriter_run", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit", NoIndex: "+",
	}
}

func (s *Store) engine(sysName string) shared.Engine {
	return shared.Engine{
		Dialect: dialect(), Name: "sqlite", SysName: sysName, Write: s.writer, Read: s.reader,
		Bind: func(_ shared.ParameterType, text string) any { return text }, Classify: classifyDependency,
	}
}

// AuditLog returns the audit log of an environment, which includes its runs. Own codes: "schema", "timeout" and
// "cancelled" (infrastructure). Every other code is SQLite's extended result code, or one of ops.AuditLog.
func (s *Store) AuditLog(sysName string) ops.AuditLog {
	return shared.NewAuditLog(s.engine(sysName))
}

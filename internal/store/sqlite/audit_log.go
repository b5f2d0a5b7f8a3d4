package sqlite

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/shared"
)

// words are this engine's.
func words() shared.Words {
	return shared.Words{
		Run: "sqlwriter_run", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit",
	}
}

// dialect is this file.
func (s *Store) dialect(sysName string) shared.Dialect {
	return shared.Dialect{
		Words: words(), Name: "sqlite", SysName: sysName, Write: s.writer, Read: s.reader,
		Long: func(text string) any { return text }, Classify: outside,
	}
}

// AuditLog is the audit log and the runs of an environment in this file. Codes of our own: "schema", "timeout" and "cancelled"
// (infrastructure); every other code is SQLite's extended result code, or the port's.
func (s *Store) AuditLog(sysName string) ops.AuditLog {
	return shared.NewAuditLog(s.dialect(sysName))
}

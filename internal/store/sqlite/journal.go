package sqlite

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/shared"
)

// journalWords are this engine's.
func journalWords() shared.JournalWords {
	return shared.JournalWords{
		Run: "sqlwriter_run", AuditLog: "sqlwriter_audit_log",
		Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", Limit: "\nLIMIT @limit",
	}
}

// journalDialect is this file.
func (s *Store) journalDialect(sysName string) shared.JournalDialect {
	return shared.JournalDialect{
		JournalWords: journalWords(), Name: "sqlite", SysName: sysName, Write: s.writer, Read: s.reader,
		Long: func(text string) any { return text }, Classify: outside,
	}
}

// Journal is the audit log and the runs of an environment in this file. Codes of our own: "schema", "timeout" and "cancelled"
// (infrastructure); every other code is SQLite's extended result code, or the port's.
func (s *Store) Journal(sysName string) ops.Journal {
	return shared.NewJournal(s.journalDialect(sysName))
}

package sqlserver

import (
	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/shared"
)

// journalWords are this engine's.
func (t tables) journalWords() shared.JournalWords {
	return shared.JournalWords{
		Run: "sqlwriter.run", AuditLog: "sqlwriter.audit_log", Now: "SYSUTCDATETIME()", Top: " TOP (@limit)",
		Bytes:       " COLLATE Latin1_General_BIN2",
		LockTimeout: t.lockTimeout.Milliseconds(),
	}
}

// journalDialect is this database.
func (s *Store) journalDialect(sysName string) shared.JournalDialect {
	return shared.JournalDialect{
		JournalWords: s.tables.journalWords(), Name: "sqlserver", SysName: sysName, Write: s.db, Read: s.db,
		Long:     func(text string) any { return mssql.NVarCharMax(text) },
		Classify: func(op string, err error) error { return s.failed(outside(op, err)) },
	}
}

// Journal is the audit log and the runs of an environment in this database. Codes are those of classify.go, or the port's.
func (s *Store) Journal(sysName string) ops.Journal {
	return shared.NewJournal(s.journalDialect(sysName))
}

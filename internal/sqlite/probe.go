package sqlite

import (
	"context"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/fault"
)

const opProbe = "sqlite: probe"

// probeText takes the right to write and changes no row. BEGIN IMMEDIATE alone is not enough: SQLite makes a read
// transaction of it when the file is read-only.
const probeText = "DELETE FROM " + ledgerTable + " WHERE 0"

// Probe implements writer.Sink over the writer's connection. Codes of our own: "read_only", "schema" (infrastructure).
func (s *Store) Probe(ctx context.Context) error {
	tx, err := s.writer.BeginTx(ctx, nil) // immediate: see dsn
	if err != nil {
		return probed(err)
	}
	_, err = tx.ExecContext(ctx, probeText)
	if ended := tx.Rollback(); err == nil {
		err = ended
	}
	return probed(err)
}

// probed translates an error of a probe. It concerns no document, so none of them is a document's.
func probed(err error) error {
	code, ok := codeOf(err)
	if ok && code&primaryMask == sqlite3.SQLITE_READONLY {
		return fault.Wrap(fault.Infrastructure, opProbe, "read_only", "the database file is read-only", err)
	}
	return outside(opProbe, err)
}

// outside translates an error of what concerns no document: whatever SQLite refuses there is the database's fault. The
// generic code means a table that is not there: such statements are constant and take no value that could fail. Our own
// mistakes stay ours.
func outside(op string, err error) error {
	err = classify(op, err)
	e := fault.As(err)
	if e == nil || fault.IsDependency(err) || e.Kind == fault.Contention || e.Kind == fault.Internal {
		return err
	}
	lifted := *e
	lifted.Kind, lifted.Condition = fault.Infrastructure, fault.NoCondition
	if e.Code == strconv.Itoa(sqlite3.SQLITE_ERROR) {
		lifted.Code, lifted.Reason = "schema", "a table or column that the statement names is not there"
	}
	return &lifted
}

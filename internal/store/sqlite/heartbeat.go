package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

const opHeartbeat = "sqlite: heartbeat"

// Heartbeat implements commit.Sink: one transaction over the writer's connection (sql/heartbeat.sql). Who waits for that
// connection, because another request holds it, waits no longer than for another process. Codes of our own: "read_only",
// "schema", "database_went_back", "other_database" (infrastructure).
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements commit.Sink. Codes as Heartbeat, without the last two.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Store) raise(ctx context.Context, known breaker.Heartbeat, force bool) (breaker.Heartbeat, error) {
	wait, cancel := context.WithTimeout(ctx, s.busyTimeout)
	defer cancel()
	conn, err := s.writer.Conn(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return breaker.Heartbeat{}, fault.New(fault.Contention, opHeartbeat, strconv.Itoa(sqlite3.SQLITE_BUSY), "another request holds the writer's connection")
	}
	if err != nil {
		return breaker.Heartbeat{}, outside(opHeartbeat, err)
	}
	defer func() { _ = conn.Close() }() // only hands the connection back
	row, err := s.raiseOver(ctx, conn, known, force)
	if code, ok := codeOf(err); ok && code&primaryMask == sqlite3.SQLITE_READONLY {
		return breaker.Heartbeat{}, fault.Wrap(fault.Infrastructure, opHeartbeat, "read_only", "the database file is read-only", err)
	}
	return row, outside(opHeartbeat, err)
}

// raiseOver compares and raises in one transaction, which holds the file's write lock from its beginning.
func (s *Store) raiseOver(ctx context.Context, conn *sql.Conn, known breaker.Heartbeat, force bool) (row breaker.Heartbeat, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return row, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	above := int64(0)
	if force {
		above = known.Number
	} else if err := refuse(opHeartbeat, tx.QueryRowContext(ctx, s.write[stHeartbeatRow], known.SysName), known); err != nil {
		return row, err
	}
	row.SysName = known.SysName
	if err := tx.QueryRowContext(ctx, s.write[stHeartbeat], known.SysName, above, force, force || known.Number > 0).Scan(&row.DatabaseID, &row.Number); err != nil {
		return breaker.Heartbeat{}, err
	}
	if err := tx.Commit(); err != nil {
		return breaker.Heartbeat{}, err
	}
	return row, nil
}

// refuse compares the database's row, read inside the transaction of the write, with the one that is known.
func refuse(op string, found *sql.Row, known breaker.Heartbeat) error {
	var row breaker.Heartbeat
	err := found.Scan(&row.DatabaseID, &row.Number)
	if known.Number == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return outside(op, err)
	}
	return known.Refuse(op, row)
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

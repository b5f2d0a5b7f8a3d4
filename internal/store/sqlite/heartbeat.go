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

// Heartbeat implements commit.Sink in one transaction (sql/heartbeat.sql). It waits for the writer's connection as
// long as for a lock of another process. Own codes: "read_only", "schema", "database_went_back", "other_database"
// (infrastructure).
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements commit.Sink. Its codes are those of Heartbeat without the last two.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Store) raise(ctx context.Context, known breaker.Heartbeat, force bool) (breaker.Heartbeat, error) {
	wait, cancel := context.WithTimeout(ctx, s.busyTimeout)
	defer cancel()
	conn, err := s.writer.Conn(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return breaker.Heartbeat{},
			fault.New(fault.Contention, opHeartbeat, strconv.Itoa(sqlite3.SQLITE_BUSY),
				"another request holds the writer's connection")
	}
	if err != nil {
		return breaker.Heartbeat{}, classifyDependency(opHeartbeat, err)
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	row, err := s.raiseIn(ctx, conn, known, force)
	if code, ok := codeOf(err); ok && code&primaryMask == sqlite3.SQLITE_READONLY {
		return breaker.Heartbeat{},
			fault.Wrap(fault.Infrastructure, opHeartbeat, "read_only", "the database file is read-only", err)
	}
	return row, classifyDependency(opHeartbeat, err)
}

// raiseIn compares and raises the heartbeat in one transaction, which has the write lock from its start.
func (s *Store) raiseIn(
	ctx context.Context, conn *sql.Conn, known breaker.Heartbeat, force bool,
) (row breaker.Heartbeat, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return row, err
	}
	defer func() { _ = tx.Rollback() }() // fails after the commit
	above := int64(0)
	if force {
		above = known.Number
	} else if err := checkHeartbeat(opHeartbeat,
		tx.QueryRowContext(ctx, s.write[stHeartbeatRow], known.SysName), known); err != nil {
		return row, err
	}
	row.SysName = known.SysName
	if err := tx.QueryRowContext(ctx, s.write[stHeartbeat], known.SysName, above, force,
		force || known.Number > 0).Scan(&row.DatabaseID, &row.Number); err != nil {
		return breaker.Heartbeat{}, err
	}
	if err := tx.Commit(); err != nil {
		return breaker.Heartbeat{}, err
	}
	return row, nil
}

// checkHeartbeat compares the database's row with the known one, inside the transaction of the write.
func checkHeartbeat(op string, found *sql.Row, known breaker.Heartbeat) error {
	var row breaker.Heartbeat
	err := found.Scan(&row.DatabaseID, &row.Number)
	if known.Number == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return classifyDependency(op, err)
	}
	return known.Refuse(op, row)
}

// classifyDependency classifies an error of a statement that concerns no document. A document's error becomes
// infrastructure. SQLite's generic code can only mean a missing table, because these statements are constant and take
// no value that could fail. Internal errors stay internal.
func classifyDependency(op string, err error) error {
	err = classify(op, err)
	e := fault.As(err)
	if e == nil || fault.IsDependency(err) || e.Kind == fault.Contention || e.Kind == fault.Internal {
		return err
	}
	lifted := *e
	lifted.Kind, lifted.Condition = fault.Infrastructure, fault.NoCondition
	if e.Code == strconv.Itoa(sqlite3.SQLITE_ERROR) {
		lifted.Code, lifted.Reason = "schema", "a table or column of the statement does not exist"
	}
	return &lifted
}

package sqlite

import (
	"context"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

const opHeartbeat = "sqlite: heartbeat"

// Heartbeat implements writer.Sink: one statement over the writer's connection (sql/heartbeat.sql). Who waits for that
// connection, because another request holds it, waits no longer than for another process. Codes of our own: "read_only",
// "schema" (infrastructure).
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
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
	_, err = conn.ExecContext(ctx, s.write[stHeartbeat], known.SysName)
	if code, ok := codeOf(err); ok && code&primaryMask == sqlite3.SQLITE_READONLY {
		return breaker.Heartbeat{}, fault.Wrap(fault.Infrastructure, opHeartbeat, "read_only", "the database file is read-only", err)
	}
	return breaker.Heartbeat{}, outside(opHeartbeat, err)
}

// TakeOver implements writer.Sink.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.Heartbeat(ctx, known)
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

package shared

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// statements runs the statements of an engine. AuditLog and RunStore embed it.
type statements struct {
	engine Engine
	texts  map[string]string
}

func (s *statements) environment() sql.NamedArg { return sql.Named("sys_name", s.engine.SysName) }

func (s *statements) op(what string) string { return s.engine.Name + ": " + what }

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// execer and querier are a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec runs one statement and returns the number of rows that it changed.
func (s *statements) exec(ctx context.Context, db execer, name string, args ...any) (int64, error) {
	bound, err := s.bind(args)
	if err != nil {
		return 0, err
	}
	res, err := db.ExecContext(ctx, s.texts[name], bound...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// inTx runs f in one transaction. Its end frees the connection, after a panic too.
func (s *statements) inTx(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	tx, err := s.engine.Write.BeginTx(ctx, nil)
	if err != nil {
		return s.engine.Classify(op, err)
	}
	defer func() { _ = tx.Rollback() }() // fails after the end of the transaction
	if err := f(tx); err != nil {
		return s.engine.Classify(op, err)
	}
	return s.engine.Classify(op, tx.Commit())
}

// each calls f for each row of a query. It returns the driver's or f's error, including an error after the last row.
func (s *statements) each(
	ctx context.Context, db querier, name string, f func(rows *sql.Rows) error, args ...any,
) error {
	bound, err := s.bind(args)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, s.texts[name], bound...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// page reads at most limit committed rows.
func (s *statements) page(
	ctx context.Context, op, name string, limit int, f func(rows *sql.Rows) error, args ...any,
) error {
	if limit <= 0 {
		return nil
	}
	return s.engine.Classify(op, s.each(ctx, s.engine.Read, name, f, append(args, sql.Named("limit", int64(limit)))...))
}

// moment is a time in any form that an engine returns: a time, a text of RFC 3339, or NULL for the zero time.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case string:
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return fmt.Errorf("time: %w", err)
		}
		m.Time = at.UTC()
	default:
		return fmt.Errorf("expected a time, found %T", value)
	}
	return nil
}

package shared

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// statements are statements on an engine's tables: what Journal and Runs do alike.
type statements struct {
	d     Dialect
	texts map[string]string
}

// produced fills a template.
func produced(t *template.Template, name string, data any) (string, error) {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name+".sql", data); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return b.String(), nil
}

// environment is the parameter of the environment.
func (b *statements) environment() sql.NamedArg { return sql.Named("sys_name", b.d.SysName) }

func (b *statements) op(what string) string { return b.d.Name + ": " + what }

// execer is a pool or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec runs one statement and answers how many rows it changed.
func (b *statements) exec(ctx context.Context, db execer, name string, args ...any) (int64, error) {
	res, err := db.ExecContext(ctx, b.texts[name], args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// inTx runs f in one transaction. Whatever ends it, a panic too, the connection is free again.
func (b *statements) inTx(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	tx, err := b.d.Write.BeginTx(ctx, nil)
	if err != nil {
		return b.d.Classify(op, err)
	}
	defer func() { _ = tx.Rollback() }() // fails when the transaction is over already
	if err := f(tx); err != nil {
		return b.d.Classify(op, err)
	}
	return b.d.Classify(op, tx.Commit())
}

// each reads the rows of a query. Errors after the last row count too. They are the driver's, or f's.
func (b *statements) each(ctx context.Context, db querier, name string, f func(rows *sql.Rows) error, args ...any) error {
	rows, err := db.QueryContext(ctx, b.texts[name], args...)
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

// page reads the rows of a query that is bounded, at most limit, of what was committed.
func (b *statements) page(ctx context.Context, op, name string, limit int, f func(rows *sql.Rows) error, args ...any) error {
	if limit <= 0 {
		return nil
	}
	return b.d.Classify(op, b.each(ctx, b.d.Read, name, f, append(args, sql.Named("limit", int64(limit)))...))
}

// moment is a time as either engine gives it: a time, a text of RFC 3339, or NULL for the zero time.
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

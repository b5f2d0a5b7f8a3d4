package sqlite

import (
	"context"
	"database/sql"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/store/shared"
)

const opReconcile = "sqlite: reconcile"

// ReconcileRows is reconcile.Rows of an environment. Each call is one statement on a reading connection. It sees the
// file as it was when the statement began, and makes no writer wait.
func (s *Store) ReconcileRows(sysName string, keptDays int) reconcile.Rows {
	return shared.NewRows(
		shared.RowsEngine{
			Mapping: s.mapping, Recipes: s.recipes, SysName: sysName, KeptDays: keptDays, Query: s.compared,
			Values: storedValues,
		})
}

// compared calls each for every row of a statement.
func (s *Store) compared(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error {
	rows, err := s.reader.QueryContext(ctx, s.write[statement], args...)
	if err != nil {
		return classifyDependency(opReconcile, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return classifyDependency(opReconcile, rows.Err())
}

// storedValues makes the values of a line of what its columns have as text.
func storedValues(_ int64, columns []invoice.Column, found []any) ([]invoice.Value, error) {
	values := make([]invoice.Value, len(found))
	for i, c := range columns {
		text, ok := found[i].(string)
		values[i] = storedValue(c, sql.NullString{String: text, Valid: ok})
	}
	return values, nil
}

package sqlserver

import (
	"context"
	"database/sql"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/store/shared"
)

const opReconcile = "sqlserver: reconcile"

// ReconcileRows is reconcile.Rows of an environment. Each call is one procedure that only reads. It waits for locks as
// long as a write does, and in a deadlock every writer wins. Codes are those of classify, and "bug"
// (internal).
func (s *Store) ReconcileRows(sysName string, keptDays int) reconcile.Rows {
	return shared.NewRows(
		shared.RowsEngine{
			Mapping: s.tables.mapping, Recipes: s.recipes, SysName: sysName, KeptDays: keptDays, Query: s.compared,
			Values: s.storedValues,
		})
}

// compared calls each for every row of a procedure's result.
func (s *Store) compared(ctx context.Context, procedure string, each func(*sql.Rows) error, args ...any) error {
	if _, _, err := s.limits.current(ctx); err != nil { // storedValues needs them
		return err
	}
	err := s.send(ctx, opReconcile, s.procedures.name(procedure), func(rows *sql.Rows) error {
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}, args)
	return s.closeIdleIfBroken(classifyDependency(opReconcile, err))
}

// storedValues makes the values of a line of a driver's row.
func (s *Store) storedValues(line int64, columns []invoice.Column, found []any) ([]invoice.Value, error) {
	values, err := canonicalRow(line, columns, found)
	if err != nil {
		return nil, err
	}
	return s.limits.stored(values), nil
}

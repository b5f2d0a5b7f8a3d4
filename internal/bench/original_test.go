package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// original writes as the writer that we replace does, line by line: an UPDATE of IVCE_DTL, then an upsert of
// IVCE_TRKG_MSTR, the main line first and the duplicates one after the other, all of a document in one transaction. It is
// given every advantage that does not change that: statements prepared once, one connection that stays open, an upsert
// that tries the UPDATE and needs no look before it.
type original struct {
	// detail and tracking are the places of their columns in the column table.
	detail, tracking []int
	texts            [3]string
	// argument is a value as the driver takes it.
	argument func(c invoice.Column, v invoice.Value) any
}

// The statements of original.
const (
	updateDetail = iota
	updateTracking
	insertTracking
)

// newOriginal makes the statements; placeholder gives the n-th parameter's name, the first being the key.
func newOriginal(placeholder func(n int) string, argument func(c invoice.Column, v invoice.Value) any) original {
	o := original{argument: argument}
	sets, names, marks := map[invoice.Table][]string{}, []string{invoice.KeyColumn}, []string{placeholder(1)}
	for i, c := range invoice.Columns() {
		sets[c.Table] = append(sets[c.Table], c.Name+" = "+placeholder(len(sets[c.Table])+2))
		if c.Table == invoice.Detail {
			o.detail = append(o.detail, i)
			continue
		}
		o.tracking = append(o.tracking, i)
		names, marks = append(names, c.Name), append(marks, placeholder(len(names)+1))
	}
	update := func(t invoice.Table) string {
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s = %s", t, strings.Join(sets[t], ", "), invoice.KeyColumn, placeholder(1))
	}
	o.texts = [3]string{update(invoice.Detail), update(invoice.Tracking), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)",
		invoice.Tracking, strings.Join(names, ", "), strings.Join(marks, ", "))}
	return o
}

// execute runs one of the statements and answers how many rows it wrote.
type execute func(statement int, args []any) (int64, error)

// document writes one document; the transaction is the caller's.
func (o original) document(it writer.Item, run execute) error {
	for _, line := range lineIDs(it) {
		values := invoice.RowValues(it.Values, it.Main, line)
		n, err := run(updateDetail, o.arguments(o.detail, line, values))
		if err != nil {
			return fmt.Errorf("IVCE_DTL: %w", err)
		}
		if n != 1 {
			return fmt.Errorf("line %d: expected a row in IVCE_DTL, found %d", line, n)
		}
		args := o.arguments(o.tracking, line, values)
		if n, err = run(updateTracking, args); err == nil && n == 0 {
			n, err = run(insertTracking, args)
		}
		if err != nil {
			return fmt.Errorf("IVCE_TRKG_MSTR: %w", err)
		}
		if n != 1 {
			return fmt.Errorf("line %d: expected one row written to IVCE_TRKG_MSTR, found %d", line, n)
		}
	}
	return nil
}

func (o original) arguments(places []int, line int64, values []invoice.Value) []any {
	columns, args := invoice.Columns(), make([]any, 0, 1+len(places))
	args = append(args, line)
	for _, p := range places {
		args = append(args, o.argument(columns[p], values[p]))
	}
	return args
}

// prepared is original with the driver's prepared statements.
func (o original) prepared(t testing.TB, db *sql.DB, name string) way {
	t.Helper()
	var statements [3]*sql.Stmt
	for i, text := range o.texts {
		s, err := db.PrepareContext(context.Background(), text)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() }) // its connection may be gone
		statements[i] = s
	}
	return way{rowByRow, name, 1, []kind{first, repeat}, func(ctx context.Context, docs []doc, _ kind) error {
		return chunks(docs, 1, func(docs []doc) (err error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // after a commit it does nothing
			if err := o.document(docs[0].item, func(statement int, args []any) (int64, error) {
				s := tx.StmtContext(ctx, statements[statement]) //nolint:sqlclosecheck // it ends with the transaction
				r, err := s.ExecContext(ctx, args...)
				if err != nil {
					return 0, err
				}
				return r.RowsAffected()
			}); err != nil {
				return err
			}
			return tx.Commit()
		})
	}}
}

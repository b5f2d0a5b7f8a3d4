package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
)

// told is a server that lists objects, and notes each statement that would change something.
type told struct {
	lock    int64
	objects []object
	changes []string
}

func (s *told) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *told) Driver() driver.Driver                        { return nil }
func (s *told) Close() error                                 { return nil }
func (s *told) Begin() (driver.Tx, error)                    { return nil, errors.New("no transactions") }

func (s *told) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no statements") }

func (s *told) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	s.changes = append(s.changes, text)
	return driver.ResultNoRows, nil
}

func (s *told) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.Contains(text, "sp_getapplock"):
		return &rows{1, [][]driver.Value{{s.lock}}}, nil
	case strings.Contains(text, "INFORMATION_SCHEMA.ROUTINES"):
		return &rows{3, [][]driver.Value{{"sqlwriter", "apply_1", int64(0)}}}, nil
	}
	all := &rows{width: 3}
	for _, o := range s.objects {
		all.left = append(all.left, []driver.Value{o.schema, o.name, o.view})
	}
	return all, nil
}

type rows struct {
	width int
	left  [][]driver.Value
}

func (r *rows) Columns() []string { return []string{"schema", "name", "view"}[:r.width] }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(into []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(into, r.left[0])
	r.left = r.left[1:]
	return nil
}

// TestAClaim decides from what a database holds what a stack does with it: it takes an empty one, removes what a killed
// stack has left, and touches nothing else.
func TestAClaim(t *testing.T) {
	mark, ledger, view := object{ownSchema, "local_stack", false}, object{ownSchema, "ledger", false},
		object{ownSchema, "batch", true}
	detail, tracking := object{"dbo", "IVCE_DTL", false}, object{"dbo", "IVCE_TRKG_MSTR", false}
	marked := []string{
		"IF SCHEMA_ID(N'sqlwriter') IS NULL EXEC (N'CREATE SCHEMA sqlwriter')",
		"CREATE TABLE sqlwriter.local_stack (made_at datetime2(0) NOT NULL DEFAULT SYSUTCDATETIME())",
	}
	dropped := []string{
		"DROP PROCEDURE [sqlwriter].[apply_1]", "DROP VIEW [sqlwriter].[batch]", "DROP TABLE [dbo].[IVCE_DTL]",
		"DROP TABLE [dbo].[IVCE_TRKG_MSTR]",
		"DROP TABLE [sqlwriter].[ledger]", "DROP TABLE [sqlwriter].[local_stack]",
		"DROP SCHEMA IF EXISTS sqlwriter_preview", "DROP SCHEMA sqlwriter",
	}
	for name, c := range map[string]struct {
		lock    int64
		objects []object
		changes []string
		refused string
	}{
		"it is empty": {changes: marked},
		"a stack was killed": {
			objects: []object{detail, tracking, view, ledger, mark}, changes: append(slices.Clone(dropped), marked...),
		},
		"a stack uses it": {lock: -1, refused: "another stack uses the test's database"},
		"the product's own": {
			objects: []object{detail, tracking, ledger},
			refused: "has 3 tables that no stack created (dbo.IVCE_DTL, dbo.IVCE_TRKG_MSTR, sqlwriter.ledger), so nothing is touched",
		},
		"only its two tables": {objects: []object{detail, tracking}, refused: "has 2 tables"},
		"another program's": {
			objects: []object{{"dbo", "A", false}, {"dbo", "B", true}, {"x", "C", false}, {"x", "D", false}},
			refused: "has 4 tables that no stack created (dbo.A, dbo.B, x.C, ...)",
		},
		"a killed stack's and another one's": {
			objects: []object{detail, tracking, ledger, mark, {"dbo", "MINE", false}},
			refused: "has 1 tables that no stack created (dbo.MINE)",
		},
		"the same name elsewhere": {
			objects: []object{{"x", "IVCE_DTL", false}, ledger, mark}, refused: "(x.IVCE_DTL)",
		},
		"a view of the same name": {
			objects: []object{{"dbo", "IVCE_DTL", true}, ledger, mark}, refused: "(dbo.IVCE_DTL)",
		},
		"a mark in another schema": {
			objects: []object{{"dbo", "local_stack", false}, detail}, refused: "has 2 tables",
		},
	} {
		s := &told{lock: c.lock, objects: c.objects}
		d := &database{Database: &open.Database{Writer: sql.OpenDB(s)}, name: "the test's database"}
		err := d.claim(t.Context(), &output{w: io.Discard})
		require.Equal(t, c.changes, s.changes, name)
		if c.refused == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.refused, name)
		}
		require.NoError(t, d.lock.Close())
	}

	s := &told{objects: []object{{"dbo", "MINE", false}, detail, tracking, view, ledger, mark}}
	d := &database{Database: &open.Database{Writer: sql.OpenDB(s)}}
	require.NoError(t, d.clean(t.Context()))
	require.Equal(t, dropped, s.changes, "the end of a stack removes nothing of others")
}

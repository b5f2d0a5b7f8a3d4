package bench

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// files are the rivals' statements, written by hand; the column table gives their columns. They do not follow the
// product's.
//
//go:embed sql/*/*.sql
var files embed.FS

// text is one of the files, ENGINE/NAME, without its comments: what the product sends has none either.
func text(t testing.TB, name string) string {
	t.Helper()
	list := func(places []int, form string) string {
		parts := make([]string, len(places))
		for i, p := range places {
			c := mapping.InUse().Columns()[p]
			parts[i] = strings.NewReplacer("NAME", c.Name, "TYPE", columnType(c), "PLACE",
				strconv.Itoa(i+1)).Replace(form)
		}
		return strings.Join(parts, ", ")
	}
	engine, file := path.Split(name)
	all, err := template.New("").Funcs(template.FuncMap{"list": list}).ParseFS(files, "sql/"+engine+"*.sql")
	require.NoError(t, err)
	of := func(table invoice.Table) []int {
		return places(func(c invoice.Column) bool { return c.Table == table })
	}
	var b strings.Builder
	require.NoError(t, all.ExecuteTemplate(&b, file, map[string][]int{
		"Detail": of(invoice.Detail), "Tracking": of(invoice.Tracking), "Document": once(false), "Line": once(true),
	}))
	lines := strings.Split(b.String(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "--") }), "\n")
}

// places finds columns in the column table.
func places(belongs func(c invoice.Column) bool) []int {
	var list []int
	for i, c := range mapping.InUse().Columns() {
		if belongs(c) {
			list = append(list, i)
		}
	}
	return list
}

// once lists the values of a document or of a line in the order in which the bare statements read them: a request has
// an array for each document, [lines, values...], and one for each of its lines, [key, values...]. A column of one name
// has one value, whichever table it is in.
func once(perLine bool) []int {
	seen := map[string]bool{}
	return places(func(c invoice.Column) bool {
		first := !seen[c.Name]
		seen[c.Name] = true
		return first && c.PerLine() == perLine
	})
}

// member is a value as an engine takes it.
type member func(c invoice.Column, v invoice.Value) any

// bareRequest makes the encoder of the bare statements' parameter.
func bareRequest(m member) func(docs []doc) (string, error) {
	columns, ofDocument, ofLine := mapping.InUse().Columns(), once(false), once(true)
	return func(docs []doc) (string, error) {
		request := make([][]any, 0, len(docs))
		for _, d := range docs {
			lines := make([][]any, 0, linesOf)
			for _, id := range lineIDs(d.item) {
				values, line := mapping.InUse().RowValues(d.item.Values, d.item.Main, id), []any{id}
				for _, p := range ofLine {
					line = append(line, m(columns[p], values[p]))
				}
				lines = append(lines, line)
			}
			item := append(make([]any, 0, 1+len(ofDocument)), lines)
			for _, p := range ofDocument {
				item = append(item, m(columns[p], d.item.Values[p]))
			}
			request = append(request, item)
		}
		b, err := json.Marshal(request)
		return string(b), err
	}
}

// lineIDs lists a document's lines, the main one first.
func lineIDs(it commit.Item) []int64 { return append([]int64{it.Main}, it.Duplicates...) }

// original writes as the writer that we replace does, line by line: an UPDATE of IVCE_DTL, then an upsert of
// IVCE_TRKG_MSTR, the main line first, all of a document in one transaction. It is given every advantage that does not
// change that: statements prepared once, one connection that stays open, an upsert that tries the UPDATE without a
// look.
type original struct {
	// texts are the statements; columns the places of their columns in the column table.
	texts   [3]string
	columns [3][]int
}

// The statements of original.
const (
	updateDetail = iota
	updateTracking
	insertTracking
)

// newOriginal makes the statements; their parameters are mark and a number from 1 on, the first being the key.
func newOriginal(mark string) original {
	var o original
	key := mapping.InUse().Key(invoice.Detail)
	sets, names, marks := map[invoice.Table][]string{}, []string{key}, []string{mark + "1"}
	for i, c := range mapping.InUse().Columns() {
		sets[c.Table] = append(sets[c.Table], fmt.Sprintf("%s = %s%d", c.Name, mark, len(sets[c.Table])+2))
		if c.Table == invoice.Detail {
			o.columns[updateDetail] = append(o.columns[updateDetail], i)
			continue
		}
		o.columns[updateTracking] = append(o.columns[updateTracking], i)
		names, marks = append(names, c.Name), append(marks, fmt.Sprintf("%s%d", mark, len(names)+1))
	}
	o.columns[insertTracking] = o.columns[updateTracking]
	update := func(t invoice.Table) string {
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s = %s1", t, strings.Join(sets[t], ", "), key, mark)
	}
	o.texts = [3]string{update(invoice.Detail), update(invoice.Tracking), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)",
		invoice.Tracking, strings.Join(names, ", "), strings.Join(marks, ", "))}
	return o
}

// prepare keeps a statement for a connection.
func prepare(t testing.TB, db *sql.Conn, text string) *sql.Stmt {
	t.Helper()
	s, err := db.PrepareContext(context.Background(), text)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // its connection may be gone
	return s
}

// way writes over one connection.
func (o original) way(t testing.TB, db *sql.Conn, m member) way {
	t.Helper()
	var prepared [3]*sql.Stmt
	for i, text := range o.texts {
		prepared[i] = prepare(t, db, text)
	}
	columns := mapping.InUse().Columns()
	line := func(ctx context.Context, id int64, values []invoice.Value) error {
		run := func(statement int) (int64, error) {
			args := append(make([]any, 0, 1+len(o.columns[statement])), id)
			for _, p := range o.columns[statement] {
				args = append(args, m(columns[p], values[p]))
			}
			r, err := prepared[statement].ExecContext(ctx, args...)
			if err != nil {
				return 0, err
			}
			return r.RowsAffected()
		}
		details, err := run(updateDetail)
		if err != nil {
			return err
		}
		tracked, err := run(updateTracking)
		if err == nil && tracked == 0 {
			tracked, err = run(insertTracking)
		}
		if err == nil && (details != 1 || tracked != 1) {
			err = fmt.Errorf("line %d: expected a row in each table, found %d and %d", id, details, tracked)
		}
		return err
	}
	return way{name: rowByRow, call: 1, write: func(ctx context.Context, docs []doc) error {
		return inTx(ctx, db, func() error {
			for _, id := range lineIDs(docs[0].item) {
				row := mapping.InUse().RowValues(docs[0].item.Values, docs[0].item.Main, id)
				if err := line(ctx, id, row); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// inTx runs f in one transaction of the connection. Whatever f runs on it belongs to it; sql.Tx would prepare
// statements of a connection again.
func inTx(ctx context.Context, db *sql.Conn, f func() error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := f(); err != nil {
		return err
	}
	return tx.Commit()
}

// connection takes one connection out of a pool and keeps it until the end of the test, so that nothing resets it.
func connection(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // its pool may be closed before
	return conn
}

package bench

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// files are the rivals' statements, written by hand. They do not follow the product's.
//
//go:embed sql/*/*.sql
var files embed.FS

// text is one of the files without its comments: what the product sends has none either.
func text(t testing.TB, name string) string {
	t.Helper()
	b, err := files.ReadFile("sql/" + name)
	require.NoError(t, err)
	lines := strings.Split(string(b), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "--") }), "\n")
}

// documentMembers and lineMembers are the values of a request in the order in which the bare statements read them: an
// array for each document, [lines, values...], and one for each of its lines, [key, values...]. A column of one name has
// one value, whichever table it is in.
var (
	documentMembers = []string{
		"CLN_MFR_AI_NM", "CLN_MFR_PRT_NUM", "UNSPSC_CD", "UPC_CD", "AKS_PRT_NUM", "ITM_AI_LDSC", "IVCE_LNE_STAT",
		"DATA_VRFN_IND", "WEB_SRCH_URL", "MFR_CNFDC_SCR", "PRT_NUM_CNFDC_SCR", "UNSPSC_CNFDC_SCR", "AI_STG_NM", "MFR_STG_NM",
		"PRT_NUM_STG_NM", "UNSPSC_STG_NM", "RQST_TS", "PRCS_STRT_TS", "PRCS_END_TS",
	}
	lineMembers = []string{"DUP_IND", "PRNT_IVCE_DTL_ID"}
)

// places finds columns in the column table.
func places(t testing.TB, names []string) []int {
	t.Helper()
	list := make([]int, len(names))
	for i, name := range names {
		list[i] = slices.IndexFunc(invoice.Columns(), func(c invoice.Column) bool { return c.Name == name })
		require.GreaterOrEqual(t, list[i], 0, "there is no column %s any more", name)
	}
	return list
}

// member is a value as an engine takes it.
type member func(c invoice.Column, v invoice.Value) any

// bareRequest makes the encoder of the bare statements' parameter.
func bareRequest(t testing.TB, m member) func(docs []doc) (string, error) {
	t.Helper()
	columns, ofDocument, ofLine := invoice.Columns(), places(t, documentMembers), places(t, lineMembers)
	return func(docs []doc) (string, error) {
		request := make([][]any, 0, len(docs))
		for _, d := range docs {
			lines := make([][]any, 0, linesOf)
			for _, id := range lineIDs(d.item) {
				values, line := invoice.RowValues(d.item.Values, d.item.Main, id), []any{id}
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
// change that: statements prepared once, one connection that stays open, an upsert that tries the UPDATE without a look.
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
	sets, names, marks := map[invoice.Table][]string{}, []string{invoice.KeyColumn}, []string{mark + "1"}
	for i, c := range invoice.Columns() {
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
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s = %s1", t, strings.Join(sets[t], ", "), invoice.KeyColumn, mark)
	}
	o.texts = [3]string{update(invoice.Detail), update(invoice.Tracking), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)",
		invoice.Tracking, strings.Join(names, ", "), strings.Join(marks, ", "))}
	return o
}

// way writes with exec, which runs one of the statements on the connection: args are the key and the columns' values.
func (o original) way(db *sql.Conn, m member, exec func(ctx context.Context, statement int, args []any) (sql.Result, error)) way {
	columns := invoice.Columns()
	line := func(ctx context.Context, id int64, values []invoice.Value) error {
		run := func(statement int) (int64, error) {
			args := append(make([]any, 0, 1+len(o.columns[statement])), id)
			for _, p := range o.columns[statement] {
				args = append(args, m(columns[p], values[p]))
			}
			r, err := exec(ctx, statement, args)
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
				if err := line(ctx, id, invoice.RowValues(docs[0].item.Values, docs[0].item.Main, id)); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// inTx runs f in one transaction of the connection. Whatever f runs on it belongs to it; sql.Tx would prepare statements of
// a connection again.
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

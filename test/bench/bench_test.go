package bench

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
)

var pageFlag = flag.String("page", "", "measure in earnest, and write the section of this page")

// engine is a database that can be measured on.
type engine struct {
	// name has the version; remark is what a reader must know of the engine's figures.
	name, remark string
	// dsn is a server's.
	dsn    string
	db     *sql.DB
	ledger string
	// distances are what is measured; a file has none.
	distances []time.Duration
	file      bool
	// detailRows makes detail rows; its parameters are the first id and the one behind the last.
	detailRows string
	// made is how many there are.
	made int64
	// lane connects over a distance. Requests are counted unless it is direct; a file's always are.
	lane func(distance time.Duration, direct bool) lane
}

// firstLine is the first detail row of a bench database.
const firstLine = 1_000_001

// lines makes n new detail rows and answers the first one's id.
func (e *engine) lines(t testing.TB, n int) int64 {
	t.Helper()
	from := firstLine + e.made
	e.made += int64(n)
	_, err := e.db.ExecContext(t.Context(), e.detailRows, from, from+int64(n))
	require.NoError(t, err)
	return from
}

// engines are those that can be had here.
func engines(t *testing.T) []*engine {
	t.Helper()
	list := []*engine{newSQLite(t)}
	if sqlservertest.Named() {
		return append(list, newServer(t))
	}
	t.Log("no T-SQL server is measured: " + sqlservertest.Variable + " names none")
	return list
}

// run is what was found on one engine.
type run struct {
	*engine
	lanes []laneRun
}

// laneRun is what was found at one distance.
type laneRun struct {
	lane
	found map[cell]*figures
}

// TestBench shows what can be counted, however slow the machine is, and makes a section of a small run. With -page it
// measures instead, and writes the section to the page.
func TestBench(t *testing.T) {
	began := time.Now()
	if *pageFlag != "" {
		var runs []run
		for _, e := range engines(t) {
			r := run{engine: e}
			for _, d := range e.distances {
				l := e.lane(d, d == 0)
				r.lanes = append(r.lanes,
					laneRun{l, measure(t, e, l, effort{rounds: 7, slice: 250 * time.Millisecond})})
			}
			runs = append(runs, r)
		}
		text := page(t, began, runs)
		t.Log("\n" + text)
		writeSection(t, *pageFlag, text)
		return
	}
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			l := e.lane(0, false)
			sameRows(t, e, l.ways)
			found := measure(t, e, l, effort{rounds: 1})
			requests(t, e, found)
			text := page(t, began, []run{{e, []laneRun{{l, found}}}})
			for _, w := range l.ways {
				_, below, ok := strings.Cut(text, "| "+w.name+" |")
				require.True(t, ok, "%s stands in the table, behind those before it:\n%s", w.name, text)
				text = below
			}
		})
	}
}

// writeSection puts the text between the two marks of the page.
func writeSection(t *testing.T, page, text string) {
	t.Helper()
	const begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->"
	old, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(old), begin)
	_, after, ends := strings.Cut(rest, end)
	require.True(t, begins && ends, "%s has the marks", page)
	require.NoError(t, os.WriteFile(page, []byte(before+begin+text+end+after), 0o644)) //nolint:gosec // a page for everybody
}

// requests asserts what a batch may cost: one request when nothing is wrong with it, few when one document is.
func requests(t *testing.T, e *engine, found map[cell]*figures) {
	t.Helper()
	for _, k := range []kind{first, repeat} {
		for name, n := range map[string]float64{ours1: 100, ours100: 1, bare: 1} {
			require.Equal(t, n, found[cell{name, k}].requests, "%s, %s, per 100 documents", name, k)
		}
	}
	for _, name := range []string{oursBad, oursBad4} {
		if bad := found[cell{name, first}]; bad != nil {
			require.Greater(t, bad.requests, 1.0)
			require.LessOrEqual(t, bad.requests, 15.0, "for one in a hundred, 2*log2(100)+2")
		}
	}
	if !e.file {
		const transaction = 2 // BEGIN and COMMIT
		require.Equal(t, float64(100*(3*linesOf+transaction)), found[cell{rowByRow, first}].requests)
		require.Equal(t, float64(100*(2*linesOf+transaction)), found[cell{rowByRow, repeat}].requests)
	}
}

// sameRows asserts that all ways do the same: on the same lines they leave the same rows.
func sameRows(t *testing.T, e *engine, ways []way) {
	t.Helper()
	const documents = 2
	var want []string
	for _, w := range ways {
		for _, table := range []string{string(invoice.Detail), string(invoice.Tracking), e.ledger} {
			_, err := e.db.ExecContext(t.Context(), "DELETE FROM "+table)
			require.NoError(t, err)
		}
		e.made = 0
		from := e.lines(t, documents*linesOf)
		if w.oneBad {
			continue
		}
		for _, k := range w.kinds() {
			docs := makeDocs(t, from, documents, k.turn())
			if w.call == 1 {
				require.NoError(t, w.write(t.Context(), docs[1:]), w.name)
				docs = docs[:1]
			}
			require.NoError(t, w.write(t.Context(), docs), w.name)
		}
		var rows []string
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			text := fmt.Sprintf("SELECT * FROM %s ORDER BY %s", table, mapping.InUse().Key(table))
			rows = append(rows, dump(t, e.db, text)...)
		}
		if want == nil {
			want = rows
			require.Contains(t, strings.Join(rows, "\n"), makeDocs(t, from, 1, repeat.turn())[0].item.Values[0].Text)
		}
		require.Len(t, rows, 2*documents*linesOf, w.name)
		for i := range rows {
			require.Equal(t, want[i], rows[i], "%s, and before it %s", w.name, ways[0].name)
		}
	}
}

// dump prints the rows of a query.
func dump(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(t, err)
	var text []string
	for rows.Next() {
		values, to := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, rows.Scan(to...))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				values[i] = string(b)
			}
		}
		text = append(text, fmt.Sprintf("%v", values))
	}
	require.NoError(t, rows.Err())
	return text
}

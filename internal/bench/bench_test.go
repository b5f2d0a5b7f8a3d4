package bench

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlserver/sqlservertest"
)

var pageFlag = flag.String("page", "", "measure in earnest, and write the page to this file")

// engine is a database that can be measured on.
type engine struct {
	name, version string
	// remark is what a reader must know of the engine's figures.
	remark string
	db     *sql.DB
	ledger string
	// lines makes n new detail rows and answers the first one's id.
	lines func(n int) int64
	// lane connects over a distance. Requests are counted where that takes no time, or where direct is false.
	lane func(distance time.Duration, direct bool) lane
	// far are the distances beside 0; a file has none.
	far []time.Duration
	// compile measures how long a text takes that is sent and not run; nil where texts are prepared.
	compile func(name string) compiled
}

// compiled is a text, and what the engine needs to take it in.
type compiled struct {
	bytes int
	took  time.Duration
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

// TestBench shows what can be counted, however slow the machine is, and makes a page of a small run. With -page it
// measures instead, and writes the page to the file.
func TestBench(t *testing.T) {
	began := time.Now()
	if *pageFlag != "" {
		var runs []run
		for _, e := range engines(t) {
			runs = append(runs, measure(t, e, e.lane(0, false), effort{rounds: 5, slice: 250 * time.Millisecond, most: 1000}))
		}
		text := page(t, began, runs)
		t.Log("\n" + text)
		require.NoError(t, os.WriteFile(*pageFlag, []byte(text), 0o644)) //nolint:gosec // a page for everybody
		return
	}
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			l := e.lane(0, false)
			sameRows(t, e, l.ways)
			e.far, e.lane = nil, func(time.Duration, bool) lane { return l } // new connections would have to warm up
			r := measure(t, e, l, effort{rounds: 1})
			requests(t, r.counts)
			text := page(t, began, []run{r})
			for _, w := range []string{"# Bench", e.name, e.version, ours100, useCase, "## Goals"} {
				require.Contains(t, text, w)
			}
		})
	}
}

// requests holds what a batch may cost: one request when nothing is wrong with it, few when one document is.
func requests(t *testing.T, n map[cell]float64) {
	t.Helper()
	for _, k := range []kind{first, repeat, unchanged, stale} {
		require.Equal(t, 1.0, n[cell{ours100, k}], "one request for 100 documents, %s", k)
	}
	require.Equal(t, 1.0, n[cell{useCase, first}], "one request for 100 documents through the use case")
	require.Equal(t, 4.0, n[cell{ours25, first}])
	require.Equal(t, 100.0, n[cell{ours1, repeat}])
	require.Equal(t, 1.0, n[cell{ours500, first}], "five for 500")
	require.Greater(t, n[cell{useCase, oneBad}], 1.0)
	require.LessOrEqual(t, n[cell{useCase, oneBad}], 15.0, "for one in a hundred, 2*log2(100)+2")
	if row, ok := n[cell{rowByDriver, repeat}]; ok {
		const transaction = 2 // BEGIN and COMMIT
		require.Equal(t, float64(100*(2*linesOf+transaction)), row)
		require.Equal(t, float64(100*(3*linesOf+transaction)), n[cell{rowByDriver, first}])
		require.Equal(t, 1.0, n[cell{bareName + ", staged", first}])
	}
}

// sameRows holds that all ways do the same: on the same lines they leave the same rows.
func sameRows(t *testing.T, e *engine, ways []way) {
	t.Helper()
	const documents = 2
	from := e.lines(documents * linesOf)
	var want []string
	for _, w := range ways {
		for _, k := range []kind{first, repeat} {
			require.NoError(t, w.write(t.Context(), makeDocs(t, from, documents, k.turn()), k), w.name)
		}
		var rows []string
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			rows = append(rows, dump(t, e.db, fmt.Sprintf("SELECT * FROM %s WHERE %s BETWEEN %d AND %d ORDER BY %[2]s", table,
				invoice.KeyColumn, from, from+documents*linesOf-1))...)
		}
		if want == nil {
			want = rows
			require.Contains(t, strings.Join(rows, "\n"), makeDocs(t, from, 1, repeat.turn())[0].item.Values[0].Text)
		}
		require.Len(t, rows, 2*documents*linesOf, w.name)
		for i := range rows {
			require.Equal(t, want[i], rows[i], "%s, and before it %s", w.name, ways[0].name)
		}
		for _, table := range []string{string(invoice.Tracking), e.ledger} {
			_, err := e.db.ExecContext(t.Context(), "DELETE FROM "+table)
			require.NoError(t, err)
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

// run is what was found on one engine.
type run struct {
	*engine
	lanes []laneRun
	// counts are requests per 100 documents.
	counts map[cell]float64
	// tried are the ways that shared a role, at distance 0.
	tried []way
	// texts are what some ways send, by the way's name.
	texts map[string]compiled
}

// laneRun is what was found at one distance.
type laneRun struct {
	lane
	found map[cell]*figures
}

// measure measures an engine at all distances. At 0 every form of a way is tried, and the fastest of each counts from
// there on. What a way costs in requests is counted on a lane of its own, so that at 0 nothing need stand in between.
func measure(t *testing.T, e *engine, counting lane, f effort) run {
	t.Helper()
	r := runner{lines: e.lines, effort: f}
	out := run{engine: e, counts: r.count(t, counting)}
	for _, d := range append([]time.Duration{0}, e.far...) {
		l := e.lane(d, d == 0)
		if out.tried != nil {
			l.ways = keep(l.ways, out.lanes[0].ways)
		}
		found := r.measure(t, l)
		for c := range found {
			found[c].requests = out.counts[c]
		}
		if out.tried == nil {
			out.tried, l.ways = l.ways, fastest(l.ways, found)
		}
		out.lanes = append(out.lanes, laneRun{l, found})
	}
	if e.compile != nil {
		out.texts = map[string]compiled{ours100: e.compile("")}
		for _, w := range out.lanes[0].ways {
			if w.role == bare {
				out.texts[w.name] = e.compile(strings.TrimPrefix(w.name, bareName+", "))
			}
		}
	}
	return out
}

// keep leaves the ways that others have the names of.
func keep(ways, like []way) []way {
	var out []way
	for _, w := range ways {
		for _, other := range like {
			if w.name == other.name {
				out = append(out, w)
			}
		}
	}
	return out
}

// durability says what a commit waits for on a server made on PostgreSQL; others do not know the question.
func durability(db *sql.DB) string {
	var commit, disk string
	err := db.QueryRowContext(context.Background(), "SELECT current_setting('synchronous_commit'), current_setting('fsync')").Scan(&commit, &disk)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" Its commits ran with synchronous_commit=%s and fsync=%s.", commit, disk)
}

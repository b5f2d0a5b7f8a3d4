package ops_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// attends reports whether a status asks for attention because of findings.
func attends(s ops.Status) string { return alarms(s)["findings_open"] }

func TestTheStatusSaysWhetherSQLEqualsCosmos(t *testing.T) {
	r := newRuns(t)
	says := func() string {
		t.Helper()
		return r.tick().Counts.Findings.Says
	}
	require.Equal(t, "unknown: nothing was compared yet", says())
	r.compared(0)
	require.Equal(t, "none, SQL equals Cosmos, as of 2025-12-18T10:00:00-06:00", says())
	r.finds(reconcile.Key{Class: reconcile.Edited, Line: 7}, reconcile.Key{Class: reconcile.Edited, Line: 8})
	require.Equal(t, "none, SQL equals Cosmos; people edited 2 lines, as of 2025-12-18T10:00:00-06:00", says())
	require.Empty(t, attends(r.tick()), "people may edit")
	r.clock = r.clock.Add(time.Hour)
	r.compared(1)
	require.Equal(t,
		"none, SQL equals Cosmos; people edited 2 lines, 1 of them since the comparison before, as of 2025-12-18T11:00:00-06:00", says())
	r.finds(reconcile.Key{Class: reconcile.RowMissing, Line: 9})
	require.Equal(t,
		"1 open (1 row_missing); people edited 2 lines, 1 of them since the comparison before, as of 2025-12-18T11:00:00-06:00", says())
	require.Equal(t,
		"SQL does not equal Cosmos: 1 open finding (1 row_missing), as of 2025-12-18T11:00:00-06:00", attends(r.tick()))
}

// Lines that another mapping wrote say what makes them comparable.
func TestTheStatusSaysWhyLinesAreNotComparable(t *testing.T) {
	other := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("UPC_CD")["from"] = "process_output.upc_code"
	})
	many := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		for _, c := range tables[invoice.Tracking].Columns {
			c["name"] = fmt.Sprint("OLD_", c["name"])
		}
	})
	r := newRuns(t)
	r.mappings = []invoice.Recorded{
		{Version: other.Version(), Lines: other.Lines()},
		{Version: many.Version(), Lines: many.Lines()},
		{Version: 9, Lines: r.mapping.Lines()},
	}
	f := r.store.Findings(nil)
	c := reconcile.Comparison{ID: "night", By: "ann", Why: "x"}
	require.True(t, must(f.Begin(t.Context(), c))(t))
	c.Ended, c.Counts = true, map[reconcile.Class]int{reconcile.NotComparable: 25}
	for version, n := range map[int]int{other.Version(): 12, many.Version(): 1, 9: 1, 8: 2} {
		c.Counts[reconcile.NotComparable+reconcile.Class(fmt.Sprint("/", version))] = n
	}
	require.NoError(t, f.Save(t.Context(), c, nil, nil))
	says := r.tick().Counts.Findings.Says
	writes := "or `reindex --not-comparable` writes them"
	for _, want := range []string{
		fmt.Sprintf("; not comparable: 12 lines of mapping %d: its columns IVCE_DTL.UPC_CD are not in the mapping in use: "+
			"put them back, %s", other.Version(), writes),
		fmt.Sprintf("1 line of mapping %d: its columns IVCE_TRKG_MSTR.OLD_", many.Version()),
		fmt.Sprintf(" and %d more are not in", len(many.Columns())-len(detailColumns(many))-5),
		"1 line of mapping 9: the next comparison can compare them, " + writes,
		"2 lines of mapping 8: no migration recorded its columns, " + writes,
	} {
		require.Contains(t, says, want)
	}
	require.Equal(t, 4, strings.Count(says, "not comparable: "), "adopted lines are none of them: %s", says)
}

func detailColumns(m *invoice.Mapping) (all []invoice.Column) {
	for _, c := range m.Columns() {
		if c.Table == invoice.Detail {
			all = append(all, c)
		}
	}
	return all
}

// One that goes on for days tells how far it is.
func TestAComparisonTellsItsProgress(t *testing.T) {
	r := newRuns(t)
	r.compared(0)
	findings := r.store.Findings(nil)
	_, err := findings.Begin(t.Context(), reconcile.Comparison{ID: "2025-12-19", By: "ann", Why: "a test"})
	require.NoError(t, err)
	says := func() string {
		t.Helper()
		return r.tick().Counts.Findings.Says
	}
	require.Contains(t, says(), "; comparison 2025-12-19 goes on: documents, 0 lines and documents compared")
	c, _, err := findings.Next(t.Context())
	require.NoError(t, err)
	c.Position = `{"pass":"rows","after":1421549}`
	c.Counts = map[reconcile.Class]int{reconcile.Consistent: 5000, reconcile.Edited: 2, reconcile.NewEdits: 1}
	require.NoError(t, findings.Save(t.Context(), c, nil, nil))
	require.Contains(t, says(), "goes on: rows, 5002 lines and documents compared, the ledger up to line 1421549")
}

// The night mends some classes by itself. People look at these only when the second night still finds them.
func TestWhatTheNightMendsAsksForAttentionADayLater(t *testing.T) {
	r := newRuns(t)
	r.compared(0)
	r.finds(reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "a"},
		reconcile.Key{Class: reconcile.TrackingMissing, Line: 8})
	require.Equal(t, "2 open (1 stale, 1 tracking_missing), as of 2025-12-18T10:00:00-06:00",
		r.tick().Counts.Findings.Says)
	require.Empty(t, attends(r.tick()))
	r.clock = r.clock.Add(26 * time.Hour)
	require.Contains(t, attends(r.tick()), "2 open findings (1 stale, 1 tracking_missing)")
}

// While SQL is not asked, the last counts stay, with their age.
func TestFindingsThatCannotBeCountedKeepTheirLastNumbers(t *testing.T) {
	r := newRuns(t)
	r.compared(0)
	r.finds(reconcile.Key{Class: reconcile.RowMissing, Line: 7})
	r.tick()
	r.openSince(fault.Infrastructure, "refused", time.Minute, 0)
	r.clock = r.clock.Add(5 * time.Minute)
	heartbeats := r.sink.heartbeats
	s := r.tick()
	require.Equal(t, 1, s.Counts.Findings.Open)
	require.Contains(t, s.Counts.Findings.Says,
		"1 open (1 row_missing), as of 2025-12-18T10:00:00-06:00; counted at 2025-12-18T10:00:00-06:00: SQL is not asked while the flow is stopped")
	require.NotEmpty(t, attends(s))
	require.Equal(t, heartbeats, r.sink.heartbeats, "no probe was sent for it")
}

// The night's run writes again what nobody edited, at most 1,000 findings, once.
func TestTheNightMends(t *testing.T) {
	r := newRuns(t)
	require.NoError(t, r.ops.MendFindings(t.Context(), "2025-12-18"))
	_, there, err := r.store.Run(t.Context(), "2025-12-18-mend")
	require.NoError(t, err)
	require.False(t, there, "there is nothing to mend")
	var seen []reconcile.Seen
	for line := range int64(1100) {
		seen = append(seen,
			reconcile.Seen{
				Key:  reconcile.Key{Class: reconcile.Stale, Line: line + 1, Document: id(line + 1)},
				Sure: true, Mends: true,
			})
	}
	seen[0].Mends, seen[1].Sure = false, false
	r.saves(
		append(seen,
			reconcile.Seen{Key: reconcile.Key{Class: reconcile.Edited, Line: 5000, Document: "x"}, Sure: true}), nil)
	for range 2 {
		require.NoError(t, r.ops.MendFindings(t.Context(), "2025-12-18"))
	}
	row, there, err := r.store.Run(t.Context(), "2025-12-18-mend-15c93851")
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, []any{"reindex", 1000, "RecoverRetries"}, []any{string(row.Kind), row.Named, row.RequestedBy})
	require.NotContains(t, string(row.Filter), "overwrite_edits")
	require.Equal(t, 1, r.queue.Sends())

	require.NoError(t, r.ops.MendFindings(t.Context(), "2025-12-20"))
	other, there, err := r.store.Run(t.Context(), "2025-12-20-mend-15c93851")
	require.NoError(t, err)
	require.True(t, there)
	require.NotEqual(t, string(row.Filter), string(other.Filter),
		"each night draws others, so what cannot be mended keeps nobody waiting")
	dev := ops.New(ops.Ports{
		Breaker: r.breaker, RunQueue: r.queue,
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{Audit: r.audit, Runs: r.runStore, Findings: r.store.Findings(nil)}, nil
		},
	}, ops.Options{SysName: "dev", Kinds: r.kinds, Now: func() time.Time { return r.clock }})
	require.NoError(t, dev.MendFindings(t.Context(), "2025-12-18"))
	require.Equal(t, 3, r.queue.Sends(), "an environment that shares the database has a run of its own")
	r.runStore.fails = fault.New(fault.Infrastructure, "test: start", "refused", "no")
	require.True(t, fault.IsDependency(r.ops.MendFindings(t.Context(), "2025-12-19")),
		"the tick fails, and the next one goes on")
}

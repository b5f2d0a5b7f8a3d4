package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// A scan reads its page of the ledger by the key, and each line's rows by theirs, whatever the tables hold.
func TestTheComparisonReadsByKey(t *testing.T) {
	s := newStore(t)
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	for _, name := range []string{"reconcile_scan", "reconcile_lines"} {
		plan := strings.Join(planOf(t, s, texts[name]), "; ")
		require.NotContains(t, plan, "TEMP B-TREE", "%s: %s", name, plan)
		require.NotContains(t, plan, "AUTOMATIC", "%s: %s", name, plan)
		for _, table := range []string{"SCAN sqlwriter_ledger", "SCAN IVCE", "SCAN d", "SCAN t"} {
			require.NotContains(t, plan, table, "%s: %s", name, plan)
		}
		if name != "reconcile_lines" {
			require.Contains(t, plan, "USING INTEGER PRIMARY KEY (rowid>?)", "%s: %s", name, plan)
		}
	}
}

// A reader in the midst of a scan keeps no writer waiting, and sees no part of a later write.
func TestAComparisonAndAWriterDoNotWaitForEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, other := openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout}),
		openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout})
	spying(s).addLines(t, 1, 2)
	apply(t, s, sqltest.Item("a", 1, 1, 2))
	// The writer holds the write lock, with a change that is not committed.
	tx, err := other.Writer().Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'edited'`)
	require.NoError(t, err)
	scanned, err := s.ReconcileRows("", 0).Scan(t.Context(), 0, reconcile.MaxScan)
	require.NoError(t, err)
	require.Equal(t,
		reconcile.Scanned{Last: 2, Same: 2, Documents: map[string][]int64{"a": {1, 2}}}, scanned)
	require.NoError(t, tx.Commit())
	// A reader that has begun holds no lock that a writer needs.
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	rows, err := s.Reader().QueryContext(t.Context(), texts["reconcile_lines"], sql.Named("lines", "[[1],[2]]"),
		sql.Named("days", 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	require.True(t, rows.Next())
	apply(t, other, sqltest.Item("b", 2, 1, 2))
	require.True(t, rows.Next())
	require.NoError(t, rows.Err())
}

// The write lock belongs to the one connection that writes: while a request has it, a comparison goes on.
func TestACallerWhoHoldsTheWritersConnectionKeepsNoReaderWaiting(t *testing.T) {
	s := newStore(t)
	conn, err := s.Writer().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = s.ReconcileRows("", 0).Scan(ctx, 0, reconcile.MaxScan)
	require.NoError(t, err)
}

// A tracking row whose detail row is gone is part of what a person may accept.
func TestATrackingRowAlone(t *testing.T) {
	s := newStore(t)
	spying(s).addLines(t, 1)
	apply(t, s, sqltest.Item("a", 1, 1))
	spying(s).spy.Exec(t, `DELETE FROM IVCE_DTL`)
	line := func() reconcile.Line {
		lines, err := s.ReconcileRows("", 0).Lines(t.Context(), []int64{1})
		require.NoError(t, err)
		require.Equal(t, reconcile.RowsMissing, lines[0].Rows)
		require.Nil(t, lines[0].Values)
		return lines[0]
	}
	alone := line()
	require.NotEmpty(t, alone.RowHash)
	spying(s).spy.Exec(t, `DELETE FROM IVCE_TRKG_MSTR`)
	require.Empty(t, line().RowHash)
}

// BenchmarkScan compares a ledger of 100,000 lines, 1,000 at a time.
func BenchmarkScan(b *testing.B) {
	const lines, each = 100_000, 1000
	s := newStore(b)
	for first := int64(1); first <= lines; first += each {
		ids := make([]int64, each)
		for i := range ids {
			ids[i] = first + int64(i)
		}
		spying(s).addLines(b, ids...)
		it := sqltest.Item(fmt.Sprint("a", first), first, ids...)
		for i, c := range mapping.InUse().Columns() {
			if c.Kind == invoice.Decimal {
				it.Values[i] = invoice.Of("0.9500")
			}
			if c.Kind == invoice.Time {
				it.Values[i] = invoice.Of("2025-12-17T16:30:15.123456Z")
			}
		}
		_, err := s.Apply(b.Context(), []commit.Item{it}, commit.Write, breaker.Heartbeat{SysName: "web"})
		require.NoError(b, err)
	}
	rows := s.ReconcileRows("web", 0)
	b.ReportAllocs()
	for b.Loop() {
		scanned, page := 0, reconcile.Scanned{More: true}
		for page.More {
			var err error
			page, err = rows.Scan(b.Context(), page.Last, reconcile.MaxScan)
			require.NoError(b, err)
			scanned += page.Same
		}
		require.Equal(b, lines, scanned)
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}

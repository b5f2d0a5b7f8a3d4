package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/store/sqlite"
)

// A scan reads its page of the ledger by the key, and each line's rows by theirs, whatever the tables hold.
func TestTheComparisonReadsByKey(t *testing.T) {
	s := newStore(t)
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	conn, err := s.Reader().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	page := []any{sql.Named("after", 7), sql.Named("limit", 1000)}
	sysName := sql.Named("sys_name", "web")
	for name, args := range map[string][]any{
		"reconcile_scan": append(page, sysName), "reconcile_names": page, "reconcile_lines": {sql.Named("lines", "[[1]]")},
	} {
		plan := strings.Join(planOf(t, conn, texts[name], args...), "; ")
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
	s, other := openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout}), openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout})
	db{s}.addLines(t, 1, 2)
	apply(t, s, item("a", 1, 1, 2))
	// The writer holds the write lock, with a change that is not committed.
	tx, err := other.Writer().Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'edited'`)
	require.NoError(t, err)
	scanned, err := s.ReconcileRows("").Scan(t.Context(), 0, reconcile.MaxScan)
	require.NoError(t, err)
	require.Equal(t, reconcile.Scanned{Last: 2, Same: 2}, scanned)
	require.NoError(t, tx.Commit())
	// A reader that has begun holds no lock that a writer needs.
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	rows, err := s.Reader().QueryContext(t.Context(), texts["reconcile_lines"], sql.Named("lines", "[[1],[2]]"))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	require.True(t, rows.Next())
	apply(t, other, item("b", 2, 1, 2))
	require.True(t, rows.Next())
	require.NoError(t, rows.Err())
}

// A tracking row whose detail row is gone is part of what a person may accept.
func TestATrackingRowAlone(t *testing.T) {
	s := newStore(t)
	db{s}.addLines(t, 1)
	apply(t, s, item("a", 1, 1))
	db{s}.exec(t, `DELETE FROM IVCE_DTL`)
	line := func() reconcile.Line {
		lines, err := s.ReconcileRows("").Lines(t.Context(), []int64{1})
		require.NoError(t, err)
		require.Equal(t, reconcile.RowsMissing, lines[0].Rows)
		require.Nil(t, lines[0].Values)
		return lines[0]
	}
	alone := line()
	require.NotEmpty(t, alone.RowHash)
	db{s}.exec(t, `DELETE FROM IVCE_TRKG_MSTR`)
	require.Empty(t, line().RowHash)
}

package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/sqltest"
)

// A rewrite compares in the transaction that writes: nobody can edit a line in between.
func TestNobodyEditsALineBetweenTheComparisonAndTheWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, other := openStore(t, path), openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout})
	spying(s).addLines(t, 1)
	it := sqltest.Item("a", 1, 1)
	apply(t, s, it)
	tried := false
	s.SetAfterStatement(func(ctx context.Context, _ *sql.Tx, name string) error {
		if name == "rewrite_read" {
			tried = true
			_, err := other.Writer().ExecContext(ctx,
				`UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'edited' WHERE IVCE_DTL_UID = 1`)
			require.ErrorContains(t, err, "locked")
		}
		return nil
	})
	out, err := s.Apply(t.Context(), []commit.Item{it}, commit.Rewrite, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	require.True(t, tried)
}

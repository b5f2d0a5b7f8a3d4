package sqlite_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	conformance.TestLedger(t, func(t testing.TB) conformance.LedgerHarness {
		h := harness(t)
		loser, ok := h.Sink.(*conformance.ReplyLoser)
		require.True(t, ok)
		s, ok := loser.Sink.(*sqlite.Store)
		require.True(t, ok)
		return conformance.LedgerHarness{SinkHarness: h, Adoption: s, FailPage: func(testing.TB) {
			var once sync.Once
			s.SetAfterStatement(func(_ context.Context, _ *sql.Tx, name string) (err error) {
				if name == "adopt_insert" {
					once.Do(func() { err = fault.New(fault.Infrastructure, "test", "injected", "after %s", name) })
				}
				return err
			})
		}}
	})
}

// Nobody knows what an adopted line holds.
func TestAdoptedRowsHaveNoRowHashes(t *testing.T) {
	s := newStore(t)
	state, err := s.Begin(t.Context(), adopt.State{}, "me")
	require.NoError(t, err)
	require.NoError(t, s.Page(t.Context(), adopt.Page{Run: state.Run, Rows: []adopt.Row{
		{
			Line: 2, Version: invoice.Version{US: 1, Key: invoice.Key("u")}, DocumentID: "u", SourceTS: 3,
			Hash: invoice.Key("h"), Outcome: adopt.Adopted,
		},
		{
			Line: 3, Version: invoice.Version{US: 1, Key: invoice.Key("m")}, DocumentID: "m",
			SourceTS: 3, Outcome: adopt.Failed,
		},
	}}))
	var without int
	require.NoError(t,
		s.Reader().QueryRow(
			`SELECT count(*) FROM sqlwriter_ledger WHERE detail_row_hash IS NULL AND tracking_row_hash IS NULL`).Scan(&without))
	require.Equal(t, 2, without)
}

// The ledger only grows, so a page finds its rows by key. Only the end of a run reads the whole ledger, once.
func TestNoPageScansTheLedger(t *testing.T) {
	s := newStore(t)
	_, err := s.Writer().ExecContext(t.Context(), sqlite.AdoptionText("stage"))
	require.NoError(t, err)
	for _, name := range []string{"update", "insert", "rows"} {
		plan := strings.Join(planOf(t, s, sqlite.AdoptionText(name)), "; ")
		require.Contains(t, plan, "SEARCH l USING INTEGER PRIMARY KEY", name)
		require.NotContains(t, plan, "SCAN l", name)
		require.NotContains(t, plan, "AUTOMATIC", name)
	}
}

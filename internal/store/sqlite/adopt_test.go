package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
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

// A ledger with rows from a build without adoption is complete.
func TestALedgerInUseNeedsNoAdoption(t *testing.T) {
	for name, c := range map[string]struct {
		before func(d db)
		want   adopt.Phase
	}{
		"nothing was written": {func(db) {}, ""},
		"lines were written": {func(d db) {
			d.exec(t, `INSERT INTO sqlwriter_ledger (detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome, write_id, applied_at)
				VALUES (1, 1, ?, 'a', 1, 'h', 1, 'web', 'applied', 'w', 'now')`, invoice.Key("a"))
		}, adopt.Empty},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "old.db"), sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			files, err := sqlite.MigrationFiles()
			require.NoError(t, err)
			require.NoError(t, s.MigrateWith(t.Context(), files[:1]...))
			c.before(db{s})
			require.NoError(t, s.Migrate(t.Context()))
			state, err := s.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, state.Phase)
			adopted, err := s.Adopted(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want == adopt.Empty, adopted)
		})
	}
}

// A dry run copies the present rows of its lines into a ledger of its own.
func TestCopiedRowsAreAsTheyAreAndFromNoRun(t *testing.T) {
	present, scratch := newStore(t), newStore(t)
	d := db{present}
	d.addLines(t, 1)
	apply(t, present, item("applied", 5, 1))
	state, err := present.Begin(t.Context(), adopt.State{}, "me")
	require.NoError(t, err)
	unproven := adopt.Row{
		Line: 2, Version: invoice.Version{US: 1, Key: invoice.Key("u")}, DocumentID: "u", SourceTS: 3, Hash: invoice.Key("h"), Outcome: adopt.Adopted,
	}
	mark := adopt.Row{Line: 3, Version: invoice.Version{US: 1, Key: invoice.Key("m")}, DocumentID: "m", SourceTS: 3, Outcome: adopt.Failed}
	_, err = present.Page(t.Context(), adopt.Page{Run: state.Run, Rows: []adopt.Row{unproven, mark}})
	require.NoError(t, err)
	var without int
	require.NoError(t, present.Reader().QueryRow(`SELECT count(*) FROM sqlwriter_ledger WHERE detail_row_hash IS NULL AND tracking_row_hash IS NULL`).Scan(&without))
	require.Equal(t, 2, without, "what is not known is NULL")
	rows, err := present.Rows(t.Context(), []int64{1, 2, 3})
	require.NoError(t, err)
	require.Len(t, rows, 3)

	require.NoError(t, scratch.Copy(t.Context(), rows))
	copied, err := scratch.Rows(t.Context(), []int64{1, 2, 3})
	require.NoError(t, err)
	require.ElementsMatch(t, rows, copied)
	other := rows[0]
	other.Hash = invoice.Key("other")
	require.NoError(t, scratch.Copy(t.Context(), []adopt.Row{other}))
	again, err := scratch.Rows(t.Context(), []int64{1, 2, 3})
	require.NoError(t, err)
	require.ElementsMatch(t, rows, again, "what is there stays")

	run, err := scratch.Begin(t.Context(), adopt.State{}, "me")
	require.NoError(t, err)
	written, err := scratch.Page(t.Context(), adopt.Page{Run: run.Run, Rows: []adopt.Row{unproven, mark}})
	require.NoError(t, err)
	require.Equal(t, adopt.Written{Known: 2}, written)
}

func TestAdoptionBeforeMigrateIsInfrastructure(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "new.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.State(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
	_, err = s.Page(t.Context(), adopt.Page{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(s.MarkEmpty(t.Context(), "me")))
}

// The ledger only grows, so a page finds its rows by key. Only the end of a run reads the whole ledger, once.
func TestNoPageScansTheLedger(t *testing.T) {
	s := newStore(t)
	conn, err := s.Writer().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = conn.ExecContext(t.Context(), sqlite.AdoptionText("stage"))
	require.NoError(t, err)
	for _, name := range []string{"update", "insert", "known", "copy", "rows"} {
		plan := strings.Join(planOf(t, conn, sqlite.AdoptionText(name)), "; ")
		require.Contains(t, plan, "SEARCH l USING INTEGER PRIMARY KEY", name)
		require.NotContains(t, plan, "SCAN l", name)
		require.NotContains(t, plan, "AUTOMATIC", name)
	}
}

var _ adopt.Scratch = (*sqlite.Store)(nil)

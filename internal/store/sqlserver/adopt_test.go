package sqlserver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
)

// adoption is a store whose next page can fail between the ledger and the watermark.
type adoption struct {
	*sqlserver.Store
	fail atomic.Bool
}

// Page implements adopt.Ledger.
func (a *adoption) Page(ctx context.Context, p adopt.Page) (adopt.Written, error) {
	if !a.fail.CompareAndSwap(true, false) {
		return a.Store.Page(ctx, p)
	}
	failing, err := a.Without(ctx, "adopt_page", injectedIntoPage())
	if err != nil {
		return adopt.Written{}, err
	}
	return failing.Page(ctx, p)
}

// injectedIntoPage makes a page fail between the ledger and the watermark.
func injectedIntoPage() map[string]string {
	return map[string]string{"SELECT @found =": "THROW 50001, N'injected', 1;\nSELECT @found ="}
}

func TestLedger(t *testing.T) {
	d := newDatabase(t)
	conformance.TestLedger(t, func(t testing.TB) conformance.LedgerHarness {
		d.exec(t, `DELETE FROM sqlwriter.adoption`)
		a, h := &adoption{Store: d.store}, d.harness(t)
		h.Deviations = map[string]conformance.Deviation{
			"ids with any letters, and the largest numbers": sinkDeviations()["quotes, backslashes and what looks like SQL or JSON"],
		}
		return conformance.LedgerHarness{SinkHarness: h, Adoption: a, FailPage: func(testing.TB) { a.fail.Store(true) }}
	})
}

// An adoption has no document to blame for any refusal of the server.
func TestARefusedPageIsTheDatabases(t *testing.T) {
	d := newDatabase(t)
	state, err := d.store.Begin(t.Context(), adopt.State{}, "me")
	require.NoError(t, err)
	failing, err := d.store.Without(t.Context(), "adopt_page", injectedIntoPage())
	require.NoError(t, err)
	_, err = failing.Page(t.Context(), adopt.Page{Run: state.Run})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "50001", fault.CodeOf(err), "the number stays")
}

// A ledger with rows from a build without adoption is complete.
func TestALedgerInUseNeedsNoAdoption(t *testing.T) {
	for name, c := range map[string]struct {
		row  bool
		want adopt.Phase
	}{"nothing was written": {false, ""}, "lines were written": {true, adopt.Empty}} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			d.exec(t, `DROP TABLE sqlwriter.adoption`)
			d.exec(t, `DELETE FROM sqlwriter.migration WHERE number = 2`)
			if c.row {
				d.exec(t, `INSERT INTO sqlwriter.ledger (detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome, write_id, applied_at)
					VALUES (1, 1, @p1, N'a', 1, @p1, 1, 'web', 'applied', NEWID(), SYSUTCDATETIME())`, invoice.Key("a"))
			}
			_, err := d.store.State(t.Context())
			require.Error(t, err)
			if sqlservertest.IsReal(d.version) { // other servers use a general number for a missing table
				require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
			}
			require.NoError(t, d.store.Migrate(t.Context()))
			state, err := d.store.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, state.Phase)
			states, err := d.store.MigrationStatus(t.Context())
			require.NoError(t, err)
			require.Zero(t, migration.Count(states, migration.Pending))
		})
	}
}

func TestThePageThrowsTheNumberThatIsClassified(t *testing.T) {
	require.Contains(t, sqlserver.AdoptionText("page"), "THROW 52742,")
	found := false
	for _, r := range sqlserver.Rules() {
		if r.Condition == fault.Changed {
			require.Equal(t, []int32{52742}, r.Numbers)
			found = true
		}
	}
	require.True(t, found)
}

// A statement without a file panics.
func TestEveryStatementOfTheAdoptionIsThere(t *testing.T) {
	for _, name := range []string{"state", "begin", "finish", "empty", "rows", "page"} {
		require.NotEmpty(t, sqlserver.AdoptionText(name))
	}
	defer func() {
		err, ok := recover().(string)
		require.True(t, ok)
		require.ErrorContains(t, errors.New(err), "adoption/none.sql")
	}()
	sqlserver.AdoptionText("none")
}

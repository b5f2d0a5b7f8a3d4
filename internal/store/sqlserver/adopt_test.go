package sqlserver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
)

// adoption is a store whose next page can fail between the ledger and the watermark.
type adoption struct {
	*sqlserver.Store
	fail atomic.Bool
}

// Page implements adopt.Ledger.
func (a *adoption) Page(ctx context.Context, p adopt.Page) error {
	if !a.fail.CompareAndSwap(true, false) {
		return a.Store.Page(ctx, p)
	}
	failing, err := a.Without(ctx, "adopt_page", injectedIntoPage())
	if err != nil {
		return err
	}
	return failing.Page(ctx, p)
}

// injectedIntoPage makes a page fail between the ledger and the watermark.
func injectedIntoPage() map[string]string {
	return map[string]string{"UPDATE a\n": "THROW 50001, N'injected', 1;\nUPDATE a\n"}
}

func TestLedger(t *testing.T) {
	d := newDatabase(t)
	conformance.TestLedger(t, func(t testing.TB) conformance.LedgerHarness {
		d.spy.Exec(t, `DELETE FROM sqlwriter.adoption`)
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
	err = failing.Page(t.Context(), adopt.Page{Run: state.Run})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "50001", fault.CodeOf(err), "the number stays")
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

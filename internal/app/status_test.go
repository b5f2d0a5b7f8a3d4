package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A restored database needs an operator's decision, so Health is not ready. An outage ends by itself, so Health stays
// ready.
func TestHealthIsNotReadyForADatabaseThatWentBack(t *testing.T) {
	s := newStatus("v1", time.Now)
	s.becomeReady()
	var view breaker.View
	s.flow = func() breaker.View { return view }
	for code, want := range map[string]string{
		breaker.CodeWentBack: statusLive, breaker.CodeOtherDatabase: statusLive, "40613": handlers.StatusReady,
	} {
		view.Control.Breaker = breaker.State{
			Name: breaker.Open, Kind: fault.Infrastructure, Code: code, Reason: "the heartbeat is 7, known is 9",
		}
		r := s.report()
		require.Equal(t, want, r.Status, code)
		require.Equal(t, code, r.Flow.Code)
		if want == statusLive {
			require.Contains(t, r.Problems,
				"database_refused: SQL is not the database that was written to last; nothing is written (docs/runbook.md#the-database-went-back)")
		}
		view.Control.Breaker.Name = breaker.HalfOpen // the heartbeat matches again
		require.Equal(t, handlers.StatusReady, s.report().Status, code)
	}
}

// A range that stands still is told although batches of the others are processed.
func TestHealthTellsWhatTheFeedDidNotBring(t *testing.T) {
	s := newStatus("v1", time.Now)
	s.becomeReady()
	var view breaker.View
	s.flow = func() breaker.View { return view }
	require.Empty(t, s.report().Problems)
	view.Control.Missed = breaker.Missed{Documents: 26, Ticks: 3, Sample: "2025-12-17 10:30:00.000000-06:00-0001-1"}
	r := s.report()
	require.Equal(t, handlers.StatusReady, r.Status)
	require.Equal(t,
		[]string{
			"feed_missed: the change feed did not bring documents that were due; the timer commits them, late (docs/runbook.md#the-feed-stands-still)",
		}, r.Problems)
	view.Control, view.Status.Failing = breaker.Control{},
		[]breaker.Failing{{Code: "547", Documents: 20, LastAt: time.Now()}}
	require.Equal(t,
		[]string{
			"mass_failure: 20 documents or more began to fail with one code; others go on (docs/runbook.md#the-flow)",
		}, s.report().Problems)
}

// Health is anonymous. This is each key and each word of an app in which all is wrong: doctor and the status say more.
func TestAnonymousHealthTellsNoMore(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newStatus("v1", func() time.Time { return at })
	s.mode, s.mapping = "live", "default"
	secret := errors.New("marker")
	s.lacks(depLeases, noTimeToLive)
	s.lacks(depSQL, depSQL+": "+whyNotOpen(
		fault.Wrap(fault.Infrastructure, "sqlserver: open", "18456", "the login failed", secret)))
	a := &App{status: s, db: &open.Database{Store: otherMapping{}, Mapping: invoice.DefaultMapping()}}
	_, err := a.mappings(t.Context())
	require.NoError(t, err)
	s.flow = func() breaker.View {
		return breaker.View{
			Control: breaker.Control{
				Breaker: breaker.State{
					Name: breaker.Open, Kind: fault.Infrastructure, Code: breaker.CodeWentBack, Reason: "7 after 9",
					Since: at, OpenUntil: at, HeldBy: "marker",
				},
				Missed: breaker.Missed{Documents: 26, Ticks: 3, Sample: "marker", Code: "marker"},
			},
			Status: breaker.Status{
				Instance: "marker", Failing: []breaker.Failing{{Code: "547", Documents: 20, LastAt: at}},
				Dependencies: map[string]breaker.Dependency{depBlob: {
					State: breaker.DependencyFailing, Kind: fault.Infrastructure, Code: "403", Reason: "marker",
					By: "marker", Since: at, SeenAt: at,
				}},
			},
		}
	}
	text, err := json.MarshalIndent(s.report(), "", "  ")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/health.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(text)+"\n")
}

// otherMapping is a database for which another mapping was chosen.
type otherMapping struct{ open.Store }

func (otherMapping) Mappings(context.Context) ([]invoice.Recorded, error) {
	return []invoice.Recorded{{Version: 99}}, nil
}

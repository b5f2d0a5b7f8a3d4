package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
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

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// CountsHarness has the port under test, as two instances of the app.
type CountsHarness struct {
	// Counts is the port under test, with nothing stored in it. Another reaches the same counts.
	Counts, Another ops.CountsStore
}

// TestCountsStore checks an implementation of ops.CountsStore against the port's contract. open makes a new one per
// test.
func TestCountsStore(t *testing.T, open func(t *testing.T) CountsHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, CountsHarness)
	}{
		{"what is not there is the zero counts", func(t *testing.T, h CountsHarness) {
			requireCounts(t, h, ops.Saved{})
		}},
		{"what one instance stores, whole, another loads", func(t *testing.T, h CountsHarness) {
			require.NoError(t, h.Counts.StoreCounts(t.Context(), counts(1)))
			requireCounts(t, h, counts(1))
		}},
		{"the last one stored replaces the whole", func(t *testing.T, h CountsHarness) {
			require.NoError(t, h.Counts.StoreCounts(t.Context(), counts(1)))
			require.NoError(t, h.Another.StoreCounts(t.Context(), counts(2)))
			requireCounts(t, h, counts(2))
			empty := ops.Saved{Counts: ops.Counts{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
			require.NoError(t, h.Counts.StoreCounts(t.Context(), empty))
			requireCounts(t, h, empty)
		}},
		{"a call whose context has ended is infrastructure", func(t *testing.T, h CountsHarness) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			requireFault(t, h.Counts.StoreCounts(ctx, counts(1)), fault.Infrastructure, fault.NoCondition)
			_, err := h.Counts.LoadCounts(ctx)
			requireFault(t, err, fault.Infrastructure, fault.NoCondition)
			requireCounts(t, h, ops.Saved{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func requireCounts(t *testing.T, h CountsHarness, want ops.Saved) {
	t.Helper()
	for _, store := range []ops.CountsStore{h.Counts, h.Another} {
		got, err := store.LoadCounts(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// counts fills every member.
func counts(n int) ops.Saved {
	at := time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC)
	return ops.Saved{Committed: map[string]int64{"a": 1 << 40}, Samples: ops.Samples{
		{At: at, Waiting: ops.Count{Documents: 5000, AtLeast: true}, LagSeconds: 3},
		{At: at.Add(5 * time.Minute), Committed: 7, StoppedSeconds: 120},
	}, Counts: ops.Counts{
		At: at, EverySeconds: 300, Depth: map[invoice.Status]ops.Count{invoice.Pending: {Documents: n, AtLeast: true}},
		Due: n, PutOff: 2, Postponed: 3,
		Oldest: &ops.Oldest{ID: "<a&b> \"ü😀\"", Status: invoice.Pending, Since: at},
		Groups: []ops.Group{{
			Status: invoice.Failed, Kind: "document", Code: "2628", Documents: ops.Count{Documents: n}, First: at,
			Last:   at.Add(time.Minute),
			Sample: "x", Line: 1421549, Retry: "command",
		}},
		PoisonLastHour: n,
		Queues: []ops.QueueCount{
			{
				Queue: "runs", Active: ops.Count{Documents: 1},
				DeadLettered: ops.Count{Documents: 2, AtLeast: true}, Unknown: "no right",
			},
		},
	}}
}

package commit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// requireRowSays requires a text in the table's row of a kind.
func requireRowSays(t *testing.T, k fault.Kind, format string, args ...any) {
	t.Helper()
	for _, r := range fault.Rules() {
		if r.Kind == k {
			require.Contains(t, r.When, fmt.Sprintf(format, args...))
			return
		}
	}
	require.Fail(t, "no such kind", k)
}

// The table of kinds states what the use case and the schedule do.
func TestTheTableOfKindsSaysWhatIsDone(t *testing.T) {
	requireRowSays(t, fault.Contention, "%d tries in all", contentionTries)
	requireRowSays(t, fault.Contention, "alone is tried again after %.0f s", aloneBackoff.Seconds())
	var waits []string
	for n := range MaxRetries {
		waits = append(waits, fmt.Sprintf("%.0f", Backoff(n, 0).Minutes()))
	}
	requireRowSays(t, fault.Document, "after %s min (%.0f s * 2^n, plus 0-%.0f %%)", strings.Join(waits, ", "),
		initialBackoff.Seconds(), 100*jitterShare)
	requireRowSays(t, fault.Document, "spends the %d retries: then after %.0f h", MaxRetries, maxBackoff.Hours())
	require.Contains(t, fault.OneRetry, fmt.Sprintf("one of the document's %d retries", MaxRetries))
	for _, c := range fault.ConditionRules() {
		if c.Condition == fault.OthersAnswered {
			require.Contains(t, c.Next, fmt.Sprintf("the %drd time as internal, code %s", failsAlone, CodeFailsAlone))
			require.Contains(t, c.Next, fmt.Sprintf("after %.0f s * 2^n", initialBackoff.Seconds()))
		}
	}
	for _, row := range Faults() {
		require.NotEmpty(t, row.Consequence(), row.Code)
		if row.Code == codeUndecided {
			require.Contains(t, row.Own.Next, fmt.Sprintf("%.0f s", aloneBackoff.Seconds()))
		}
	}
}

// The table states what the breaker does.
func TestTheTableOfKindsSaysWhatTheBreakerDoes(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		now, beats := time.Unix(1_800_000_000, 0), 0
		err := error(fault.New(kind, "sql: apply", "x", ""))
		b := breaker.New(nil, breaker.Options{
			Now: func() time.Time { return now }, Draw: func() float64 { return 0 },
			Wait: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
			Heartbeat: func(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
				beats++
				return breaker.Heartbeat{}, err
			},
		})
		ask := func(ctx context.Context) error {
			return b.Do(ctx, 1, 0, func(context.Context, breaker.Heartbeat) error { return err })
		}
		require.Error(t, ask(t.Context()))
		state := func() breaker.State { return b.Seen().Control.Breaker }
		require.True(t, state().Stopped(), kind)
		first, failed := state().OpenUntil.Sub(now), beats
		for range 10 { // its probes fail
			now = state().OpenUntil.Add(time.Minute)
			require.Error(t, b.Permit(t.Context()))
		}
		last := state().OpenUntil.Sub(now)
		err = nil
		now = state().OpenUntil.Add(time.Minute)
		require.NoError(t, b.Permit(t.Context()))
		require.NoError(t, ask(t.Context()))
		switch kind { //nolint:exhaustive // those that open the breaker
		case fault.Infrastructure:
			requireRowSays(t, kind, "%d failures in a row", failed)
			requireRowSays(t, kind, "%.0f s, then one probe", first.Seconds())
			require.Equal(t, first, last)
		case fault.Throttled:
			requireRowSays(t, kind, "opens for %.0f s, doubling to %.0f min", first.Seconds(), last.Minutes())
			requireRowSays(t, kind, "one request at a time for %.0f min", state().SerialUntil.Sub(now).Minutes())
		case fault.Quota:
			requireRowSays(t, kind, "opens for %.0f min, then one probe every %.0f min",
				first.Minutes(), last.Minutes())
		}
	}
}

package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

func TestDeferralDefersMessagesAndHoldsTheRest(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		deferral := run.NewDeferral(run.Options{SysName: sysName}, w.batches, run.BatchMessage)
		h, err := deferral.Defer(t.Context(), w.batchMessage(1, run.FirstAttempt), unreachable())
		require.NoError(t, err)
		require.Equal(t, "deferred", h.Did)
		on := w.batches.Messages()
		require.Len(t, on, 1)
		require.GreaterOrEqual(t, time.Until(on[0].Due), 30*time.Second)
		require.Len(t, deferred(t, w.batches), 1)

		for name, handle := range map[string]func(ctx context.Context) (run.Handled, error){
			"unreadable": func(ctx context.Context) (run.Handled, error) {
				return deferral.Defer(ctx, run.Incoming{Body: []byte("no payload")}, unreachable())
			},
			"a dead letter": func(ctx context.Context) (run.Handled, error) {
				return run.NewDeferral(run.Options{}, nil, run.BatchMessage).Defer(ctx,
					w.batchMessage(1, run.FirstAttempt), unreachable())
			},
			"the queue is away": func(ctx context.Context) (run.Handled, error) {
				w.batches.Always(inmem.QueueDown())
				defer w.batches.Mend()
				return deferral.Defer(ctx, w.batchMessage(2, run.FirstAttempt), unreachable())
			},
		} {
			t.Log(name)
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			h, err := handle(ctx)
			cancel()
			require.True(t, fault.IsDependency(err))
			require.Equal(t, "held", h.Did)
			require.InDelta(t, 230, time.Since(begin).Seconds(), 5)
		}
		require.Len(t, w.batches.Messages(), 1)
	})
}

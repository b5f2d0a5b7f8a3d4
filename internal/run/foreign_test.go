package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

// Environments may share a database. A message of this environment that names a run of another hands off nothing.
func TestAManagerLeavesAnotherEnvironmentsRunAlone(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		foreign := run.Run{ID: "theirs", SysName: "dev", Kind: run.Drain, RequestedBy: "them", Why: "x"}
		require.NoError(t,
			w.store.StartRun(t.Context(), foreign, run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo}))
		before := w.run("theirs")
		m := run.Payload{Kind: run.RunMessage, SysName: sysName, RunID: "theirs"}.Outgoing(0)
		h, err := w.instance("m").manager.Receive(t.Context(),
			run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()})
		require.NoError(t, err, "it is done with")
		require.Equal(t, "dead_lettered", h.Did)
		require.True(t, h.Foreign, "and Health counts it")
		require.Contains(t, h.Reason, `expected a run of "web", found one of "dev"`)
		_, _, l := w.readEvidence()
		require.Equal(t, h.Reason, l.Reason)
		a := w.lastAudit()
		require.Equal(t, []string{run.CodeDeadLetter, run.LevelWarn, ""}, []string{a.Action, a.Level, a.Run})
		require.Equal(t, before, w.run("theirs"))
		require.Empty(t, w.batches.Messages())
	})
}

// theirs makes a run of another environment in the same database, with one queued batch.
func (w *world) theirs() run.Batch {
	w.t.Helper()
	s := w.store.For("dev")
	require.NoError(w.t,
		s.StartRun(w.ctx, run.Run{ID: "theirs", SysName: "dev", Kind: run.Drain}, run.Audit{Action: "X"}))
	r, ok, err := s.ClaimRun(w.ctx, "theirs", 0, -1, run.Worker{ID: "manager-theirs"}, time.Minute)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	l := run.RunLease{Run: "theirs", Owner: r.Owner, Epoch: r.Epoch}
	require.NoError(w.t, s.AddChunk(w.ctx, l, run.Chunk{First: 1, Batches: [][]string{{"a"}, {"b"}}}))
	batches, err := s.Unsent(w.ctx, "theirs", 1)
	require.NoError(w.t, err)
	_, err = s.MarkQueued(w.ctx, l, batches)
	require.NoError(w.t, err)
	return w.theirBatch(batches[0].ID)
}

func (w *world) theirBatch(id string) run.Batch {
	w.t.Helper()
	b, _, ok, err := w.store.For("dev").Batch(w.ctx, id)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return b
}

// about is a message of this environment about a batch of another one.
func about(b run.Batch, attempt int) run.Incoming {
	m := run.Payload{
		Kind: run.BatchMessage, SysName: sysName, RunID: b.Run, BatchID: b.ID, BatchAttempt: attempt,
	}.Outgoing(0)
	return run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()}
}

// A right to send to one environment's queue is no right over another's batches, whatever attempt a message shows.
func TestAWorkerLeavesAnotherEnvironmentsBatchAlone(t *testing.T) {
	t.Parallel()
	for _, attempt := range []int{run.FirstAttempt, 1 << 30} {
		simulate(t, func(t *testing.T, w *world) {
			w.fakeWrites(100)
			b := w.theirs()
			h, err := w.instance("w").workers.Receive(t.Context(), about(b, attempt))
			require.NoError(t, err, "it is done with")
			require.Equal(t, b, w.theirBatch(b.ID))
			require.Equal(t, "dead_lettered", h.Did)
			require.True(t, h.Foreign, "and Health counts it")
			require.Contains(t, h.Reason, `expected a batch of "web", found one of "dev"`)
			w.readEvidence()
			a := w.lastAudit()
			require.Equal(t, []string{run.CodeDeadLetter, run.LevelWarn, ""}, []string{a.Action, a.Level, a.Batch})
		})
	}
}

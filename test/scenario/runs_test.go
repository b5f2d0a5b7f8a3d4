package scenario

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/spies"
)

// concurrentCalls is the host's number of messages that an instance handles at once (host.json).
const concurrentCalls = 4

// takesMessages has the host bring an instance messages, several at once.
func (i *instance) takesMessages() {
	for range concurrentCalls {
		i.goes(func() { i.receive(i.w.runs, i.manager.Receive) })
		i.goes(func() { i.receive(i.w.batches, i.workers.Receive) })
	}
}

func (i *instance) receive(b *spies.Bus, handle func(context.Context, run.Incoming) (run.Handled, error)) {
	for {
		d, ok := b.Next(i.ctx)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(i.ctx, deadline)
		_, err := handle(ctx, d)
		cancel()
		if err != nil {
			b.Again(d)
		}
	}
}

// startRun starts a run, as an operator's request does.
func (w *world) startRun(id string, kind run.Kind) {
	w.t.Helper()
	r := run.Run{
		ID: id, Kind: kind, SysName: sysName, Filter: json.RawMessage(`{}`), RequestedBy: "ann", Why: "a test",
	}
	require.NoError(w.t,
		w.store.StartRun(w.ctx, r,
			run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "a test", Run: id}))
	found, ok, err := w.store.Run(w.ctx, id)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	require.NoError(w.t, w.runs.Send(w.ctx, []run.Outgoing{run.RunPayload(found).Outgoing(0)})[0])
}

// over waits for the end of a run, and answers how long that took.
func (w *world) over(id string, most time.Duration) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for time.Since(begin) < most {
		r, _, err := w.store.Run(w.ctx, id)
		require.NoError(w.t, err)
		if r.Status != run.RunRunning {
			return time.Since(begin)
		}
		w.pass(time.Second)
	}
	assert.Failf(w.t, "not over", "run %s after %s", id, most)
	return most
}

// runResult is the end of a run: its status, batches and messages.
type runResult struct {
	status                  run.RunStatus
	batches, lost           int
	audits, workers, failed int
	deadLetters             int
}

// ended reads what a run left behind, and logs it.
func (w *world) ended(id string) runResult {
	w.t.Helper()
	r, _, err := w.store.Run(w.ctx, id)
	require.NoError(w.t, err)
	batches, err := w.store.ListBatches(w.ctx, id, "", "", 1000)
	require.NoError(w.t, err)
	l := runResult{
		status: r.Status, batches: len(batches), audits: len(w.store.Audits()),
		deadLetters: w.runs.Letters() + w.batches.Letters(),
	}
	for _, j := range batches {
		l.lost += j.LostWorkers
	}
	for _, k := range w.store.Workers() {
		if l.workers++; k.Status == run.WorkerFailed {
			l.failed++
		}
	}
	w.t.Logf("run %s: %s, %d batches, %d lost workers, %d audit rows, %d worker rows (%d failed), %d dead letters", id,
		l.status, l.batches, l.lost, l.audits,
		l.workers, l.failed, l.deadLetters)
	return l
}

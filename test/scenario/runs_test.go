package scenario

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// The host's numbers for messages (host.json, deploy/local/servicebus.json).
const (
	concurrentCalls = 4
	mostDeliveries  = 10
)

// bus is a queue as the host serves it: a message that is not handled comes again at once, and is put aside after ten
// deliveries.
type bus struct {
	*inmem.Queue
	wake chan struct{}

	mu      sync.Mutex
	letters int
}

func newBus() *bus {
	b := &bus{Queue: inmem.NewQueue(time.Now), wake: make(chan struct{}, 1)}
	b.DetectDuplicates(10 * time.Minute)
	return b
}

// Send implements run.Queue.
func (b *bus) Send(ctx context.Context, messages []run.Outgoing) []error {
	defer b.signal()
	return b.Queue.Send(ctx, messages)
}

func (b *bus) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take waits for a message.
func (b *bus) take(ctx context.Context) (run.Incoming, bool) {
	for ctx.Err() == nil {
		if d, ok := b.Take(); ok {
			b.signal() // there may be more
			return d, true
		}
		rest := time.Hour
		if due, ok := b.NextDue(); ok {
			rest = time.Until(due)
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return run.Incoming{}, false
}

// again gives a message back that was not handled.
func (b *bus) again(d run.Incoming) {
	defer b.signal()
	if d.Count < mostDeliveries {
		b.PutBack(d)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters++
}

// deadLetters is how many messages were put aside.
func (b *bus) deadLetters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.letters
}

// takesMessages has the host bring an instance messages, several at once.
func (i *instance) takesMessages() {
	for range concurrentCalls {
		i.goes(func() { i.receive(i.w.runs, i.manager.Receive) })
		i.goes(func() { i.receive(i.w.batches, i.workers.Receive) })
	}
}

func (i *instance) receive(b *bus, handle func(context.Context, run.Incoming) (run.Handled, error)) {
	for {
		d, ok := b.take(i.ctx)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(i.ctx, deadline)
		_, err := handle(ctx, d)
		cancel()
		if err != nil {
			b.again(d)
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
		deadLetters: w.runs.deadLetters() + w.batches.deadLetters(),
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

package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// situation is the state of a batch, as far as the calls distinguish it.
type situation string

// The situations.
const (
	inPendingQueue    situation = "pending_queue"
	inPendingRetry    situation = "pending_retry"
	inQueued          situation = "queued"
	inQueuedLong      situation = "queued for long"
	inProcessing      situation = "processing"
	inProcessingDead  situation = "processing, its worker is dead"
	inProcessingLet   situation = "processing, let go of"
	inProcessingAlone situation = "processing, let go of long ago"
	inCompleted       situation = "completed"
	inFailed          situation = "failed"
)

// situations are all of them, with their statuses.
func situations() map[situation]run.BatchStatus {
	return map[situation]run.BatchStatus{
		inPendingQueue: run.PendingQueue, inPendingRetry: run.PendingRetry, inQueued: run.Queued,
		inQueuedLong: run.Queued,
		inProcessing: run.Processing, inProcessingDead: run.Processing, inProcessingLet: run.Processing,
		inProcessingAlone: run.Processing,
		inCompleted:       run.Completed, inFailed: run.Failed,
	}
}

// batchAt is the one batch of a run of an environment of its own.
type batchAt struct {
	sys   string
	batch run.Batch
	// lease is its worker's, or its last worker's; an invented one when it had no worker.
	lease run.BatchLease
}

// bring makes a run whose one batch is in a situation. Its manager has let go of it. All documents of a batch that was
// claimed have outcomes.
func (r *runTest) bring(name string, in situation) batchAt {
	r.Helper()
	sys := "env " + name
	l := r.batchesIn(sys, name, 1)
	require.NoError(r, r.Store.ReleaseRun(r.Context(), l))
	id := run.BatchID(sys, name, 1)
	b := batchAt{sys: sys, lease: run.BatchLease{Batch: id, Run: name, Owner: "worker-never", Epoch: 0}}
	switch status := situations()[in]; {
	case status == run.PendingRetry:
		r.unsent("x", false, r.batchOf(id))
	case status == run.Queued:
		r.queued(r.batchOf(id))
	case status != run.PendingQueue:
		b.lease = r.leaseBatch(id)
		r.save(b.lease, invoice.OutcomeApplied, documentsOf(name, 1)...)
	}
	if in == inProcessingLet || in == inProcessingAlone {
		require.NoError(r, r.Store.ReleaseBatch(r.Context(), b.lease, entry("X")))
	}
	if in == inCompleted {
		r.finish(b.lease)
	}
	if in == inFailed {
		require.NoError(r, r.Store.FailBatch(r.Context(), b.lease, "x", entry("X")))
	}
	if in == inQueuedLong || in == inProcessingDead || in == inProcessingAlone {
		r.Age(r, runSilent)
	}
	b.batch = r.batchOf(id)
	require.Equal(r, situations()[in], b.batch.Status)
	return b
}

// stateCall is one call and what it does to a batch: the status by situation; in a situation that is not listed it
// changes nothing at all.
type stateCall struct {
	name string
	to   map[situation]run.BatchStatus
	call func(r *runTest, b batchAt) error
	// first is what is done before, and is not what is looked at.
	first func(r *runTest, b batchAt)
	// changesRun says of which batches, that it leaves alone, the call changes the run: only the batch is then looked
	// at.
	changesRun func(run.BatchStatus) bool
}

// into gives several situations one status.
func into(to run.BatchStatus, from ...situation) map[situation]run.BatchStatus {
	m := map[situation]run.BatchStatus{}
	for _, in := range from {
		m[in] = to
	}
	return m
}

// stateCalls are the calls that may change a batch.
func stateCalls() []stateCall {
	waiting := []situation{inPendingQueue, inPendingRetry, inQueued, inQueuedLong}
	left := []situation{inProcessingDead, inProcessingLet, inProcessingAlone}
	owned := []situation{inProcessing, inProcessingDead}
	return []stateCall{
		{
			name: "its message was accepted", to: into(run.Queued, inPendingQueue, inPendingRetry),
			call: func(r *runTest, b batchAt) error {
				_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{b.batch})
				return err
			},
		},
		{
			name: "its message was not accepted", to: into(run.PendingRetry, waiting...),
			call: func(r *runTest, b batchAt) error {
				_, _, err := r.Store.MarkUnsent(r.Context(), []run.Batch{b.batch}, "x", true, givenUp)
				return err
			},
		},
		{
			name: "a claim", to: into(run.Processing, append(waiting, left...)...),
			call: func(r *runTest, b batchAt) error {
				_, err := r.For(b.sys).ClaimBatch(r.Context(), b.batch.ID, ticketOf(b.batch), r.worker(RunBatchWorker),
					runStale, entry("BATCH_START"))
				return err
			},
		},
		{name: "a beat", to: into(run.Processing, owned...), call: func(r *runTest, b batchAt) error {
			_, err := r.Store.BeatBatch(r.Context(), b.lease)
			return err
		}},
		{name: "outcomes", to: into(run.Processing, owned...), call: func(r *runTest, b batchAt) error {
			outcomes := []run.ItemOutcome{
				{Document: documentsOf(b.batch.Run, 1)[0], Outcome: invoice.OutcomeSuperseded},
			}
			return r.Store.SaveOutcomes(r.Context(), b.lease, outcomes, nil)
		}},
		{name: "the end", to: into(run.Completed, owned...), call: func(r *runTest, b batchAt) error {
			_, err := r.Store.FinishBatch(r.Context(), b.lease, func(run.BatchStats) run.Audit {
				return entry("BATCH_DONE")
			})
			return err
		}},
		{name: "a release", to: into(run.Processing, owned...), call: func(r *runTest, b batchAt) error {
			return r.Store.ReleaseBatch(r.Context(), b.lease, entry("BATCH_RELEASE"))
		}},
		{name: "giving up", to: into(run.Failed, owned...), call: func(r *runTest, b batchAt) error {
			return r.Store.FailBatch(r.Context(), b.lease, "x", entry("BATCH_FAIL"))
		}},
		{name: "a requeue", to: into(run.PendingRetry, inFailed), call: func(r *runTest, b batchAt) error {
			_, err := r.Store.RequeueBatch(r.Context(), b.batch.ID, entry("BATCH_REQUEUE"))
			return err
		}},
		{
			name: "a dead letter", to: into(run.Failed, append(waiting, left...)...),
			call: func(r *runTest, b batchAt) error {
				_, err := r.For(b.sys).DeadLetter(r.Context(), b.batch.ID, b.batch.Attempt, "x",
					runStale, entry("DEAD_LETTER"))
				return err
			},
		},
		{name: "silence", to: into(run.PendingRetry, inQueuedLong), call: func(r *runTest, b batchAt) error {
			_, err := r.Store.RequeueSilent(r.Context(), b.sys, runSilent, 100)
			return err
		}},
		{
			name: "a burial", to: into(run.PendingRetry, inProcessingDead, inProcessingAlone),
			call: func(r *runTest, b batchAt) error {
				_, _, err := r.Store.Rescue(r.Context(), b.sys, runStale, runReleased, 100)
				return err
			},
		},
		{name: "the end of its run, which nobody asked for", to: nil, call: func(r *runTest, b batchAt) error {
			_, err := r.Store.CompleteRun(r.Context(), b.batch.Run, runStale, ended(entry("RUN_END")))
			return err
		}},
		{
			name: "the end of its run, which is to end", to: into(run.Failed, append(waiting, left...)...),
			changesRun: func(s run.BatchStatus) bool { return !s.Open() },
			first: func(r *runTest, b batchAt) {
				r.must(r.Store.CancelRun(r.Context(), b.batch.Run, entry("RUN_CANCEL")))
			},
			call: func(r *runTest, b batchAt) error {
				_, err := r.Store.CompleteRun(r.Context(), b.batch.Run, runStale, ended(entry("RUN_END")))
				return err
			},
		},
		{
			name: "a resume of its run, which failed", to: into(run.PendingRetry, waiting...),
			changesRun: func(run.BatchStatus) bool { return true },
			first: func(r *runTest, b batchAt) {
				r.must(r.Store.FailRun(r.Context(), b.batch.Run, "x", runStale, entry("RUN_FAIL")))
			},
			call: func(r *runTest, b batchAt) error {
				_, err := r.Store.ResumeRun(r.Context(), b.batch.Run, entry("RUN_RESUME"))
				return err
			},
		},
		{name: "what asks only", to: nil, call: func(r *runTest, b batchAt) error {
			if _, err := r.Store.ToSend(r.Context(), b.sys, 100); err != nil {
				return err
			}
			if _, err := r.Store.Unsent(r.Context(), b.batch.Run, 100); err != nil {
				return err
			}
			_, err := r.Store.OpenRuns(r.Context(), b.sys, 100)
			return err
		}},
	}
}

// runStateCases check the calls against the table of states.
func runStateCases() (cases []runCase) {
	for _, c := range stateCalls() {
		cases = append(cases, runCase{"the table of states: " + c.name, func(r *runTest) { r.meets(c) }})
	}
	return cases
}

// AllowedChange reports whether the table of states has the change.
func AllowedChange(from, to run.BatchStatus) bool {
	return slices.ContainsFunc(stateCalls(), func(c stateCall) bool {
		for in, after := range c.to {
			if situations()[in] == from && after == to {
				return true
			}
		}
		return false
	})
}

// meets brings a batch into each situation and makes the call.
func (r *runTest) meets(c stateCall) {
	r.Helper()
	for i, in := range slices.Sorted(maps.Keys(situations())) {
		name := fmt.Sprint("r", i)
		about := fmt.Sprintf("%s: %s", c.name, in)
		b := r.bring(name, in)
		if c.first != nil {
			c.first(r, b)
		}
		was := r.stateOf(name)
		err := c.call(r, b)
		to, listed := c.to[in]
		now := r.batchOf(b.batch.ID)
		if listed {
			require.NoError(r, err, about)
			require.Equal(r, to, now.Status, about)
			continue
		}
		if err != nil {
			r.lost(err, about)
		}
		if c.changesRun != nil && c.changesRun(b.batch.Status) {
			require.Equal(r, b.batch, now, about)
			continue
		}
		require.Equal(r, was, r.stateOf(name), about)
	}
}

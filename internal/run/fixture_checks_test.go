package run_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
)

// addsUp checks a completed run: each document has one outcome, batches agree with their documents, and no worker is
// running. Every change of a batch is in the table of transitions.
func (w *world) addsUp(id string, want map[invoice.Outcome]int) {
	w.t.Helper()
	r, stats := w.run(id), w.stats(id)
	status := run.RunCompleted
	if want[invoice.OutcomeFailed]+want[invoice.OutcomeRetryScheduled] > 0 {
		status = run.RunCompletedWithFailures
	}
	require.Equal(w.t, status, r.Status)
	require.Equal(w.t, want, stats.Outcomes)
	require.Equal(w.t, nonzero(map[run.BatchStatus]int{run.Completed: r.Batches}), nonzero(stats.Batches))
	batches, err := w.store.ListBatches(context.Background(), id, "", "", 10_000)
	require.NoError(w.t, err)
	documents, success := 0, 0
	for _, batch := range batches {
		require.Equal(w.t, batch.Total, batch.Success+batch.Failure)
		documents, success = documents+batch.Total, success+batch.Success
	}
	good := 0
	for o, n := range want {
		if o.Success() {
			good += n
		}
	}
	require.Equal(w.t, good, success)
	require.Equal(w.t, r.Documents, documents)
	items, err := w.store.Items(context.Background(), id, nil, "", 100_000)
	require.NoError(w.t, err)
	require.Len(w.t, items, documents)
	for _, row := range w.store.Workers() {
		require.NotEqual(w.t, run.WorkerRunning, row.Status, row.ID)
	}
	w.checkTransitions()
}

func nonzero(m map[run.BatchStatus]int) map[run.BatchStatus]int {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(_ run.BatchStatus, n int) bool { return n == 0 })
	return m
}

// checkTransitions checks that batches made only changes of the table, and that every audit entry is complete.
func (w *world) checkTransitions() {
	w.t.Helper()
	for _, a := range w.store.Audits() {
		require.NotEmpty(w.t, a.Action)
		require.Contains(w.t, []string{run.LevelInfo, run.LevelWarn, run.LevelError}, a.Level)
		require.NotEmpty(w.t, a.By, "%+v", a)
		require.NotEmpty(w.t, a.Why, "%+v", a)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w.t, w.invalid)
}

// checkBatches compares the batches with those before a use of the store. w.mu is locked.
func (w *world) checkBatches(op string) {
	onTheWay := 0
	for _, batch := range w.store.AllBatches() {
		if batch.Status == run.Queued || batch.Status == run.Processing || batch.Status == run.PendingRetry {
			onTheWay++
			w.maxOutstanding = max(w.maxOutstanding, onTheWay)
		}
		w.maxLost = max(w.maxLost, batch.LostWorkers)
		was, known := w.seen[batch.ID]
		w.seen[batch.ID] = batch
		switch {
		case !known:
			if batch.Status != run.PendingQueue && batch.Status != run.Queued {
				w.invalid = append(w.invalid, fmt.Sprintf("%s: batch %d begins %s", op, batch.Number, batch.Status))
			}
		case was.Status != batch.Status && !conformance.AllowedChange(was.Status, batch.Status),
			batch.Epoch < was.Epoch, batch.Attempt < was.Attempt:
			w.invalid = append(w.invalid, fmt.Sprintf("%s: batch %d %+v -> %+v", op, batch.Number, was, batch))
		}
	}
}

// codes are the audit codes of one batch, or of the run itself for "".
func (w *world) codes(id, batch string) []string {
	var codes []string
	for _, a := range w.store.Audits() {
		if a.Run == id && a.Batch == batch {
			codes = append(codes, a.Action)
		}
	}
	return codes
}

// ended are the completed invocations of a function.
func (w *world) ended(function string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(c call) bool { return c.function != function })
}

// did counts the results of a function's invocations.
func (w *world) did(function string) map[string]int {
	n := map[string]int{}
	for _, c := range w.ended(function) {
		n[c.done.Did]++
	}
	return n
}

// must requires that a change was made.
func (w *world) must(made bool, err error) {
	w.t.Helper()
	require.NoError(w.t, err)
	require.True(w.t, made)
}

// writtenOnce checks that no document was written twice.
func (w *world) writtenOnce() {
	w.t.Helper()
	for id, n := range w.fake.writes() {
		require.Equal(w.t, 1, n, id)
	}
}

// nothingCounted checks that no message was delivered more than twice and no budget was spent.
func (w *world) nothingCounted() {
	w.t.Helper()
	for _, b := range []*bus{w.runs, w.batches} {
		require.LessOrEqual(w.t, b.MostDeliveries(), 2, "deliveries of one message")
		require.Zero(w.t, b.Letters())
	}
	for _, batch := range w.store.AllBatches() {
		require.Zero(w.t, batch.QueueAttempts)
	}
	require.Empty(w.t, w.evidence.Files())
}

// askedAtMostEveryMinute checks the interval between uses of SQL in a period.
func (w *world) askedAtMostEveryMinute(from, to time.Time) (asked int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var last time.Time
	for _, at := range w.asked {
		if at.Before(from) || !at.Before(to) {
			continue
		}
		asked++
		require.True(w.t, last.IsZero() || at.Sub(last) >= time.Minute, "asked at %s and %s", last, at)
		last = at
	}
	return asked
}

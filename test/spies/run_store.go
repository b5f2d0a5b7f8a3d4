// Package spies stands between the product and its ports in tests that play hours of it.
package spies

import (
	"context"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Call makes one call of a method about a run, a batch or a code ("": more than one): do makes it at the port. Its
// error is the method's, which then has no other answer.
type Call func(ctx context.Context, method, about string, do func(ctx context.Context) error) error

// RunStore gives a store that makes each call through call.
func RunStore(store run.Store, call Call) run.Store { return runStore{store, call} }

type runStore struct {
	store run.Store
	call  Call
}

// one makes a call that returns a value.
func one[T any](
	ctx context.Context, s runStore, method, about string, do func(context.Context) (T, error),
) (T, error) {
	v, _, err := two(ctx, s, method, about, func(ctx context.Context) (v T, _ struct{}, err error) {
		v, err = do(ctx)
		return v, struct{}{}, err
	})
	return v, err
}

// two makes a call that returns two.
func two[A, B any](
	ctx context.Context, s runStore, method, about string, do func(context.Context) (A, B, error),
) (a A, b B, err error) {
	err = s.call(ctx, method, about, func(ctx context.Context) (err error) { a, b, err = do(ctx); return err })
	if err != nil {
		return *new(A), *new(B), err
	}
	return a, b, nil
}

func (s runStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return s.call(ctx, "StartRun", r.ID, func(ctx context.Context) error { return s.store.StartRun(ctx, r, a) })
}

func (s runStore) Run(ctx context.Context, id string) (run.Run, bool, error) {
	return two(ctx, s, "Run", id, func(ctx context.Context) (run.Run, bool, error) { return s.store.Run(ctx, id) })
}

func (s runStore) ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error) {
	return one(ctx, s, "ListRuns", "", func(ctx context.Context) ([]run.Run, error) {
		return s.store.ListRuns(ctx, before, limit)
	})
}

func (s runStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	return one(ctx, s, "Stats", id, func(ctx context.Context) (run.Stats, error) { return s.store.Stats(ctx, id) })
}

func (s runStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	return one(ctx, s, "BatchCounts", id, func(ctx context.Context) (map[run.BatchStatus]int, error) {
		return s.store.BatchCounts(ctx, id)
	})
}

func (s runStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (run.Run, bool, error) {
	return two(ctx, s, "ClaimRun", id, func(ctx context.Context) (run.Run, bool, error) {
		return s.store.ClaimRun(ctx, id, epoch, shown, w, stale)
	})
}

func (s runStore) BeatRun(ctx context.Context, l run.RunLease) (bool, error) {
	return one(ctx, s, "BeatRun", l.Run, func(ctx context.Context) (bool, error) { return s.store.BeatRun(ctx, l) })
}

func (s runStore) Known(ctx context.Context, id string, documents []string) (map[string]bool, error) {
	return one(ctx, s, "Known", id, func(ctx context.Context) (map[string]bool, error) {
		return s.store.Known(ctx, id, documents)
	})
}

func (s runStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return s.call(ctx, "AddChunk", l.Run, func(ctx context.Context) error {
		return s.store.AddChunk(ctx, l, c, audits...)
	})
}

func (s runStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return s.call(ctx, "EndHandOff", l.Run, func(ctx context.Context) error { return s.store.EndHandOff(ctx, l, a) })
}

func (s runStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return s.call(ctx, "ReleaseRun", l.Run, func(ctx context.Context) error { return s.store.ReleaseRun(ctx, l) })
}

func (s runStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (bool, error) {
	return one(ctx, s, "CompleteRun", id, func(ctx context.Context) (bool, error) {
		return s.store.CompleteRun(ctx, id, stale, audit)
	})
}

func (s runStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "CancelRun", id, func(ctx context.Context) (bool, error) {
		return s.store.CancelRun(ctx, id, a)
	})
}

func (s runStore) FailRun(
	ctx context.Context, id, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return one(ctx, s, "FailRun", id, func(ctx context.Context) (bool, error) {
		return s.store.FailRun(ctx, id, reason, stale, a)
	})
}

func (s runStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "ResumeRun", id, func(ctx context.Context) (bool, error) {
		return s.store.ResumeRun(ctx, id, a)
	})
}

func (s runStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	return one(ctx, s, "ClaimBatch", id, func(ctx context.Context) (run.Claimed, error) {
		return s.store.ClaimBatch(ctx, id, t, w, stale, a)
	})
}

func (s runStore) BeatBatch(ctx context.Context, l run.BatchLease) (bool, error) {
	return one(ctx, s, "BeatBatch", l.Batch, func(ctx context.Context) (bool, error) {
		return s.store.BeatBatch(ctx, l)
	})
}

func (s runStore) SaveOutcomes(
	ctx context.Context, l run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return s.call(ctx, "SaveOutcomes", l.Batch, func(ctx context.Context) error {
		return s.store.SaveOutcomes(ctx, l, outcomes, details)
	})
}

func (s runStore) FinishBatch(
	ctx context.Context, l run.BatchLease, audit func(run.BatchStats) run.Audit,
) (run.BatchStats, error) {
	return one(ctx, s, "FinishBatch", l.Batch, func(ctx context.Context) (run.BatchStats, error) {
		return s.store.FinishBatch(ctx, l, audit)
	})
}

func (s runStore) ReleaseBatch(ctx context.Context, l run.BatchLease, audits ...run.Audit) error {
	return s.call(ctx, "ReleaseBatch", l.Batch, func(ctx context.Context) error {
		return s.store.ReleaseBatch(ctx, l, audits...)
	})
}

func (s runStore) FailBatch(ctx context.Context, l run.BatchLease, reason string, a run.Audit) error {
	return s.call(ctx, "FailBatch", l.Batch, func(ctx context.Context) error {
		return s.store.FailBatch(ctx, l, reason, a)
	})
}

func (s runStore) Batch(ctx context.Context, id string) (b run.Batch, d []run.ErrorDetail, ok bool, err error) {
	err = s.call(ctx, "Batch", id, func(ctx context.Context) (err error) {
		b, d, ok, err = s.store.Batch(ctx, id)
		return err
	})
	if err != nil {
		return run.Batch{}, nil, false, err
	}
	return b, d, ok, nil
}

func (s runStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) ([]run.Batch, error) {
	return one(ctx, s, "ListBatches", id, func(ctx context.Context) ([]run.Batch, error) {
		return s.store.ListBatches(ctx, id, status, after, limit)
	})
}

func (s runStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) ([]run.ItemOutcome, error) {
	return one(ctx, s, "Items", id, func(ctx context.Context) ([]run.ItemOutcome, error) {
		return s.store.Items(ctx, id, outcomes, afterKey, limit)
	})
}

func (s runStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "RequeueBatch", id, func(ctx context.Context) (bool, error) {
		return s.store.RequeueBatch(ctx, id, a)
	})
}

func (s runStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return one(ctx, s, "DeadLetter", id, func(ctx context.Context) (bool, error) {
		return s.store.DeadLetter(ctx, id, attempt, reason, stale, a)
	})
}

func (s runStore) Write(ctx context.Context, a run.Audit) error {
	return s.call(ctx, "Write", a.Action, func(ctx context.Context) error { return s.store.Write(ctx, a) })
}

func (s runStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return one(ctx, s, "Unsent", id, func(ctx context.Context) ([]run.Batch, error) {
		return s.store.Unsent(ctx, id, limit)
	})
}

func (s runStore) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (int, error) {
	return one(ctx, s, "MarkQueued", "", func(ctx context.Context) (int, error) {
		return s.store.MarkQueued(ctx, l, batches)
	})
}

func (s runStore) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (retry, failed int, err error) {
	return two(ctx, s, "MarkUnsent", "", func(ctx context.Context) (int, int, error) {
		return s.store.MarkUnsent(ctx, batches, reason, counted, audit)
	})
}

func (s runStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Batch, error) {
	return one(ctx, s, "ToSend", "", func(ctx context.Context) ([]run.Batch, error) {
		return s.store.ToSend(ctx, sysName, limit)
	})
}

func (s runStore) OnTheWay(ctx context.Context, sysName string) (run.OnTheWay, error) {
	return one(ctx, s, "OnTheWay", "", func(ctx context.Context) (run.OnTheWay, error) {
		return s.store.OnTheWay(ctx, sysName)
	})
}

func (s runStore) RequeueSilent(
	ctx context.Context, sysName string, silent time.Duration, limit int,
) (int, error) {
	return one(ctx, s, "RequeueSilent", "", func(ctx context.Context) (int, error) {
		return s.store.RequeueSilent(ctx, sysName, silent, limit)
	})
}

func (s runStore) Rescue(
	ctx context.Context, sysName string, stale, released time.Duration, limit int,
) (batches, workers int, err error) {
	return two(ctx, s, "Rescue", "", func(ctx context.Context) (int, int, error) {
		return s.store.Rescue(ctx, sysName, stale, released, limit)
	})
}

func (s runStore) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	return one(ctx, s, "OpenRuns", "", func(ctx context.Context) ([]run.Run, error) {
		return s.store.OpenRuns(ctx, sysName, limit)
	})
}

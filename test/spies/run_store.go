// Package spies stands between the product and its ports in tests that play hours of it.
package spies

import (
	"context"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Call makes one call of a method: do makes it at the port. Its error is the method's.
type Call func(ctx context.Context, method string, do func(ctx context.Context) error) error

// RunStore gives a store that makes each call through call.
func RunStore(store run.Store, call Call) run.Store { return runStore{store, call} }

type runStore struct {
	store run.Store
	call  Call
}

// one makes a call that returns a value.
func one[T any](ctx context.Context, s runStore, method string, do func(context.Context) (T, error)) (v T, err error) {
	err = s.call(ctx, method, func(ctx context.Context) (err error) { v, err = do(ctx); return err })
	return v, err
}

func (s runStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return s.call(ctx, "StartRun", func(ctx context.Context) error { return s.store.StartRun(ctx, r, a) })
}

func (s runStore) Run(ctx context.Context, id string) (r run.Run, ok bool, err error) {
	err = s.call(ctx, "Run", func(ctx context.Context) (err error) { r, ok, err = s.store.Run(ctx, id); return err })
	return r, ok, err
}

func (s runStore) ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error) {
	return one(ctx, s, "ListRuns", func(ctx context.Context) ([]run.Run, error) {
		return s.store.ListRuns(ctx, before, limit)
	})
}

func (s runStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	return one(ctx, s, "Stats", func(ctx context.Context) (run.Stats, error) { return s.store.Stats(ctx, id) })
}

func (s runStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	return one(ctx, s, "BatchCounts", func(ctx context.Context) (map[run.BatchStatus]int, error) {
		return s.store.BatchCounts(ctx, id)
	})
}

func (s runStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (r run.Run, ok bool, err error) {
	err = s.call(ctx, "ClaimRun", func(ctx context.Context) (err error) {
		r, ok, err = s.store.ClaimRun(ctx, id, epoch, shown, w, stale)
		return err
	})
	return r, ok, err
}

func (s runStore) BeatRun(ctx context.Context, l run.RunLease) (bool, error) {
	return one(ctx, s, "BeatRun", func(ctx context.Context) (bool, error) { return s.store.BeatRun(ctx, l) })
}

func (s runStore) Known(ctx context.Context, id string, documents []string) (map[string]bool, error) {
	return one(ctx, s, "Known", func(ctx context.Context) (map[string]bool, error) {
		return s.store.Known(ctx, id, documents)
	})
}

func (s runStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return s.call(ctx, "AddChunk", func(ctx context.Context) error { return s.store.AddChunk(ctx, l, c, audits...) })
}

func (s runStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return s.call(ctx, "EndHandOff", func(ctx context.Context) error { return s.store.EndHandOff(ctx, l, a) })
}

func (s runStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return s.call(ctx, "ReleaseRun", func(ctx context.Context) error { return s.store.ReleaseRun(ctx, l) })
}

func (s runStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (bool, error) {
	return one(ctx, s, "CompleteRun", func(ctx context.Context) (bool, error) {
		return s.store.CompleteRun(ctx, id, stale, audit)
	})
}

func (s runStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "CancelRun", func(ctx context.Context) (bool, error) { return s.store.CancelRun(ctx, id, a) })
}

func (s runStore) FailRun(
	ctx context.Context, id, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return one(ctx, s, "FailRun", func(ctx context.Context) (bool, error) {
		return s.store.FailRun(ctx, id, reason, stale, a)
	})
}

func (s runStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "ResumeRun", func(ctx context.Context) (bool, error) { return s.store.ResumeRun(ctx, id, a) })
}

func (s runStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	return one(ctx, s, "ClaimBatch", func(ctx context.Context) (run.Claimed, error) {
		return s.store.ClaimBatch(ctx, id, t, w, stale, a)
	})
}

func (s runStore) BeatBatch(ctx context.Context, l run.BatchLease) (bool, error) {
	return one(ctx, s, "BeatBatch", func(ctx context.Context) (bool, error) { return s.store.BeatBatch(ctx, l) })
}

func (s runStore) SaveOutcomes(
	ctx context.Context, l run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return s.call(ctx, "SaveOutcomes", func(ctx context.Context) error {
		return s.store.SaveOutcomes(ctx, l, outcomes, details)
	})
}

func (s runStore) FinishBatch(
	ctx context.Context, l run.BatchLease, audit func(run.BatchStats) run.Audit,
) (run.BatchStats, error) {
	return one(ctx, s, "FinishBatch", func(ctx context.Context) (run.BatchStats, error) {
		return s.store.FinishBatch(ctx, l, audit)
	})
}

func (s runStore) ReleaseBatch(ctx context.Context, l run.BatchLease, audits ...run.Audit) error {
	return s.call(ctx, "ReleaseBatch", func(ctx context.Context) error {
		return s.store.ReleaseBatch(ctx, l, audits...)
	})
}

func (s runStore) FailBatch(ctx context.Context, l run.BatchLease, reason string, a run.Audit) error {
	return s.call(ctx, "FailBatch", func(ctx context.Context) error { return s.store.FailBatch(ctx, l, reason, a) })
}

func (s runStore) Batch(ctx context.Context, id string) (b run.Batch, d []run.ErrorDetail, ok bool, err error) {
	err = s.call(ctx, "Batch", func(ctx context.Context) (err error) {
		b, d, ok, err = s.store.Batch(ctx, id)
		return err
	})
	return b, d, ok, err
}

func (s runStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) ([]run.Batch, error) {
	return one(ctx, s, "ListBatches", func(ctx context.Context) ([]run.Batch, error) {
		return s.store.ListBatches(ctx, id, status, after, limit)
	})
}

func (s runStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) ([]run.ItemOutcome, error) {
	return one(ctx, s, "Items", func(ctx context.Context) ([]run.ItemOutcome, error) {
		return s.store.Items(ctx, id, outcomes, afterKey, limit)
	})
}

func (s runStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	return one(ctx, s, "RequeueBatch", func(ctx context.Context) (bool, error) {
		return s.store.RequeueBatch(ctx, id, a)
	})
}

func (s runStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return one(ctx, s, "DeadLetter", func(ctx context.Context) (bool, error) {
		return s.store.DeadLetter(ctx, id, attempt, reason, stale, a)
	})
}

func (s runStore) Write(ctx context.Context, a run.Audit) error {
	return s.call(ctx, "Write", func(ctx context.Context) error { return s.store.Write(ctx, a) })
}

func (s runStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return one(ctx, s, "Unsent", func(ctx context.Context) ([]run.Batch, error) {
		return s.store.Unsent(ctx, id, limit)
	})
}

func (s runStore) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (int, error) {
	return one(ctx, s, "MarkQueued", func(ctx context.Context) (int, error) {
		return s.store.MarkQueued(ctx, l, batches)
	})
}

func (s runStore) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (retry, failed int, err error) {
	err = s.call(ctx, "MarkUnsent", func(ctx context.Context) (err error) {
		retry, failed, err = s.store.MarkUnsent(ctx, batches, reason, counted, audit)
		return err
	})
	return retry, failed, err
}

func (s runStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Batch, error) {
	return one(ctx, s, "ToSend", func(ctx context.Context) ([]run.Batch, error) {
		return s.store.ToSend(ctx, sysName, limit)
	})
}

func (s runStore) OnTheWay(ctx context.Context, sysName string) (run.OnTheWay, error) {
	return one(ctx, s, "OnTheWay", func(ctx context.Context) (run.OnTheWay, error) {
		return s.store.OnTheWay(ctx, sysName)
	})
}

func (s runStore) RequeueSilent(
	ctx context.Context, sysName string, silent time.Duration, limit int,
) (int, error) {
	return one(ctx, s, "RequeueSilent", func(ctx context.Context) (int, error) {
		return s.store.RequeueSilent(ctx, sysName, silent, limit)
	})
}

func (s runStore) Rescue(
	ctx context.Context, sysName string, stale, released time.Duration, limit int,
) (batches, workers int, err error) {
	err = s.call(ctx, "Rescue", func(ctx context.Context) (err error) {
		batches, workers, err = s.store.Rescue(ctx, sysName, stale, released, limit)
		return err
	})
	return batches, workers, err
}

func (s runStore) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	return one(ctx, s, "OpenRuns", func(ctx context.Context) ([]run.Run, error) {
		return s.store.OpenRuns(ctx, sysName, limit)
	})
}

package crashtest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The ports of runs, every call a step.

// sender is a queue as an instance sends to it.
type sender struct {
	i *instance
	b *bus
}

func (p sender) Send(ctx context.Context, messages []run.Outgoing) []error {
	p.i.beat()
	ids := make([]string, len(messages))
	for n, m := range messages {
		ids[n] = shortID(m.ID)
	}
	errs, err := call(ctx, p.i, p.b.name+".Send", strings.Join(ids, " "), func() ([]error, error) {
		return p.b.q.Send(ctx, messages), nil
	})
	if err != nil {
		errs = make([]error, len(messages))
		for n := range errs {
			errs[n] = err
		}
	}
	return errs
}

// shortID is the id of a message as a person can read it: a batch's is long.
func shortID(id string) string {
	name, rest, _ := strings.Cut(id, ":")
	return name[:min(len(name), 12)] + ":" + rest
}

// selection finds a run's documents.
type selection struct{ i *instance }

func (p selection) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	p.i.beat()
	return call(ctx, p.i, "selection.Page", "", func() (commit.Page, error) {
		p.i.w.runs.asked(p.i, continuation)
		page, err := p.i.w.runs.pages.Find(ctx, q, continuation)
		p.i.w.runs.given(p.i, continuation, page.Documents)
		return page, err
	})
}

// reader reads the documents of a batch.
type reader struct{ i *instance }

func (p reader) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	p.i.beat()
	return documents(p).ReadMany(ctx, ids)
}

type pair[A, B any] struct {
	a A
	b B
}

type triple[A, B, C any] struct {
	a A
	b B
	c C
}

// runStore is the run store. After every call its rows are compared with those before the call.
type runStore struct{ i *instance }

var _ run.Store = runStore{}

// callStore makes one call of the run store.
func callStore[T any](
	ctx context.Context, i *instance, method, about string, do func(s run.Store) (T, error),
) (T, error) {
	return call(ctx, i, "store."+method, about, func() (T, error) {
		answer, err := do(i.w.runs.storeOrMistake)
		i.w.runs.watch(i.name + " " + method)
		return answer, err
	})
}

// execStore makes a call that returns only an error.
func execStore(ctx context.Context, i *instance, method, about string, do func(s run.Store) error) error {
	_, err := callStore(ctx, i, method, about, func(s run.Store) (nothing, error) { return nothing{}, do(s) })
	return err
}

func (p runStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return execStore(ctx, p.i, "StartRun", r.ID, func(s run.Store) error { return s.StartRun(ctx, r, a) })
}

func (p runStore) Run(ctx context.Context, id string) (run.Run, bool, error) {
	a, err := callStore(ctx, p.i, "Run", id, func(s run.Store) (r pair[run.Run, bool], err error) {
		r.a, r.b, err = s.Run(ctx, id)
		return r, err
	})
	return a.a, a.b, err
}

func (p runStore) ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error) {
	return callStore(ctx, p.i, "ListRuns", "", func(s run.Store) ([]run.Run, error) {
		return s.ListRuns(ctx, before, limit)
	})
}

func (p runStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	return callStore(ctx, p.i, "Stats", id, func(s run.Store) (run.Stats, error) { return s.Stats(ctx, id) })
}

func (p runStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	return callStore(ctx, p.i, "BatchCounts", id, func(s run.Store) (map[run.BatchStatus]int, error) {
		return s.BatchCounts(ctx, id)
	})
}

func (p runStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (run.Run, bool, error) {
	a, err := callStore(ctx, p.i, "ClaimRun", id, func(s run.Store) (r pair[run.Run, bool], err error) {
		r.a, r.b, err = s.ClaimRun(ctx, id, epoch, shown, w, stale)
		if r.b {
			p.i.w.runs.claimed(p.i, r.a)
		}
		return r, err
	})
	return a.a, a.b, err
}

func (p runStore) BeatRun(ctx context.Context, l run.RunLease) (bool, error) {
	return callStore(ctx, p.i, "BeatRun", l.Run, func(s run.Store) (bool, error) { return s.BeatRun(ctx, l) })
}

func (p runStore) Known(ctx context.Context, id string, docs []string) (map[string]bool, error) {
	return callStore(ctx, p.i, "Known", id, func(s run.Store) (map[string]bool, error) {
		return s.Known(ctx, id, docs)
	})
}

func (p runStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return execStore(ctx, p.i, "AddChunk", l.Run, func(s run.Store) error { return s.AddChunk(ctx, l, c, audits...) })
}

func (p runStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return execStore(ctx, p.i, "EndHandOff", l.Run, func(s run.Store) error { return s.EndHandOff(ctx, l, a) })
}

func (p runStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return execStore(ctx, p.i, "ReleaseRun", l.Run, func(s run.Store) error { return s.ReleaseRun(ctx, l) })
}

func (p runStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (bool, error) {
	return callStore(ctx, p.i, "CompleteRun", id, func(s run.Store) (bool, error) {
		return s.CompleteRun(ctx, id, stale, audit)
	})
}

func (p runStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return callStore(ctx, p.i, "CancelRun", id, func(s run.Store) (bool, error) { return s.CancelRun(ctx, id, a) })
}

func (p runStore) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return callStore(ctx, p.i, "FailRun", id, func(s run.Store) (bool, error) {
		p.i.w.runs.letterAudited(a)
		return s.FailRun(ctx, id, reason, stale, a)
	})
}

func (p runStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return callStore(ctx, p.i, "ResumeRun", id, func(s run.Store) (bool, error) { return s.ResumeRun(ctx, id, a) })
}

func (p runStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	return callStore(ctx, p.i, "ClaimBatch", shortID(id), func(s run.Store) (run.Claimed, error) {
		c, err := s.ClaimBatch(ctx, id, t, w, stale, a)
		p.i.w.runs.took(c)
		return c, err
	})
}

func (p runStore) BeatBatch(ctx context.Context, h run.BatchLease) (bool, error) {
	return callStore(ctx, p.i, "BeatBatch", shortID(h.Batch), func(s run.Store) (bool, error) {
		return s.BeatBatch(ctx, h)
	})
}

func (p runStore) SaveOutcomes(
	ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return execStore(ctx, p.i, "SaveOutcomes", shortID(h.Batch), func(s run.Store) error {
		return s.SaveOutcomes(ctx, h, outcomes, details)
	})
}

func (p runStore) FinishBatch(
	ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit,
) (run.BatchStats, error) {
	return callStore(ctx, p.i, "FinishBatch", shortID(h.Batch), func(s run.Store) (run.BatchStats, error) {
		return s.FinishBatch(ctx, h, audit)
	})
}

func (p runStore) ReleaseBatch(ctx context.Context, h run.BatchLease, audits ...run.Audit) error {
	return execStore(ctx, p.i, "ReleaseBatch", shortID(h.Batch), func(s run.Store) error {
		return s.ReleaseBatch(ctx, h, audits...)
	})
}

func (p runStore) FailBatch(ctx context.Context, h run.BatchLease, reason string, a run.Audit) error {
	return execStore(ctx, p.i, "FailBatch", shortID(h.Batch), func(s run.Store) error {
		return s.FailBatch(ctx, h, reason, a)
	})
}

func (p runStore) Batch(ctx context.Context, id string) (run.Batch, []run.ErrorDetail, bool, error) {
	a, err := callStore(ctx, p.i, "Batch", shortID(id),
		func(s run.Store) (j triple[run.Batch, []run.ErrorDetail, bool], err error) {
			j.a, j.b, j.c, err = s.Batch(ctx, id)
			return j, err
		})
	return a.a, a.b, a.c, err
}

func (p runStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) ([]run.Batch, error) {
	return callStore(ctx, p.i, "ListBatches", id, func(s run.Store) ([]run.Batch, error) {
		return s.ListBatches(ctx, id, status, after, limit)
	})
}

func (p runStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) ([]run.ItemOutcome, error) {
	return callStore(ctx, p.i, "Items", id, func(s run.Store) ([]run.ItemOutcome, error) {
		return s.Items(ctx, id, outcomes, afterKey, limit)
	})
}

func (p runStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	return callStore(ctx, p.i, "RequeueBatch", shortID(id), func(s run.Store) (bool, error) {
		return s.RequeueBatch(ctx, id, a)
	})
}

func (p runStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return callStore(ctx, p.i, "DeadLetter", shortID(id), func(s run.Store) (bool, error) {
		p.i.w.runs.letterAudited(a)
		return s.DeadLetter(ctx, id, attempt, reason, stale, a)
	})
}

func (p runStore) Write(ctx context.Context, a run.Audit) error {
	return execStore(ctx, p.i, "Write", a.Action, func(s run.Store) error {
		p.i.w.runs.letterAudited(a)
		return s.Write(ctx, a)
	})
}

func (p runStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return callStore(ctx, p.i, "Unsent", id, func(s run.Store) ([]run.Batch, error) { return s.Unsent(ctx, id, limit) })
}

func (p runStore) MarkQueued(ctx context.Context, l run.RunLease, stored []run.Batch) (int, error) {
	return callStore(ctx, p.i, "MarkQueued", "", func(s run.Store) (int, error) { return s.MarkQueued(ctx, l, stored) })
}

func (p runStore) MarkUnsent(
	ctx context.Context, stored []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (int, int, error) {
	a, err := callStore(ctx, p.i, "MarkUnsent", "", func(s run.Store) (n pair[int, int], err error) {
		n.a, n.b, err = s.MarkUnsent(ctx, stored, reason, counted, audit)
		return n, err
	})
	return a.a, a.b, err
}

func (p runStore) ToSend(ctx context.Context, sys string, limit int) ([]run.Batch, error) {
	return callStore(ctx, p.i, "ToSend", "", func(s run.Store) ([]run.Batch, error) {
		return s.ToSend(ctx, sys, limit)
	})
}

func (p runStore) OnTheWay(ctx context.Context, sys string) (run.OnTheWay, error) {
	return callStore(ctx, p.i, "OnTheWay", "", func(s run.Store) (run.OnTheWay, error) { return s.OnTheWay(ctx, sys) })
}

func (p runStore) RequeueSilent(ctx context.Context, sys string, silent time.Duration, limit int) (int, error) {
	return callStore(ctx, p.i, "RequeueSilent", "", func(s run.Store) (int, error) {
		return s.RequeueSilent(ctx, sys, silent, limit)
	})
}

func (p runStore) Rescue(ctx context.Context, sys string, stale, released time.Duration, limit int) (int, int, error) {
	a, err := callStore(ctx, p.i, "Rescue", "", func(s run.Store) (n pair[int, int], err error) {
		n.a, n.b, err = s.Rescue(ctx, sys, stale, released, limit)
		return n, err
	})
	return a.a, a.b, err
}

func (p runStore) OpenRuns(ctx context.Context, sys string, limit int) ([]run.Run, error) {
	return callStore(ctx, p.i, "OpenRuns", "", func(s run.Store) ([]run.Run, error) {
		return s.OpenRuns(ctx, sys, limit)
	})
}

package scenario

import (
	"context"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// booksDoor stands before the books of runs, which are in the same database as everything: each use is a request.
type booksDoor struct{ i *instance }

var _ run.Store = booksDoor{}

// use makes one request of bookkeeping.
func (d booksDoor) use(ctx context.Context, f func(ctx context.Context) error) error {
	w := d.i.w
	w.mu.Lock()
	w.bookings++
	w.mu.Unlock()
	if err := w.spend(ctx, 2*time.Millisecond); err != nil {
		return err
	}
	if err := w.breaks(ctx, request{instance: d.i.name, books: true}); err != nil {
		return err
	}
	return f(ctx)
}

// journalDoor stands before the audit log.
type journalDoor struct {
	ops.Journal
	i *instance
}

// Write implements ops.Journal.
func (d journalDoor) Write(ctx context.Context, a ops.Audit) error {
	return booksDoor{d.i}.use(ctx, func(ctx context.Context) error { return d.Journal.Write(ctx, a) })
}

func (d booksDoor) AddChunk(ctx context.Context, l run.Lease, c run.Chunk, audits ...run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.AddChunk(ctx, l, c, audits...) })
}

func (d booksDoor) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.StartRun(ctx, r, a) })
}

func (d booksDoor) Run(ctx context.Context, id string) (r0 run.Run, r1 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, r1, err = d.i.w.books.Run(ctx, id); return err })
	return r0, r1, err
}

func (d booksDoor) ListRuns(ctx context.Context, limit int) (r0 []run.Run, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.ListRuns(ctx, limit); return err })
	return r0, err
}

func (d booksDoor) JobCounts(ctx context.Context, id string) (r0 map[run.Status]int, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.JobCounts(ctx, id); return err })
	return r0, err
}

func (d booksDoor) Stats(ctx context.Context, id string) (r0 run.Stats, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.Stats(ctx, id); return err })
	return r0, err
}

func (d booksDoor) ClaimRun(ctx context.Context, id string, epoch, shown int, wk run.Worker, stale time.Duration) (r0 run.Run, r1 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.books.ClaimRun(ctx, id, epoch, shown, wk, stale)
		return err
	})
	return r0, r1, err
}

func (d booksDoor) BeatRun(ctx context.Context, l run.Lease) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.BeatRun(ctx, l); return err })
	return r0, err
}

func (d booksDoor) Known(ctx context.Context, id string, documents []string) (r0 map[string]bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.Known(ctx, id, documents); return err })
	return r0, err
}

func (d booksDoor) EndHandOff(ctx context.Context, l run.Lease, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.EndHandOff(ctx, l, a) })
}

func (d booksDoor) ReleaseRun(ctx context.Context, l run.Lease) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.ReleaseRun(ctx, l) })
}

func (d booksDoor) CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.CompleteRun(ctx, id, stale, audit); return err })
	return r0, err
}

func (d booksDoor) CancelRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.CancelRun(ctx, id, a); return err })
	return r0, err
}

func (d booksDoor) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.FailRun(ctx, id, reason, stale, a); return err })
	return r0, err
}

func (d booksDoor) ResumeRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.ResumeRun(ctx, id, a); return err })
	return r0, err
}

func (d booksDoor) ClaimJob(ctx context.Context, id string, tk run.Ticket, wk run.Worker, stale time.Duration, a run.Audit) (r0 run.Claimed, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.ClaimJob(ctx, id, tk, wk, stale, a); return err })
	return r0, err
}

func (d booksDoor) BeatJob(ctx context.Context, h run.Hold) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.BeatJob(ctx, h); return err })
	return r0, err
}

func (d booksDoor) SaveOutcomes(ctx context.Context, h run.Hold, outcomes []run.ItemOutcome, details []run.ErrorDetail) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.SaveOutcomes(ctx, h, outcomes, details) })
}

func (d booksDoor) FinishJob(ctx context.Context, h run.Hold, audit func(run.JobStats) run.Audit) (r0 run.JobStats, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.FinishJob(ctx, h, audit); return err })
	return r0, err
}

func (d booksDoor) ReleaseJob(ctx context.Context, h run.Hold, audits ...run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.ReleaseJob(ctx, h, audits...) })
}

func (d booksDoor) FailJob(ctx context.Context, h run.Hold, reason string, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.FailJob(ctx, h, reason, a) })
}

func (d booksDoor) Job(ctx context.Context, id string) (r0 run.Job, r1 []run.ErrorDetail, r2 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, r1, r2, err = d.i.w.books.Job(ctx, id); return err })
	return r0, r1, r2, err
}

func (d booksDoor) ListJobs(ctx context.Context, id string, status run.Status, limit int) (r0 []run.Job, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.ListJobs(ctx, id, status, limit); return err })
	return r0, err
}

func (d booksDoor) Items(ctx context.Context, id string, outcomes []run.Outcome, afterKey string, limit int) (r0 []run.ItemOutcome, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.books.Items(ctx, id, outcomes, afterKey, limit)
		return err
	})
	return r0, err
}

func (d booksDoor) RequeueJob(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.RequeueJob(ctx, id, a); return err })
	return r0, err
}

func (d booksDoor) DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.books.DeadLetter(ctx, id, attempt, reason, stale, a)
		return err
	})
	return r0, err
}

func (d booksDoor) Write(ctx context.Context, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.books.Write(ctx, a) })
}

func (d booksDoor) Unsent(ctx context.Context, id string, limit int) (r0 []run.Job, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.Unsent(ctx, id, limit); return err })
	return r0, err
}

func (d booksDoor) MarkQueued(ctx context.Context, l run.Lease, jobs []run.Job) (r0 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.MarkQueued(ctx, l, jobs); return err })
	return r0, err
}

func (d booksDoor) MarkUnsent(ctx context.Context, jobs []run.Job, reason string, counted bool, audit func(run.Job) run.Audit) (r0 int, r1 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.books.MarkUnsent(ctx, jobs, reason, counted, audit)
		return err
	})
	return r0, r1, err
}

func (d booksDoor) ToSend(ctx context.Context, sys string, limit int) (r0 []run.Job, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.ToSend(ctx, sys, limit); return err })
	return r0, err
}

func (d booksDoor) OnTheWay(ctx context.Context, sys string) (r0 run.OnTheWay, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.OnTheWay(ctx, sys); return err })
	return r0, err
}

func (d booksDoor) Silence(ctx context.Context, sys string, silent time.Duration, limit int) (r0 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.Silence(ctx, sys, silent, limit); return err })
	return r0, err
}

func (d booksDoor) Bury(ctx context.Context, sys string, stale, released time.Duration, limit int) (r0 int, r1 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.books.Bury(ctx, sys, stale, released, limit)
		return err
	})
	return r0, r1, err
}

func (d booksDoor) OpenRuns(ctx context.Context, sys string, limit int) (r0 []run.Run, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.books.OpenRuns(ctx, sys, limit); return err })
	return r0, err
}

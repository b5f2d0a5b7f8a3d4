package crashtest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/run"
)

// The ports of runs, every call a step.

// sender is a queue as an instance sends to it.
type sender struct {
	i *instance
	b *bus
}

func (p sender) Send(ctx context.Context, messages []run.Message) []error {
	p.i.beat()
	ids := make([]string, len(messages))
	for n, m := range messages {
		ids[n] = shortID(m.ID)
	}
	errs, err := call(ctx, p.i, p.b.name+".Send", strings.Join(ids, " "), func() ([]error, error) { return p.b.q.Send(ctx, messages), nil })
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

func (p selection) Page(ctx context.Context, q run.Query, continuation string) ([]commit.Waiting, string, error) {
	p.i.beat()
	a, err := call(ctx, p.i, "selection.Page", "", func() (found pair[[]commit.Waiting, string], err error) {
		p.i.w.runs.asked(p.i, continuation)
		found.a, found.b, err = p.i.w.runs.pages.Page(ctx, q, continuation)
		p.i.w.runs.given(p.i, continuation, found.a)
		return found, err
	})
	return a.a, a.b, err
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

// books are the books of runs. After every call they are compared with how they were.
type books struct{ i *instance }

var _ run.Store = books{}

// book is one call of the books.
func book[T any](ctx context.Context, i *instance, method, about string, do func(s run.Store) (T, error)) (T, error) {
	return call(ctx, i, "store."+method, about, func() (T, error) {
		answer, err := do(i.w.runs.books)
		i.w.runs.watch(i.name + " " + method)
		return answer, err
	})
}

// told is one whose answer is its error alone.
func told(ctx context.Context, i *instance, method, about string, do func(s run.Store) error) error {
	_, err := book(ctx, i, method, about, func(s run.Store) (nothing, error) { return nothing{}, do(s) })
	return err
}

func (p books) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return told(ctx, p.i, "StartRun", r.ID, func(s run.Store) error { return s.StartRun(ctx, r, a) })
}

func (p books) Run(ctx context.Context, id string) (run.Run, bool, error) {
	a, err := book(ctx, p.i, "Run", id, func(s run.Store) (r pair[run.Run, bool], err error) {
		r.a, r.b, err = s.Run(ctx, id)
		return r, err
	})
	return a.a, a.b, err
}

func (p books) ListRuns(ctx context.Context, limit int) ([]run.Run, error) {
	return book(ctx, p.i, "ListRuns", "", func(s run.Store) ([]run.Run, error) { return s.ListRuns(ctx, limit) })
}

func (p books) Stats(ctx context.Context, id string) (run.Stats, error) {
	return book(ctx, p.i, "Stats", id, func(s run.Store) (run.Stats, error) { return s.Stats(ctx, id) })
}

func (p books) JobCounts(ctx context.Context, id string) (map[run.Status]int, error) {
	return book(ctx, p.i, "JobCounts", id, func(s run.Store) (map[run.Status]int, error) { return s.JobCounts(ctx, id) })
}

func (p books) ClaimRun(ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration) (run.Run, bool, error) {
	a, err := book(ctx, p.i, "ClaimRun", id, func(s run.Store) (r pair[run.Run, bool], err error) {
		r.a, r.b, err = s.ClaimRun(ctx, id, epoch, shown, w, stale)
		if r.b {
			p.i.w.runs.claimed(p.i, r.a)
		}
		return r, err
	})
	return a.a, a.b, err
}

func (p books) BeatRun(ctx context.Context, l run.Lease) (bool, error) {
	return book(ctx, p.i, "BeatRun", l.Run, func(s run.Store) (bool, error) { return s.BeatRun(ctx, l) })
}

func (p books) Known(ctx context.Context, id string, docs []string) (map[string]bool, error) {
	return book(ctx, p.i, "Known", id, func(s run.Store) (map[string]bool, error) { return s.Known(ctx, id, docs) })
}

func (p books) AddChunk(ctx context.Context, l run.Lease, c run.Chunk, audits ...run.Audit) error {
	return told(ctx, p.i, "AddChunk", l.Run, func(s run.Store) error { return s.AddChunk(ctx, l, c, audits...) })
}

func (p books) EndHandOff(ctx context.Context, l run.Lease, a run.Audit) error {
	return told(ctx, p.i, "EndHandOff", l.Run, func(s run.Store) error { return s.EndHandOff(ctx, l, a) })
}

func (p books) ReleaseRun(ctx context.Context, l run.Lease) error {
	return told(ctx, p.i, "ReleaseRun", l.Run, func(s run.Store) error { return s.ReleaseRun(ctx, l) })
}

func (p books) CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit) (bool, error) {
	return book(ctx, p.i, "CompleteRun", id, func(s run.Store) (bool, error) { return s.CompleteRun(ctx, id, stale, audit) })
}

func (p books) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return book(ctx, p.i, "CancelRun", id, func(s run.Store) (bool, error) { return s.CancelRun(ctx, id, a) })
}

func (p books) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return book(ctx, p.i, "FailRun", id, func(s run.Store) (bool, error) {
		p.i.w.runs.letterAudited(a)
		return s.FailRun(ctx, id, reason, stale, a)
	})
}

func (p books) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return book(ctx, p.i, "ResumeRun", id, func(s run.Store) (bool, error) { return s.ResumeRun(ctx, id, a) })
}

func (p books) ClaimJob(ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit) (run.Claimed, error) {
	return book(ctx, p.i, "ClaimJob", shortID(id), func(s run.Store) (run.Claimed, error) {
		c, err := s.ClaimJob(ctx, id, t, w, stale, a)
		p.i.w.runs.took(c)
		return c, err
	})
}

func (p books) BeatJob(ctx context.Context, h run.Hold) (bool, error) {
	return book(ctx, p.i, "BeatJob", shortID(h.Job), func(s run.Store) (bool, error) { return s.BeatJob(ctx, h) })
}

func (p books) SaveOutcomes(ctx context.Context, h run.Hold, outcomes []run.ItemOutcome, details []run.ErrorDetail) error {
	return told(ctx, p.i, "SaveOutcomes", shortID(h.Job), func(s run.Store) error { return s.SaveOutcomes(ctx, h, outcomes, details) })
}

func (p books) FinishJob(ctx context.Context, h run.Hold, audit func(run.JobStats) run.Audit) (run.JobStats, error) {
	return book(ctx, p.i, "FinishJob", shortID(h.Job), func(s run.Store) (run.JobStats, error) { return s.FinishJob(ctx, h, audit) })
}

func (p books) ReleaseJob(ctx context.Context, h run.Hold, audits ...run.Audit) error {
	return told(ctx, p.i, "ReleaseJob", shortID(h.Job), func(s run.Store) error { return s.ReleaseJob(ctx, h, audits...) })
}

func (p books) FailJob(ctx context.Context, h run.Hold, reason string, a run.Audit) error {
	return told(ctx, p.i, "FailJob", shortID(h.Job), func(s run.Store) error { return s.FailJob(ctx, h, reason, a) })
}

func (p books) Job(ctx context.Context, id string) (run.Job, []run.ErrorDetail, bool, error) {
	a, err := book(ctx, p.i, "Job", shortID(id), func(s run.Store) (j triple[run.Job, []run.ErrorDetail, bool], err error) {
		j.a, j.b, j.c, err = s.Job(ctx, id)
		return j, err
	})
	return a.a, a.b, a.c, err
}

func (p books) ListJobs(ctx context.Context, id string, status run.Status, limit int) ([]run.Job, error) {
	return book(ctx, p.i, "ListJobs", id, func(s run.Store) ([]run.Job, error) { return s.ListJobs(ctx, id, status, limit) })
}

func (p books) Items(ctx context.Context, id string, outcomes []run.Outcome, afterKey string, limit int) ([]run.ItemOutcome, error) {
	return book(ctx, p.i, "Items", id, func(s run.Store) ([]run.ItemOutcome, error) { return s.Items(ctx, id, outcomes, afterKey, limit) })
}

func (p books) RequeueJob(ctx context.Context, id string, a run.Audit) (bool, error) {
	return book(ctx, p.i, "RequeueJob", shortID(id), func(s run.Store) (bool, error) { return s.RequeueJob(ctx, id, a) })
}

func (p books) DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return book(ctx, p.i, "DeadLetter", shortID(id), func(s run.Store) (bool, error) {
		p.i.w.runs.letterAudited(a)
		return s.DeadLetter(ctx, id, attempt, reason, stale, a)
	})
}

func (p books) Write(ctx context.Context, a run.Audit) error {
	return told(ctx, p.i, "Write", a.Code, func(s run.Store) error {
		p.i.w.runs.letterAudited(a)
		return s.Write(ctx, a)
	})
}

func (p books) Unsent(ctx context.Context, id string, limit int) ([]run.Job, error) {
	return book(ctx, p.i, "Unsent", id, func(s run.Store) ([]run.Job, error) { return s.Unsent(ctx, id, limit) })
}

func (p books) MarkQueued(ctx context.Context, l run.Lease, jobs []run.Job) (int, error) {
	return book(ctx, p.i, "MarkQueued", "", func(s run.Store) (int, error) { return s.MarkQueued(ctx, l, jobs) })
}

func (p books) MarkUnsent(ctx context.Context, jobs []run.Job, reason string, counted bool, audit func(run.Job) run.Audit) (int, int, error) {
	a, err := book(ctx, p.i, "MarkUnsent", "", func(s run.Store) (n pair[int, int], err error) {
		n.a, n.b, err = s.MarkUnsent(ctx, jobs, reason, counted, audit)
		return n, err
	})
	return a.a, a.b, err
}

func (p books) ToSend(ctx context.Context, sys string, limit int) ([]run.Job, error) {
	return book(ctx, p.i, "ToSend", "", func(s run.Store) ([]run.Job, error) { return s.ToSend(ctx, sys, limit) })
}

func (p books) OnTheWay(ctx context.Context, sys string) (run.OnTheWay, error) {
	return book(ctx, p.i, "OnTheWay", "", func(s run.Store) (run.OnTheWay, error) { return s.OnTheWay(ctx, sys) })
}

func (p books) Silence(ctx context.Context, sys string, silent time.Duration, limit int) (int, error) {
	return book(ctx, p.i, "Silence", "", func(s run.Store) (int, error) { return s.Silence(ctx, sys, silent, limit) })
}

func (p books) Bury(ctx context.Context, sys string, stale, released time.Duration, limit int) (int, int, error) {
	a, err := book(ctx, p.i, "Bury", "", func(s run.Store) (n pair[int, int], err error) {
		n.a, n.b, err = s.Bury(ctx, sys, stale, released, limit)
		return n, err
	})
	return a.a, a.b, err
}

func (p books) OpenRuns(ctx context.Context, sys string, limit int) ([]run.Run, error) {
	return book(ctx, p.i, "OpenRuns", "", func(s run.Store) ([]run.Run, error) { return s.OpenRuns(ctx, sys, limit) })
}

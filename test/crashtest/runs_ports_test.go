package crashtest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/run"
	"sqlwriter/test/spies"
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

// shortID is an id as a person can read it: a batch's is 64 digits, and that of its message begins with them.
func shortID(id string) string {
	if len(id) < 64 {
		return id
	}
	return id[:12] + id[64:]
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

// store is the run store of an instance. After every call its rows are compared with those before the call.
func (i *instance) store() run.Store {
	return spies.RunStore(watchedStore{i.w.runs.storeOrMistake, i}, func(
		ctx context.Context, method, about string, do func(context.Context) error,
	) error {
		_, err := call(ctx, i, "store."+method, shortID(about), only(func() error {
			err := do(ctx)
			i.w.runs.watch(i.name + " " + method)
			return err
		}))
		return err
	})
}

// watchedStore tells what is claimed and audited where it is done, whatever its caller learns.
type watchedStore struct {
	run.Store
	i *instance
}

func (p watchedStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (run.Run, bool, error) {
	r, ok, err := p.Store.ClaimRun(ctx, id, epoch, shown, w, stale)
	if ok {
		p.i.w.runs.claimed(p.i, r)
	}
	return r, ok, err
}

func (p watchedStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	c, err := p.Store.ClaimBatch(ctx, id, t, w, stale, a)
	p.i.w.runs.took(c)
	return c, err
}

func (p watchedStore) FailRun(
	ctx context.Context, id, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	p.i.w.runs.letterAudited(a)
	return p.Store.FailRun(ctx, id, reason, stale, a)
}

func (p watchedStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	p.i.w.runs.letterAudited(a)
	return p.Store.DeadLetter(ctx, id, attempt, reason, stale, a)
}

func (p watchedStore) Write(ctx context.Context, a run.Audit) error {
	p.i.w.runs.letterAudited(a)
	return p.Store.Write(ctx, a)
}

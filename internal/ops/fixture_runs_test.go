package ops_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// runs is a world with a fake run store, a queue and reports.
type runs struct {
	*world
	runStore *fakeRunStore
	queue    *inmem.Queue
	search   *fakeFinder
	readOnly string
	// unfit is why the database cannot be used.
	unfit error
	// kinds replaces the kinds of the product unless nil.
	kinds run.KindTable
	// mapping is that of the database, and mappings are those that migrations chose.
	mapping  *invoice.Mapping
	mappings []invoice.Recorded
}

func newRuns(t *testing.T) *runs {
	t.Helper()
	w := newWorld(t)
	r := &runs{world: w, runStore: &fakeRunStore{RunStore: w.store}, queue: w.queue}
	r.search = &fakeFinder{Finder: w.docs}
	r.renew()
	return r
}

// executor executes runs over the fakes.
func (r *runs) executor() *run.Executor {
	return run.NewExecutor(run.Ports{
		Store: r.store, Finder: r.docs, Documents: r.docs, Commit: r.commit, Breaker: r.breaker,
	}, run.Options{
		SysName: "web", Instance: "here", Now: func() time.Time { return r.clock },
		Wait:  func(_ context.Context, d time.Duration) error { r.clock = r.clock.Add(d); return nil },
		Every: func(time.Duration, func()) func() { return func() {} },
	})
}

// renew makes Ops anew from the changed fakes.
func (r *runs) renew() {
	zone := must(time.LoadLocation("America/Chicago"))(r.t)
	r.ops = ops.New(ops.Ports{
		Documents: r.docs, Finder: r.search, Breaker: r.breaker, Counts: r.counts,
		Queues: []ops.NamedQueue{{Name: "runs", Messages: r.queue}}, ReportNames: fakeReports{}.Names(),
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{
				Audit: r.audit, Runs: r.runStore, Reports: fakeReports{}, Ledger: fakeLedger{r.sink},
				Executor: r.executor(), Findings: r.store.Findings(r.sink.Sink), Rows: r.sink.ReconcileRows("web", 0),
				Preview: r.preview, Check: r.check, Mapping: r.mapping,
				Mappings: func(context.Context) ([]invoice.Recorded, error) { return r.mappings, nil },
			}, nil
		},
		RunQueue: r.queue, Evidence: r.evidence, Creator: r.docs,
	}, ops.Options{
		SysName: "web", Location: zone, AppVersion: "v1", Mapping: "mapping.json, version 7", ReadOnly: r.readOnly,
		Kinds: r.kinds, Now: func() time.Time {
			return r.clock
		},
	})
}

func (r *runs) check(context.Context) error { return r.unfit }

func (w *world) preview(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
	return w.sink.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
}

// fakeRunStore is a run store that can fail.
type fakeRunStore struct {
	*inmem.RunStore
	fails error
	// requeues is how many batches may be requeued before the store fails.
	requeues int
	// requeued is called after each requeued batch.
	requeued func()
	// unchanged makes every change lose its race.
	unchanged bool
}

func (b *fakeRunStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	if b.unchanged {
		return false, nil
	}
	return b.RunStore.CancelRun(ctx, id, a)
}

func (b *fakeRunStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	if b.fails != nil {
		return b.fails
	}
	return b.RunStore.StartRun(ctx, r, a)
}

func (b *fakeRunStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	if b.fails != nil {
		if b.requeues == 0 {
			return false, b.fails
		}
		b.requeues--
	}
	if b.unchanged {
		return false, nil
	}
	if b.requeued != nil {
		defer b.requeued()
	}
	return b.RunStore.RequeueBatch(ctx, id, a)
}

// fakeFinder returns invented documents, or those of the container.
type fakeFinder struct {
	commit.Finder
	invented int
	fails    error
	queries  []commit.Query
}

func (s *fakeFinder) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	s.queries = append(s.queries, q)
	if s.invented == 0 && s.fails == nil {
		return s.Finder.Find(ctx, q, continuation)
	}
	at := 0
	if continuation != "" {
		if _, err := fmt.Sscan(continuation, &at); err != nil {
			return commit.Page{}, err
		}
	}
	if at >= s.invented {
		return commit.Page{}, s.fails
	}
	var page []commit.PendingDoc
	for ; at < s.invented && len(page) < 1000; at++ {
		page = append(page, commit.PendingDoc{ID: id(int64(at)), Status: q.Statuses[0], Kind: "document", Code: "2628"})
	}
	if at == s.invented && s.fails == nil {
		return inmem.PendingPage(page, ""), nil
	}
	return inmem.PendingPage(page, fmt.Sprint(at)), nil
}

// reports has one.
type fakeReports struct{}

func (fakeReports) Names() []run.ReportName {
	return []run.ReportName{{Name: "runs", Meaning: "the latest"}}
}

func (fakeReports) Report(_ context.Context, name string) (run.Table, error) {
	if name != "runs" {
		return run.Table{},
			fault.New(fault.Internal, "test: report", "no_report", "there is no report %q; there are runs", name)
	}
	return run.Table{Columns: []string{"run"}, Rows: [][]any{{"a"}}}, nil
}

// replayAll asks to replay everything.
func replayAll() ops.StartRequest {
	return ops.StartRequest{Kind: run.Replay, All: true, Why: "column widened"}
}

func (r *runs) start(request ops.StartRequest) ops.Started {
	r.t.Helper()
	res := must(r.ops.StartRun(by(r.t, "pat"), request))(r.t)
	return res
}

// startHere starts a run and executes it to its end, as managers and workers do.
func (r *runs) startHere(request ops.StartRequest) ops.Started {
	r.t.Helper()
	res := r.start(request)
	require.Nil(r.t, res.Progress)
	r.execute(res)
	p := must(r.ops.RunShow(r.t.Context(), res.Run))(r.t)
	res.Progress = &p
	return res
}

// handOff gives a run batches, as a manager does, and completes them, as workers do. The batches numbered in failed
// fail.
func (r *runs) handOff(id string, batches, each int, failed ...int) {
	r.t.Helper()
	ctx := r.t.Context()
	row, ok, err := r.runStore.ClaimRun(ctx, id, 0, -1, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	lease := run.RunLease{Run: id, Owner: "manager-1", Epoch: row.Epoch}
	chunk := run.Chunk{First: 1}
	for b := range batches {
		var ids []string
		for d := range each {
			ids = append(ids, fmt.Sprintf("doc-%d-%d", b+1, d))
		}
		chunk.Batches = append(chunk.Batches, ids)
	}
	require.NoError(r.t, r.runStore.AddChunk(ctx, lease, chunk))
	require.NoError(r.t, r.runStore.EndHandOff(ctx, lease, run.Audit{Action: run.CodeRunHandedOff}))
	for b := range batches {
		claimed, err := r.runStore.ClaimBatch(ctx, run.BatchID("web", id, b+1), run.Ticket{},
			run.Worker{ID: fmt.Sprintf("worker-%d", b)}, time.Minute, run.Audit{})
		require.NoError(r.t, err)
		if slices.Contains(failed, b+1) {
			require.NoError(r.t, r.runStore.FailBatch(ctx, claimed.Lease, "Max queue retries exceeded", run.Audit{}))
			continue
		}
		var outcomes []run.ItemOutcome
		for _, document := range claimed.Open {
			outcomes = append(outcomes, run.ItemOutcome{Document: document, Outcome: invoice.OutcomeApplied})
		}
		require.NoError(r.t, r.runStore.SaveOutcomes(ctx, claimed.Lease, outcomes, nil))
		_, err = r.runStore.FinishBatch(ctx, claimed.Lease, func(run.BatchStats) run.Audit { return run.Audit{} })
		require.NoError(r.t, err)
	}
}

func (r *runs) complete(id string) {
	r.t.Helper()
	ok, err := r.runStore.CompleteRun(r.t.Context(), id, time.Minute, func(run.RunStatus, run.Stats) run.Audit {
		return run.Audit{}
	})
	require.NoError(r.t, err)
	require.True(r.t, ok)
}

// audited are the entries of a code.
func (r *runs) audited(code string) (found []run.Audit) {
	for _, a := range r.runStore.Audits() {
		if a.Action == code {
			found = append(found, a)
		}
	}
	return found
}

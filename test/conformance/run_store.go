package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// RunStoreFixture has the port under test and the functions that TestRunStore needs around it. They read and change the
// same database by other ways than the port.
type RunStoreFixture struct {
	// Store is the port under test, with nothing in it.
	Store run.Store
	// For is the store of another environment in the same database.
	For func(sysName string) run.Store
	// Now is the clock that its times come from, or one that is close to it.
	Now func() time.Time
	// Age lets d pass. On an engine it moves every time that the store keeps of runs, batches and workers back by d
	// (started_at, handed_off_at, ended_at, heartbeat_at, when the next chunk may come, created_at, queued_at,
	// updated_at, process_start_time, process_end_time, last claim, release, ...), those that are NULL stay so; where
	// the clock is the test's, it moves the clock. The suite ages by minutes only.
	Age func(t testing.TB, d time.Duration)
	// Audits gives the whole audit log, oldest first. Detail may be spelt otherwise than it was given; nil for none.
	Audits func(t testing.TB) []run.Audit
	// Workers gives all rows of the table worker, in any order.
	Workers func(t testing.TB) []RunWorker
	// HideAudits takes the table of the audit log away until restore, so that a call fails after it made its change;
	// nil where there are no tables.
	HideAudits func(t testing.TB) (restore func())
}

// RunWorker is a row of the table worker.
type RunWorker struct {
	ID, Instance string
	// Kind is RunManager or RunBatchWorker.
	Kind   string
	Status run.WorkerStatus
	// Processed is documents_processed.
	Processed int
}

// The kinds of workers: the manager of a run and the worker of a batch.
const (
	RunManager     = "manager"
	RunBatchWorker = "worker"
)

// The ages of the suite.
const (
	runStale    = 10 * time.Minute
	runReleased = 20 * time.Minute
	runSilent   = 30 * time.Minute
	// runAlmost is short of runStale, and twice of it is not.
	runAlmost = 8 * time.Minute
)

// runSys is the environment of the suite's runs.
const runSys = "web"

// noEpoch is shown by a message that no owner put off.
const noEpoch = -1

// ticketOf is shown by a batch's newest message, which no owner put off.
func ticketOf(j run.Batch) run.Ticket { return run.Ticket{Attempt: j.Attempt, Epoch: noEpoch} }

// runTest is a case at work.
type runTest struct {
	*testing.T
	RunStoreFixture
	// names numbers the workers.
	names int
}

// runCase is one case.
type runCase struct {
	name string
	run  func(*runTest)
}

// TestRunStore checks an implementation of run.Store against the port's contract. open makes a new, empty one per case.
func TestRunStore(t *testing.T, open func(t testing.TB) RunStoreFixture) {
	for _, c := range slices.Concat(runLifeCases(), runBatchCases(), runRecoveryCases(),
		runStateCases(), runRaceCases()) {
		t.Run(c.name, func(t *testing.T) { c.run(&runTest{T: t, RunStoreFixture: open(t)}) })
	}
}

// entry is an entry of the audit log that a call gives along.
func entry(code string) run.Audit {
	return run.Audit{
		Action: code, Level: run.LevelInfo, By: "the suite", Why: "to see it", Detail: json.RawMessage(`{"n":1}`),
	}
}

// codes are those of the audit log, oldest first.
func (r *runTest) codes() []string {
	r.Helper()
	list := []string{}
	for _, a := range r.Audits(r) {
		list = append(list, a.Action)
	}
	return list
}

// worker makes a worker with a new name.
func (r *runTest) worker(kind string) run.Worker {
	r.names++
	return run.Worker{ID: fmt.Sprintf("%s-%08x", kind, r.names), Instance: "instance 1"}
}

// start begins a run that must begin.
func (r *runTest) start(id string) {
	r.Helper()
	r.startIn(runSys, id)
}

func (r *runTest) startIn(sysName, id string) {
	r.Helper()
	require.NoError(r,
		r.Store.StartRun(r.Context(), run.Run{ID: id, SysName: sysName, Kind: run.Drain}, entry("RUN_START")))
}

// read gives a run that is there.
func (r *runTest) read(id string) run.Run {
	r.Helper()
	found, ok, err := r.Store.Run(r.Context(), id)
	require.NoError(r, err)
	require.True(r, ok, "run %s", id)
	return found
}

// leaseRun claims a run for a new manager.
func (r *runTest) leaseRun(id string) run.RunLease {
	r.Helper()
	w := r.worker(RunManager)
	found, ok, err := r.Store.ClaimRun(r.Context(), id, r.read(id).Epoch, noEpoch, w, runStale)
	require.NoError(r, err)
	require.True(r, ok, "run %s can be claimed", id)
	return run.RunLease{Run: id, Owner: w.ID, Epoch: found.Epoch}
}

// claimsRun reports whether another manager gets the run.
func (r *runTest) claimsRun(id string) bool {
	r.Helper()
	_, ok, err := r.Store.ClaimRun(r.Context(), id, r.read(id).Epoch, noEpoch, r.worker(RunManager), runStale)
	require.NoError(r, err)
	return ok
}

// add adds batches to a run that a manager has.
func (r *runTest) add(l run.RunLease, initial run.BatchStatus, batches ...[]string) {
	r.Helper()
	first := r.read(l.Run).Batches + 1
	require.NoError(r, r.Store.AddChunk(r.Context(), l, run.Chunk{Batches: batches, First: first, Watermark: "w"}))
	if initial == run.Queued {
		_, err := r.Store.MarkQueued(r.Context(), l, r.batchesOf(l.Run)[first-1:])
		require.NoError(r, err)
	}
}

// batches begins a run with n batches of two documents, pending_queue, and gives its manager's lease.
func (r *runTest) batches(id string, n int) run.RunLease {
	r.Helper()
	return r.batchesIn(runSys, id, n)
}

func (r *runTest) batchesIn(sysName, id string, n int) run.RunLease {
	r.Helper()
	r.startIn(sysName, id)
	l := r.leaseRun(id)
	list := [][]string{}
	for i := range n {
		list = append(list, documentsOf(id, i+1))
	}
	r.add(l, run.PendingQueue, list...)
	return l
}

// documentsOf are the two documents of a batch.
func documentsOf(id string, number int) []string {
	return []string{fmt.Sprint(id, " b of ", number), fmt.Sprint(id, " a of ", number)}
}

// batchID names a batch of the suite's environment.
func batchID(id string, number int) string { return run.BatchID(runSys, id, number) }

// batchOf gives a batch that is there.
func (r *runTest) batchOf(id string) run.Batch {
	r.Helper()
	j, _, ok, err := r.Store.Batch(r.Context(), id)
	require.NoError(r, err)
	require.True(r, ok, "batch %s", id)
	return j
}

// batchesOf gives all batches of a run.
func (r *runTest) batchesOf(id string) []run.Batch {
	r.Helper()
	list, err := r.Store.ListBatches(r.Context(), id, "", "", 10_000)
	require.NoError(r, err)
	return list
}

// claim asks for a batch for a new worker of its environment.
func (r *runTest) claim(id string) run.Claimed {
	r.Helper()
	j, _, there, err := r.Store.Batch(r.Context(), id)
	require.NoError(r, err)
	store := r.Store
	if there {
		store = r.For(r.read(j.Run).SysName)
	}
	c, err := store.ClaimBatch(r.Context(), id, ticketOf(j), r.worker(RunBatchWorker), runStale, entry("BATCH_START"))
	require.NoError(r, err)
	return c
}

// leaseBatch claims a batch that can be claimed.
func (r *runTest) leaseBatch(id string) run.BatchLease {
	r.Helper()
	c := r.claim(id)
	require.Equal(r, run.Taken, c.Answer)
	return c.Lease
}

// save keeps one outcome for each of the documents.
func (r *runTest) save(h run.BatchLease, o invoice.Outcome, documents ...string) {
	r.Helper()
	list := []run.ItemOutcome{}
	for _, d := range documents {
		list = append(list, run.ItemOutcome{Document: d, Outcome: o})
	}
	require.NoError(r, r.Store.SaveOutcomes(r.Context(), h, list, nil))
}

// finish ends a batch whose documents all got an outcome.
func (r *runTest) finish(h run.BatchLease) {
	r.Helper()
	r.save(h, invoice.OutcomeApplied, r.openOf(h)...)
	stats, err := r.Store.FinishBatch(r.Context(), h, func(run.BatchStats) run.Audit { return entry("BATCH_DONE") })
	require.NoError(r, err)
	require.True(r, stats.AddsUp)
}

// openOf are the documents of a batch that have no outcome.
func (r *runTest) openOf(h run.BatchLease) []string {
	r.Helper()
	number, list := r.batchOf(h.Batch).Number, []string{}
	for _, it := range r.items(h.Run) {
		if it.Number == number && it.Outcome == "" {
			list = append(list, it.Document)
		}
	}
	return list
}

// items are all documents of a run.
func (r *runTest) items(id string) []run.ItemOutcome {
	r.Helper()
	list, err := r.Store.Items(r.Context(), id, nil, "", 100_000)
	require.NoError(r, err)
	return list
}

// workerRow is the row of a worker that has one.
func (r *runTest) workerRow(id string) RunWorker {
	r.Helper()
	for _, w := range r.Workers(r) {
		if w.ID == id {
			return w
		}
	}
	require.Fail(r, "no worker "+id)
	return RunWorker{}
}

// workerIs requires a worker's status.
func (r *runTest) workerIs(id string, status run.WorkerStatus) {
	r.Helper()
	require.Equal(r, status, r.workerRow(id).Status, id)
}

// lost requires that a change came too late.
func (r *runTest) lost(err error, about ...any) {
	r.Helper()
	require.Error(r, err, about...)
	require.True(r, fault.Has(err, fault.Changed), "%v: %v", about, err)
	require.Equal(r, fault.Contention, fault.KindOf(err), "%v: %v", about, err)
}

// refused requires an error of our own making; no code is any.
func (r *runTest) refused(err error, code string, about ...any) {
	r.Helper()
	require.Error(r, err, about...)
	require.Equal(r, fault.Internal, fault.KindOf(err), "%v: %v", about, err)
	if code != "" {
		require.Equal(r, code, fault.CodeOf(err), "%v: %v", about, err)
	}
}

// recent requires that a time is the database's now.
func (r *runTest) recent(at time.Time, about ...any) {
	r.Helper()
	require.WithinDuration(r, r.Now(), at, time.Minute, about...)
	require.Equal(r, time.UTC, at.Location(), about...)
}

// runState is everything that the store keeps, but for what grows by itself.
type runState struct {
	Runs    []run.Run
	Batches []run.Batch
	Details map[string][]run.ErrorDetail
	Items   map[string][]run.ItemOutcome
	Workers map[string]RunWorker
	Audits  int
}

// state reads everything.
func (r *runTest) state() runState {
	r.Helper()
	runs, err := r.Store.ListRuns(r.Context(), "", 1000)
	require.NoError(r, err)
	for i := range runs { // a list leaves out what may be long
		runs[i] = r.read(runs[i].ID)
	}
	return r.stateWith(runs...)
}

// stateOf reads everything of one run, and all workers.
func (r *runTest) stateOf(id string) runState {
	r.Helper()
	return r.stateWith(r.read(id))
}

func (r *runTest) stateWith(runs ...run.Run) runState {
	r.Helper()
	s := runState{
		Details: map[string][]run.ErrorDetail{}, Items: map[string][]run.ItemOutcome{}, Workers: map[string]RunWorker{},
		Audits: len(r.Audits(r)),
	}
	for _, found := range runs {
		found.NextIn, found.Silent, found.Age = 0, 0, 0
		s.Runs = append(s.Runs, found)
		s.Items[found.ID] = r.items(found.ID)
		for _, j := range r.batchesOf(found.ID) {
			var err error
			_, s.Details[j.ID], _, err = r.Store.Batch(r.Context(), j.ID)
			require.NoError(r, err)
			s.Batches = append(s.Batches, j)
		}
	}
	for _, w := range r.Workers(r) {
		s.Workers[w.ID] = w
	}
	return s
}

// changesNothing requires that a call leaves everything as it was.
func (r *runTest) changesNothing(about string, call func()) {
	r.Helper()
	was := r.state()
	call()
	require.Equal(r, was, r.state(), about)
}

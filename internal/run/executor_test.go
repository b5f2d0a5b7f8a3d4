package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// executorNames are the two executors of the suite: managers and workers with their queues, and one process with no
// queue at all.
func executorNames() []string { return []string{"managers and workers", "in the process"} }

// execute executes a run that has a row.
func (w *world) execute(executor, id string) {
	w.t.Helper()
	if executor == "in the process" {
		w.queueAway()
		done, err := w.instance("x").executor.Execute(w.ctx, id)
		require.NoError(w.t, err)
		require.Equal(w.t, run.Executed{}, done)
		return
	}
	w.crew()
	w.notify(id)
	w.waitForEnd(id, time.Minute)
}

// queueAway takes the queues away for the rest of the test.
func (w *world) queueAway() {
	w.batches.Always(inmem.QueueDown())
	w.runs.Always(inmem.QueueDown())
}

// receipt is what operators see of a run, without times and ids of its own.
type receipt struct {
	status  run.RunStatus
	reason  string
	stats   run.Stats
	items   []run.ItemOutcome
	details []run.ErrorDetail
}

func (w *world) receipt(id string) receipt {
	w.t.Helper()
	r := receipt{status: w.run(id).Status, reason: w.run(id).Error, stats: w.stats(id)}
	var err error
	r.items, err = w.store.Items(context.Background(), id, nil, "", 1000)
	require.NoError(w.t, err)
	for number := range w.run(id).Batches {
		_, details, _, err := w.store.Batch(context.Background(), run.BatchID(sysName, id, number+1))
		require.NoError(w.t, err)
		for _, d := range details {
			d.At = time.Time{}
			r.details = append(r.details, d)
		}
	}
	return r
}

// executed is a history of both kinds that take documents over: documents of every sort, and the run that meets them.
type executed struct {
	name   string
	kind   run.Kind
	filter func(ids []string) run.Filter
	state  string
	want   map[invoice.Outcome]int
}

func executions() []executed {
	named := func(ids []string) run.Filter { return run.Filter{IDs: ids} }
	all := func([]string) run.Filter { return run.Filter{} }
	failed := failedState("2628", "document", "1999-12-31 19:00:00.000000+00:00")
	committed := `{"status":"committed","retry_count":0,"last_outcome":"applied"}`
	return []executed{
		{
			"replay", run.Replay, all, failed,
			map[invoice.Outcome]int{
				invoice.OutcomeApplied: 6, invoice.OutcomeUnchanged: 1, invoice.OutcomeSuperseded: 1,
				invoice.OutcomeRetryScheduled: 2,
			},
		},
		{"replay of named documents", run.Replay, named, failed, map[invoice.Outcome]int{
			invoice.OutcomeApplied: 6, invoice.OutcomeUnchanged: 1, invoice.OutcomeSuperseded: 1,
			invoice.OutcomeRetryScheduled: 2, invoice.OutcomeGone: 1, invoice.OutcomeSkipped: 1,
			invoice.OutcomeNotOffered: 1,
		}},
		{"reindex of named documents", run.Reindex, named, committed, map[invoice.Outcome]int{
			invoice.OutcomeApplied: 7, invoice.OutcomeSuperseded: 1, invoice.OutcomeFailed: 2, invoice.OutcomeGone: 1,
			invoice.OutcomeSkipped: 1, invoice.OutcomeNotOffered: 1,
		}},
		{"reapply of committed documents", run.Reapply, named, committed, map[invoice.Outcome]int{
			invoice.OutcomeApplied: 6, invoice.OutcomeUnchanged: 1, invoice.OutcomeSuperseded: 1,
			invoice.OutcomeFailed: 2, invoice.OutcomeGone: 1, invoice.OutcomeSkipped: 1, invoice.OutcomeNotOffered: 1,
		}},
		{"reapply of failed documents", run.Reapply, all, failed, map[invoice.Outcome]int{
			invoice.OutcomeApplied: 6, invoice.OutcomeUnchanged: 3, invoice.OutcomeSuperseded: 1,
			invoice.OutcomeRetryScheduled: 2,
		}},
	}
}

// seed adds the documents of a history and returns their ids, also of one that does not exist.
func (w *world) seed(e executed) (ids []string) {
	w.t.Helper()
	w.batchSize, w.chunkSize = 4, 8
	w.fill(2)
	w.putAs(docID(20), 3, "newer", sysName, `{"status":"pending","retry_count":0}`)
	w.execute("managers and workers", w.startHere(run.Run{ID: "before"}, run.Filter{}).ID)
	require.Equal(w.t, run.RunCompleted, w.run("before").Status)
	ids = append(ids, w.put(2, "maker 2", e.state))                    // its line has the content
	ids = append(ids, w.putAs(docID(3), 3, "older", sysName, e.state)) // its line has newer content
	for line := 4; line < 10; line++ {
		ids = append(ids, w.put(line, fmt.Sprint("maker ", line), e.state))
	}
	ids = append(ids, w.putAs(docID(10), 1000, "x", sysName, e.state)) // its line is missing
	ids = append(ids, w.put(11, strings.Repeat("x", 256), e.state))
	ids = append(ids, w.putAs(docID(12), 12, "x", "dev", e.state), docID(13), w.put(14, "y", `{"retry_count":0}`))
	return ids
}

// putAs adds a document of any id and environment; its line is not added.
func (w *world) putAs(id string, line int, maker, environment, state string) string {
	w.t.Helper()
	doc := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":%q},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},"sql_writer":%s}`, id, environment, line, maker, state)
	require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	if line < 1000 {
		w.sink.AddLines(int64(line))
	}
	return id
}

// Both executors give the same receipt for the same documents, one of them without any queue.
func TestBothExecutorsGiveTheSameReceipt(t *testing.T) {
	t.Parallel()
	for _, e := range executions() {
		t.Run(e.name, func(t *testing.T) {
			var receipts []receipt
			for _, executor := range executorNames() {
				simulate(t, func(t *testing.T, w *world) {
					ids := w.seed(e)
					w.execute(executor, w.startHere(run.Run{Kind: e.kind, Named: 1}, e.filter(ids)).ID)
					receipts = append(receipts, w.receipt("run-1"))
					w.checkTransitions()
					for _, row := range w.store.Workers() {
						require.NotEqual(t, run.WorkerRunning, row.Status, row.ID)
					}
				})
			}
			require.Equal(t, e.want, receipts[0].stats.Outcomes)
			require.NotEmpty(t, receipts[0].details)
			require.Equal(t, receipts[0], receipts[1])
		})
	}
}

// executeUntilDead executes a run in a process that may die on the way; false when it did.
func (w *world) executeUntilDead(i *instance, id string) (alive bool) {
	ended := make(chan struct{})
	w.group.Go(func() {
		defer close(ended)
		_, _ = i.executor.Execute(w.ctx, id)
		alive = !i.isDead()
	})
	<-ended
	return alive
}

// executeAgain starts the executor as often as an operator does, until no dead process has the run any more.
func (w *world) executeAgain(i *instance, id string) {
	w.t.Helper()
	for range 10 {
		done, err := i.executor.Execute(w.ctx, id)
		require.NoError(w.t, err)
		if !done.Busy {
			require.Empty(w.t, done.Left)
			return
		}
		time.Sleep(time.Minute)
	}
	require.Fail(w.t, "the run stays busy")
}

// The queue takes the messages and delivers none. Their batches are executed here, and the late messages find nothing
// to do.
func TestAHandedOffRunIsExecutedWithoutItsMessages(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(30)
		w.batchSize = 5
		w.instance("m").manage()
		w.start(run.Run{}, run.Filter{})
		w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
		w.executeAgain(w.instance("x"), "run-1")
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 30})
		w.instance("w").work()
		w.until(time.Minute, "the messages came", func() bool { return w.did("BatchWorker")["skipped"] == 6 })
		w.writtenOnce()
	})
}

// A live owner is left alone, whatever it is.
func TestAnExecutorLeavesARunToItsLiveOwner(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(30)
		w.batchSize = 5
		w.fake.delay = time.Minute
		w.startHere(run.Run{}, run.Filter{})
		w.group.Go(func() { _ = w.executeUntilDead(w.instance("x"), "run-1") })
		time.Sleep(90 * time.Second)
		done, err := w.instance("y").executor.Execute(w.ctx, "run-1")
		require.NoError(t, err)
		require.True(t, done.Busy)
		require.Regexp(t,
			`^manager-[0-9a-f]{8} has it, last heard \d+s ago; after 2m0s of silence another process may take it over$`,
			done.Left)
		w.instance("m").manage()
		w.notify("run-1")
		w.waitForEnd("run-1", 20*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 30})
		require.Equal(t, 1, w.run("run-1").Epoch, "nobody else had it")
	})
}

// SQL is away for twenty minutes in the middle of a batch. The executor waits as the breaker says, and nobody counts as
// lost.
func TestAnExecutorWaitsWhileSQLIsAway(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(40)
		w.batchSize = 5
		x := w.instance("x")
		w.startHere(run.Run{}, run.Filter{})
		applied := 0
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Apply" {
				if applied++; applied == 3 {
					w.group.Go(func() { w.pause(20 * time.Minute); w.sql(true) })
					w.sql(false)
					return unreachable()
				}
			}
			return nil
		})
		begin := time.Now()
		done, err := x.executor.Execute(w.ctx, "run-1")
		require.NoError(t, err)
		require.Empty(t, done.Left)
		require.Greater(t, time.Since(begin), 20*time.Minute)
		require.Less(t, time.Since(begin), 40*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 40})
		require.Zero(t, w.lostWorkers())
		require.Zero(t, w.run("run-1").LostManagers)
	})
}

// With a deadline, or after Ctrl-C, an executor leaves the run to others at once.
func TestAStoppedExecutorReleasesItsRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context func(context.Context) (context.Context, context.CancelFunc)
		within  time.Duration
	}{
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 4*time.Minute)
		}, 4 * time.Minute},
		"Ctrl-C": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(90*time.Second, cancel)
			return ctx, cancel
		}, 91 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				w.batchSize = 5
				w.fake.during = func(ctx context.Context, _ *instance) error {
					w.pauseWithin(ctx, 20*time.Second)
					return ctx.Err()
				}
				w.startHere(run.Run{}, run.Filter{})
				ctx, cancel := c.context(w.ctx)
				defer cancel()
				begin := time.Now()
				done, err := w.instance("x").executor.Execute(ctx, "run-1")
				require.NoError(t, err)
				require.Equal(t, run.Executed{Left: "it was stopped, or its time is over"}, done)
				require.LessOrEqual(t, time.Since(begin), c.within)
				require.Empty(t, w.run("run-1").Owner)
				for _, batch := range w.store.AllBatches() {
					require.True(t, batch.Owner == "" || !batch.Status.Open(), "%+v", batch)
				}
				w.executeAgain(w.instance("y"), "run-1")
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
				require.Zero(t, w.lostWorkers())
			})
		})
	}
}

// pauseWithin waits unless the context ends.
func (w *world) pauseWithin(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A worker has a batch of a run whose manager died. The executor ends the hand-off and waits for that batch, and
// nothing looks like a failure.
func TestAnExecutorWaitsForTheBatchOfAnother(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		w.fakeWrites(10)
		w.batchSize, w.outstanding = 5, 1
		w.fake.during = func(ctx context.Context, i *instance) error {
			if i.name == "w" {
				w.pauseWithin(ctx, 9*time.Minute)
			}
			return nil
		}
		m := w.instance("m").manage()
		w.instance("w").work()
		w.start(run.Run{}, run.Filter{})
		w.until(time.Minute, "the worker has a batch", func() bool {
			return w.stats("run-1").Batches[run.Processing] > 0
		})
		m.killAfter(1)
		w.log = zerolog.New(zerolog.SyncWriter(&log))
		w.executeAgain(w.instance("x"), "run-1")
		require.Equal(t, run.RunCompleted, w.run("run-1").Status)
		require.Zero(t, w.lostWorkers())
		require.NotContains(t, log.String(), "the execution waits")
	})
}

func TestACancelledExecutionEnds(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.batchSize = 5
		w.fake.delay = 20 * time.Second
		w.startHere(run.Run{}, run.Filter{})
		time.AfterFunc(90*time.Second, func() {
			_, _ = w.store.CancelRun(w.ctx, "run-1",
				run.Audit{Action: run.CodeRunCancel, Level: run.LevelWarn, By: "ann", Why: "x"})
		})
		done, err := w.instance("x").executor.Execute(w.ctx, "run-1")
		require.NoError(t, err)
		require.Equal(t, run.Executed{}, done)
		require.Equal(t, run.RunCancelled, w.run("run-1").Status)
		require.Equal(t, 5, w.stats("run-1").Batches[run.Completed])
	})
}

// A panic, and a failure that is nobody's outage, end the run with its text. A batch that fails ends alone.
func TestAnExecutionThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	for op, c := range map[string]struct {
		status run.RunStatus
		says   string
	}{"Page": {run.RunFailed, "panic"}, "ReadMany": {run.RunCompletedWithFailures, ""}} {
		simulate(t, func(t *testing.T, w *world) {
			w.fakeWrites(10)
			w.onUse(func(_ context.Context, _ *instance, used string) error {
				if used == op {
					panic("of ours")
				}
				return nil
			})
			w.startHere(run.Run{}, run.Filter{})
			_, err := w.instance("x").executor.Execute(w.ctx, "run-1")
			require.Equal(t, c.status == run.RunFailed, err != nil)
			require.Equal(t, c.status, w.run("run-1").Status)
			require.Contains(t, w.run("run-1").Error, c.says)
		})
	}
}

// Each process that executes the run is killed in a batch. That is no reason to fail the run: every one of them made
// progress before.
func TestExecutorsThatMakeProgressAreNotCountedAsLost(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(150)
		w.batchSize = 5
		w.startHere(run.Run{}, run.Filter{})
		for k := range 12 {
			x := w.instance(fmt.Sprint("x", k))
			writes := 0
			w.onUse(func(_ context.Context, i *instance, op string) error {
				if i == x && op == "Commit" {
					if writes++; writes == 2 {
						x.killAfter(0)
					}
				}
				return nil
			})
			require.False(t, w.executeUntilDead(x, "run-1"))
			require.LessOrEqual(t, w.run("run-1").LostManagers, 1)
			time.Sleep(3 * time.Minute)
		}
		w.onUse(nil)
		w.executeAgain(w.instance("y"), "run-1")
		require.Equal(t, run.RunCompleted, w.run("run-1").Status)
	})
}

// A reindex of 100 lines, of which a person edited five and repaired three by hand, writes 92. The receipt names the
// other eight.
func TestTheReceiptOfAReindexNamesWhatItLeftAlone(t *testing.T) {
	t.Parallel()
	for _, executor := range executorNames() {
		simulate(t, func(t *testing.T, w *world) {
			ids := w.fill(100)
			w.execute("managers and workers", w.startHere(run.Run{ID: "before"}, run.Filter{}).ID)
			for line := int64(1); line <= 5; line++ {
				l, _ := w.sink.Line(line)
				l.Values = slices.Clone(l.Values)
				for i, c := range invoice.DefaultMapping().Columns() {
					if c.Table == invoice.Detail && c.Name == "CLN_MFR_AI_NM" {
						l.Values[i] = invoice.Of(l.Values[i].Text + " ") // a trailing blank is an edit
					}
				}
				w.sink.SetLine(line, l)
			}
			for line := 6; line <= 8; line++ {
				w.put(line, "wrong", `{"status":"committed","outcome":"manual","retry_count":0}`)
			}

			w.execute(executor, w.startHere(run.Run{Kind: run.Reindex}, run.Filter{}).ID)
			r := w.receipt("run-1")
			require.Equal(t, run.RunCompleted, r.status, "nothing is left to do")
			require.Equal(t,
				map[invoice.Outcome]int{
					invoice.OutcomeApplied: 92, invoice.OutcomeEdited: 5, invoice.OutcomeManual: 3,
				}, r.stats.Outcomes)
			require.Len(t, r.details, 8)
			for _, d := range r.details {
				line := slices.Index(ids, d.Document) + 1
				if line > 5 {
					require.Equal(t, "manual", d.Code)
					continue
				}
				require.Equal(t, "edited since they were written: lines "+strconv.Itoa(line), d.Message)
				require.Equal(t, fmt.Sprint("maker ", line, " "), w.maker(line))
			}

			w.execute(executor,
				w.startHere(run.Run{ID: "run-2", Kind: run.Reindex, Named: 2},
					run.Filter{IDs: ids[:2], OverwriteEdits: []int64{2}}).ID)
			require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 1, invoice.OutcomeEdited: 1},
				w.stats("run-2").Outcomes)
			require.Equal(t, []string{"maker 1 ", "maker 2"}, []string{w.maker(1), w.maker(2)}, "the named line alone")

			entry, _ := w.sink.Entry(9)
			entry.HashVersion-- // nobody knows whether line 9 was edited, and line 3 was
			w.sink.SetEntry(9, entry)
			for n, want := range []invoice.Outcome{invoice.OutcomeNotComparable, invoice.OutcomeApplied} {
				id := fmt.Sprint("run-", 3+n)
				w.execute(executor,
					w.startHere(run.Run{ID: id, Kind: run.Reindex, Named: 2},
						run.Filter{IDs: []string{ids[8], ids[2]}, NotComparable: n == 1}).ID)
				require.Equal(t, map[invoice.Outcome]int{want: 1, invoice.OutcomeEdited: 1}, w.stats(id).Outcomes)
			}
		})
	}
}

package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

func TestADrainGoesEndToEnd(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fill(250)
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 250})
		for k, id := range ids {
			require.Equal(t, invoice.Committed, w.state(id).Status)
			require.Equal(t, fmt.Sprint("maker ", k+1), w.maker(k+1))
		}
		require.Equal(t, []string{run.CodeRunStart, run.CodeRunHandedOff, run.CodeRunDone}, w.codes("run-1", ""))
		for n := range 3 {
			require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchStart, run.CodeBatchDone},
				w.codes("run-1", run.BatchID(sysName, "run-1", n+1)))
		}
		processed := 0
		for _, row := range w.store.Workers() {
			require.Equal(t, run.WorkerCompleted, row.Status)
			require.Regexp(t, `^(worker|manager)-[0-9a-f]{8}$`, row.ID)
			processed += row.Processed
		}
		require.Len(t, w.store.Workers(), 1+3)
		require.Equal(t, 250, processed)
		w.nothingCounted()
	})
}

// failedState is sql_writer of a poison message.
func failedState(code, kind, failedAt string) string {
	return fmt.Sprintf(
		`{"status":"failed","retry_count":5,"failed_at":%q,"error":"x","last_error_code":%q,"last_error_kind":%q}`,
		failedAt, code, kind)
}

func TestAReplayTakesTheFailedDocumentsOfItsFilter(t *testing.T) {
	t.Parallel()
	const failedAt = "1999-12-31 19:00:00.000000+00:00"
	hour := func(h int) time.Time { return time.Date(2000, 1, 1, h, 0, 0, 0, time.UTC) } // the world begins at 0
	for _, c := range []struct {
		name   string
		filter run.Filter
		want   []int
	}{
		{"all", run.Filter{}, []int{1, 2, 3, 4}},
		{"code, whatever its case", run.Filter{Code: "missing_DETAIL_row"}, []int{1, 2}},
		{"kind", run.Filter{ErrorKind: "internal"}, []int{4}},
		{"from the time of its change on", run.Filter{From: hour(1)}, []int{2, 3, 4}},
		{"before the time of its change", run.Filter{To: hour(1)}, []int{1}},
		{"both", run.Filter{From: hour(1), To: hour(2), Code: "2628"}, []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.put(1, "a", failedState("missing_detail_row", "document", failedAt))
				time.Sleep(time.Hour)
				w.put(2, "b", failedState("missing_detail_row", "document", failedAt))
				w.put(3, "c", failedState("2628", "document", failedAt))
				time.Sleep(time.Hour)
				w.put(4, "d", failedState("panic", "internal", failedAt))
				w.put(5, "e", `{"status":"pending","retry_count":0}`)
				w.crew()
				w.start(run.Run{Kind: run.Replay}, c.filter)
				w.waitForEnd("run-1", time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: len(c.want)})
				for line := range 5 {
					want := invoice.Failed
					if line == 4 {
						want = invoice.Pending
					} else if slices.Contains(c.want, line+1) {
						want = invoice.Committed
					}
					require.Equal(t, want, w.state(docID(line+1)).Status, "line %d", line+1)
				}
			})
		})
	}
}

// A replay leaves a document with a scheduled retry to its time, unless the filter names it.
func TestAReplayTakesScheduledRetriesOnlyWhenNamed(t *testing.T) {
	t.Parallel()
	const waits = `{"status":"retry_scheduled","retry_count":2,"retry_after":946728000}` // at noon of the first day
	failed := failedState("2628", "document", "1999-12-31 19:00:00.000000+00:00")
	for name, c := range map[string]struct {
		filter run.Filter
		want   map[invoice.Outcome]int
		states map[int]invoice.Status
	}{
		"named": {
			run.Filter{IDs: []string{docID(1), docID(2), docID(3)}},
			map[invoice.Outcome]int{invoice.OutcomeApplied: 2, invoice.OutcomeSkipped: 1},
			map[int]invoice.Status{1: invoice.Committed, 2: invoice.Committed, 3: invoice.Committed},
		},
		"found by that status": {
			run.Filter{Statuses: []invoice.Status{invoice.RetryScheduled}},
			map[invoice.Outcome]int{invoice.OutcomeApplied: 1},
			map[int]invoice.Status{1: invoice.Committed, 2: invoice.Failed, 3: invoice.Committed},
		},
		"found": {
			run.Filter{Code: "2628"},
			map[invoice.Outcome]int{invoice.OutcomeApplied: 1, invoice.OutcomeSkipped: 1},
			map[int]invoice.Status{1: invoice.RetryScheduled, 2: invoice.Committed, 4: invoice.RetryScheduled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.put(1, "a", waits)
				w.put(2, "b", failed)
				w.put(3, "c", `{"status":"committed","retry_count":0,"last_outcome":"applied"}`)
				w.put(4, "d", failed)
				w.instance("m").manage()
				w.start(run.Run{Kind: run.Replay}, c.filter)
				w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
				w.put(4, "d", waits) // a person tried it meanwhile
				w.instance("w").work()
				w.waitForEnd("run-1", time.Minute)
				w.addsUp("run-1", c.want)
				for line, want := range c.states {
					require.Equal(t, want, w.state(docID(line)).Status, "line %d", line)
				}
			})
		})
	}
}

// Documents without a status are skipped, and the run that names them does not fail.
func TestARunOfNeverOfferedDocumentsCompletes(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.put(1, "a", `{"retry_count":0}`)
		w.crew()
		w.start(run.Run{Kind: run.Replay}, run.Filter{IDs: []string{docID(1)}})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeNotOffered: 1})
	})
}

func TestAReindexWritesTheLinesOfCommittedDocumentsAgain(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(3)
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		written, _ := w.sink.Entry(2)
		before := w.state(docID(2))

		w.start(run.Run{ID: "run-2", Kind: run.Reindex}, run.Filter{})
		w.waitForEnd("run-2", time.Minute)
		w.addsUp("run-2", map[invoice.Outcome]int{invoice.OutcomeApplied: 3})
		require.Equal(t, "maker 2", w.maker(2))
		again, _ := w.sink.Entry(2)
		require.Greater(t, again.Write, written.Write)
		require.Equal(t, before, w.state(docID(2)), "what a committed document says stays true")
	})
}

func TestEveryDocumentOfAListHasOneOutcome(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		// written by the first run
		w.fill(2)
		// at noon of the first day
		w.put(3, "c", `{"status":"retry_scheduled","retry_count":1,"retry_after":946728000}`)
		w.put(4, strings.Repeat("x", 256), `{"status":"pending","retry_count":0}`) // fits no column
		w.put(5, "e", `{"status":"pending","retry_count":0}`)
		w.crew()
		w.start(run.Run{}, run.Filter{IDs: []string{docID(1)}})
		w.waitForEnd("run-1", time.Minute)

		gone := docID(99)
		w.start(run.Run{ID: "run-2"},
			run.Filter{IDs: []string{docID(1), docID(2), docID(3), docID(4), docID(2), gone, docID(5), docID(5)}})
		w.waitForEnd("run-2", time.Minute)
		w.addsUp("run-2",
			map[invoice.Outcome]int{
				invoice.OutcomeApplied: 2, invoice.OutcomeSkipped: 2,
				invoice.OutcomeRetryScheduled: 1, invoice.OutcomeGone: 1,
			})
		items, err := w.store.Items(t.Context(), "run-2", nil, "", 100)
		require.NoError(t, err)
		outcomes := map[string]invoice.Outcome{}
		for _, it := range items {
			outcomes[it.Document] = it.Outcome
		}
		require.Equal(t, map[string]invoice.Outcome{
			docID(1): invoice.OutcomeSkipped, docID(2): invoice.OutcomeApplied, docID(3): invoice.OutcomeSkipped,
			docID(4): invoice.OutcomeRetryScheduled,
			docID(5): invoice.OutcomeApplied, gone: invoice.OutcomeGone,
		}, outcomes)
		_, details, _, err := w.store.Batch(t.Context(), run.BatchID(sysName, "run-2", 1))
		require.NoError(t, err)
		require.Len(t, details, 1)
		require.Equal(t, docID(4), details[0].Document)
		require.Equal(t, run.TypeValidation, details[0].Type)
		require.Equal(t, 1, details[0].RetryCount)
		require.True(t, details[0].Retryable)
		require.NotContains(t, details[0].Message, "xxx", "nothing of the content")
	})
}

func TestAListMayBeLongAndNameDocumentsTwice(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fakeWrites(1500)
		w.crew()
		w.start(run.Run{}, run.Filter{IDs: append(slices.Clone(ids), ids...)})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1500})
	})
}

func TestALimitIsKept(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 1234} {
		simulate(t, func(t *testing.T, w *world) {
			w.fakeWrites(5000)
			w.crew()
			w.start(run.Run{Limit: limit}, run.Filter{})
			w.waitForEnd("run-1", time.Minute)
			w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: limit})
		})
	}
}

// The rate holds over any minute, also across invocations, and a run of one hour takes one hour.
func TestARateIsKeptWithoutBursts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rate, documents int }{{1, 8}, {4, 40}, {60, 480}, {600, 1800}} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(c.documents)
				w.crew().tick()
				w.start(run.Run{Rate: c.rate}, run.Filter{})
				delay := w.waitForEnd("run-1", 2*time.Hour)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: c.documents})
				ideal := time.Duration(c.documents) * time.Minute / time.Duration(c.rate)
				require.InDelta(t, ideal.Minutes(), delay.Minutes(), 1.2+0.1*ideal.Minutes())
				sizes := map[string]int{}
				for _, batch := range w.store.AllBatches() {
					sizes[fmt.Sprintf("%s:%d:0", batch.ID, run.FirstAttempt)] = batch.Total
				}
				sent := w.batches.sendings()
				for i, first := range sent {
					n := 0
					for _, s := range sent[i:] {
						if s.at.Sub(first.at) >= time.Minute {
							break
						}
						n += sizes[s.id]
					}
					require.LessOrEqual(t, n, c.rate+max(1, c.rate/6), "in the minute from %s", first.at)
				}
				for _, c := range w.ended("BatchManager") {
					require.NoError(t, c.err)
					require.Less(t, c.end.Sub(c.begin), 4*time.Minute, "it ends before its time is over")
				}
			})
		})
	}
}

func TestOutstandingBatchesAreBounded(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(430)
		w.batchSize, w.chunkSize = 10, 100
		w.fake.delay = 10 * time.Second
		w.outstanding = 7
		w.instance("m").manage()
		w.instance("w").work().work()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", 20*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 430})
		require.Equal(t, 7, w.maxOnTheWay())
		require.GreaterOrEqual(t, w.did("BatchManager")["deferred"]+w.did("BatchManager")["handed_off"], 1)
	})
}

func TestAHandOffThatOutlivesItsInvocationGoesOn(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(2000)
		w.fake.delay = time.Minute
		w.outstanding = 2
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 2000})
		calls := w.ended("BatchManager")
		require.Greater(t, len(calls), 3)
		for _, c := range calls {
			require.NoError(t, c.err)
			require.Less(t, c.end.Sub(c.begin), 4*time.Minute-30*time.Second)
		}
		require.Equal(t, 1, w.did("BatchManager")["handed_off"])
		w.nothingCounted()
	})
}

// A checkpoint run holds one page and one chunk, however many documents it has.
func TestACheckpointRunKeepsFewIDsInMemory(t *testing.T) {
	t.Parallel()
	for _, page := range []int{1000, 130} {
		simulate(t, func(t *testing.T, w *world) {
			w.pages, w.outstanding = page, 100
			n := 2150
			docs := w.fillRaw(n)
			require.Equal(t, n, docs)
			w.instance("m").manage()
			w.start(run.Run{}, run.Filter{})
			w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
			require.Equal(t, n, w.run("run-1").Documents)
			require.LessOrEqual(t, w.maxIDs(), 2000)
			require.Equal(t, 22, w.run("run-1").Batches)
		})
	}
}

// fillRaw adds many small documents that are only counted.
func (w *world) fillRaw(n int) int {
	w.t.Helper()
	for k := range n {
		doc := fmt.Sprintf(
			`{"id":%q,"request_details":{"sys_name":"web"},"sql_writer":{"status":"pending","retry_count":0}}`,
			docID(k+1))
		require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	}
	return n
}

// Documents may change while a run is divided. A document that is found twice is handed off once.
func TestARefusedContinuationRestartsTheSearch(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(3500)
		refused := 0
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Page" && w.run("run-1").Documents == 2000 && refused == 0 {
				refused++
				return continuationRefused()
			}
			return nil
		})
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		require.Equal(t, 1, refused)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 3500})
	})
}

func TestARunWhoseSearchCannotGoOnFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(3500)
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Page" {
				return continuationRefused()
			}
			return nil
		})
		w.instance("m").manage()
		w.instance("timer").tick()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		r := w.run("run-1")
		require.Equal(t, run.RunFailed, r.Status)
		require.Contains(t, r.Error, "continuation")
		require.Equal(t, []string{run.CodeRunStart, run.CodeRunFail}, w.codes("run-1", ""))
		calls := w.ended("BatchManager")
		require.Error(t, calls[0].err)
		w.until(time.Minute, "the message is done with", func() bool { return w.did("BatchManager")["skipped"] == 1 })

		w.onUse(nil)
		w.must(w.store.ResumeRun(t.Context(), "run-1", audit(run.CodeRunResume)))
		w.instance("w").work()
		w.waitForEnd("run-1", 20*time.Minute) // the timer sends the first message
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 3500})
	})
}

// A run with a column that this build cannot read fails with the reason, instead of being retried for ever.
func TestARunWithUnreadableColumnsFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.instance("m").manage()
		require.NoError(t, w.store.StartRun(t.Context(), run.Run{
			ID: "run-1", SysName: sysName, Kind: run.Drain, Filter: json.RawMessage(`{"ids":5}`),
			RequestedBy: "ann", Why: "x",
		}, audit(run.CodeRunStart)))
		w.notify("run-1")
		w.waitForEnd("run-1", time.Minute)
		require.Equal(t, run.RunFailed, w.run("run-1").Status)
		require.Contains(t, w.run("run-1").Error, "filter")
	})
}

func TestAPanicInTheHandOffFailsTheRunAndItsHeartbeatEnds(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(10)
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Page" {
				panic("of ours")
			}
			return nil
		})
		w.instance("m").manage()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		require.Equal(t, run.RunFailed, w.run("run-1").Status)
		require.Contains(t, w.run("run-1").Error, "panic")
		require.NotContains(t, w.run("run-1").Error, "of ours: of ours")
		w.onUse(nil)
		asked := w.asks()
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, w.asks(), asked+3, "its heartbeats have ended")
	})
}

func TestThePreviewIsWhatTheRunTakes(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		at := "1999-12-31 19:00:00.000000+00:00"
		for line := range 40 {
			code := "2628"
			if line%3 == 0 {
				code = "missing_detail_row"
			}
			w.put(line+1, "a", failedState(code, "document", at))
		}
		// at noon of the first day
		w.put(41, "b", `{"status":"retry_scheduled","retry_count":1,"retry_after":946728000}`)
		// in milliseconds: due
		w.put(43, "d", `{"status":"retry_scheduled","retry_count":1,"retry_after":946728000000}`)
		w.put(44, "e", `{"retry_count":1}`) // never offered
		w.put(42, "c", `{"status":"retry_scheduled","retry_count":1,"retry_after":1}`)
		for _, c := range []struct {
			kind   run.Kind
			filter run.Filter
			want   int
		}{{run.Replay, run.Filter{Code: "2628"}, 26}, {run.Replay, run.Filter{}, 40}, {run.Drain, run.Filter{}, 2}} {
			n := 0
			kind, known := run.Kinds().Find(c.kind)
			require.True(t, known)
			err := kind.Preview(t.Context(), w.docs.Paged(7), sysName, c.filter, time.Now(),
				func(commit.PendingDoc) bool { n++; return true })
			require.NoError(t, err)
			require.Equal(t, c.want, n)
		}
		n := 0
		replay, _ := run.Kinds().Find(run.Replay)
		err := replay.Preview(t.Context(), w.docs.Paged(7), sysName, run.Filter{}, time.Now(),
			func(commit.PendingDoc) bool { n++; return n < 5 })
		require.NoError(t, err)
		require.Equal(t, 5, n)

		w.pages = 7
		w.crew()
		w.start(run.Run{Kind: run.Replay}, run.Filter{Code: "2628"})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 26})
		w.start(run.Run{ID: "run-2"}, run.Filter{})
		w.waitForEnd("run-2", time.Minute)
		w.addsUp("run-2", map[invoice.Outcome]int{invoice.OutcomeApplied: 2})
	})
}

package commit_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A panic counts as the failure of the document that causes it: its neighbours are written in the same Run.
func TestADocumentThatMakesTheSinkPanicStandsAlone(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	docs := []string{result(1, 1, "a", ""), result(2, 2, "b", ""), result(3, 3, "c", "")}
	bad := idOf(t, docs[1])
	w.use(sinkHook{w.faulty, panicking(bad)})
	require.Equal(t, map[invoice.Outcome]int{"applied": 2, "retry_scheduled": 1}, w.run(w.put(docs...)...).Outcomes)
	s := w.state(bad)
	require.Equal(t, []any{"retry_scheduled", 1.0, "internal", "panic"},
		[]any{s["status"], s["retry_count"], s["last_error_kind"], s["last_error_code"]})
	require.Contains(t, w.log.String(), `"stack"`, "the log has the stack")
	require.NotContains(t, w.log.String(), "content of the document")
	require.NotContains(t, s["last_error"], "content of the document")
}

// A document without a time in its id gets its version in a patch of its own, which keeps its earlier failures.
func TestAReprocessThatStopsAfterTheVersionLeavesTheFailureAsItWas(t *testing.T) {
	w := newWorld(t, 7)
	const id = "no-time-here"
	w.put(
		document(id, 7, "good",
			`{"status":"failed","retry_count":5,"failed_at":"then","error":"old writer","final_error":"x"}`))
	reprocess := func() (commit.Report, error) {
		return w.commit.Run(t.Context(),
			commit.Delivery{
				Documents: w.snapshots(id), Received: w.clock, Purpose: commit.ForRun, TakeOver: replayed(),
			})
	}
	w.away(true)
	_, err := reprocess()
	require.True(t, fault.IsDependency(err))
	require.Equal(t, 1, w.faulty.writes, "SQL was asked")
	require.Equal(t, 1, w.faulty.records, "after the version was recorded")
	s := w.state(id)
	require.Equal(t, []any{"failed", 5.0, "then", "old writer", "x"},
		[]any{s["status"], s["retry_count"], s["failed_at"], s["error"], s["final_error"]})
	require.NotContains(t, s, "reprocess_count")

	w.away(false)
	w.clock = w.clock.Add(2 * time.Minute)
	report, err := reprocess()
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	s = w.state(id)
	require.Equal(t, []any{"committed", 0.0, 1.0}, []any{s["status"], s["retry_count"], s["reprocess_count"]})
	require.NotContains(t, s, "failed_at")
	require.NotContains(t, s, "error")
}

// The evidence of a document is stored and its mark is throttled ten times: that counts as one poison message.
func TestAPoisonMessageIsCountedOnceHoweverOftenItsMarkIsTried(t *testing.T) {
	w := newWorld(t, 1)
	marks, refuse := 0, true
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark {
			if marks++; refuse {
				return fault.New(fault.Throttled, "sql: apply", "40501", "busy")
			}
		}
		return nil
	}})
	id := idOf(t, result(1, 1, tooLong(), spent()))
	w.put(result(1, 1, tooLong(), spent()))
	w.othersApply()
	poison := func() breaker.PoisonCount { return w.breaker.View(t.Context()).Control.Poison }
	for n := range 10 {
		_, err := w.batch(commit.Delivery{Documents: w.snapshots(id), Purpose: commit.FromTimer})
		require.Equal(t, fault.Throttled, fault.KindOf(err))
		require.Equal(t, n+1, marks)
		w.clock = w.clock.Add(5*time.Minute + 20*time.Second)
	}
	require.Equal(t, breaker.PoisonCount{Hour: start().Truncate(time.Hour), Count: 1}, poison(), "all within the hour")
	refuse = false
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(id).Outcomes)
	require.Equal(t, 1, poison().Count)
}

// A build that breaks many documents makes no more poison messages an hour than the limit. The others wait, are logged,
// and follow later.
func TestNoMorePoisonMessagesAnHourThanMayBe(t *testing.T) {
	w := newWorld(t)
	const most = 3
	w.breaker, w.commit = w.instance("a", "v1", w.faulty, func(o *commit.Options) {
		o.Breaker = breaker.New(w.control, breaker.Options{
			Build: "v1", Now: o.Now, MaxPoisonPerHour: most,
			Heartbeat: func(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
				return breaker.Heartbeat{}, nil
			},
		})
	})
	var docs, ids []string
	for i := range 5 {
		w.sink.AddLines(int64(i + 1))
		docs = append(docs, result(i, int64(i+1), tooLong(), spent()))
		ids = append(ids, idOf(t, docs[i]))
	}
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": most, "retry_scheduled": 2}, w.again(docs...).Outcomes)
	s := w.state(ids[4])
	require.Equal(t, []any{5.0, float64(w.clock.Unix() + 3960), true},
		[]any{s["retry_count"], s["retry_after"], s["postponed"]}, "an hour plus half of 20 %")
	require.Contains(t, w.log.String(), `"event":"poison_limit"`)
	require.Len(t, w.evidence.Files(), 3*most, "each poison message has its evidence")
	w.othersApply()
	w.clock = w.clock.Add(2 * time.Hour)
	require.Equal(t, map[invoice.Outcome]int{"failed": 2, "skipped": 3}, w.retry(ids...).Outcomes)
}

// Only new content is proof. Unchanged content, a mark, a rewrite or a preview is not.
func TestOnlyWrittenContentIsProof(t *testing.T) {
	for name, other := range map[string]func(w *world, committed string){
		"unchanged": func(w *world, committed string) {
			require.Equal(w.t, map[invoice.Outcome]int{"unchanged": 1}, w.run(w.put(committed)...).Outcomes)
		},
		"a rewrite": func(w *world, committed string) {
			_, report := w.runFor(true, []invoice.Status{invoice.Committed}, w.snapshots(idOf(w.t, committed))...)
			require.Equal(w.t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
		},
		"a mark": func(w *world, _ string) { // a document applied in between proves this one
			doc := result(3, 2, tooLong(), spentFor(3*time.Hour, 3*time.Hour))
			require.Equal(w.t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)
			_, marked := w.sink.Entry(2)
			require.True(w.t, marked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2, 3)
			w.clock = start().Add(-90 * time.Minute)
			committed := result(1, 1, "ACME", "")
			require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(w.put(committed)...).Outcomes)
			w.clock = start()
			other(w, committed)
			w.clock = w.clock.Add(time.Minute)
			doc := result(4, 3, tooLong(), spent()) // failed an hour ago
			require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.again(doc).Outcomes)
			require.Equal(t, []any{5.0, true},
				[]any{w.state(idOf(t, doc))["retry_count"], w.state(idOf(t, doc))["postponed"]})

			w.othersApply()
			w.clock = w.clock.Add(2 * time.Hour)
			require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(idOf(t, doc)).Outcomes)
		})
	}
}

// When metadata.json exists, the evidence is complete.
func TestMetadataIsTheLastOfTheEvidence(t *testing.T) {
	w := newWorld(t, 1)
	evidence := &orderedEvidence{Evidence: w.evidence, down: 3}
	w.breaker, w.commit = w.instance("b", "v1", w.faulty, func(o *commit.Options) { o.Evidence = evidence })
	doc := result(1, 1, tooLong(), spent())
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.again(doc).Outcomes)
	files := func() (names []string) {
		for name := range w.evidence.Files() {
			names = append(names, path.Base(name))
		}
		return names
	}
	require.Equal(t, []string{"original.json", "error.json", "metadata.json"}, evidence.names)
	require.ElementsMatch(t, []string{"original.json", "error.json"}, files())
	_, marked := w.sink.Entry(1)
	require.False(t, marked, "nothing is marked without it")

	w.othersApply()
	w.clock = w.clock.Add(3 * time.Minute)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(idOf(t, doc)).Outcomes)
	require.ElementsMatch(t, []string{"original.json", "error.json", "metadata.json"}, files())
}

// A lost race blames no document, also at a mark.
func TestAMarkThatLosesEveryRaceIsPutOff(t *testing.T) {
	w := newWorld(t, 1)
	locked := true
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark && locked {
			return fault.New(fault.Contention, "sql: apply", "1222", "lock timeout")
		}
		return nil
	}})
	doc := result(1, 1, tooLong(), spent())
	id := idOf(t, doc)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.again(doc).Outcomes)
	s := w.state(id)
	require.Equal(t, []any{"retry_scheduled", 5.0, true, float64(w.clock.Unix() + 132)},
		[]any{s["status"], s["retry_count"], s["postponed"], s["retry_after"]}, "2 minutes plus half of 20 %")
	require.NotContains(t, s, "final_error")
	require.NotContains(t, s, "failed_at")
	require.NotContains(t, w.log.String(), "MANUAL REVIEW")

	locked = false
	w.othersApply()
	w.clock = w.clock.Add(132 * time.Second)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(id).Outcomes)
	require.NotContains(t, w.state(id), "final_error")
}

// A success before a document was requested again proves nothing for its new tries.
func TestAReprocessedDocumentNeedsProofAnew(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, tooLong(), spent())
	id := idOf(t, doc)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)

	w.clock = w.clock.Add(time.Hour)
	report, err := w.batch(commit.Delivery{Documents: w.snapshots(id), Purpose: commit.ForRun, TakeOver: replayed()})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, report.Outcomes)
	require.Equal(t, 1.0, w.state(id)["retry_count"])
	for range 8 {
		w.clock = w.clock.Add(2 * time.Hour)
		require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.retry(id).Outcomes)
	}
	require.Equal(t, []any{5.0, true}, []any{w.state(id)["retry_count"], w.state(id)["postponed"]})
	w.othersApply()
	w.clock = w.clock.Add(2 * time.Hour)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(id).Outcomes)
}

func TestAPanicAboutOneDocumentKillsNobodyElse(t *testing.T) {
	w := newWorld(t, 1, 2)
	docs := []string{result(1, 1, "A", ""), result(2, 2, "B", "")}
	batch := w.put(docs...)
	w.faulty.onRecord = func(n int) error {
		if n == 1 {
			panic("index out of range")
		}
		return nil
	}
	require.Equal(t, map[invoice.Outcome]int{"left": 1, "applied": 1}, w.run(batch...).Outcomes)
	require.Contains(t, w.log.String(), `"event":"panic"`)
	w.faulty.onRecord = func(int) error { panic("again") }
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, w.run(w.put(document("no-time", 1, "C", ""))...).Outcomes)
}

// The control document may be unreadable once and readable later. Each such answer gives a whole state: the document
// has failed, or its retries are spent.
func TestEachLostReadOfTheControlDocumentGivesAWholeState(t *testing.T) {
	for lost := range 8 {
		w := newWorld(t, 1)
		w.othersApply()
		doc := result(1, 1, tooLong(), spent())
		w.put(doc)
		clock := w.clock
		control := &failingControl{ControlStore: w.control, lost: lost}
		_, w.commit = w.instance("b", "v1", w.faulty, func(o *commit.Options) {
			o.Breaker = breaker.New(control, breaker.Options{
				SysName: "web", Build: "v1", Heartbeat: w.faulty.Heartbeat,
				// each read of the clock moves it
				Now: func() time.Time { clock = clock.Add(time.Minute); return clock },
			})
		})
		w.retry(idOf(t, doc))
		require.Greater(t, control.loads, lost)
		s := w.state(idOf(t, doc))
		require.Equal(t, 5.0, s["retry_count"], "read %d failed: %v", lost, s)
		require.Equal(t, s["status"] == "retry_scheduled", s["postponed"] == true, "read %d failed: %v", lost, s)
		require.Equal(t, s["status"] == "failed", s["failed_at"] != nil, "read %d failed: %v", lost, s)
	}
}

// failingControl is a control document of which one read fails.
type failingControl struct {
	breaker.ControlStore
	loads, lost int
}

func (l *failingControl) Load(ctx context.Context) (breaker.Control, string, error) {
	if l.loads++; l.loads == l.lost+1 {
		return breaker.Control{}, "", down("cosmos: load control")
	}
	return l.ControlStore.Load(ctx)
}

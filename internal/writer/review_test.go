package writer_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// build makes an instance of some version of the app, whose requests have at most so many documents.
func (w *world) build(version string, sink writer.Sink, maxDocuments int) *writer.Commit {
	w.t.Helper()
	now, log := func() time.Time { return w.clock }, zerolog.New(&w.log)
	gate := writer.NewGate(w.control, writer.GateOptions{Instance: "of " + version, Version: version, Log: log, Now: now})
	return writer.NewCommit(w.faulty, sink, writer.Options{
		SysName: "web", Location: chicago(w.t), Now: now, Draw: func() float64 { return 0.5 }, Parallel: 1, Log: log,
		Wait: func(context.Context, time.Duration) error { return nil },
		Gate: gate, Evidence: w.evidence, AppVersion: version, MaxDocuments: maxDocuments,
	})
}

// loaded is the control document as all instances share it.
func (w *world) loaded() writer.Control {
	w.t.Helper()
	c, _, err := w.control.Load(w.t.Context())
	require.NoError(w.t, err)
	return c
}

// status is sql_writer.status.
func (w *world) status(id string) string {
	w.t.Helper()
	return w.state(id)["status"].(string)
}

// about answers err for every request that has a document among ids.
func about(err error, ids ...string) func([]writer.Item) error {
	return func(items []writer.Item) error {
		if slices.ContainsFunc(items, func(it writer.Item) bool { return slices.Contains(ids, it.DocumentID) }) {
			return err
		}
		return nil
	}
}

// panicking panics at every request that has the document.
func panicking(id string) func([]writer.Item) error {
	return func(items []writer.Item) error {
		if about(fault.New(fault.Internal, "", "", ""), id)(items) != nil {
			panic("content of the document")
		}
		return nil
	}
}

// spentSince is the state of a document whose retries are spent and that fails since then.
func spentSince(t time.Time) string {
	return fmt.Sprintf(`{"status":"retry_scheduled","retry_count":5,"failing_since":%d}`, t.Unix())
}

// A panic that one document brings about is that document's: its neighbours are written in the same Run.
func TestADocumentThatMakesTheSinkPanicStandsAlone(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	docs := []string{result(1, 1, "a", ""), result(2, 2, "b", ""), result(3, 3, "c", "")}
	bad := idOf(t, docs[1])
	_, w.commit = w.instance("b", sinkThat{w.faulty, panicking(bad)}, w.control, w.evidence)
	require.Equal(t, map[string]int{"applied": 2, "retry_scheduled": 1}, w.run(w.put(docs...)...).Outcomes)
	s := w.state(bad)
	require.Equal(t, []any{"retry_scheduled", 1.0, "internal", "panic"},
		[]any{s["status"], s["retry_count"], s["last_error_kind"], s["last_error_code"]})
	require.Contains(t, w.log.String(), `"stack"`, "where it happened is said")
	require.NotContains(t, w.log.String(), "content of the document")
	require.NotContains(t, s["last_error"], "content of the document")
}

// The recovery timer meets it first, in a batch of its own, and goes on.
func TestTheTimerGoesOnAfterAPanic(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	var ids []string
	for line := range int64(3) {
		doc := result(int(line), line+1, "x", "")
		w.put(doc)
		ids = append(ids, idOf(t, doc))
		w.clock = w.clock.Add(time.Second)
	}
	w.clock = w.clock.Add(time.Hour)
	w.commit = w.build("v1", sinkThat{w.faulty, panicking(ids[0])}, 1)
	require.Equal(t, map[string]int{"applied": 2, "retry_scheduled": 1}, w.tick().Outcomes)
	require.Equal(t, "panic", w.state(ids[0])["last_error_code"])
}

// A document whose request always fails like an outage opens the gate. It must not be what every probe is made with.
func TestAProbeThatFailsIsFollowedByOneWithAnotherDocument(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	docs := []string{result(1, 1, "a", ""), result(2, 2, "b", ""), result(3, 3, "c", "")}
	bad := idOf(t, docs[0])
	w.gate, w.commit = w.instance("b", sinkThat{w.faulty, about(down("sql: apply"), bad)}, w.control, w.evidence)
	batch := w.put(docs...)
	opened := false
	for retry := range 30 { // five minutes: the first probe fails, the next two are made with one of the others each
		_, err := w.offer(retry, batch...)
		require.True(t, err == nil || fault.IsDependency(err))
		opened = opened || w.gate.Seen().State().Open()
		if err == nil { // the host does not offer it again
			break
		}
		w.clock = w.clock.Add(10 * time.Second)
	}
	require.True(t, opened, "or there was no probe")
	require.Equal(t, []string{"pending", "committed", "committed"},
		[]string{w.status(bad), w.status(idOf(t, docs[1])), w.status(idOf(t, docs[2]))})
	require.Equal(t, 0.0, w.state(bad)["retry_count"], "an outage costs nobody a retry")
}

// That another build writes says nothing of whether this one can: its documents are not to blame for it.
func TestTheSuccessOfAnotherBuildIsNoContrast(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5)
	var docs, ids []string
	for i := range 5 {
		docs = append(docs, result(i, int64(i+1), tooLong(), spent()))
		ids = append(ids, idOf(t, docs[i]))
	}
	w.put(docs...)
	v1 := w.commit
	w.commit = w.build("v2", w.faulty, 100)
	w.contrast()
	require.Equal(t, w.clock, w.loaded().AppliedAt)
	require.Equal(t, "v2", w.loaded().AppliedBy)

	w.commit = v1
	require.Equal(t, map[string]int{"retry_scheduled": 5}, w.run(w.snapshots(ids...)...).Outcomes)
	require.Empty(t, w.evidence.Files())

	w.clock = w.clock.Add(3 * time.Hour) // another instance of this build writes something
	w.commit = w.build("v1", w.faulty, 100)
	w.contrast()
	w.commit = v1
	require.Equal(t, map[string]int{"failed": 5}, w.run(w.snapshots(ids...)...).Outcomes)
}

// A full database still answers reads. What only reads does not say that there is room again.
func TestAFullGateIsClosedByAWriteAlone(t *testing.T) {
	f := newFleet(2)
	f.down(errorOf(fault.Quota))
	require.Error(t, f.use(t.Context(), f.gates[0]))
	require.True(t, f.state(1).Open())
	f.down(nil)
	ran := 0
	use := func(context.Context) error { ran++; return nil }
	f.clock = f.state(1).OpenUntil
	require.NoError(t, f.gates[1].Guard(t.Context(), false, use))
	require.Equal(t, 1, ran)
	require.True(t, f.state(1).Open())
	require.Equal(t, fault.Quota, f.state(1).Kind)

	f.clock = f.state(1).OpenUntil
	require.NoError(t, f.gates[1].Guard(t.Context(), true, use))
	require.Equal(t, 2, ran)
	require.False(t, f.state(1).Open())
}

func TestAFullGateIsNotClosedByABatchThatWritesNothing(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.faulty.onApply = func(int) error { return fault.New(fault.Quota, "sql: apply", "9002", "the log is full") }
	good := w.put(result(1, 1, "a", ""))
	_, err := w.offer(0, good...)
	require.True(t, fault.IsDependency(err))
	require.True(t, w.gate.Seen().State().Open())

	w.clock = w.gate.Seen().State().OpenUntil
	_, err = w.offer(0, w.put(result(2, 2, tooLong(), ""))...)
	require.NoError(t, err)
	require.True(t, w.gate.View(t.Context()).State().Open())

	w.faulty.onApply = nil
	w.clock = w.gate.Seen().State().OpenUntil
	_, err = w.offer(0, good...)
	require.NoError(t, err)
	require.False(t, w.gate.View(t.Context()).State().Open())
}

// A document without a time in its id gets its version in a patch of its own. That is no end of what it failed with before.
func TestAReprocessThatStopsAfterTheVersionLeavesTheFailureAsItWas(t *testing.T) {
	w := newWorld(t, 7)
	const id = "no-time-here"
	w.put(document(id, 7, "good", `{"status":"failed","retry_count":5,"failed_at":"then","error":"old writer","final_error":"x"}`))
	reprocess := func() (writer.Report, error) {
		return w.commit.Run(t.Context(), writer.Batch{Documents: w.snapshots(id), Received: w.clock, Purpose: writer.Reprocess})
	}
	w.faulty.onApply = func(int) error { return down("sql: apply") }
	_, err := reprocess()
	require.True(t, fault.IsDependency(err))
	require.Equal(t, 1, w.faulty.writes, "SQL was asked")
	require.Equal(t, 1, w.faulty.records, "after the version was recorded")
	s := w.state(id)
	require.Equal(t, []any{"failed", 5.0, "then", "old writer", "x"},
		[]any{s["status"], s["retry_count"], s["failed_at"], s["error"], s["final_error"]})
	require.NotContains(t, s, "reprocess_count")

	w.faulty.onApply = nil
	report, err := reprocess()
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 1}, report.Outcomes)
	s = w.state(id)
	require.Equal(t, []any{"committed", 0.0, 1.0}, []any{s["status"], s["retry_count"], s["reprocess_count"]})
	require.NotContains(t, s, "failed_at")
	require.NotContains(t, s, "error")
}

// The evidence of a document is kept, its mark meets an outage twelve times: it is one poison pill all the same.
func TestAPoisonPillIsCountedOnceHoweverOftenItsMarkIsTried(t *testing.T) {
	w := newWorld(t, 1)
	marks, refuse := 0, true
	w.gate, w.commit = w.instance("b", sinkThat{w.faulty, func(items []writer.Item) error {
		if items[0].FailureMark {
			if marks++; refuse {
				return down("sql: apply")
			}
		}
		return nil
	}}, w.control, w.evidence)
	batch := w.put(result(1, 1, tooLong(), spent()))
	w.contrast()
	for n := range 12 {
		_, err := w.offer(1, batch...)
		require.True(t, fault.IsDependency(err))
		require.Equal(t, n+1, marks)
		w.clock = w.clock.Add(4 * time.Minute)
	}
	require.Equal(t, start().Truncate(time.Hour), w.loaded().Poison.Hour, "all within the hour")
	require.Equal(t, 1, w.loaded().Poison.Count)
	refuse = false
	_, err := w.offer(1, batch...)
	require.NoError(t, err)
	require.Equal(t, "failed", w.status(invoiceOf(t, batch[0]).ID))
	require.Equal(t, 1, w.loaded().Poison.Count)
}

// One request that fails with a dependency's error does not keep the rest of the tick waiting; two in a row do.
func TestTheTimerGoesOnAfterOneFailedBatchAndStopsAfterTwo(t *testing.T) {
	for name, c := range map[string]struct {
		bad  []int
		want []string
	}{
		"one":          {[]int{0}, []string{"pending", "committed", "committed", "committed"}},
		"two in a row": {[]int{0, 1}, []string{"pending", "pending", "pending", "pending"}},
		"two apart":    {[]int{0, 2}, []string{"pending", "committed", "pending", "committed"}},
		"the last":     {[]int{3}, []string{"committed", "committed", "committed", "pending"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2, 3, 4)
			var ids, bad []string
			for i := range 4 {
				doc := result(i, int64(i+1), "x", "")
				w.put(doc)
				ids = append(ids, idOf(t, doc))
				w.clock = w.clock.Add(time.Second)
			}
			for _, i := range c.bad {
				bad = append(bad, ids[i])
			}
			w.clock = w.clock.Add(time.Hour)
			commit := w.build("v1", sinkThat{w.faulty, about(down("sql: apply"), bad...)}, 1)
			found, err := writer.NewRecover(commit, w.docs).Run(t.Context())
			require.True(t, fault.IsDependency(err), "what failed is said")
			require.Empty(t, found.Gate, "it stayed closed")
			var is []string
			committed := 0
			for _, id := range ids {
				is = append(is, w.status(id))
				if w.status(id) == "committed" {
					committed++
				}
			}
			require.Equal(t, c.want, is)
			require.Equal(t, 4-committed, found.Outcomes["waiting"])
			require.Equal(t, committed, found.Outcomes["applied"])
		})
	}
}

// Contrast is that content was written. That it was there already, or that another's failure was marked, is none.
func TestNeitherWhatIsUnchangedNorAMarkIsContrast(t *testing.T) {
	for name, other := range map[string]func(w *world, committed string){
		"unchanged": func(w *world, committed string) {
			require.Equal(w.t, map[string]int{"unchanged": 1}, w.run(w.put(committed)...).Outcomes)
		},
		"a mark": func(w *world, _ string) { // it failed before the last success, so that one is its contrast
			doc := result(3, 2, tooLong(), spentSince(start().Add(-3*time.Hour)))
			require.Equal(w.t, map[string]int{"failed": 1}, w.run(w.put(doc)...).Outcomes)
			_, marked := w.sink.Entry(2)
			require.True(w.t, marked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2, 3)
			w.clock = start().Add(-2 * time.Hour)
			committed := result(1, 1, "ACME", "")
			require.Equal(t, map[string]int{"applied": 1}, w.run(w.put(committed)...).Outcomes)
			w.clock = start()
			other(w, committed)
			w.clock = w.clock.Add(time.Minute)
			doc := result(4, 3, tooLong(), spentSince(start().Add(-time.Hour)))
			require.Equal(t, map[string]int{"retry_scheduled": 1}, w.run(w.put(doc)...).Outcomes)
			require.Equal(t, 5.0, w.state(idOf(t, doc))["retry_count"])

			w.clock = w.clock.Add(2 * time.Hour)
			w.contrast()
			require.Equal(t, map[string]int{"failed": 1}, w.run(w.snapshots(idOf(t, doc))...).Outcomes)
		})
	}
}

// keptInOrder is a store of evidence that remembers what it was asked for, and is down for one file.
type keptInOrder struct {
	writer.Evidence
	names []string
	down  int
}

func (k *keptInOrder) Keep(ctx context.Context, name string, content []byte) error {
	k.names = append(k.names, path.Base(name))
	if len(k.names) == k.down {
		return fault.New(fault.Infrastructure, "blob: keep", "refused", "nothing listens")
	}
	return k.Evidence.Keep(ctx, name, content)
}

// Where metadata.json stands, the evidence is whole.
func TestMetadataIsTheLastOfTheEvidence(t *testing.T) {
	w := newWorld(t, 1)
	evidence := &keptInOrder{Evidence: w.evidence, down: 3}
	_, w.commit = w.instance("b", w.faulty, w.control, evidence)
	doc := result(1, 1, tooLong(), spent())
	w.contrast()
	require.Equal(t, map[string]int{"retry_scheduled": 1}, w.run(w.put(doc)...).Outcomes)
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

	w.clock = w.clock.Add(3 * time.Minute)
	require.Equal(t, map[string]int{"failed": 1}, w.run(w.snapshots(idOf(t, doc))...).Outcomes)
	require.ElementsMatch(t, []string{"original.json", "error.json", "metadata.json"}, files())
}

// A lost race is nobody's fault, at a mark too.
func TestAMarkThatLosesEveryRaceIsPutOff(t *testing.T) {
	w := newWorld(t, 1)
	locked := true
	_, w.commit = w.instance("b", sinkThat{w.faulty, func(items []writer.Item) error {
		if items[0].FailureMark && locked {
			return fault.New(fault.Contention, "sql: apply", "1222", "lock timeout")
		}
		return nil
	}}, w.control, w.evidence)
	doc := result(1, 1, tooLong(), spent())
	id := idOf(t, doc)
	w.contrast()
	require.Equal(t, map[string]int{"retry_scheduled": 1}, w.run(w.put(doc)...).Outcomes)
	s := w.state(id)
	require.Equal(t, []any{"retry_scheduled", 5.0, float64(w.clock.Unix() + 132)},
		[]any{s["status"], s["retry_count"], s["retry_after"]}, "2 minutes plus half of 20 %")
	require.NotContains(t, s, "final_error")
	require.NotContains(t, s, "failed_at")
	require.NotContains(t, w.log.String(), "MANUAL REVIEW")

	locked = false
	w.clock = w.clock.Add(132 * time.Second)
	require.Equal(t, map[string]int{"failed": 1}, w.run(w.snapshots(id)...).Outcomes)
	require.NotContains(t, w.state(id), "final_error")
}

// What was written before a document was asked for again says nothing about its new tries.
func TestAReprocessedDocumentNeedsContrastAnew(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, tooLong(), spent())
	id := idOf(t, doc)
	w.contrast()
	require.Equal(t, map[string]int{"failed": 1}, w.run(w.put(doc)...).Outcomes)

	w.clock = w.clock.Add(time.Hour)
	report, err := w.commit.Run(t.Context(), writer.Batch{Documents: w.snapshots(id), Received: w.clock, Purpose: writer.Reprocess})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"retry_scheduled": 1}, report.Outcomes)
	require.Equal(t, float64(w.clock.Unix()), w.state(id)["failing_since"])
	for range 6 { // its four other retries, and then
		w.clock = w.clock.Add(2 * time.Hour)
		require.Equal(t, map[string]int{"retry_scheduled": 1}, w.run(w.snapshots(id)...).Outcomes)
	}
	require.Equal(t, 5.0, w.state(id)["retry_count"])
	w.clock = w.clock.Add(2 * time.Hour)
	w.contrast()
	require.Equal(t, map[string]int{"failed": 1}, w.run(w.snapshots(id)...).Outcomes)
}

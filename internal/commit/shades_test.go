package commit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func (w *world) with(
	docs commit.Documents, sink commit.Sink, wait func(context.Context, time.Duration) error,
) *commit.Commit {
	if wait == nil {
		wait = func(context.Context, time.Duration) error { return nil }
	}
	return commit.NewCommit(docs, sink,
		commit.Options{SysName: "web", Now: func() time.Time {
			return w.clock
		}, Log: zerolog.New(&w.log), Parallel: 1, Draw: func() float64 { return 0.5 }, Wait: wait})
}

func TestRacesAreWaitedForLongerEachTime(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = func(int) error { w.put(doc); return nil }
	var waits []time.Duration
	_, err := w.with(w.faulty, w.faulty, func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}).Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock})
	require.NoError(t, err)
	ms := time.Millisecond
	require.Equal(t, []time.Duration{20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms}, waits)
}

func TestAnOldSnapshotIsAnsweredByWhatTheDocumentHoldsNow(t *testing.T) {
	w := newWorld(t, 1)
	stale := w.put(result(0, 1, "A", ""))
	w.clock = w.clock.Add(time.Second)
	w.run(w.put(result(0, 1, "B", ""))...)
	w.clock = w.clock.Add(time.Second)
	w.put(result(0, 1, "A", "")) // A again, pending
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(stale...).Outcomes)
	require.Equal(t, "A", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestAnOldSnapshotFindsLaterContentInPlace(t *testing.T) {
	w := newWorld(t, 1)
	stale := w.put(result(0, 1, "A", ""))
	w.clock = w.clock.Add(time.Second)
	now := w.put(result(0, 1, "B", ""))
	_, err := w.sink.Apply(t.Context(), []commit.Item{commit.ItemOf(must(invoice.Reader{}.Read(now[0], w.clock)))},
		commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"unchanged": 1}, w.run(stale...).Outcomes)
}

func must(d invoice.Document, err error) invoice.Document {
	if err != nil {
		panic(err)
	}
	return d
}

func TestOneLineSupersededByItselfIsEnoughToReadAgain(t *testing.T) {
	w := newWorld(t, 1, 2)
	stale := w.put(result(0, 1, "A", "", 2))
	w.clock = w.clock.Add(time.Second)
	w.run(w.put(result(0, 1, "B", ""))...)
	w.run(stale...)
	require.Equal(t, 0, w.faulty.records-1, "the stale result is recorded nowhere")
}

func TestADeletedDocumentThatFailedIsNotSaidToBeWritten(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, tooLong(), ""))
	w.faulty.onRecord = func(int) error { return refused(fault.Gone, "404") }
	w.run(batch...)
	require.NotContains(t, w.log.String(), "deleted while it was written")
}

func TestOtherContentOfAnIdWithoutATimeGetsItsVersionFirst(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(document("nt", 1, "A", ""))
	w.faulty.onRecord = func(n int) error {
		if n == 2 {
			w.put(document("nt", 1, "B", ""))
		}
		return nil
	}
	w.faulty.onApply = func(int) error {
		require.NotNil(t, w.state("nt")["version"], "recorded before the write")
		return nil
	}
	// The second Apply must find a version.
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(batch...).Outcomes)
}

func TestHealingIsForCommittedDocumentsThatCanBeWritten(t *testing.T) {
	for _, d := range []string{
		result(0, 1, tooLong(), `{"status":"committed"}`), result(0, 1, "two", `{"status":"failed"}`),
	} {
		w := newWorld(t, 1)
		old := w.put(result(0, 1, "one", ""))
		w.put(d)
		rep, err := w.offer(1, old...)
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, rep.Outcomes)
		require.Equal(t, 0, w.faulty.writes)
		require.Empty(t, rep.Kinds)
		require.Equal(t, "NULL", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	}
}

func TestWhatIsNotOursIsNotReadAgain(t *testing.T) {
	w := newWorld(t, 1)
	_, err := w.offer(1, w.put(strings.ReplaceAll(result(0, 1, "A", ""), `"sys_name":"web"`, `"sys_name":"john"`))...)
	require.NoError(t, err)
	require.Equal(t, 0, w.faulty.reads)
}

// A wrong sys_name is otherwise seen nowhere. A batch that comes again, the other environment's patches and a run do
// not count.
func TestDocumentsOfAnotherEnvironmentAreCountedOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.clock = w.clock.Add(time.Hour)
	of := func(sysName string, line int64, state string) string {
		return strings.ReplaceAll(result(0, line, "A", state), `"sys_name":"web"`, `"sys_name":`+sysName)
	}
	batch := w.put(of(`"wbe"`, 2, ""), of(`"wbe"`, 3, ""), of(`null`, 4, ""),
		of(`"wbe"`, 5, `{"status":"committed"}`), result(0, 1, "A", ""))
	for retry := range 3 {
		_, err := w.offer(retry, batch...)
		require.NoError(t, err)
		w.clock = w.clock.Add(2 * time.Minute)
	}
	w.runFor(false, nil, batch...)
	at := start().Add(time.Hour)
	require.ElementsMatch(t, []breaker.Skipped{
		{SysName: "wbe", Documents: 2, Since: at, LastAt: at, Sample: idOf(t, string(batch[1]))},
		{SysName: "", Documents: 1, Since: at, LastAt: at, Sample: idOf(t, string(batch[2]))},
	}, w.breaker.Seen().Control.Skipped)
}

func TestASecondReadThatFailsDropsNobody(t *testing.T) {
	for _, e := range []error{down("cosmos"), errors.New("unclassified")} {
		w := newWorld(t, 1)
		batch := w.put(result(0, 1, "two", ""))
		w.clock = w.clock.Add(time.Hour)
		docs := lagging{faulty: w.faulty, read: func() (json.RawMessage, error) { return nil, e }}
		rep, err := w.with(docs, w.faulty, nil).Run(t.Context(),
			commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
		if fault.IsDependency(e) {
			require.True(t, fault.IsDependency(err), "%v", err)
			require.Equal(t, map[invoice.Outcome]int{"waiting": 1}, rep.Outcomes)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{"left": 1}, rep.Outcomes,
			"its error is logged and stops no other document")
	}
}

func TestWhatTheSecondReadShowsIsWorkedOn(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "one", ""))
	w.clock = w.clock.Add(time.Hour)
	w.put(result(0, 1, "two", `{"status":"failed"}`))
	docs := lagging{faulty: w.faulty, read: func() (json.RawMessage, error) {
		return w.docs.Read(context.Background(), idOf(t, result(0, 1, "", "")))
	}}
	rep, err := w.with(docs, w.faulty, nil).Run(t.Context(),
		commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, rep.Outcomes)
	require.Equal(t, 0, w.faulty.writes)
}

func TestAWaitThatIsCutShortBlamesNobody(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "A", ""))
	w.faulty.onApply = func(int) error { return lost() }
	rep, err := w.with(w.faulty, w.faulty, func(context.Context, time.Duration) error {
		return context.Canceled
	}).Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock})
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 1}, rep.Outcomes)
	require.Equal(t, 0, w.faulty.records)
}

type generous struct{ commit.Sink }

func (g generous) Apply(
	ctx context.Context, i []commit.Item, m commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	o, err := g.Sink.Apply(ctx, i, m, known)
	return append(o, commit.DocumentOutcome{}), err
}

func TestASinkThatAnswersTheWrongNumberIsAnErrorOfOurs(t *testing.T) {
	w := newWorld(t, 1, 2)
	batch := w.put(result(0, 1, "A", ""), result(1, 2, "B", ""))
	rep, err := w.with(w.faulty, generous{w.faulty}, nil).Run(t.Context(),
		commit.Delivery{Documents: batch, Received: w.clock})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"internal": 2}, rep.Kinds)
}

func TestAThrottledReadStaysThrottled(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "A", ""))
	w.faulty.onRead = func(int) error { return fault.New(fault.Throttled, "cosmos", "429", "x") }
	_, err := w.offer(1, batch...)
	require.Equal(t, fault.Throttled, fault.KindOf(err))
}

package commit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// many puts n documents with consecutive lines, and gives their ids.
func (w *world) many(from int64, n int, state string) (ids []string) {
	w.t.Helper()
	for i := range int64(n) {
		w.sink.AddLines(from + i)
		doc := result(int(i%60), from+i, "ACME", state)
		w.put(doc)
		ids = append(ids, idOf(w.t, doc))
	}
	return ids
}

// A document that breaks its connection is not an outage: its neighbours are written at once, and it is put off without
// a count. The third time it is its own failure.
func TestADocumentThatBreaksItsConnectionStandsAlone(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 20, "")
	bad := ids[7]
	w.use(sinkHook{w.faulty, failFor(down("sql: apply"), bad)})
	report, err := w.offer(0, w.snapshots(ids...)...)
	require.NoError(t, err, "the feed goes on")
	require.Equal(t, map[invoice.Outcome]int{"applied": 19, "retry_scheduled": 1}, report.Outcomes)
	require.Equal(t, map[string]int{"infrastructure": 1}, report.Kinds)
	for n, wait := range []time.Duration{132 * time.Second, 264 * time.Second} {
		s := w.state(bad)
		require.Equal(t, []any{0.0, "infrastructure", float64(w.clock.Add(wait).Unix())},
			[]any{s["retry_count"], s["last_error_kind"], s["retry_after"]})
		require.Len(t, s["attempts"], n+1)
		w.clock = w.clock.Add(wait)
		require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.retry(bad).Outcomes)
		require.False(t, w.opened())
	}
	s := w.state(bad)
	require.Equal(t, []any{1.0, "internal", commit.CodeFailsAlone, float64(w.clock.Unix() + 132)},
		[]any{s["retry_count"], s["last_error_kind"], s["last_error_code"], s["retry_after"]})
	require.Contains(t, s["last_error"], "fails like an outage each time")
}

// A batch that fails again and again, while other requests succeed, does not stop the feed for ever.
func TestABatchThatFailsForEverIsLeftToTheTimer(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 3, "")
	before := w.snapshots(ids...)
	w.faulty.onRead = func(int) error { return down("cosmos: read many") }
	_, err := w.offer(20, before...)
	require.True(t, fault.IsDependency(err))
	report, err := w.offer(21, before...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"left": 3}, report.Outcomes)
	require.Contains(t, w.log.String(), "left to the recovery timer")
	require.Equal(t, before, w.snapshots(ids...))

	w.faulty.onRead = nil
	require.NoError(t, w.breaker.Pause(t.Context(), "ann", "maintenance"))
	_, err = w.offer(21, before...)
	require.True(t, breaker.IsRefusal(err), "while the breaker is open everything waits")
}

// Documents that a person reset count as new failures.
func TestResetDocumentsThatFailAgainAreToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		over  []invoice.Status
		state string
	}{
		"by hand":            {nil, `{"status":"pending","retry_count":6,"failed_at":"x"}`},
		"by asking for them": {[]invoice.Status{invoice.Failed}, `{"status":"failed","retry_count":6,"failed_at":"x"}`},
	} {
		w := newWorld(t)
		ids := w.many(1, 100, c.state)
		w.use(sinkHook{
			w.faulty, failFor(fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row"), ids...),
		})
		report, err := w.batch(
			commit.Delivery{Documents: w.snapshots(ids...), Purpose: commit.ForRun, TakeOver: c.over})
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 100}, report.Outcomes, name)
		require.Contains(t, w.log.String(), `"event":"mass_failure","code":"547"`, name)
	}
}

// The second failure of many is no news.
func TestDocumentsThatFailOnAreToldOfOnce(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 100, `{"status":"retry_scheduled","retry_count":1}`)
	w.use(sinkHook{w.faulty, failFor(fault.New(fault.Document, "sql: apply", "547", "x"), ids...)})
	report, err := w.batch(commit.Delivery{Documents: w.snapshots(ids...), Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 100}, report.Outcomes)
	require.NotContains(t, w.log.String(), "mass_failure")
}

// Promise G6: a schema that refuses everything for a working day makes no poison message, although each document spends
// its retries. One document that is written makes all the others due.
func TestASchemaThatRefusesEverythingPoisonsNobody(t *testing.T) {
	w := newWorld(t)
	w.othersApply()
	w.clock = w.clock.Add(time.Minute)
	ids := w.many(1, 30, "")
	on := true
	w.use(sinkHook{w.faulty, refuse(&on)})
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 30}, w.run(w.snapshots(ids...)...).Outcomes)
	r := commit.NewRecover(w.commit, w.docs)
	for range 8 * 12 {
		w.clock = w.clock.Add(5 * time.Minute)
		_, err := r.Run(t.Context())
		require.NoError(t, err)
	}
	for _, id := range ids {
		require.Equal(t, []any{"retry_scheduled", 5.0, true},
			[]any{w.status(id), w.state(id)["retry_count"], w.state(id)["postponed"]})
	}
	on = false
	w.othersApply()
	w.clock = w.clock.Add(5 * time.Minute)
	found, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 30}, found.Outcomes)
}

// A lost race of a rewrite is never final, and the batch is offered again.
func TestARewriteThatLosesARaceComesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		kind    fault.Kind
		cause   error
		rewrite bool
		written invoice.Outcome
	}{
		"a rewrite that loses a race":         {fault.Contention, lost(), true, "applied"},
		"a rewrite that fails like an outage": {fault.Infrastructure, down("sql: apply"), true, "applied"},
		"a reapply that loses a race":         {fault.Contention, lost(), false, "unchanged"},
		"a reapply that fails like an outage": {fault.Infrastructure, down("sql: apply"), false, "unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ids := w.many(1, 3, "")
			w.run(w.snapshots(ids...)...)
			before := w.snapshots(ids...)
			results := map[string]invoice.Outcome{}
			batch := commit.Delivery{
				Documents: before, Received: w.clock, Purpose: commit.ForRun,
				TakeOver: []invoice.Status{invoice.Committed}, Rewrite: c.rewrite,
				OnResult: func(t commit.DocumentResult) { results[t.ID] = t.Outcome },
			}
			w.use(sinkHook{w.faulty, failFor(c.cause, ids[0])})
			_, err := w.commit.Run(t.Context(), batch)
			require.Equal(t, c.kind, fault.KindOf(err))
			require.Equal(t, map[string]invoice.Outcome{ids[1]: c.written, ids[2]: c.written}, results,
				"those that wait get no result")
			require.Equal(t, before, w.snapshots(ids...))

			w.use(w.faulty)
			_, err = w.commit.Run(t.Context(), batch)
			require.NoError(t, err)
			require.Equal(t, c.written, results[ids[0]])
		})
	}
}

// Promise G5: SQL is away for ten minutes, 500 documents wait, and three instances get their batches every 10 s.
func TestSQLAwayForTenMinutesCostsNothing(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 500, "")
	before := w.snapshots(ids...)
	commits := []*commit.Commit{w.commit}
	for n := range 2 {
		_, c := w.instance(fmt.Sprint("instance ", n), "v1", w.faulty, nil)
		commits = append(commits, c)
	}
	offer := func(retry int) (waiting int) {
		for n, c := range commits {
			report, _ := c.Run(t.Context(),
				commit.Delivery{Documents: before[n*165 : n*165+165], Received: w.clock, RetryCount: retry})
			waiting += report.Outcomes["waiting"]
		}
		return waiting
	}
	w.away(true)
	begin := w.clock
	retry := 0
	for ; w.clock.Before(begin.Add(10 * time.Minute)); retry++ {
		require.Equal(t, 495, offer(retry))
		w.clock = w.clock.Add(10 * time.Second)
	}
	require.LessOrEqual(t, w.faulty.beats+w.faulty.writes, 25,
		"one request a minute after those that opened the breaker")
	require.Equal(t, before, w.snapshots(ids...))
	w.away(false)
	begin = w.clock
	for ; offer(retry) > 0; retry++ {
		w.clock = w.clock.Add(10 * time.Second)
		require.Less(t, w.clock.Sub(begin), 2*time.Minute)
	}
	for _, id := range ids[:495] {
		require.Equal(t, []any{"committed", 0.0}, []any{w.status(id), w.state(id)["retry_count"]})
	}
}

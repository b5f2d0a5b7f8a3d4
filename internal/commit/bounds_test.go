package commit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Dividing ends after two minutes, also over many small requests. The rest is put off without a request.
func TestTheBudgetHoldsOverManyRequests(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 100, "")
	_, committer := w.instance("b", "v1", w.locked(100), func(o *commit.Options) { o.MaxDocuments = 5 })
	begin := w.clock
	report, err := committer.Run(t.Context(), commit.Delivery{Documents: w.snapshots(ids...), Received: w.clock})
	require.NoError(t, err)
	require.LessOrEqual(t, w.clock.Sub(begin), 2*time.Minute+15*time.Second, "%v", report.Outcomes)
}

// 100 documents that were put off for locked lines leave the other windows their share of the tick.
func TestLockedLinesDoNotHoldTheTick(t *testing.T) {
	w := newWorld(t)
	w.many(1, 100, retryState(start(), `,"last_error_kind":"contention"`))
	due := w.many(500, 1, retryState(start(), ""))
	w.use(w.locked(100))
	begin := w.clock
	found := w.tick()
	require.LessOrEqual(t, w.clock.Sub(begin), 4*time.Minute, "%v", found.Outcomes)
	require.Equal(t, "committed", w.status(due[0]))
}

// Twelve ticks make at most 6,000 requests with full pages. A document that was put off is sent alone, once.
func TestAnHourOfTicksMakesAtMost6000Requests(t *testing.T) {
	w := newWorld(t)
	locked := w.many(1, 300, retryState(start(), `,"last_error_kind":"contention"`))
	refused := w.many(1000, 900, retryState(start(), `,"postponed":true,"last_error_kind":"document"`))
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if err := failFor(lost(), locked...)(items); err != nil {
			return err
		}
		return failFor(fault.New(fault.Document, "sql: apply", "547", ""), refused...)(items)
	}})
	require.LessOrEqual(t, 12*w.tick().SQLRequests, 6000)
}

// Every document is counted once. One without a result of a rewrite counts as waiting.
func TestARewriteThatLosesARaceIsCounted(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 3, "")
	w.run(w.snapshots(ids...)...)
	w.use(sinkHook{w.faulty, failFor(lost(), ids[0])})
	report, err := w.commit.Run(t.Context(), commit.Delivery{
		Documents: w.snapshots(ids...), Received: w.clock, Purpose: commit.ForRun,
		TakeOver: []invoice.Status{invoice.Committed}, Rewrite: true,
	})
	require.Equal(t, fault.Contention, fault.KindOf(err))
	require.Equal(t, map[invoice.Outcome]int{"applied": 2, "waiting": 1}, report.Outcomes)
}

// A rewrite patches nothing, so its failures like an outage are not counted. After many offers of the batch they are
// final and reported, because a run must end.
func TestARewriteThatFailsLikeAnOutageIsToldAndEnds(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 3, "")
	w.run(w.snapshots(ids...)...)
	w.use(sinkHook{w.faulty, failFor(down("sql: apply"), ids[0])})
	results := map[string]invoice.Outcome{}
	batch := commit.Delivery{
		Documents: w.snapshots(ids...), Received: w.clock, Purpose: commit.ForRun,
		TakeOver: []invoice.Status{invoice.Committed}, Rewrite: true,
		OnResult: func(t commit.DocumentResult) { results[t.ID] = t.Outcome }, RetryCount: 20,
	}
	_, err := w.commit.Run(t.Context(), batch)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.NotContains(t, results, ids[0])
	batch.RetryCount++
	_, err = w.commit.Run(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, map[string]invoice.Outcome{ids[0]: "failed", ids[1]: "applied", ids[2]: "applied"}, results)
	require.Equal(t, "committed", w.state(ids[0])["status"])
}

// An instance that cannot reach SQL answers 2xx only when all its documents are recorded.
func TestACutOffInstanceForgetsNobody(t *testing.T) {
	w := newWorld(t, 1, 2)
	cut := &faulty{docs: w.docs, sink: w.sink}
	cut.onApply = func(n int) error {
		switch n {
		case 1:
			return fault.New(fault.Document, "sql: apply", "547", "") // both together
		case 2:
			return nil // the first alone
		}
		return down("sql: apply")
	}
	cut.onHeartbeat = func(int) error { w.othersApply(); return down("sql: heartbeat") }
	cut.onRecord = onlyFirst(down("cosmos: patch"))
	b, _ := w.instance("b", "v1", cut, nil)
	committer := commit.NewCommit(cut, cut, commit.Options{
		SysName: "web", Now: func() time.Time { return w.clock }, Parallel: 1, Breaker: b,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	ids := w.many(1, 2, "")
	before := w.snapshots(ids...)
	_, err := committer.Run(t.Context(), commit.Delivery{Documents: before, Received: w.clock})
	require.True(t, fault.IsDependency(err), "the host offers the batch again")
	require.Equal(t, []string{"pending", "pending"}, []string{w.status(ids[0]), w.status(ids[1])})
	report, err := committer.Run(t.Context(), commit.Delivery{Documents: before, Received: w.clock, RetryCount: 1})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 2}, report.Outcomes,
		"an instance that reaches SQL finds the first one written")
	require.Equal(t, []string{"retry_scheduled", "retry_scheduled"}, []string{w.status(ids[0]), w.status(ids[1])})
}

// After a person's reset the earlier failures are history, and the waits begin anew.
func TestAReprocessedDocumentHasNoHistoryOfOutages(t *testing.T) {
	w := newWorld(t, 1)
	past := strings.Repeat(`{"at":"x","kind":"infrastructure","error":"x"},`, 2) +
		`{"at":"x","kind":"internal","code":"fails_alone","error":"x"}`
	doc := result(1, 1, "ACME", `{"status":"failed","retry_count":6,"failed_at":"x","attempts":[`+past+`]}`)
	w.put(doc)
	w.use(sinkHook{w.faulty, failFor(down("sql: apply"), idOf(t, doc))})
	report, err := w.batch(
		commit.Delivery{Documents: w.snapshots(idOf(t, doc)), Purpose: commit.ForRun, TakeOver: replayed()})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"infrastructure": 1}, report.Kinds)
}

// Forty documents with locked lines are put off, and a good one with them. Each is tried within a few ticks.
func TestAGoodDocumentAmongLockedOnesHasItsTurn(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 41,
		fmt.Sprintf(
			`{"status":"retry_scheduled","retry_count":0,"last_error_kind":"contention","retry_after":%d}`,
			start().Unix()))
	good := ids[40]
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		for _, it := range items {
			if it.DocumentID != good {
				w.clock = w.clock.Add(5 * time.Second)
				return fault.New(fault.Contention, "sql: apply", "1222", "lock timeout")
			}
		}
		return nil
	}})
	r := commit.NewRecover(w.commit, w.docs)
	for tick := range 6 {
		w.clock = start().Add(time.Duration(tick+1) * 5 * time.Minute)
		_, err := r.Run(deadlineOnly{t.Context(), w.clock.Add(4 * time.Minute)})
		require.NoError(t, err)
		if w.status(good) == "committed" {
			return
		}
	}
	t.Fatalf("it waited for 30 minutes: %v", w.state(good))
}

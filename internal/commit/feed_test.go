package commit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Each batch of bad documents behind the first that ran out of time gets 20 s, so that a good document behind them does
// not wait two minutes for each.
func TestBatchesBehindOneThatRanOutOfTimeAreInAHurry(t *testing.T) {
	w := newWorld(t)
	bad := w.many(1, 100, "")
	w.use(sinkHook{w.faulty, func([]commit.Item) error {
		w.clock = w.clock.Add(3 * time.Second)
		return fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row")
	}})
	took := func(purpose commit.Purpose) time.Duration {
		begin := w.clock
		fresh := w.many(1, 100, "") // the same documents, pending
		_, err := w.batch(commit.Delivery{Documents: w.snapshots(fresh...), Received: w.clock, Purpose: purpose})
		require.NoError(t, err)
		return w.clock.Sub(begin)
	}
	require.Len(t, bad, 100)
	require.InDelta(t, 120, took(commit.FromFeed).Seconds(), 5)
	for range 3 {
		require.InDelta(t, 20, took(commit.FromFeed).Seconds(), 5)
	}
	require.InDelta(t, 120, took(commit.ForRun).Seconds(), 5, "no batch waits behind a run's batch")
	w.clock = w.clock.Add(10 * time.Minute)
	require.InDelta(t, 120, took(commit.FromFeed).Seconds(), 5, "then the search has its time again")
}

// Only the first offer of a batch measures the feed's lag. Documents behind a repeated batch may be orphans.
func TestABatchThatIsOfferedAgainTellsNothingOfTheLag(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 2, "")
	w.clock = w.clock.Add(20 * time.Minute)
	_, err := w.offer(1, w.snapshots(ids[0])...)
	require.NoError(t, err)
	require.Zero(t, w.breaker.View(t.Context()).Control.Feed)
	_, err = w.offer(0, w.snapshots(ids[1])...)
	require.NoError(t, err)
	require.EqualValues(t, 20*60, w.breaker.View(t.Context()).Control.Feed.Seconds)
}

// A document that another program finished after the adoption is told once: that program looks at no ledger. What it
// finished before is the history that was adopted.
func TestASecondWriterIsTold(t *testing.T) {
	const told = `"event":"second_writer"`
	before, after := "2025-12-18 09:59:59.999999-06:00", "2025-12-18 10:00:00.000001-06:00"
	adopted := start()
	for _, c := range []struct {
		why, state string
		want       int
	}{
		{"committed after", `{"status":"committed","retry_count":0,"committed_at":"` + after + `"}`, 1},
		{"failed after", `{"status":"failed","retry_count":5,"failed_at":"` + after + `","error":"x"}`, 1},
		{"committed before", `{"status":"committed","retry_count":0,"committed_at":"` + before + `"}`, 0},
		{"failed before", `{"status":"failed","retry_count":5,"failed_at":"` + before + `","error":"x"}`, 0},
		{"nobody knows when", `{"status":"committed","retry_count":0,"committed_at":"noon"}`, 0},
		{
			"committed by this product",
			`{"status":"committed","outcome":"applied","retry_count":0,"committed_at":"` + after + `"}`, 0,
		},
		{
			"repaired by hand",
			`{"status":"committed","outcome":"manual","retry_count":0,"committed_at":"` + after + `"}`, 0,
		},
		{
			"failed by this product",
			`{"status":"failed","retry_count":5,"failed_at":"` + after + `","last_error_kind":"document"}`, 0,
		},
	} {
		w := newWorld(t)
		_, w.commit = w.instance("a", "v1", w.faulty, func(o *commit.Options) {
			o.AdoptedAt = func() time.Time { return adopted }
		})
		docs := w.put(result(1, 1, "ACME", c.state), result(2, 2, "ACME", c.state))
		for retry := range 2 {
			_, err := w.offer(retry, docs...)
			require.NoError(t, err)
		}
		require.Equal(t, c.want, strings.Count(w.log.String(), told), c.why)
		if c.want > 0 {
			require.Contains(t, w.log.String(), `"condition":"second_writer","severity":"wake"`)
			require.Contains(t, w.log.String(), `"documents":2`)
		}
		adopted = time.Time{} // nobody knows when the ledger was adopted
		w.log.Reset()
		_, err := w.offer(0, docs...)
		require.NoError(t, err)
		require.NotContains(t, w.log.String(), told, c.why)
		adopted = start()
	}
}

// Promise G5: an unreadable document beside one that waits for SQL is not recorded. The next try finds it again.
func TestWhileSQLIsAwayNobodyIsToldOfErrors(t *testing.T) {
	w := newWorld(t, 1)
	unreadable := result(2, 2, "ACME", "")
	unreadable = strings.Replace(unreadable, `"IVCE_DTL_UID":2`, `"IVCE_DTL_UID":"2a"`, 1)
	docs := w.put(result(1, 1, "ACME", ""), unreadable)
	w.away(true)
	report, err := w.offer(0, docs...)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 2}, report.Outcomes)
	require.Zero(t, w.faulty.records)
	w.away(false)
	w.clock = w.clock.Add(2 * time.Minute)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "retry_scheduled": 1}, w.run(docs...).Outcomes)
}

// After a failover a pool of connections is dead. No document is blamed: the request gets one more try.
func TestARequestWhoseConnectionBrokeIsMadeOnceMore(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 2, "")
	broken := 1
	w.use(sinkHook{w.faulty, func([]commit.Item) error {
		if broken--; broken >= 0 {
			return down("sql: apply")
		}
		return nil
	}})
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(w.snapshots(ids[0])...).Outcomes)
	require.NotContains(t, w.state(ids[0]), "attempts", "no document is blamed")
	broken = 2
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.run(w.snapshots(ids[1])...).Outcomes, "once")
}

// Each part of a request that timed out has ten seconds, so that good documents do not wait half a minute at each
// level.
func TestThePartsOfARequestThatTimedOutHaveTenSeconds(t *testing.T) {
	w := newWorld(t)
	ids := w.many(1, 16, "")
	var left []time.Duration
	w.use(contextHook{w.faulty, func(ctx context.Context, items []commit.Item) error {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		left = append(left, time.Until(deadline))
		err := failFor(down("sql: apply"), ids[0])(items)
		if err != nil {
			w.clock = w.clock.Add(left[len(left)-1])
		}
		return err
	}})
	require.Equal(t, map[invoice.Outcome]int{"applied": 15, "retry_scheduled": 1},
		w.run(w.snapshots(ids...)...).Outcomes)
	require.InDelta(t, 30, left[0].Seconds(), 1)
	for _, d := range left[1:] {
		require.InDelta(t, 10, d.Seconds(), 1)
	}
}

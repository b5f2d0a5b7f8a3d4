package commit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// turns is a database in which another instance writes (ONE_WRITER): while held, a request waits for five seconds in
// vain. sizes are the documents of each request.
type turns struct {
	held  func(request int) bool
	sizes []int
}

// under puts the world's instance on such a database, behind a further hook.
func (tu *turns) under(w *world, then func(items []commit.Item) error) {
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		tu.sizes = append(tu.sizes, len(items))
		if tu.held(len(tu.sizes)) {
			w.clock = w.clock.Add(5 * time.Second)
			err := fault.New(fault.Infrastructure, "sqlserver: apply", "one_writer", "waiting: another instance writes")
			err.Condition = fault.Waits
			return err
		}
		return then(items)
	}})
}

// A request whose connection broke, and that then waits in vain, has failed no more than that.
func TestABrokenConnectionBeforeAnotherWritersTurnDividesNothing(t *testing.T) {
	for _, documents := range []int{1, 100} {
		w := newWorld(t)
		ids := w.many(1, documents, "")
		before, broke := w.snapshots(ids...), false
		tu := &turns{held: func(n int) bool { return n == 2 }}
		tu.under(w, func([]commit.Item) error {
			if broke {
				return nil
			}
			broke = true
			return down("sql: apply")
		})
		_, err := w.offer(0, before...)
		require.True(t, breaker.IsRefusal(err), "%v", err)
		require.Equal(t, []int{documents, documents}, tu.sizes)
		require.Equal(t, before, w.snapshots(ids...))
		require.Equal(t, map[invoice.Outcome]int{"applied": documents}, w.run(before...).Outcomes)
	}
}

func nothingMore([]commit.Item) error { return nil }

// Another writer's turn is nobody's fault, however long it takes: the batch is offered again as it is, by whom it came.
func TestAnotherWritersTurnCostsNothing(t *testing.T) {
	const offers = 25 // more than the feed takes of any other failure
	w := newWorld(t)
	ids, held := w.many(1, 100, ""), true
	tu := &turns{held: func(int) bool { return held }}
	tu.under(w, nothingMore)
	before := w.snapshots(ids...)
	waiting, want := map[invoice.Outcome]int{"waiting": 100}, []int{}
	for n := range offers {
		for _, purpose := range []commit.Purpose{commit.FromFeed, commit.ForRun} {
			report, err := w.batch(commit.Delivery{Documents: before, RetryCount: n, Purpose: purpose})
			require.True(t, fault.IsDependency(err) && breaker.IsRefusal(err), "the host offers it again: %v", err)
			require.Equal(t, waiting, report.Outcomes)
		}
		want = append(want, 100, 100)
		if n == 0 {
			w.clock = w.clock.Add(invoice.OrphanAge) // then the timer finds them, too
			continue
		}
		found := w.tick()
		require.Equal(t, waiting, found.Outcomes)
		require.Equal(t, "waiting: another instance writes", found.Flow, "it is told why")
		want = append(want, slices.Repeat([]int{100}, 21)...)
	}
	require.Equal(t, want, tu.sizes, "one request each, and the timer as often as its time allows: nothing is divided")
	require.Equal(t, before, w.snapshots(ids...), "nothing is counted or put off")
	require.Empty(t, w.breaker.Unaudited(t.Context()), "and nothing opens or closes")
	require.Empty(t, w.log.String())

	held = false
	require.Equal(t, map[invoice.Outcome]int{"applied": 100}, w.run(before...).Outcomes)
	for _, id := range ids {
		require.Equal(t, []any{"committed", 0.0, nil},
			[]any{w.status(id), w.state(id)["retry_count"], w.state(id)["attempts"]})
	}
}

// The timer comes every five minutes. It tries again what waited until its time is over, and counts each document once.
func TestTheTimerWaitsForItsTurnAsLongAsItHasTime(t *testing.T) {
	for held := 1; ; held++ {
		w := newWorld(t)
		ids := w.many(1, 20, "")
		gone := w.many(21, 1, "")
		tu := &turns{held: func(n int) bool { return n >= held && n < held+5 }}
		tu.under(w, failFor(fault.New(fault.Document, "sql: apply", "547", "refused"), ids[3]))
		w.clock = w.clock.Add(invoice.OrphanAge + time.Second)
		w.faulty.onRead = func(int) error { w.docs.Delete(gone[0]); return nil }
		found := w.tick()
		require.Equal(t, map[invoice.Outcome]int{"applied": 19, "retry_scheduled": 1, "gone": 1}, found.Outcomes, held)
		require.Equal(t, []int{21, 21, 20}, []int{found.Documents, found.Found[commit.Orphans], found.Missed})
		require.Empty(t, found.More)
		require.Empty(t, found.Flow)
		if len(tu.sizes) < held {
			break
		}
	}

	w := newWorld(t, 1, 2)
	w.put(result(1, 1, "put off", retryState(w.clock, `,"last_error_kind":"contention"`)), result(2, 2, "orphan", ""))
	w.clock = w.clock.Add(invoice.OrphanAge + time.Second)
	tu := &turns{held: func(n int) bool { return n <= 11 }} // a quarter of the tick is over
	tu.under(w, nothingMore)
	found := w.tick()
	require.Equal(t, map[invoice.Outcome]int{"waiting": 1, "applied": 1}, found.Outcomes)
	require.Equal(t, "waiting: another instance writes", found.Flow, "and the next window has its own time")
}

// A part of a divided request, and the mark of a poison message, wait in the same way: whichever request it is, each
// failure is counted once.
func TestEveryRequestMayWaitForAnotherWriter(t *testing.T) {
	for held := 1; ; held++ {
		w := newWorld(t)
		w.othersApply()
		ids := w.many(1, 20, "")
		bad, given := ids[3], ids[14]
		w.put(result(14, 15, "ACME", spent()))
		tu := &turns{held: func(n int) bool { return n == held }}
		refused := fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row")
		tu.under(w, func(items []commit.Item) error {
			if items[0].FailureMark {
				return nil
			}
			return failFor(refused, bad, given)(items)
		})
		offer := func() error {
			_, err := w.batch(commit.Delivery{Documents: w.snapshots(ids...), Purpose: commit.FromTimer})
			return err
		}
		err := offer()
		if len(tu.sizes) < held {
			require.NoError(t, err)
			require.Greater(t, held, 10, "it was divided, and one was marked")
			break
		}
		require.True(t, breaker.IsRefusal(err), "%d: %v", held, err)
		require.LessOrEqual(t, len(tu.sizes), held+1, "nothing more is sent, but for the mark of what was decided before")
		require.NoError(t, offer(), held)
		for _, id := range ids {
			switch id {
			case bad:
				require.Equal(t, 1.0, w.state(id)["retry_count"], held)
				require.Len(t, w.state(id)["attempts"], 1, held)
			case given:
				require.Equal(t, "failed", w.status(id), held)
				require.Len(t, w.state(id)["attempts"], 2, held)
			default:
				require.Equal(t, "committed", w.status(id), held)
			}
		}
		require.Equal(t, "AI-ERROR", w.value(15, invoice.Detail, "IVCE_LNE_STAT"))
		require.Len(t, w.evidence.Files(), 3, held)
		require.Equal(t, 1, w.breaker.View(t.Context()).Control.Poison.Count, held)
		require.Empty(t, w.breaker.Unaudited(t.Context()))
	}
}

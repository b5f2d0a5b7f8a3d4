package scenario

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Row 11: outages, and which documents wait because of them.
func TestRow11(t *testing.T) {
	const from = 10 * time.Minute
	// Storage is frozen for three minutes.
	each(t, "commits hang", memory(), func(w *world) {
		w.rule(w.stalled(span{from, from + 3*time.Minute}))
		w.host(len(w.feed))
		w.every(10*time.Second, 40*time.Minute, func() { w.arrive(len(w.feed), good()) })
		w.until(45 * time.Minute)
		w.figures()
		w.noneFailed(w.of(""), 0)
		w.atMostOneAMinuteWhileOpen()
		w.promptly(w.of("good"), 6*time.Minute, 6*time.Minute)
		w.allCommitted(w.of(""))
		w.check()
	})
	each(t, "SQL away for ten minutes", one(3), func(w *world) {
		const to = from + 10*time.Minute
		w.rule(w.everything(span{from, to}, unreachable))
		w.host(3)
		w.every(time.Second, 30*time.Minute, func() { w.arrive(1, good()) })
		w.until(31 * time.Minute)
		w.figures()
		w.noneFailed(w.of(""), 0)
		w.atMostOneAMinuteWhileOpen()
		w.requestsAtMost(span{from + time.Minute, to}, 10)
		w.promptly(w.of("good"), 12*time.Minute, 12*time.Minute)
		w.allCommitted(w.of(""))
		w.check()
	})
	// One of three cannot reach SQL for half an hour. The recovery timer is with another one. (Where it is with the one
	// that is cut off, nobody takes up what that one puts off until the platform moves the timer: see the next.)
	each(t, "one of three is cut off", []options{{ranges: 3}}, func(w *world) {
		w.oneCutOff(false)
		w.promptly(w.onRange(2), 10*time.Minute, 10*time.Minute)
	})
	each(t, "one of three is cut off, and has the timer", []options{{ranges: 3}}, func(w *world) {
		w.oneCutOff(true)
	})
}

// oneCutOff plays half an hour in which the third instance cannot reach SQL, and asserts that the others are not
// affected.
func (w *world) oneCutOff(timer bool) {
	w.t.Helper()
	const from, to = 10 * time.Minute, 40 * time.Minute
	w.rule(w.cutOff(span{from, to}, "c"))
	w.start("a", process{feed: []int{0}, ticks: !timer})
	w.start("b", process{feed: []int{1}})
	w.start("c", process{feed: []int{2}, ticks: timer})
	w.every(3*time.Second, 50*time.Minute, func() { w.arrive(1, good()) })
	w.until(time.Hour)
	w.figures()
	w.noneFailed(w.of(""), 0)
	w.allCommitted(w.of(""))
	w.check()

	others := append(w.onRange(0), w.onRange(1)...)
	waits := make([]time.Duration, len(others))
	for i, d := range others {
		waits[i] = d.committed.Sub(d.arrived)
	}
	slices.Sort(waits)
	w.t.Logf("the others: median %s, longest %s; the cut-off range: longest %s", waits[len(waits)/2],
		waits[len(waits)-1], longest(w.onRange(2)))
	assert.LessOrEqual(w.t, waits[len(waits)/2], 1100*time.Millisecond, "the others' median")
	assert.LessOrEqual(w.t, waits[len(waits)-1], 30*time.Second, "the others' longest wait")
	asks := w.asks("c", span{from + 2*time.Minute, to})
	w.t.Logf("the one that is cut off asked %d times in %s", asks, to-from-2*time.Minute)
	assert.LessOrEqual(w.t, asks, 2*int((to-from-2*time.Minute)/time.Minute),
		"heartbeats and requests of the one that is cut off")
	w.mu.Lock()
	defer w.mu.Unlock()
	stopped := 0
	for _, in := range w.invocations {
		if in.rng != 2 && in.err != nil {
			stopped++
		}
	}
	assert.Zero(w.t, stopped, "the others' invocations that were answered 5xx")
}

// asks counts what an instance asked of SQL in a span.
func (w *world) asks(instance string, s span) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range [][]asked{w.requests, w.heartbeats} {
		for _, a := range all {
			if d := a.at.Sub(w.began); a.instance == instance && d >= s.from && d < s.to {
				n++
			}
		}
	}
	return n
}

func longest(docs []*doc) (most time.Duration) {
	for _, d := range docs {
		most = max(most, d.committed.Sub(d.arrived))
	}
	return most
}

// onRange are the documents of a range.
func (w *world) onRange(n int) (found []*doc) {
	for _, d := range w.of("") {
		if d.rng == n {
			found = append(found, d)
		}
	}
	return found
}

// stalled: commits hang. Who waits to the end is answered.
func (w *world) stalled(s span) rule {
	return func(ctx context.Context, _ request) error {
		if !w.now(s) {
			return nil
		}
		return w.spend(ctx, time.Until(w.began.Add(s.to)))
	}
}

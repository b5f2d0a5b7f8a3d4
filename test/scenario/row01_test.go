package scenario

import (
	"fmt"
	"testing"
	"time"
)

// Row 1: a hundred bad documents in one batch, then a good one a minute for eight hours.
func TestRow01(t *testing.T) {
	const whole = 8 * time.Hour
	play := func(w *world) {
		w.host(len(w.feed))
		w.pass(time.Minute)
		w.every(time.Minute, whole, func() { w.arrive(1, good()) })
		w.until(whole + 5*time.Minute)
		w.figures()
		w.promptly(w.of("good"), 60*time.Second, 150*time.Second)
		w.feedWaitsAtMost(2*time.Minute + 30*time.Second)
		w.provenOnly()
		w.check()
	}
	for _, c := range []struct {
		badKind
		cost     time.Duration
		variants []options
	}{
		{missingLines(), 0, memory()},
		{refusedOnes(), 0, both()},
		{refusedOnes(), 3 * time.Second, memory()},
		{lockedOnes(), 0, daily(memory())},
	} {
		name := c.name
		if c.cost > 0 {
			name += " " + c.cost.String()
		}
		each(t, name, c.variants, func(w *world) {
			w.cost = max(w.cost, c.cost)
			w.arrive(100, c.make(w))
			play(w)
		})
	}
	// Hostile: bad ones keep coming.
	each(t, "without end", daily(one(2)), func(w *world) {
		pause := time.Hour
		if large() {
			pause = 10 * time.Minute
		}
		w.every(pause, whole, func() { w.arrive(100, refusedOnes().make(w).spread()) })
		play(w)
	})
	// Hostile: a good one stands in the batch of the bad ones, and is undecided when the dividing ends. It may be put
	// off with them, but not for as long as they are bad.
	for _, bad := range []badKind{lockedOnes(), refusedOnes()} {
		for _, place := range []int{0, 50, 99} {
			each(t, fmt.Sprintf("a good one after %d %s", place, bad.name), one(1), func(w *world) {
				if bad.name == "refused" {
					w.cost = 3 * time.Second
				}
				w.host(1)
				w.arrive(place, bad.make(w))
				w.arrive(1, good())
				w.arrive(99-place, bad.make(w))
				w.until(2 * time.Hour)
				w.figures()
				w.promptly(w.of("good"), time.Hour, time.Hour)
			})
		}
	}
}

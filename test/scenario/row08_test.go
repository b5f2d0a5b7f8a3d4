package scenario

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Row 8: a flood of which every tenth document is refused, and 200 good ones whose lines are locked for ten minutes.
//
// What one batch costs beside its requests counts for the speed: the feed's page, the lease, and a patch for each
// document. The model is 100 ms for a batch and 8 ms for a patch, 16 patches at once; requests take 2 ms. That makes
// 1,265 documents a second of two ranges, and docs/figures.md measured 1,312.
func TestRow08(t *testing.T) {
	const unlocked = 10 * time.Minute
	variants := one(1)
	if large() {
		variants = memory()
	}
	each(t, "flood", variants, func(w *world) {
		n := flood()
		w.patchCost, w.batchCost = 8*time.Millisecond, 100*time.Millisecond
		w.arrive(n/10, like{kind: "clean", rng: anyRange})
		begin := time.Now()
		w.host(len(w.feed))
		clean := w.rate("clean", begin)

		for k, draw := 0, rand.New(rand.NewPCG(8, 8)); k < n; k++ {
			like := like{kind: "flood", rng: anyRange}
			if draw.IntN(10) == 0 {
				like = refusedOnes().make(w).spread()
			}
			w.arrive(1, like)
		}
		begin = time.Now()
		dirty := w.rate("flood", begin)
		w.t.Logf("clean %.0f/s, beside refused ones %.0f/s: %.2f", clean, dirty, dirty/clean)
		// About half: finding every tenth by division takes some 65 requests for a hundred documents, and no way of
		// asking takes less than 47.
		assert.GreaterOrEqual(w.t, dirty/clean, 0.45, "good documents a second")

		// Now 200 that are put off stand beside all those that fail.
		locked := w.arrive(200,
			like{kind: "locked", rng: anyRange, behaves: w.locked(span{0, time.Since(w.began) + unlocked})})
		w.pass(unlocked + 15*time.Minute)
		w.allCommitted(locked)
		w.noneFailed(locked, 0)
		w.pass(time.Until(begin.Add(3*time.Hour + 10*time.Minute)))
		w.figures()
		w.triedAgainWithin(w.of("refused"), 3*time.Hour)
	})
	// The 200 alone, and beside a hundred that fail for good. They are two batches on one range, each of which is
	// divided for two minutes; good ones that come after them wait for both. (What stands in one batch with locked
	// ones: row 1.)
	for _, bad := range []int{0, 100} {
		each(t, map[int]string{0: "locked ones", 100: "locked ones beside refused ones"}[bad], both(), func(w *world) {
			w.host(len(w.feed))
			w.arrive(bad, refusedOnes().make(w).spread())
			locked := w.arrive(200, like{kind: "locked", rng: anyRange, behaves: w.locked(span{0, unlocked})})
			w.pass(30 * time.Second)
			w.every(time.Minute, unlocked, func() { w.arrive(1, good()) })
			w.until(unlocked + 15*time.Minute)
			w.figures()
			w.allCommitted(locked)
			w.noneFailed(locked, 0)
			if bad == 0 {
				// one that shares a batch with locked ones is put off with them
				w.promptly(w.of("good"), 60*time.Second, 15*time.Minute)
			}
		})
	}
}

// flood is how many documents the flood has: 5,000, or 100,000 where the large sizes are asked for.
func flood() int {
	if large() {
		return 100_000
	}
	return 5000
}

// rate is how many documents of a kind were committed a second since a moment, once all are.
func (w *world) rate(kind string, begin time.Time) float64 {
	docs := w.of(kind)
	for len(w.uncommitted(docs)) > 0 && time.Since(begin) < 2*time.Hour {
		w.pass(time.Second)
	}
	w.allCommitted(docs)
	var last time.Time
	for _, d := range docs {
		if d.committed.After(last) {
			last = d.committed
		}
	}
	return float64(len(docs)) / last.Sub(begin).Seconds()
}

// triedAgainWithin asserts that no bad document waited longer between two tries, nor for its second one.
func (w *world) triedAgainWithin(docs []*doc, most time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	late := 0
	for _, d := range docs {
		if !d.failed.IsZero() {
			continue
		}
		last := d.arrived
		for _, at := range append(d.tries[:len(d.tries):len(d.tries)], time.Now()) {
			if at.Sub(last) > most {
				late++
				break
			}
			last = at
		}
	}
	assert.Zero(w.t, late, "bad documents, of %d, that were not tried again within %s", len(docs), most)
}

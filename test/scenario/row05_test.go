package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
)

// Row 5: a break that hits 60 of 100 documents for eight hours.
func TestRow05(t *testing.T) {
	const broken, percent = 8 * time.Hour, 60
	each(t, "", one(2), func(w *world) {
		w.rule(w.schema(span{0, broken}, percent))
		instances := w.host(len(w.feed))
		w.every(time.Minute, broken, func() {
			for _, d := range w.arrive(2*less(5)+2, like{kind: "new", rng: anyRange}) {
				w.mu.Lock()
				if d.kind = "hit"; !hit(d.id, percent) {
					d.kind = "good"
				}
				w.mu.Unlock()
			}
		})
		w.until(broken)
		f := w.figures()
		assert.LessOrEqual(w.t, f.poisonPerHour, maxPoison, "poison messages in an hour")
		assert.Positive(w.t, w.logs.count(massFailure), "a mass failure with its code is told")
		w.promptly(w.of("good"), 60*time.Second, 150*time.Second)
		w.provenOnly()
		// What did not become poison comes back by itself, what did by one replay.
		w.arrive(1, good())
		w.pass(2 * time.Hour)
		instances[0].replay(w.failed())
		w.figures()
		w.allCommitted(w.of(""))
		w.check()
	})
}

// Row 6: every batch has 99 refused documents and a good one, for an hour.
func TestRow06(t *testing.T) {
	for _, bad := range own() {
		places := []int{37}
		if bad.name == "refused" {
			places = []int{0, 37, 99}
		}
		for _, place := range places {
			variants, pause := one(1), 2*time.Minute
			if large() {
				variants, pause = memory(), time.Minute
			}
			if place != 37 || bad.name == "missing" {
				variants = daily(variants)
			}
			each(t, bad.name+" "+map[int]string{0: "first", 37: "amid", 99: "last"}[place], variants, func(w *world) {
				w.host(len(w.feed))
				w.every(pause, time.Hour, func() {
					for r := range w.feed {
						like := bad.make(w)
						like.rng = r
						w.arrive(place, like)
						w.arrive(1, likeGood(r))
						w.arrive(99-place, like)
					}
				})
				w.until(time.Hour + 5*time.Minute)
				w.figures()
				w.promptly(w.of("good"), 60*time.Second, 60*time.Second)
				assert.Zero(w.t, w.notAtFirst(w.of("good")),
					"good documents that the invocation which brought them did not commit")
				w.feedWaitsAtMost(2*time.Minute + 30*time.Second)
				w.provenOnly()
			})
		}
	}
}

// Row 7: 120 documents wait for lines that come later, a good one comes every minute, and at 60 minutes the schema
// refuses everything for eight hours.
func TestRow07(t *testing.T) {
	const mended = 9 * time.Hour
	for _, late := range []time.Duration{41, 45, 59, 90} {
		variants := daily(one(1))
		if late == 45 {
			variants = memory()
		}
		each(t, "lines after "+(late*time.Minute).String(), variants, func(w *world) {
			w.rule(w.schema(span{time.Hour, mended}, 100))
			w.host(len(w.feed))
			waiting := w.arrive(120, like{kind: "waiting", rng: anyRange, missing: true})
			w.at(late*time.Minute, func() { w.addLines(waiting) })
			w.every(time.Minute, 12*time.Hour, func() { w.arrive(1, good()) })
			w.until(12*time.Hour + 5*time.Minute)
			w.figures()
			w.noneFailed(waiting, commit.MaxRetries)
			w.noneFailed(w.of("good"), commit.MaxRetries)
			w.allCommitted(w.of(""))
			w.check()
		})
	}
}

// likeGood is a good document on a range.
func likeGood(rng int) like { return like{kind: "good", rng: rng} }

// notAtFirst counts documents that were not committed when the first invocation that had them was over.
func (w *world) notAtFirst(docs []*doc) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range docs {
		if d.brought && !d.broughtDone {
			n++
		}
	}
	return n
}

// failed are the documents that are poison.
func (w *world) failed() []*doc {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*doc
	for _, d := range w.all {
		if !d.failed.IsZero() && d.committed.IsZero() {
			found = append(found, d)
		}
	}
	return found
}

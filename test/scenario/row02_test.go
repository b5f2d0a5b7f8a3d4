package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
)

// The scenarios begin at six in the evening.
const (
	eightInTheEvening = 2 * time.Hour
	eightNextMorning  = 14 * time.Hour
)

// Row 2: thirty bad ones at 20:00 and nothing else; a good one at 08:00.
func TestRow02(t *testing.T) {
	for _, bad := range own() {
		variants := daily(memory())
		if bad.name == "refused" {
			variants = both()
		}
		each(t, bad.name, variants, func(w *world) {
			w.host(len(w.feed))
			w.until(eightInTheEvening)
			bads := w.arrive(30, bad.make(w))
			w.until(eightNextMorning)
			w.noneFailed(bads, commit.MaxRetries)
			w.arrive(1, good())
			w.pass(10 * time.Minute)
			w.figures()
			w.promptly(w.of("good"), 60*time.Second, 60*time.Second)
			w.check()
		})
	}
}

// Row 3: 120 bad among 600 good in an hour, then a quiet night.
func TestRow03(t *testing.T) {
	for _, bad := range own() {
		variants := memory()
		if bad.name == "missing" {
			variants = daily(both())
		}
		each(t, bad.name, variants, func(w *world) {
			w.host(len(w.feed))
			w.every(time.Minute, time.Hour, func() {
				w.arrive(5, good())
				w.arrive(2, bad.make(w).spread())
				w.arrive(5, good())
			})
			w.until(eightNextMorning)
			morning := w.arrive(1, good())
			w.pass(10 * time.Minute)
			w.figures()
			w.promptly(morning, 60*time.Second, 60*time.Second)
			w.promptly(w.of("good"), 60*time.Second, 150*time.Second)
			w.provenOnly()
			w.check()
		})
	}
	// Hostile: nothing but bad ones all night, and the good one stands behind a full batch of new bad ones.
	each(t, "behind a batch", one(2), func(w *world) {
		w.host(len(w.feed))
		w.every(3*time.Hour, eightNextMorning, func() { w.arrive(120, refusedOnes().make(w).spread()) })
		w.until(eightNextMorning)
		w.arrive(100, refusedOnes().make(w))
		morning := w.arrive(1, like{kind: "good", rng: 0})
		w.pass(10 * time.Minute)
		f := w.figures()
		w.promptly(morning, 60*time.Second, 150*time.Second)
		w.provenOnly()
		assert.LessOrEqual(w.t, f.poisonPerHour, maxPoison)
	})
}

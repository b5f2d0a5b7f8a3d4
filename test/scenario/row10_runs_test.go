package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/run"
)

// Row 10, with a run alone active: nothing comes by the feed.
func TestRow10Runs(t *testing.T) {
	const from, to, documents = 10 * time.Minute, 2 * time.Hour, 3000
	for _, c := range []struct {
		name string
		rule func(w *world) rule
	}{
		{"permission", func(w *world) rule { return w.documentsOnly(span{0, to}, forbidden) }},
		{"SQL away", func(w *world) rule { return w.everything(span{from + time.Second, to}, unreachable) }},
	} {
		each(t, c.name, one(1), func(w *world) {
			// Each request takes two seconds, so that the run is under way when SQL goes.
			w.cost = 2 * time.Second
			w.rule(c.rule(w))
			for k := range 3 {
				w.start(string(rune('a'+k)), process{ticks: k == 0, runs: true})
			}
			w.arrive(documents, good())
			w.until(from)
			w.startRun("run-1", run.Drain)
			w.until(from + 10*time.Minute)
			before := w.ended("run-1")
			asks := w.requestsIn(always())
			w.until(to)
			after := w.ended("run-1")
			w.openAtLeast(span{from + 10*time.Minute, to}, 0.9)
			assert.LessOrEqual(w.t, w.requestsIn(always())-asks, int((to-from-10*time.Minute)/time.Minute),
				"requests for documents in the outage")
			assert.LessOrEqual(w.t, after.audits-before.audits, 500, "audit rows of the outage")
			assert.LessOrEqual(w.t, after.workers-before.workers, 50, "worker rows of the outage")

			w.over("run-1", 20*time.Minute)
			l := w.ended("run-1")
			assert.Contains(w.t, []run.RunStatus{run.RunCompleted, run.RunCompletedWithFailures}, l.status)
			assert.Zero(w.t, l.lost, "lost workers")
			// what failed by itself before it was known that all do was put off, and comes with the timer
			w.pass(15 * time.Minute)
			w.figures()
			w.allCommitted(w.of(""))
			w.noneFailed(w.of(""), 0)
		})
	}
}

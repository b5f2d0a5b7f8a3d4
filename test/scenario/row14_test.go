package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/run"
)

// Row 14: a reindex locks lines for 30 s.
func TestRow14(t *testing.T) {
	for _, held := range []time.Duration{30 * time.Second, 3 * time.Minute} {
		each(t, held.String(), one(2), func(w *world) {
			const documents, at = 1000, 20 * time.Minute
			lock := w.locked(span{at - time.Second, at + held})
			for k := range documents {
				l := good()
				if k%7 == 0 {
					l.behaves = lock
				}
				w.arrive(1, l)
			}
			w.start("a", process{feed: []int{0}, ticks: true, runs: true})
			w.start("b", process{feed: []int{1}, runs: true})
			w.until(at)
			w.allCommitted(w.of(""))
			w.startRun("run-1", run.Reindex)
			took := w.over("run-1", 6*time.Hour)
			l := w.ended("run-1")
			w.figures()
			w.t.Logf("took %s", took)
			left := 0
			w.mu.Lock()
			for _, d := range w.all {
				if w.rewritten[d.id] == 0 {
					left++
				}
			}
			w.mu.Unlock()
			assert.Zero(w.t, left, "lines that were not rewritten, of %d", documents)
			assert.Equal(w.t, run.RunCompleted, l.status)
			assert.Zero(w.t, l.lost, "lost workers")
			w.allCommitted(w.of(""))
			w.noneFailed(w.of(""), 0)
		})
	}
}

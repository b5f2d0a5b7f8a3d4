package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/run"
)

// Row 9: a run of 30 batches while the database asks for less or is full. CommitResults is switched off: the run alone
// asks.
func TestRow09(t *testing.T) {
	const from, whole, documents = 10 * time.Minute, 3 * time.Hour, 3000
	// A message waits for a probe that is at most five minutes away, and at most five minutes more until it comes.
	const probing = 10 * time.Minute
	drain := func(w *world) (took time.Duration, l runResult) {
		for k := range 3 {
			w.start(string(rune('a'+k)), process{ticks: k == 0, runs: true})
		}
		w.arrive(documents, good())
		w.until(from)
		w.startRun("run-1", run.Drain)
		took = w.over("run-1", 12*time.Hour)
		l = w.ended("run-1")
		w.figures()
		w.allCommitted(w.of(""))
		w.noneFailed(w.of(""), 0)
		w.check()
		assert.Equal(w.t, run.RunCompleted, l.status)
		assert.Zero(w.t, l.lost, "lost workers")
		assert.Zero(w.t, l.deadLetters, "dead letters")
		return took, l
	}
	var undisturbed time.Duration
	t.Run("undisturbed", func(t *testing.T) {
		simulate(t, options{ranges: 1}, func(w *world) { undisturbed, _ = drain(w) })
		t.Logf("undisturbed: %s", undisturbed)
	})
	during := span{0, from + whole}
	for _, c := range []struct {
		name string
		rule func(w *world) rule
		// ends says that it ends after three hours.
		ends bool
	}{
		{"every 5th request throttled", func(w *world) rule { return w.everyNth(always(), 5) }, false},
		{"documents throttled for 3 h", func(w *world) rule { return w.documentsOnly(during, throttled) }, true},
		{"everything throttled for 3 h", func(w *world) rule { return w.everything(during, throttled) }, true},
		{"a full filegroup for 3 h", func(w *world) rule {
			return w.documentsOnly(during, func() error { return full("1105") })
		}, true},
		{"a full log for 3 h", func(w *world) rule {
			return w.everything(during, func() error { return full("9002") })
		}, true},
	} {
		each(t, c.name, one(1), func(w *world) {
			w.rule(c.rule(w))
			took, l := drain(w)
			if c.ends {
				took -= whole
				assert.LessOrEqual(w.t, took, 3*undisturbed+probing, "the time from its end to the run's")
			}
			w.t.Logf("%s after its end (undisturbed %s)", took, undisturbed)
			assert.LessOrEqual(w.t, l.audits, 50*30, "audit rows")
			assert.LessOrEqual(w.t, l.workers, 10*30, "worker rows")
		})
	}
}

package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

func forbidden() error {
	return fault.New(fault.Infrastructure, "scenario: apply", "229", "the UPDATE permission was denied on IVCE_DTL")
}

// Row 10: what keeps all documents from SQL. The part about runs is in row10_runs_test.go.
func TestRow10(t *testing.T) {
	const from, to = 10 * time.Minute, 2 * time.Hour
	settles := func(w *world, within time.Duration, retries int) {
		w.until(to + time.Minute)
		late := w.arrive(len(w.feed), good())
		w.pass(2 * time.Minute)
		w.allCommitted(late)
		w.pass(within)
		w.figures()
		w.allCommitted(w.of(""))
		w.noneFailed(w.of(""), retries)
		w.check()
	}
	afterwards := func(w *world) { settles(w, 20*time.Minute, 1) }
	// Documents may not be written; everything else answers.
	each(t, "permission", both(), func(w *world) {
		w.rule(w.documentsOnly(span{from, to}, forbidden))
		w.host(len(w.feed))
		w.every(time.Minute, to, func() { w.arrive(1, good()) })
		w.until(to)
		w.openAtLeast(span{from + 5*time.Minute, to}, 0.95)
		w.atMostOneAMinuteWhileOpen()
		w.requestsAtMost(span{from, to}, 5+5+int((to-from)/time.Minute))
		afterwards(w)
	})
	// The same where a document arrives every half hour only. One that is alone fails like an outage while the database
	// answers heartbeats: from the third time on that counts, and gives nobody up.
	each(t, "permission, hardly any traffic", memory(), func(w *world) {
		w.rule(w.documentsOnly(span{from, to}, forbidden))
		w.host(len(w.feed))
		w.every(30*time.Minute, to, func() { w.arrive(1, good()) })
		w.until(to)
		w.atMostOneAMinuteWhileOpen()
		w.requestsAtMost(span{from, to}, int((to-from)/time.Minute))
		settles(w, 40*time.Minute, commit.MaxRetries)
	})
	// SQL is away without traffic: one tick finds it.
	each(t, "no traffic", memory(), func(w *world) {
		w.host(len(w.feed))
		w.arrive(1, good())
		w.rule(w.everything(span{from, to}, unreachable))
		w.until(from + tickEvery + deadline)
		assert.True(w.t, w.isOpen(), "an outage without traffic is seen within one tick")
		w.until(to)
		w.openAtLeast(span{from + tickEvery + deadline, to}, 0.99)
		assert.Zero(w.t, w.requestsIn(span{from, to}), "requests for documents")
		afterwards(w)
	})
	// Twenty-five instances when it comes back.
	each(t, "25 instances", one(25), func(w *world) {
		const to = time.Hour
		w.host(25)
		w.rule(w.everything(span{from, to}, unreachable))
		w.every(30*time.Second, to+time.Minute, func() { w.arrive(25, good()) })
		w.until(to)
		w.atMostOneAMinuteWhileOpen()
		before := w.requestsIn(span{0, to})
		w.until(to + 2*time.Minute)
		w.t.Logf("%d requests for documents in the two minutes after the end",
			w.requestsIn(span{0, to + 2*time.Minute})-before)
		w.promptly(w.after(to), 2*time.Minute, 2*time.Minute)
		w.pass(20 * time.Minute)
		w.figures()
		w.allCommitted(w.of(""))
		w.noneFailed(w.of(""), 0)
	})
	// Hostile: it comes and goes, up for two minutes and away for three.
	each(t, "comes and goes", memory(), func(w *world) {
		w.host(len(w.feed))
		for d := from; d < to; d += 5 * time.Minute {
			w.rule(w.everything(span{d, d + 3*time.Minute}, unreachable))
		}
		w.every(10*time.Second, to, func() { w.arrive(1, good()) })
		w.until(to)
		afterwards(w)
		w.atMostOneAMinuteWhileOpen()
		w.promptly(w.of("good"), 10*time.Minute, 10*time.Minute)
	})
}

// after are the documents that arrived after a moment.
func (w *world) after(d time.Duration) (found []*doc) {
	for _, x := range w.of("") {
		if x.arrived.Sub(w.began) > d {
			found = append(found, x)
		}
	}
	return found
}

// openAtLeast asserts for which share of a span the breaker was not closed.
func (w *world) openAtLeast(s span, share float64) {
	w.t.Helper()
	total, _ := w.openFor(w.began.Add(s.from), w.began.Add(s.to))
	assert.GreaterOrEqual(w.t, float64(total)/float64(s.to-s.from), share,
		"the share of %s to %s in which the breaker was open", s.from, s.to)
}

// closedAtLeast asserts for which share of a span it was closed.
func (w *world) closedAtLeast(s span, share float64) {
	w.t.Helper()
	total, whys := w.openFor(w.began.Add(s.from), w.began.Add(s.to))
	assert.GreaterOrEqual(w.t, 1-float64(total)/float64(s.to-s.from), share,
		"the share of %s to %s in which the breaker was closed (open: %s)", s.from, s.to, whys)
}

// requestsAtMost asserts how many requests for documents a span has.
func (w *world) requestsAtMost(s span, most int) {
	w.t.Helper()
	assert.LessOrEqual(w.t, w.requestsIn(s), most, "requests for documents from %s to %s", s.from, s.to)
}

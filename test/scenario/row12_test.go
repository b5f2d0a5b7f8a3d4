package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Row 12: documents that look like an outage: one is never answered, one raises severity 18 each time.
func TestRow12(t *testing.T) {
	const whole = 8 * time.Hour
	for _, c := range []struct {
		name  string
		looks []behaviour
	}{
		{"timeout", []behaviour{hangs}}, {"severity 18", []behaviour{severe}}, {"both", []behaviour{hangs, severe}},
	} {
		arrive := func(w *world) {
			for _, b := range c.looks {
				w.arrive(1, like{kind: "outage-like", behaves: b})
			}
		}
		judge := func(w *world) {
			w.closedAtLeast(span{0, whole}, 0.95)
			for _, d := range w.of("outage-like") {
				s := w.state(d)
				assert.Equal(w.t, "internal", s.LastErrorKind, "it ends as its own failure: %s %s, %d retries",
					s.Status, s.LastErrorCode, s.RetryCount)
			}
			w.check()
		}
		each(t, c.name+", quiet hours", memory(), func(w *world) {
			w.host(len(w.feed))
			w.until(tickEvery / 2)
			arrive(w)
			w.until(whole)
			w.arrive(1, good())
			w.pass(5 * time.Minute)
			w.figures()
			w.promptly(w.of("good"), 60*time.Second, 60*time.Second)
			judge(w)
		})
		variants := memory()
		if len(c.looks) == 2 {
			variants = both()
		}
		each(t, c.name+", a good one a minute", variants, func(w *world) {
			w.host(len(w.feed))
			w.until(tickEvery / 2)
			arrive(w)
			w.pass(20 * time.Second)
			w.every(time.Minute, whole-time.Minute, func() { w.arrive(1, likeGood(0)) })
			w.until(whole)
			w.figures()
			w.promptly(w.of("good"), 60*time.Second, 60*time.Second)
			judge(w)
			w.provenOnly()
		})
	}
	// Hostile: the one that is never answered stands in a full batch of good ones.
	each(t, "in a full batch", memory(), func(w *world) {
		w.host(len(w.feed))
		w.arrive(50, likeGood(0))
		w.arrive(1, like{kind: "outage-like", behaves: hangs})
		w.arrive(49, likeGood(0))
		w.until(whole)
		w.figures()
		w.promptly(w.of("good"), 5*time.Minute, 5*time.Minute)
		w.closedAtLeast(span{0, whole}, 0.95)
		w.noneFailed(w.of("good"), 0)
	})
}

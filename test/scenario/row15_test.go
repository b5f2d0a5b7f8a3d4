package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
	"sqlwriter/test/inmem"
)

// Row 15: the control document is empty, lost, or cannot be read; a shadow stands beside the live app.
func TestRow15(t *testing.T) {
	const whole = 4 * time.Hour
	traffic := func(w *world) {
		w.every(time.Minute, whole-10*time.Minute, func() { w.arrive(2, good()) })
	}
	judge := func(w *world) {
		w.until(whole)
		w.figures()
		w.allCommitted(w.of("good"))
		w.noneFailed(w.of("good"), 0)
		w.check()
	}
	// The very first start: ten instances at once, no control document, SQL away.
	each(t, "first start while SQL is away", []options{{ranges: 10}}, func(w *world) {
		const back = 20 * time.Minute
		w.rule(w.everything(span{0, back}, unreachable))
		w.host(10)
		traffic(w)
		w.until(back + 5*time.Minute)
		assert.False(w.t, w.isOpen(), "it closes by itself")
		judge(w)
		w.atMostOneAMinuteWhileOpen()
	})
	each(t, "first start with bad documents", memory(), func(w *world) {
		bad := w.arrive(100, refusedOnes().make(w).spread())
		w.host(len(w.feed))
		w.until(whole)
		w.noneFailed(bad, commit.MaxRetries)
		w.arrive(1, good())
		w.pass(5 * time.Minute)
		w.figures()
		w.promptly(w.of("good"), 60*time.Second, 60*time.Second)
	})
	// Lost in peace, in an outage, and beside bad documents.
	for _, during := range []string{"peace", "an outage", "a broken schema"} {
		each(t, "lost in "+during, memory(), func(w *world) {
			const from, to = time.Hour, 2 * time.Hour
			switch during {
			case "an outage":
				w.rule(w.everything(span{from, to}, unreachable))
			case "a broken schema":
				w.rule(w.schema(span{from, to}, 100))
			}
			w.host(len(w.feed))
			traffic(w)
			for k := range 3 {
				w.at(from+time.Duration(10+k)*time.Minute, func() {
					w.mu.Lock()
					w.control = inmem.NewControl()
					w.mu.Unlock()
				})
			}
			w.until(whole)
			w.figures()
			w.allCommitted(w.of("good"))
			w.noneFailed(w.of("good"), commit.MaxRetries)
			w.check()
		})
	}
	// Unreadable for an hour: nothing is proven, nothing stops.
	for _, bad := range []int{0, 100} {
		each(t, fmt.Sprintf("unreadable for an hour beside %d bad ones", bad), memory(), func(w *world) {
			const from, to = 10 * time.Minute, 70 * time.Minute
			w.host(len(w.feed))
			traffic(w)
			w.until(from)
			w.unreadable(true)
			bads := w.arrive(bad, refusedOnes().make(w).spread())
			w.until(to)
			w.noneFailed(bads, commit.MaxRetries)
			w.unreadable(false)
			judge(w)
			w.promptly(w.of("good"), 60*time.Second, 150*time.Second)
			w.provenOnly()
		})
	}
	each(t, "unreadable from the start, and SQL away in it", memory(), func(w *world) {
		const to = time.Hour
		w.unreadable(true)
		w.rule(w.everything(span{20 * time.Minute, 30 * time.Minute}, unreachable))
		w.host(max(2, len(w.feed)))
		traffic(w)
		w.until(to)
		w.unreadable(false)
		judge(w)
		w.promptly(w.of("good"), 15*time.Minute, 15*time.Minute)
	})
	// A shadow sees the same documents. It may not write, and what it suffers is its own.
	for _, cut := range []bool{false, true} {
		name := "shadow beside live"
		if cut {
			name = "shadow that is cut off beside live"
		}
		each(t, name, memory(), func(w *world) {
			if cut {
				w.rule(w.cutOff(span{10 * time.Minute, 70 * time.Minute}, "shadow"))
			}
			w.host(len(w.feed))
			w.shadowed()
			bad := w.arrive(30, like{kind: "refused", rng: anyRange, behaves: w.refused(span{0, 10 * time.Minute})})
			traffic(w)
			judge(w)
			w.promptly(w.of("good"), 60*time.Second, 150*time.Second)
			w.provenOnly()
			w.noneFailed(bad, commit.MaxRetries)
			w.closedAtLeast(span{0, whole}, 1)
			w.mu.Lock()
			defer w.mu.Unlock()
			assert.Positive(w.t, w.shadow.looked, "the shadow looked")
			assert.Zero(w.t, w.shadow.wrote, "requests of the shadow that write")
		})
	}
}

// unreadable says whether the control document can be had.
func (w *world) unreadable(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.controlDown = is
}

package scenario

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
)

// stands reports whether a range cannot be read on: its lease is stuck, or a document among those that come next is too
// deep.
func (w *world) stands(n int, ids []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.docOf[id].deep {
			return true
		}
	}
	return w.stuck[n]
}

// stick lets a lease be stuck, or go.
func (w *world) stick(n int, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck == nil {
		w.stuck = map[int]bool{}
	}
	w.stuck[n] = stuck
}

// missed is what the control document says that the feed missed.
func (w *world) missed() breaker.Missed {
	c, _, err := w.control.Load(w.ctx)
	require.NoError(w.t, err)
	return c.Missed
}

// One document too deep among 50 stops one of two ranges: all are committed within a quarter of an hour, those of the
// other range at once. It is told and named. With the flat version the feed is as quick as before, and the message
// ends.
func TestARangeThatStandsStillIsToldAndSurvives(t *testing.T) {
	each(t, "one document too deep", memory(), func(w *world) {
		w.host(1)
		w.until(61 * time.Minute) // a minute behind a tick
		docs := w.arrive(20, like{kind: "good", rng: 0})
		deep := w.arrive(1, like{kind: "deep", rng: 0, deep: true})[0]
		docs = append(docs, w.arrive(29, like{kind: "good", rng: 0})...)
		beside := w.arrive(10, like{kind: "good", rng: len(w.feed) - 1})
		w.pass(15 * time.Minute)
		require.Empty(w.t, w.uncommitted(append(docs, deep)))
		took := deep.committed.Sub(deep.arrived)
		assert.GreaterOrEqual(w.t, took, 10*time.Minute, "nobody else could bring it")
		for _, d := range beside {
			assert.True(w.t, len(w.feed) == 1 || d.committed.Sub(d.arrived) < 2*time.Second, "%s", d.id)
		}
		stopped := 0 // the feed may have brought some of the first twenty at once
		for _, d := range slices.Concat(docs, beside, []*doc{deep}) {
			if d.committed.Sub(d.arrived) > time.Minute {
				stopped++
			}
		}
		assert.GreaterOrEqual(w.t, stopped, 30, "the deep one and all behind it")
		m := w.missed()
		assert.Equal(w.t, []any{stopped, deep.id, "document.too_deep"}, []any{m.Documents, m.Sample, m.Code})
		assert.Equal(w.t, 1, w.logs.count(feedMissed))

		w.pass(time.Hour)
		assert.Equal(w.t, deep.id, w.missed().Sample, "it stands still, whether anything is behind it or not")
		later := w.arrive(3, like{kind: "good", rng: 0})
		w.pass(15 * time.Minute)
		require.Empty(w.t, w.uncommitted(later), "it stands still although it is committed")
		m = w.missed()
		assert.Equal(w.t, []any{3, deep.id}, []any{m.Documents, m.Sample})

		w.pass(time.Hour)
		w.mu.Lock()
		deep.deep = false
		w.mu.Unlock()
		w.put(deep)
		w.pass(acquireEvery + time.Second)
		for _, d := range w.arrive(5, like{kind: "good", rng: 0}) {
			w.pass(2 * time.Second)
			require.Empty(w.t, w.uncommitted([]*doc{d}))
		}
		w.pass(tickEvery)
		assert.Zero(w.t, w.missed())
		assert.Equal(w.t, 2, w.logs.count(feedMissed))
		w.t.Logf("50 behind one document too deep: the last after %s", took)
		w.check()
	})
	each(t, "nothing at all is brought", memory(), func(w *world) {
		w.host(1)
		w.until(31 * time.Minute)
		for n := range w.feed {
			w.stick(n, true)
		}
		w.every(time.Minute, 2*time.Hour, func() { w.arrive(2, good()) })
		w.until(56 * time.Minute)
		assert.True(w.t, w.missed().Holds())
		w.host(1)[0].end() // nothing changes for those that go on
		w.until(2*time.Hour + 16*time.Minute)
		require.Empty(w.t, w.uncommitted(w.of("good")))
		assert.GreaterOrEqual(w.t, w.logs.count(feedMissed), 15, "each tick of 90 minutes but the first two")
		for n := range w.feed {
			w.stick(n, false)
		}
		w.pass(2 * tickEvery)
		assert.Zero(w.t, w.missed())
		w.check()
	})
	each(t, "a restart into a stuck lease", one(2), func(w *world) {
		w.stick(0, true)
		w.arrive(5, good())
		w.until(20 * time.Minute)
		hosts := w.host(1)
		w.until(41 * time.Minute) // twice the lag of the other range
		require.Empty(w.t, w.uncommitted(w.of("good")))
		assert.Zero(w.t, w.logs.count(feedMissed), "one tick may be a coincidence")
		w.every(time.Minute, 80*time.Minute, func() { w.arrive(1, like{kind: "good", rng: 0}) })
		w.until(80 * time.Minute)
		assert.True(w.t, w.missed().Holds())
		hosts[0].end()
		w.check()
	})
}

// What makes documents wait and is no standstill: nothing is told, and everything is committed.
func TestNothingIsMissedWhileDocumentsMerelyWait(t *testing.T) {
	const whole = 4 * time.Hour
	for name, play := range map[string]func(w *world){
		"an outage of 40 minutes": func(w *world) {
			w.rule(w.everything(span{time.Hour, time.Hour + 40*time.Minute}, unreachable))
			w.host(1)
		},
		"an outage of 40 minutes, two hosts, one restarted in it": func(w *world) {
			w.rule(w.everything(span{time.Hour, time.Hour + 40*time.Minute}, unreachable))
			hosts := w.host(2)
			w.at(80*time.Minute, func() {
				hosts[0].end()
				w.start("c-v1", process{feed: []int{0}, ticks: true})
			})
		},
		"everything throttled for 40 minutes": func(w *world) {
			w.rule(w.everything(span{time.Hour, time.Hour + 40*time.Minute}, throttled))
			w.host(1)
		},
		"throttled between the ticks for two hours": func(w *world) {
			w.rule(func(context.Context, request) error {
				if since := time.Since(w.began); since > 2*time.Hour || since%tickEvery < 20*time.Second {
					return nil
				}
				return throttled()
			})
			w.host(1)
		},
		"the app is stopped for an hour": func(w *world) {
			hosts := w.host(1)
			w.at(time.Hour, hosts[0].end)
			// a tick comes before any lease is taken
			w.at(2*time.Hour-time.Second, func() { w.start("b-v2", process{ticks: true}) })
			w.at(2*time.Hour+53*time.Second, func() { w.start("c-v2", process{feed: []int{0, 1}}) })
		},
		"a deployment every seven minutes": func(w *world) {
			host := w.host(1)[0]
			for n := range 20 {
				w.at(time.Duration(n+1)*7*time.Minute, func() {
					host.end()
					host = w.host(1)[0]
				})
			}
		},
		"an operator's pause of an hour": func(w *world) {
			host := w.host(1)[0]
			w.at(time.Hour, func() { assert.NoError(w.t, host.breaker.Pause(w.ctx, "ann", "maintenance")) })
			w.at(2*time.Hour, func() {
				_, err := host.resume(w.ctx)
				assert.NoError(w.t, err)
			})
		},
		// the host takes a batch in 6 s: 20 minutes for one range, seconds for the other
		"a burst in one range": func(w *world) {
			w.batchCost = 6 * time.Second
			w.host(1)
			w.at(time.Hour, func() { w.arrive(20_000, like{kind: "good", rng: 0}) })
		},
		"a feed that is slower than the API": func(w *world) {
			w.batchCost = time.Minute
			w.host(1)
			w.every(10*time.Second, time.Hour, func() { w.arrive(20, like{kind: "good", rng: 0}) })
		},
	} {
		variants := one(2)
		if name == "a burst in one range" || name == "a feed that is slower than the API" {
			variants = daily(variants)
		}
		each(t, name, variants, func(w *world) {
			w.every(20*time.Second, whole, func() { w.arrive(1, good()) })
			play(w)
			w.until(whole + 30*time.Minute)
			w.figures()
			require.Empty(w.t, w.uncommitted(w.of("good")))
			assert.Zero(w.t, w.logs.count(feedMissed))
			assert.False(w.t, w.missed().Holds())
			w.check()
		})
	}
}

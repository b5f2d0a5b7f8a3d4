package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/writer"
)

func at(minutes float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minutes * float64(time.Minute)))
}

func closedSince(minutes float64) writer.GateState { return writer.GateState{Since: at(minutes)} }

// The age of a silence that counts, from tick to tick.
func TestTheAgeOfASilenceLeavesOutTheTimeWithTheGateOpen(t *testing.T) {
	open := writer.GateState{OpenUntil: at(1000), Since: at(0)}
	type tick struct {
		at    float64
		state writer.GateState
	}
	for name, c := range map[string]struct {
		ticks []tick
		d     time.Duration
		want  time.Duration // 0: none
	}{
		"a gate that never opened":              {[]tick{{5, writer.GateState{}}}, 10 * time.Minute, 10 * time.Minute},
		"it closed a moment ago":                {[]tick{{5, closedSince(1)}}, 5 * time.Minute, 0},
		"it closed just as long ago":            {[]tick{{5, closedSince(0)}}, 5 * time.Minute, 5 * time.Minute},
		"it is open":                            {[]tick{{5, open}}, time.Minute, 0},
		"no break between ticks":                {[]tick{{5, closedSince(1)}, {10, closedSince(1)}}, 9 * time.Minute, 9 * time.Minute},
		"an opening between ticks":              {[]tick{{10, closedSince(0)}, {15, closedSince(12)}}, 10 * time.Minute, 12 * time.Minute},
		"an opening that a tick saw":            {[]tick{{10, closedSince(0)}, {15, open}, {100, closedSince(98)}}, 10 * time.Minute, 98 * time.Minute},
		"never closed before the first tick":    {[]tick{{5, writer.GateState{}}, {10, open}, {15, closedSince(14)}}, 30 * time.Minute, 39 * time.Minute},
		"closed at the moment it was seen open": {[]tick{{10, open}, {15, closedSince(10)}}, 5 * time.Minute, 5 * time.Minute},
		"it does not say when it closed":        {[]tick{{10, open}, {15, closedSince(3)}, {20, closedSince(3)}}, 6 * time.Minute, 0},
		"open for longer than a store can ask":  {[]tick{{5, writer.GateState{}}, {10, open}, {60 * 24 * 40, closedSince(60*24*40 - 1)}}, 10 * time.Minute, 0},
		"a clock that is ahead":                 {[]tick{{5, writer.GateState{}}, {10, closedSince(12)}}, time.Minute, 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var l gateLog
			var seen calm
			for _, k := range c.ticks {
				seen = l.look(k.state, at(k.at))
			}
			age, some := seen.age(c.d)
			require.Equal(t, c.want > 0, some)
			if some {
				require.Equal(t, c.want, age)
			}
		})
	}
}

// Whatever the gate does and whenever the timer comes: in the age that is asked for, the gate was closed for as long as it should;
// what is remembered has a bound.
func TestAnAgeNeverHasLessCalmThanItShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(label string, most int) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, label)) * time.Second
		}
		var l gateLog
		now, since, open := at(0), at(-5), false
		truth := []span{{at(-5), at(0)}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := now
			now = now.Add(seconds("pause", 900))
			if !open {
				truth = append(truth, span{before, now})
			}
			if rapid.Bool().Draw(t, "turns") {
				since, open = now, !open
			}
			state := writer.GateState{Since: since}
			if open {
				state.OpenUntil = now.Add(time.Minute)
			}
			if !rapid.Bool().Draw(t, "tick") {
				continue
			}
			seen := l.look(state, now)
			require.LessOrEqual(t, len(l.closed), mostSpans)
			for _, d := range []time.Duration{runSilent, managerSilent, workerStale, silentAfter} {
				age, some := seen.age(d)
				if !some {
					continue
				}
				closed := time.Duration(0)
				for _, s := range truth {
					if from := now.Add(-age); s.start.Before(from) {
						s.start = from
					}
					closed += max(0, s.end.Sub(s.start))
				}
				require.GreaterOrEqual(t, closed, d, "age %s", age)
			}
		}
	})
}

func TestWhatIsRememberedOfAGateHasABound(t *testing.T) {
	var l gateLog
	now := at(0)
	for range 3 * mostSpans { // closed for a millisecond at each tick
		now = now.Add(time.Minute)
		l.look(writer.GateState{Since: now.Add(-time.Millisecond)}, now)
	}
	require.Len(t, l.closed, mostSpans)
	for range 100 {
		now = now.Add(5 * time.Minute)
		l.look(writer.GateState{Since: now.Add(-4 * time.Minute)}, now)
	}
	require.Len(t, l.closed, 8, "more than half an hour is never asked for")
	age, some := l.look(writer.GateState{Since: now.Add(-4 * time.Minute)}, now).age(longestCalm)
	require.True(t, some)
	require.Equal(t, 37*time.Minute, age)
}

package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

// history is a view after changes of the breaker that this instance saw.
type history struct{ View }

func (h *history) apply(in input, now time.Time) {
	was := h.Control.Breaker
	h.Control.apply(in, now)
	h.Status.Stops = withStop(h.Status.Stops, was, h.Control.Breaker)
}

// The stops of any history add up to the seconds in which the breaker was not closed, in any window, while they are few
// enough to be kept.
func TestStopsAddUpToTheTimeThatWasNotClosed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c history
		var notClosed []bool // of each second
		second := 0
		events := []input{
			{event: failed, by: "a", kind: fault.Infrastructure, code: "refused"},
			{event: failed, by: "a", kind: fault.Infrastructure, code: CodeWentBack, probe: true},
			{event: committed, by: "a", probe: true},
			{event: answered, by: "a"},
			{event: answered, by: "a"},
			{event: answered, by: "a"},
			{event: paused, by: "eva"},
			{event: resumed, by: "eva"},
			{event: resumed, by: "eva", forced: "that"},
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			for range rapid.IntRange(0, 100).Draw(rt, "seconds") {
				notClosed = append(notClosed, c.Control.Breaker.name() != Closed)
				second++
			}
			c.apply(rapid.SampledFrom(events).Draw(rt, "event"), at(second))
		}
		require.LessOrEqual(rt, len(c.Status.Stops), maxStops)
		from := 0
		if len(c.Status.Stops) == maxStops {
			from = int(c.Status.Stops[0].From.Sub(at(0)) / time.Second)
		}
		a := rapid.IntRange(from, second).Draw(rt, "from")
		b := rapid.IntRange(a, second).Draw(rt, "to")
		want := 0
		for _, is := range notClosed[a:b] {
			if is {
				want++
			}
		}
		then := c
		if is := then.Control.Breaker; is.name() != Closed && is.Since.After(at(b)) {
			then.Control.Breaker = State{}
		}
		require.Equal(rt, time.Duration(want)*time.Second, then.StoppedIn(at(a), at(b)))
	})
}

// Two minutes between two ticks are remembered with their beginning and end, although the audit log has taken the
// transitions.
func TestAShortStopIsRemembered(t *testing.T) {
	var c history
	c.apply(fails(fault.Throttled), at(0))
	require.Equal(t, []Stop{{From: at(0), To: at(60), Code: "x"}}, c.StopsUntil(at(60)), "it goes on")
	c.apply(input{event: committed, by: "b", probe: true}, at(115))
	c.apply(input{event: answered, by: "b"}, at(120))
	require.Equal(t, []Stop{{From: at(0), To: at(120), Code: "x"}}, c.StopsUntil(at(300)))
	require.Equal(t, []time.Duration{2 * time.Minute, 30 * time.Second, 0},
		[]time.Duration{c.StoppedIn(at(-120), at(180)), c.StoppedIn(at(90), at(390)), c.StoppedIn(at(180), at(480))})

	c.apply(input{event: paused, by: "eva"}, at(400))
	c.apply(input{event: paused, by: "max"}, at(500))
	c.apply(input{event: resumed, by: "max"}, at(600))
	for range 3 {
		c.apply(input{event: answered, by: "b"}, at(610))
	}
	require.Equal(t,
		[]Stop{{at(0), at(120), "x"}, {at(400), at(500), CodePaused}, {at(500), at(610), CodePaused}}, c.Status.Stops)

	for i := range 50 {
		c.apply(input{event: paused, by: "eva"}, at(700+i))
	}
	require.Len(t, c.Status.Stops, maxStops)
	require.Equal(t, at(749), c.Status.Stops[maxStops-1].To)
}

// A forced resume of a running flow begins a ramp, not a stop since the flow last closed.
func TestAForcedResumeOfARunningFlowIsNoLongStop(t *testing.T) {
	c := history{View{Control: Control{Breaker: State{Since: at(0), ChangedAt: at(0)}}}}
	c.apply(input{event: resumed, by: "eva", forced: "another database"}, at(36_000))
	for range 3 {
		c.apply(input{event: answered, by: "b"}, at(36_010))
	}
	require.Equal(t, []Stop{{From: at(36_000), To: at(36_010)}}, c.Status.Stops)
	require.Equal(t, 10, c.Control.Transitions[1].StoppedFor)
}

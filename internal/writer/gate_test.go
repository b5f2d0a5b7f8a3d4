package writer

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

// noon is when the tests of the pure gate happen.
func noon() time.Time { return time.Date(2025, 12, 18, 12, 0, 0, 0, time.UTC) }

// inShort says a gate in a few words, times relative to now.
func inShort(s GateState, now time.Time) string {
	switch {
	case s.Paused:
		return fmt.Sprintf("paused, limit %d", s.limit())
	case s.Open():
		return fmt.Sprintf("%s for %s, limit %d", s.Kind, s.OpenUntil.Sub(now), s.limit())
	case s.Kind != "":
		return fmt.Sprintf("closed, limit %d after %s", s.limit(), s.Kind)
	}
	return fmt.Sprintf("closed, limit %d", s.limit())
}

func failsWith(kind fault.Kind, probe bool) gateInput {
	return gateInput{event: gateFails, kind: kind, code: "x", reason: "because", by: "a", version: "v1", probe: probe}
}

// Every event in every state. The states are reached by events; noon is when each of the events comes.
func TestEveryEventInEveryStateOfTheGate(t *testing.T) {
	opened := func(kind fault.Kind) GateState {
		return next(GateState{}, failsWith(kind, false), noon().Add(-time.Second))
	}
	due := func(s GateState) GateState {
		s.OpenUntil = noon()
		return s
	}
	states := map[string]GateState{
		"closed":               {},
		"ramping":              {Limit: 5, RaisedAt: noon().Add(-time.Second)},
		"slowed":               {Limit: 50, RaisedAt: noon().Add(-time.Minute), Kind: fault.Throttled, Step: 1},
		"slowed a moment ago":  {Limit: 50, RaisedAt: noon().Add(-9 * time.Second), Kind: fault.Throttled, Step: 1},
		"infrastructure":       opened(fault.Infrastructure),
		"infrastructure, due":  due(opened(fault.Infrastructure)),
		"throttled":            opened(fault.Throttled),
		"quota":                opened(fault.Quota),
		"systemic":             opened(fault.Systemic),
		"systemic, due":        due(opened(fault.Systemic)),
		"paused":               next(GateState{}, gateInput{event: gatePaused, by: "ada", reason: "release"}, noon().Add(-time.Hour)),
		"paused in an outage":  next(opened(fault.Infrastructure), gateInput{event: gatePaused, by: "ada"}, noon()),
		"paused when systemic": next(opened(fault.Systemic), gateInput{event: gatePaused, by: "ada"}, noon()),
	}
	events := []struct {
		name string
		in   gateInput
	}{
		{"infrastructure", failsWith(fault.Infrastructure, false)},
		{"throttled", failsWith(fault.Throttled, false)},
		{"quota", failsWith(fault.Quota, false)},
		{"systemic", failsWith(fault.Systemic, false)},
		{"probe: infrastructure", failsWith(fault.Infrastructure, true)},
		{"probe: throttled", failsWith(fault.Throttled, true)},
		{"probe: quota", failsWith(fault.Quota, true)},
		{"probe: systemic", failsWith(fault.Systemic, true)},
		{"claimed", gateInput{event: gateClaimed, by: "b"}},
		{"answers", gateInput{event: gateAnswers, by: "b"}},
		{"paused", gateInput{event: gatePaused, by: "ada", reason: "release"}},
		{"resumed", gateInput{event: gateResumed, by: "ada"}},
		{"deployed v1", gateInput{event: gateDeployed, by: "b", version: "v1"}},
		{"deployed v2", gateInput{event: gateDeployed, by: "b", version: "v2"}},
	}
	const (
		minute   = "infrastructure for 1m0s, limit 1"
		quota    = "quota for 5m0s, limit 1"
		systemic = "systemic for 5m0s, limit 1"
	)
	// what a failure makes of a closed gate; one that a late probe reports was answered meanwhile, and opens nothing
	closed := func(throttled string) map[string]string {
		return map[string]string{
			"infrastructure": minute, "quota": quota, "probe: quota": quota, "systemic": systemic, "probe: systemic": systemic,
			"throttled": throttled, "probe: throttled": throttled,
		}
	}
	with := func(all map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	// what is not named changes nothing
	changes := map[string]map[string]string{
		"closed":              with(closed("throttled for 10s, limit 50"), "paused", "paused, limit 100"),
		"ramping":             with(closed("throttled for 10s, limit 2"), "paused", "paused, limit 5", "answers", "closed, limit 25"),
		"slowed":              with(closed("throttled for 20s, limit 25"), "paused", "paused, limit 50", "answers", "closed, limit 100"),
		"slowed a moment ago": with(closed("throttled for 20s, limit 25"), "paused", "paused, limit 50"),
		"infrastructure": {
			"probe: throttled": "throttled for 10s, limit 1", "probe: quota": quota, "probe: systemic": systemic,
			"answers": "closed, limit 5", "paused": "paused, limit 1", "resumed": "closed, limit 1",
		},
		"infrastructure, due": {
			"probe: throttled": "throttled for 10s, limit 1", "probe: quota": quota, "probe: systemic": systemic,
			"claimed": minute, "answers": "closed, limit 5", "paused": "paused, limit 1", "resumed": "closed, limit 1",
		},
		"throttled": {
			"probe: infrastructure": "infrastructure for 9s, limit 1", "probe: throttled": "throttled for 20s, limit 25",
			"probe: quota": quota, "probe: systemic": systemic,
			"answers": "closed, limit 50 after throttled", "paused": "paused, limit 50", "resumed": "closed, limit 1",
		},
		"quota": {
			"probe: infrastructure": "infrastructure for 4m59s, limit 1", "probe: throttled": "throttled for 10s, limit 1",
			"probe: quota": "quota for 15m0s, limit 1", "probe: systemic": systemic,
			"answers": "closed, limit 5", "paused": "paused, limit 1", "resumed": "closed, limit 1",
		},
		"systemic": {
			"probe: infrastructure": "infrastructure for 4m59s, limit 1", "probe: throttled": "throttled for 10s, limit 1",
			"probe: quota": quota, "probe: systemic": "systemic for 15m0s, limit 1",
			"answers": "closed, limit 5", "paused": "paused, limit 1", "resumed": "closed, limit 1", "deployed v2": "closed, limit 1",
		},
		"systemic, due": {
			"probe: infrastructure": "infrastructure for 0s, limit 1", "probe: throttled": "throttled for 10s, limit 1",
			"probe: quota": quota, "probe: systemic": "systemic for 15m0s, limit 1", "claimed": "systemic for 1m0s, limit 1",
			"answers": "closed, limit 5", "paused": "paused, limit 1", "resumed": "closed, limit 1", "deployed v2": "closed, limit 1",
		},
		"paused":               {"resumed": "closed, limit 1"},
		"paused in an outage":  {"resumed": "closed, limit 1"},
		"paused when systemic": {"resumed": "closed, limit 1"},
	}
	require.Len(t, changes, len(states))
	for name, s := range states {
		for _, e := range events {
			want, ok := changes[name][e.name]
			if !ok {
				want = inShort(s, noon())
			}
			require.Equal(t, want, inShort(next(s, e.in, noon()), noon()), "%s: %s", name, e.name)
		}
	}
}

// schedule runs failed probes, each when it is due, and answers the waits and the limits after them.
func schedule(t require.TestingT, in gateInput, n int) (waits []time.Duration, limits []int) {
	now, s := noon(), GateState{}
	for range n {
		s = next(s, in, now)
		waits, limits = append(waits, s.OpenUntil.Sub(now)), append(limits, s.limit())
		require.Equal(t, in.kind, s.Kind)
		require.False(t, s.Due(s.OpenUntil.Add(-time.Nanosecond)))
		require.True(t, s.Due(s.OpenUntil))
		now = s.OpenUntil
		s = next(s, gateInput{event: gateClaimed, by: "a"}, now)
		require.Equal(t, probeEvery, s.OpenUntil.Sub(now), "a dead prober keeps the others away for this long")
		in.probe = true
	}
	return waits, limits
}

func TestTheGateWaitsByTheKindOfFailure(t *testing.T) {
	const m, h = time.Minute, time.Hour
	waits, limits := schedule(t, failsWith(fault.Throttled, false), 8)
	require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * m, 5 * m, 5 * m}, waits)
	require.Equal(t, []int{50, 25, 12, 6, 3, 1, 1, 1}, limits)
	for _, kind := range []fault.Kind{fault.Quota, fault.Systemic} {
		waits, limits = schedule(t, failsWith(kind, false), 7)
		require.Equal(t, []time.Duration{5 * m, 15 * m, h, 6 * h, 24 * h, 24 * h, 24 * h}, waits, kind)
		require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1}, limits, kind)
	}

	// an outage: the claim of the probe is the wait, however long the probe takes to fail
	s := next(GateState{}, failsWith(fault.Infrastructure, false), noon())
	require.Equal(t, noon().Add(m), s.OpenUntil)
	s = next(s, gateInput{event: gateClaimed, by: "a"}, noon().Add(m))
	s = next(s, failsWith(fault.Infrastructure, true), noon().Add(m+40*time.Second))
	require.Equal(t, noon().Add(2*m), s.OpenUntil)
	require.Equal(t, noon(), s.Since, "the outage began with its first failure")
}

func TestARetryAfterWins(t *testing.T) {
	in := failsWith(fault.Throttled, false)
	for _, wait := range []time.Duration{time.Second, 7 * time.Second, 20 * time.Minute} {
		in.retryAfter = wait
		s := next(GateState{}, in, noon())
		require.Equal(t, noon().Add(wait), s.OpenUntil)
		require.Equal(t, 50, s.limit())
	}
}

func TestTheGateRampsUpAfterAnOutage(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Quota, fault.Systemic} {
		s := next(GateState{}, failsWith(kind, false), noon())
		limits := []int{s.limit()} // the probe's
		for range 4 {
			s = next(s, gateInput{event: gateAnswers, by: "b"}, noon().Add(time.Hour))
			limits = append(limits, s.limit())
			require.False(t, s.Open())
		}
		require.Equal(t, []int{1, 5, 25, 100, 100}, limits, kind)
		require.Equal(t, GateState{Since: noon().Add(time.Hour), HeldBy: "b"}, s, "nothing of it is left")
	}
	s := next(next(GateState{}, failsWith(fault.Systemic, false), noon()), gateInput{event: gateResumed, by: "ada"}, noon())
	require.Equal(t, 1, s.limit(), "an operator's word is no answer yet")
	require.Equal(t, 5, next(s, gateInput{event: gateAnswers}, noon()).limit())
}

// After throttling the limit grows one step in ten seconds, not with every request, and a database that asks again before
// that is left alone for longer.
func TestTheLimitGrowsSlowlyAfterThrottling(t *testing.T) {
	now := noon()
	s := next(GateState{}, failsWith(fault.Throttled, false), now)
	s = next(s, failsWith(fault.Throttled, true), now.Add(10*time.Second))
	s = next(s, failsWith(fault.Throttled, true), now.Add(30*time.Second))
	now = now.Add(70 * time.Second)
	s = next(s, gateInput{event: gateAnswers}, now)
	require.Equal(t, 12, s.limit())
	for _, step := range []struct {
		after time.Duration
		limit int
	}{{time.Second, 12}, {9 * time.Second, 12}, {10 * time.Second, 25}, {19 * time.Second, 25}, {20 * time.Second, 100}} {
		s = next(s, gateInput{event: gateAnswers}, now.Add(step.after))
		require.Equal(t, step.limit, s.limit(), "after %s", step.after)
		if step.limit < fullLimit {
			again := next(s, failsWith(fault.Throttled, false), now.Add(step.after))
			require.Equal(t, 80*time.Second, again.OpenUntil.Sub(now.Add(step.after)), "the fourth time it asks")
		}
	}
	fresh := next(s, failsWith(fault.Throttled, false), now.Add(time.Minute))
	require.Equal(t, 10*time.Second, fresh.OpenUntil.Sub(now.Add(time.Minute)), "recovered: the schedule begins anew")
}

func TestAPauseHasNoProbeAndOnlyResumeEndsIt(t *testing.T) {
	s := next(next(GateState{}, failsWith(fault.Infrastructure, false), noon()), gateInput{event: gatePaused, by: "ada", reason: "release"}, noon())
	require.True(t, s.Open())
	require.Equal(t, "paused by ada: release", s.Describe(noon()))
	for _, after := range []time.Duration{0, time.Minute, 1000 * time.Hour} {
		require.False(t, s.Due(noon().Add(after)))
		require.Equal(t, s, next(s, gateInput{event: gateClaimed, by: "b"}, noon().Add(after)))
	}
}

func TestWhatTheGateSaysForPeople(t *testing.T) {
	s := next(GateState{}, failsWith(fault.Quota, false), noon())
	require.Equal(t, "open since 2025-12-18T12:00:00Z (quota x: because), next probe in 4m0s", s.Describe(noon().Add(time.Minute)))
	require.Contains(t, s.Describe(noon().Add(time.Hour)), "next probe in 0s")
	require.Equal(t, "closed, at most 5 in one request", next(s, gateInput{event: gateAnswers}, noon()).Describe(noon()))
	require.Equal(t, "closed", GateState{}.Describe(noon()))
}

func drawInput(t *rapid.T) gateInput {
	return gateInput{
		event:      gateEvent(rapid.IntRange(int(gateFails), int(gateDeployed)).Draw(t, "event")),
		kind:       rapid.SampledFrom([]fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota, fault.Systemic}).Draw(t, "kind"),
		code:       "x",
		retryAfter: rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Hour}).Draw(t, "retry after"),
		by:         rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "by"),
		version:    rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version"),
		probe:      rapid.Bool().Draw(t, "probe"),
	}
}

// stored is a gate as another instance reads it.
func stored(t require.TestingT, s GateState) GateState {
	b, err := json.Marshal(Control{Gate: s})
	require.NoError(t, err)
	var c Control
	require.NoError(t, json.Unmarshal(b, &c))
	return c.Gate
}

func TestWhateverHappensToTheGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := GateState{}, noon()
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			in := drawInput(t)
			after := next(s, in, now)
			require.Equal(t, after, next(s, in, now), "it reads no clock and keeps nothing")
			require.Equal(t, inShort(after, now), inShort(next(stored(t, s), in, now), now), "instances that read the same agree")

			require.GreaterOrEqual(t, after.limit(), 1)
			require.LessOrEqual(t, after.limit(), fullLimit)
			opens := in.event == gateFails || in.event == gatePaused
			require.True(t, s.Open() || !after.Open() || opens, "only a failure or a person opens it")
			require.True(t, !s.Paused || after.Paused || in.event == gateResumed, "only a person ends a pause")
			switch in.event {
			case gateClaimed:
				require.False(t, after.OpenUntil.Before(s.OpenUntil), "a claim never brings the next one nearer")
				require.Equal(t, s.Open(), after.Open())
				if s.Due(now) {
					require.Equal(t, now.Add(probeEvery), after.OpenUntil)
					require.Equal(t, in.by, after.HeldBy)
				} else {
					require.Equal(t, s, after)
				}
			case gateFails:
				if s.Open() && !in.probe {
					require.Equal(t, s, after, "it is of the time before")
				}
				if !s.Paused && after.Open() && after != s && in.kind != fault.Infrastructure {
					require.True(t, after.OpenUntil.After(now))
				}
			case gateAnswers:
				require.True(t, s.Paused || !after.Open())
				require.True(t, s.Paused || after.limit() >= s.limit(), "an answer takes nothing away")
			case gateResumed:
				require.False(t, after.Open(), "whatever held it open")
			case gateDeployed:
				if s.Kind != fault.Systemic || s.Paused || s.OpenedBy == in.version {
					require.Equal(t, s, after)
				} else {
					require.False(t, after.Open())
				}
			case gatePaused:
				require.True(t, after.Paused)
			}
			s = after
		}
	})
}

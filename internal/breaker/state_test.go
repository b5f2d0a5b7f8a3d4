package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

func at(s int) time.Time {
	return time.Date(2026, 1, 2, 3, 12, 0, 0, time.UTC).Add(time.Duration(s) * time.Second)
}

func fails(kind fault.Kind) input {
	return input{event: failed, by: "a", kind: kind, code: "x", reason: "why"}
}

// An outage from its first second to the last step of the ramp.
func TestAnOutageOpensProbesAndRampsUp(t *testing.T) {
	require.Equal(t, Running, State{}.Flow())
	s := State{}.next(fails(fault.Infrastructure), at(0))
	require.Equal(t, Open, s.Name)
	require.Equal(t, at(60), s.OpenUntil)
	require.Equal(t, StoppedFlow, s.Flow())

	require.False(t, s.due(at(59), "b"))
	require.True(t, s.due(at(60), "b"))
	require.False(t, s.due(at(60), "a"), "who failed leaves the next probe to others for ten seconds")
	require.True(t, s.due(at(70), "a"))

	s = s.next(input{event: claimed, by: "b", jitter: 3 * time.Second}, at(60))
	require.Equal(t, at(123), s.OpenUntil, "an unanswered claim expires")
	require.Equal(t, s, s.next(input{event: claimed, by: "c"}, at(61)), "one probe at a time")

	down := s.next(input{event: failed, kind: fault.Infrastructure, by: "b", probe: true}, at(62))
	require.Equal(t, at(123), down.OpenUntil, "the claim is the wait")
	require.Equal(t, s.Since, down.Since)

	s = s.next(input{event: committed, by: "b", probe: true}, at(62))
	require.Equal(t, HalfOpen, s.Name)
	require.Equal(t, 1, s.MaxDocuments())
	require.True(t, s.due(at(62), "c"), "the first request for documents is claimed at once")
	require.Equal(t, RampingUp, s.Flow())
	for _, limit := range []int{5, 25} {
		s = s.next(input{event: answered, by: "c"}, at(63))
		require.Equal(t, limit, s.MaxDocuments())
		require.False(t, s.due(at(63), "c"), "only the first step is claimed")
	}
	again := s.next(fails(fault.Infrastructure), at(64))
	require.Equal(t, Open, again.Name, "one failure on the ramp opens it again")
	require.Equal(t, at(0), again.Since, "the outage began when it began")
	s = s.next(input{event: answered, by: "c"}, at(64))
	require.Equal(t, Closed, s.Name)
	require.Equal(t, FullLimit, s.MaxDocuments())
	require.Zero(t, s.SerialUntil)
}

func TestThrottlingDoublesAndThenGoesOneAtATime(t *testing.T) {
	s := State{}.next(fails(fault.Throttled), at(0))
	require.Equal(t, at(10), s.OpenUntil)
	now := 0
	for _, wait := range []int{20, 40, 80, 160, 300, 300} {
		now += 1000
		s = s.next(input{event: committed, probe: true}, at(now))
		require.Equal(t, FullLimit, s.MaxDocuments(), "fewer documents a request are more requests")
		s = s.next(fails(fault.Throttled), at(now))
		require.Equal(t, at(now+wait), s.OpenUntil)
	}
	s = s.next(input{event: committed, probe: true}, at(now))
	s = s.next(input{event: answered}, at(now))
	require.Equal(t, Closed, s.Name)
	require.Equal(t, at(now+300), s.SerialUntil)
	s = s.next(fails(fault.Throttled), at(now+1))
	require.Equal(t, at(now+11), s.OpenUntil, "what recovered begins anew")

	asked := fails(fault.Throttled)
	asked.retryAfter = 42 * time.Second
	require.Equal(t, at(42), State{}.next(asked, at(0)).OpenUntil, "what the database asks for wins")
}

func TestAFullDatabaseIsAskedEveryFiveMinutes(t *testing.T) {
	s := State{}.next(fails(fault.Quota), at(0))
	require.Equal(t, at(300), s.OpenUntil)
	s = s.next(input{event: claimed, by: "b"}, at(300))
	s = s.next(input{event: failed, kind: fault.Quota, by: "b", probe: true}, at(301))
	require.Equal(t, at(601), s.OpenUntil)
	s = s.next(input{event: resumed, by: "operator"}, at(302))
	require.Equal(t, HalfOpen, s.Name, "an operator's resume probes at once")
	require.True(t, s.due(at(302), "a"))
}

// No stop is so long that it looks like one that a clock which is ahead has noted: the others would probe at once.
func TestTheLongestStopIsBelieved(t *testing.T) {
	later := func(noted time.Time) bool { return noted.After(at(0).Add(mostAhead)) }
	for _, in := range []input{
		{event: failed, kind: fault.Infrastructure, jitter: probeJitter},
		{event: failed, kind: fault.Throttled, retryAfter: maxThrottleWait},
		fails(fault.Quota),
	} {
		s := State{}.next(in, at(0))
		require.Equal(t, s, s.asOf(at(0), later), in.kind)
	}
}

func TestTwoHeartbeatsCloseWhatNoDocumentNeeds(t *testing.T) {
	s := State{}.next(fails(fault.Infrastructure), at(0)).next(input{event: committed, probe: true}, at(60))
	require.Equal(t, HalfOpen, s.next(input{event: committed}, at(60+119)).Name)
	require.Equal(t, Closed, s.next(input{event: committed}, at(60+120)).Name)
	require.Equal(t, Open, State{Name: Open, OpenUntil: at(60)}.next(input{event: committed}, at(1)).Name,
		"a heartbeat that began before it opened closes nothing")
}

func TestOnlyAnOperatorEndsAPause(t *testing.T) {
	s := State{}.next(input{event: paused, by: "eva", reason: "maintenance"}, at(0))
	for _, in := range []input{
		fails(fault.Infrastructure), fails(fault.Quota),
		{event: claimed},
		{event: committed, probe: true},
		{event: answered},
	} {
		require.Equal(t, s, s.next(in, at(100_000)))
	}
	require.False(t, s.due(at(100_000), "a"))
	require.Equal(t, RampingUp, s.next(input{event: resumed, by: "eva"}, at(5)).Flow())
	require.Equal(t, State{}, State{}.next(input{event: resumed, by: "eva"}, at(5)), "what runs is left alone")
}

// At any time at most one instance has the probe, and an open breaker becomes due within its longest wait.
func TestTheBreakerNeverHangs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, now := State{}, at(0)
		instances := []string{"a", "b", "c"}
		kinds := []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(rt, "seconds")) * time.Second)
			in := input{
				event: event(rapid.IntRange(int(failed), int(answered)).Draw(rt, "event")),
				by:    rapid.SampledFrom(instances).Draw(rt, "by"),
				kind:  rapid.SampledFrom(kinds).Draw(rt, "kind"), probe: rapid.Bool().Draw(rt, "probe"),
			}
			was := s
			s = s.next(in, now)
			if in.event == claimed && s != was {
				for _, other := range instances {
					require.False(rt, s.due(now, other), "a second probe was due at once")
				}
			}
			if s.Name == Open {
				require.True(rt,
					s.due(now.Add(maxThrottleWait+probeEvery+probeJitter+failedProbeWait), in.by), "%+v", s)
			}
			require.Positive(rt, s.MaxDocuments())
			require.NotEmpty(rt, s.Describe(now))
		}
	})
}

func TestEveryChangeThatPeopleCountIsKeptForTheAuditLog(t *testing.T) {
	var c Control
	step := func(in input, now time.Time) {
		was := c.Breaker
		c.Breaker = was.next(in, now)
		c.recordTransition(was, in, now)
	}
	step(fails(fault.Infrastructure), at(0))
	step(input{event: claimed, by: "b"}, at(60))
	step(input{event: committed, by: "b", probe: true}, at(61))
	step(fails(fault.Infrastructure), at(62))
	step(input{event: committed, by: "b", probe: true}, at(119))
	for range 3 {
		step(input{event: answered, by: "b"}, at(120))
	}
	step(input{event: paused, by: "eva", reason: "maintenance"}, at(200))
	step(input{event: resumed, by: "eva"}, at(300))
	for range 3 {
		step(input{event: answered, by: "b"}, at(301))
	}
	var logged []string
	for _, tr := range c.Transitions {
		logged = append(logged, string(tr.From)+">"+string(tr.To))
	}
	require.Equal(t,
		[]string{"closed>open", "half_open>closed", "closed>paused", "paused>half_open", "half_open>closed"}, logged)
	require.Equal(t, 120, c.Transitions[1].StoppedFor)
	require.Equal(t, "why", c.Transitions[1].Why)
}

func TestAStateIsDescribedInTheZoneOfTheReader(t *testing.T) {
	since := time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC)
	chicago := time.FixedZone("", -6*60*60)
	s := State{
		Name: Open, Kind: fault.Infrastructure, Code: "refused", Reason: "x", Since: since,
		OpenUntil: since.Add(time.Minute),
	}
	require.Equal(t, "stopped since 2025-12-18T10:00:00-06:00 (infrastructure refused: x), next probe in 20s",
		s.Describe(since.Add(40*time.Second).In(chicago)))
	require.Equal(t, "stopped since 2025-12-18T16:00:00Z (infrastructure refused: x), next probe is due",
		s.Describe(since.Add(2*time.Minute)))
}

package writer

import (
	"fmt"
	"time"

	"sqlwriter/internal/fault"
)

// The schedule of the gate (design.md section 3).
const (
	// breakerFailures is how many infrastructure failures in a row open the gate.
	breakerFailures = 5
	// probeEvery is how long the gate stays open before a probe, and how long a claimed probe keeps others away: a dead
	// prober's claim expires by itself.
	probeEvery = 60 * time.Second
	// firstThrottle and lastThrottle bound the waits after the database asked for less: doubling.
	firstThrottle = 10 * time.Second
	lastThrottle  = 5 * time.Minute
	// fullLimit is the limit of a gate that has recovered.
	fullLimit = 100
	// probeLimit and systemicLimit are the most documents of a probe.
	probeLimit    = 1
	systemicLimit = 5
)

// ramp are the limits after an outage, one request each.
func ramp() []int { return []int{probeLimit, 5, 25, fullLimit} }

// quotaWaits are the waits for a full dependency, and for a build or schema that every document fails on.
func quotaWaits() []time.Duration {
	return []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
}

// gateEvent is what happens to a gate.
type gateEvent int

const (
	// gateFails: a failure that opens the gate, or a failed probe. Uses Kind, Code, Reason, RetryAfter, By, Version.
	gateFails gateEvent = iota + 1
	// gateClaimed: By claims the probe that is due.
	gateClaimed
	// gateAnswers: By got an answer: the dependency works.
	gateAnswers
	// gatePaused: the operator By holds the gate open, for Reason.
	gatePaused
	// gateResumed: the operator By closes the gate, whatever held it open.
	gateResumed
	// gateDeployed: an instance of Version looks at the gate.
	gateDeployed
)

// gateInput is an event with what belongs to it.
type gateInput struct {
	event      gateEvent
	kind       fault.Kind
	code       string
	reason     string
	retryAfter time.Duration
	by         string
	version    string
	// probe says that the failure is the claimed probe's. Others that come while the gate is open are of the time before.
	probe bool
	// beside says that the failure is of something that a gate whose probe is due let pass without the claim.
	beside bool
}

// Open reports whether nothing may pass.
func (s GateState) Open() bool { return s.Paused || !s.OpenUntil.IsZero() }

// Reachable reports whether the gate is open for something that says nothing of whether SQL answers: an operator's pause, and
// a build or schema that every document fails on.
func (s GateState) Reachable() bool { return s.Paused || (s.Open() && s.Kind == fault.Systemic) }

// Due reports whether a probe may be claimed.
func (s GateState) Due(now time.Time) bool {
	return s.Open() && !s.Paused && !now.Before(s.OpenUntil)
}

// answeredBy reports whether a use that concerns no document can answer the probe: a systemic gate wants a document, a full
// database that something is written.
func (s GateState) answeredBy(writes bool) bool {
	return s.Kind != fault.Systemic && (s.Kind != fault.Quota || writes)
}

// next is the gate: state and event in, state out. It reads no clock and keeps nothing, so several instances that agree on
// the state agree on the gate.
func next(s GateState, in gateInput, now time.Time) GateState {
	switch in.event {
	case gateFails:
		return s.fail(in, now)
	case gateClaimed:
		if s.Due(now) {
			s.OpenUntil, s.HeldBy = now.Add(probeEvery), in.by
		}
		return s
	case gateAnswers:
		return s.answer(in, now)
	case gatePaused:
		return GateState{
			Limit: s.Limit, RaisedAt: s.RaisedAt, Paused: true, Code: codePaused, Reason: in.reason, Since: now, HeldBy: in.by,
		}
	case gateResumed:
		if !s.Open() {
			return s
		}
		return GateState{Limit: probeLimit, RaisedAt: now, Since: now, HeldBy: in.by}
	case gateDeployed:
		if s.Kind == fault.Systemic && s.Open() && !s.Paused && s.OpenedBy != in.version {
			return GateState{Limit: probeLimit, RaisedAt: now, Since: now, HeldBy: in.by}
		}
	}
	return s
}

// fail opens the gate, or keeps it open for longer after a failed probe.
func (s GateState) fail(in gateInput, now time.Time) GateState {
	late := in.probe && !s.Open() && in.kind == fault.Infrastructure // somebody else's probe was answered meanwhile
	current := in.probe || (in.beside && s.Due(now))
	if s.Paused || (s.Open() && !current) || late {
		return s
	}
	grown := s
	if !s.Open() {
		grown.Since, grown.Step = now, 0
		if in.kind == fault.Throttled && s.Kind == fault.Throttled {
			grown.Step = s.Step // asked again before the limit had recovered
		}
	} else if s.Kind != in.kind {
		grown.Step = 0
	}
	grown.Kind, grown.Code, grown.Reason, grown.HeldBy, grown.OpenedBy = in.kind, in.code, in.reason, in.by, ""
	var wait time.Duration
	switch in.kind {
	case fault.Throttled:
		grown.Limit, grown.RaisedAt = max(1, s.limit()/2), now
		wait = min(lastThrottle, firstThrottle<<min(grown.Step, 10))
		if in.retryAfter > 0 {
			wait = in.retryAfter
		}
		grown.Step++
	case fault.Quota, fault.Systemic:
		waits := quotaWaits()
		wait = waits[min(grown.Step, len(waits)-1)]
		grown.Step++
		grown.Limit, grown.RaisedAt = probeLimit, now
		if in.kind == fault.Systemic {
			grown.OpenedBy = in.version
		}
	default:
		wait = probeEvery
		grown.Limit, grown.RaisedAt = probeLimit, now
	}
	if in.kind != fault.Infrastructure || !s.Open() || in.beside { // a failed probe's claim is the wait already
		grown.OpenUntil = now.Add(wait)
	}
	return grown
}

// answer closes an open gate and lets the limit of a closed one grow: one step of the ramp for each answer after an
// outage, one in firstThrottle after the database had asked for less.
func (s GateState) answer(in gateInput, now time.Time) GateState {
	if s.Paused {
		return s
	}
	if s.Open() {
		closed := GateState{Limit: s.limit(), RaisedAt: now, Since: now, HeldBy: in.by, Kind: s.Kind, Step: s.Step}
		if s.Kind != fault.Throttled {
			closed.Limit = above(probeLimit)
			closed.Kind, closed.Step = "", 0
		}
		return closed
	}
	if s.Limit == 0 || (s.Kind == fault.Throttled && now.Sub(s.RaisedAt) < firstThrottle) {
		return s
	}
	s.Limit, s.RaisedAt = above(s.Limit), now
	if s.Limit >= fullLimit {
		s.Limit, s.RaisedAt, s.Kind, s.Step = 0, time.Time{}, "", 0
	}
	return s
}

// limit is the limit in documents.
func (s GateState) limit() int {
	if s.Limit == 0 {
		return fullLimit
	}
	return s.Limit
}

// above is the next step of the ramp.
func above(limit int) int {
	for _, step := range ramp() {
		if step > limit {
			return step
		}
	}
	return fullLimit
}

// Describe says for people what the gate does.
func (s GateState) Describe(now time.Time) string {
	switch {
	case s.Paused:
		return fmt.Sprintf("paused by %s: %s", s.HeldBy, s.Reason)
	case s.Open():
		return fmt.Sprintf("open since %s (%s %s: %s), next probe in %s", s.Since.UTC().Format(time.RFC3339), s.Kind, s.Code, s.Reason,
			max(0, s.OpenUntil.Sub(now)).Round(time.Second))
	case s.Limit > 0:
		return fmt.Sprintf("closed, at most %d in one request", s.Limit)
	}
	return "closed"
}

package breaker

import (
	"fmt"
	"time"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
)

// Name is a state of the breaker.
type Name string

// The states. The zero value of State is closed.
const (
	// Closed: requests pass.
	Closed Name = "closed"
	// Open: no request passes until OpenUntil, when one probe may be claimed.
	Open Name = "open"
	// HalfOpen: a heartbeat was committed, or an operator resumed. Requests without documents pass, and requests of at
	// most Limit documents.
	HalfOpen Name = "half_open"
	// Paused: an operator stopped the flow, and only an operator ends it.
	Paused Name = "paused"
)

// Times and limits of the breaker (docs/requirements.md R44).
const (
	// failuresToOpen consecutive infrastructure failures open the breaker if they span at least minFailingSpan. A
	// single hiccup that fails many requests at once is not an outage.
	failuresToOpen = 5
	minFailingSpan = 15 * time.Second
	// probeEvery is how long the breaker stays open before a probe, and how long a claim lasts. The claim of an
	// instance that died so expires.
	probeEvery = 60 * time.Second
	// probeJitter is the most that a claim adds, so that instances do not probe in step.
	probeJitter = 6 * time.Second
	// failedProbeWait is how much longer an instance waits after its own failed probe. An instance that alone cannot
	// reach SQL must not block the others.
	failedProbeWait = 10 * time.Second
	// minThrottleWait and maxThrottleWait bound the doubling wait after throttling.
	minThrottleWait = 10 * time.Second
	maxThrottleWait = 5 * time.Minute
	// serialPeriod is how long an instance makes one request at a time after throttling.
	serialPeriod = 5 * time.Minute
	// quotaWait is the wait for a full database.
	quotaWait = 5 * time.Minute
	// idlePeriod is how long a half-open breaker without requests for documents waits for its second heartbeat.
	idlePeriod = 2 * time.Minute
	// FullLimit is the most documents of one request while closed.
	FullLimit = 100
)

// State is the breaker's state as all instances share it. The zero value is closed.
type State struct {
	// Name is the state; empty means Closed.
	Name Name `json:"state,omitempty"`
	// Limit is the most documents of one request while half-open: 1, 5 or 25. With 1 the request is claimed like a
	// probe.
	Limit int `json:"limit,omitempty"`
	// OpenUntil is when the next probe may be claimed: a heartbeat while open, the first request for documents while
	// half-open.
	OpenUntil time.Time `json:"open_until,omitzero"`
	// Kind and Code are those of the failure that opened it. Reason tells operators what happened or why it was paused.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Since is the start of the stop, until it closes; then the time it closed.
	Since time.Time `json:"since,omitzero"`
	// ChangedAt is the last change of Name or Limit.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// HeldBy is the instance that opened it or claimed the probe, or the operator who paused or resumed it.
	HeldBy string `json:"held_by,omitempty"`
	// WaitSeconds is the current wait after throttling; it doubles at each failed probe.
	WaitSeconds int `json:"wait_seconds,omitempty"`
	// SerialUntil is until when each instance makes one request at a time.
	SerialUntil time.Time `json:"serial_until,omitzero"`
}

// asOf leaves out what a clock that is ahead has noted. later reports whether a time is later than now. A probe for
// which the others would have to wait longer than for any claim is due.
func (s State) asOf(now time.Time, later func(time.Time) bool) State {
	if later(s.Since) {
		s.Since = now
	}
	if later(s.ChangedAt) {
		s.ChangedAt = time.Time{}
	}
	if later(s.SerialUntil.Add(-serialPeriod)) {
		s.SerialUntil = time.Time{}
	}
	wait := max(probeEvery+probeJitter, time.Duration(s.WaitSeconds)*time.Second)
	if s.Kind == fault.Quota {
		wait = max(wait, quotaWait)
	}
	if later(s.OpenUntil.Add(-wait)) {
		s.OpenUntil = now
	}
	return s
}

// event is a kind of input to the breaker.
type event int

const (
	// failed: a failure that opens it, or of a probe or a request of the ramp.
	failed event = iota + 1
	// claimed: an instance claims the probe that is due.
	claimed
	// waited: a request for documents wrote nothing, because it was another writer's turn.
	waited
	committed
	// answered: a request for documents got an answer that is not of dependency scope.
	answered
	// paused and resumed: commands of an operator.
	paused
	resumed
)

type input struct {
	event event
	// by is the instance or the operator.
	by string
	// kind, code, reason and retryAfter are the failure's; reason is also the operator's.
	kind       fault.Kind
	code       string
	reason     string
	retryAfter time.Duration
	// forced and copied are Transition.Forced and Copied of a resume.
	forced string
	copied time.Time
	// probe marks the failure or heartbeat of a claimed probe. Others that arrive while it is open began earlier.
	probe  bool
	jitter time.Duration
}

// name is the state, never empty.
func (s State) name() Name {
	if s.Name == "" {
		return Closed
	}
	return s.Name
}

// Stopped reports whether no request passes: open or paused.
func (s State) Stopped() bool { return s.Name == Open || s.Name == Paused }

// due reports whether an instance may claim the probe: the heartbeat of an open breaker, or the first request for
// documents of a half-open one.
func (s State) due(now time.Time, instance string) bool {
	if s.Name != Open && (s.Name != HalfOpen || s.Limit > 1) {
		return false
	}
	at := s.OpenUntil
	if s.Name == Open && s.HeldBy == instance {
		at = at.Add(failedProbeWait)
	}
	return !now.Before(at)
}

// RefusesDatabase reports whether it is open because the database is not the one last written to.
func (s State) RefusesDatabase() bool { return s.Name == Open && refusedCode(s.Code) }

// Condition is what asks for a person while it is open or paused; empty otherwise.
func (s State) Condition() string {
	if s.RefusesDatabase() {
		return condition.DatabaseRefused
	}
	return map[Name]string{Open: condition.FlowStopped, Paused: condition.FlowPaused}[s.Name]
}

// next is the transition function. Instances that agree on the state agree on its successor.
func (s State) next(in input, now time.Time) State {
	switch in.event {
	case failed:
		return s.fail(in, now)
	case claimed:
		if s.due(now, in.by) {
			s.OpenUntil = now.Add(probeEvery + in.jitter)
			s.HeldBy = in.by
		}
	case waited: // the claim is free again
		if s.Name == HalfOpen && s.Limit == 1 && s.HeldBy == in.by {
			s.OpenUntil = now
		}
	case committed:
		return s.commit(in, now)
	case answered:
		return s.answer(in, now)
	case paused:
		return State{Name: Paused, Code: CodePaused, Reason: in.reason, Since: now, ChangedAt: now, HeldBy: in.by}
	case resumed:
		if s.name() == Closed && in.forced == "" {
			return s
		}
		if s.name() == Closed {
			s.Since = now
		}
		return s.halfOpen(in.by, now)
	}
	return s
}

// halfOpen permits requests without documents and one request for one document. The reason of the stop stays.
func (s State) halfOpen(by string, now time.Time) State {
	s.Name, s.Limit, s.OpenUntil, s.ChangedAt, s.HeldBy = HalfOpen, 1, now, now, by
	return s
}

// closed is the state after recovery.
func (s State) closed(by string, now time.Time) State {
	c := State{Name: Closed, Since: now, ChangedAt: now, HeldBy: by}
	if s.Kind == fault.Throttled {
		c.SerialUntil = now.Add(serialPeriod)
	}
	return c
}

// fail opens the breaker, or extends the stop after a failed probe.
func (s State) fail(in input, now time.Time) State {
	if s.Name == Paused || (s.Name == Open && !in.probe) {
		return s
	}
	if s.RefusesDatabase() && !refusedCode(in.code) {
		return s // an outage must not hide the refusal; the claim's time is the wait
	}
	was := s
	if s.Name != Open {
		s.ChangedAt = now
	}
	if s.name() == Closed {
		s.Since = now
	}
	s.Name, s.Limit, s.SerialUntil, s.WaitSeconds = Open, 0, time.Time{}, 0
	s.Kind, s.Code, s.Reason, s.HeldBy = in.kind, in.code, in.reason, in.by
	switch in.kind { //nolint:exhaustive // only failures of dependency scope come here
	case fault.Throttled:
		wait := minThrottleWait
		if was.Kind == fault.Throttled && was.name() != Closed {
			wait = min(maxThrottleWait, 2*time.Duration(was.WaitSeconds)*time.Second)
		}
		if in.retryAfter > 0 {
			wait = in.retryAfter
		}
		s.WaitSeconds = int(max(wait, minThrottleWait) / time.Second)
		s.OpenUntil = now.Add(wait)
	case fault.Quota:
		s.OpenUntil = now.Add(quotaWait)
	default:
		at := was.OpenUntil
		if was.Name != Open || at.Before(now) {
			at = now.Add(probeEvery + in.jitter)
		} else { // a failed probe's claim is the wait already, also where the next one is another instance's meanwhile
			s.HeldBy = was.HeldBy
		}
		s.OpenUntil = at
	}
	return s
}

// commit applies a committed heartbeat: a probe half-opens, and a second heartbeat closes a breaker without requests
// for documents.
func (s State) commit(in input, now time.Time) State {
	switch {
	case s.Name == Open && in.probe:
		return s.halfOpen(in.by, now)
	case s.Name == HalfOpen && now.Sub(s.ChangedAt) >= idlePeriod:
		return s.closed(in.by, now)
	}
	return s
}

// answer applies an answered request for documents: the ramp is 1, 5, 25, then closed. After throttling the number of
// requests matters, not their size: one answer closes, and each instance makes one request at a time for a while.
func (s State) answer(in input, now time.Time) State {
	if s.Name != HalfOpen {
		return s
	}
	limit := s.Limit * 5
	if limit > FullLimit || s.Kind == fault.Throttled {
		return s.closed(in.by, now)
	}
	s.Limit, s.OpenUntil, s.ChangedAt, s.HeldBy = limit, time.Time{}, now, in.by
	return s
}

// MaxDocuments is the most documents of one request.
func (s State) MaxDocuments() int {
	if s.Name == HalfOpen {
		if s.Kind == fault.Throttled {
			return FullLimit
		}
		return s.Limit
	}
	return FullLimit
}

// Flow is the state as operators read it.
type Flow string

// The flows, in the order of the states.
const (
	Running     Flow = "running"
	RampingUp   Flow = "ramping up"
	StoppedFlow Flow = "stopped"
	PausedFlow  Flow = "paused"
)

// Flow returns the state as operators read it.
func (s State) Flow() Flow {
	switch s.name() {
	case Open:
		return StoppedFlow
	case HalfOpen:
		return RampingUp
	case Paused:
		return PausedFlow
	case Closed:
	}
	return Running
}

// Describe returns the state with its reason and next step, for people, with times in the zone of now.
func (s State) Describe(now time.Time) string {
	since := s.Since.In(now.Location()).Format(time.RFC3339)
	cause := fmt.Sprintf("since %s (%s %s: %s)", since, s.Kind, s.Code, s.Reason)
	switch s.name() {
	case Paused:
		return fmt.Sprintf("paused by %s since %s: %s", s.HeldBy, since, s.Reason)
	case Open:
		if wait := s.OpenUntil.Sub(now).Round(time.Second); wait > 0 {
			return fmt.Sprintf("stopped %s, next probe in %s", cause, wait)
		}
		return fmt.Sprintf("stopped %s, next probe is due", cause)
	case HalfOpen:
		text := fmt.Sprintf("ramping up, at most %d in one request", s.MaxDocuments())
		if s.Kind != "" {
			text += "; it was stopped " + cause
		}
		return text
	case Closed:
	}
	if now.Before(s.SerialUntil) {
		return "running, one request at a time for another " + s.SerialUntil.Sub(now).Round(time.Second).String()
	}
	return "running"
}

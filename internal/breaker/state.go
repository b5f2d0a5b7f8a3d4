package breaker

import (
	"fmt"
	"time"

	"sqlwriter/internal/fault"
)

// Name is the state of the breaker in the field's words.
type Name string

// The states. The zero value of State is closed.
const (
	// Closed: work flows.
	Closed Name = "closed"
	// Open: nothing passes to SQL until OpenUntil, when one probe may be claimed.
	Open Name = "open"
	// HalfOpen: a heartbeat was committed. Bookkeeping passes, and requests for documents up to Limit.
	HalfOpen Name = "half_open"
	// Paused: an operator stopped the flow. Only an operator ends it.
	Paused Name = "paused"
)

// The times and limits of the breaker (docs/requirements.md R44).
const (
	// failuresToOpen is how many infrastructure failures in a row open the breaker, and failingFor the least time from the
	// first of them to the last: a single hiccup that hits many requests at once is no outage.
	failuresToOpen = 5
	failingFor     = 15 * time.Second
	// probeEvery is how long the breaker stays open before a probe. A claimed probe keeps others away for as long, so the
	// claim of an instance that died expires by itself.
	probeEvery = 60 * time.Second
	// probeJitter is the most that a claim adds, so that instances do not probe in step.
	probeJitter = 6 * time.Second
	// loserWait is how much longer than others an instance waits whose own probe failed: one that alone cannot reach SQL
	// must not keep the others out.
	loserWait = 10 * time.Second
	// firstThrottle and lastThrottle bound the doubling wait after the database asked for less.
	firstThrottle = 10 * time.Second
	lastThrottle  = 5 * time.Minute
	// serialFor is for how long an instance makes one request at a time after the database asked for less.
	serialFor = 5 * time.Minute
	// quotaWait is the wait for a database that is full.
	quotaWait = 5 * time.Minute
	// heldFor is how far ahead OpenUntil stands for a database that was refused. A build that does not compare would raise such a
	// database's heartbeat as its probe, take it for well, and write to it; this build takes the years off again. It goes with the
	// step that runs deploy/sql/revoke_text_rights.sql: no such build writes after that.
	heldFor = 100 * 365 * 24 * time.Hour
	// idleFor is how long a half-open breaker that no document needs waits for its second heartbeat.
	idleFor = 2 * time.Minute
	// FullLimit is the limit of a closed breaker, in documents of one request.
	FullLimit = 100
)

// State is the breaker as all instances share it.
type State struct {
	// Name is the state; empty is Closed.
	Name Name `json:"state,omitempty"`
	// Limit is the most documents of one request while half-open: 1, 5 or 25. With 1 the request is claimed like a probe.
	Limit int `json:"limit,omitempty"`
	// OpenUntil is when the next probe may be claimed: a heartbeat while open, the first request for documents while
	// half-open. Read NextProbe: a database that was refused holds others off for longer.
	OpenUntil time.Time `json:"open_until,omitzero"`
	// Kind and Code are those of the failure that opened it; Reason says for people what happened, or why it was paused.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Since is when it stopped, through all probes until it closes; or when it closed.
	Since time.Time `json:"since,omitzero"`
	// ChangedAt is when Name or Limit changed last.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// HeldBy is the instance that opened it or claimed the probe, or the person who paused or resumed it.
	HeldBy string `json:"held_by,omitempty"`
	// WaitSeconds is the present wait after throttling; it doubles at each failed probe.
	WaitSeconds int `json:"wait_seconds,omitempty"`
	// SerialUntil is until when each instance makes one request at a time.
	SerialUntil time.Time `json:"serial_until,omitzero"`
}

// event is what happens to the breaker.
type event int

const (
	// failed: a failure that opens it, or that of a probe or a request of the ramp.
	failed event = iota + 1
	// claimed: an instance takes the probe that is due.
	claimed
	// committed: a heartbeat was committed.
	committed
	// answered: a request for documents had an answer that is not of dependency scope.
	answered
	// paused and resumed: an operator's words.
	paused
	resumed
)

// input is an event with what belongs to it.
type input struct {
	event event
	// by is the instance or the person.
	by string
	// kind, code, reason and retryAfter are the failure's; reason is also the operator's.
	kind       fault.Kind
	code       string
	reason     string
	retryAfter time.Duration
	// forced says what a person's resume gave up.
	forced string
	// probe says that the failure or heartbeat is of a claimed probe. Others that come while it is open began before.
	probe bool
	// jitter is added to a claim.
	jitter time.Duration
}

// name is the state, never empty.
func (s State) name() Name {
	if s.Name == "" {
		return Closed
	}
	return s.Name
}

// Stopped reports whether nothing passes to SQL: open or paused.
func (s State) Stopped() bool { return s.Name == Open || s.Name == Paused }

// due reports whether an instance may claim the probe: the heartbeat of an open breaker, or the first request for
// documents of a half-open one.
func (s State) due(now time.Time, instance string) bool {
	if s.Name != Open && (s.Name != HalfOpen || s.Limit > 1) {
		return false
	}
	at := s.NextProbe()
	if s.Name == Open && s.HeldBy == instance {
		at = at.Add(loserWait)
	}
	return !now.Before(at)
}

// RefusesDatabase reports whether it is open because of a database that is not the one that was written to last.
func (s State) RefusesDatabase() bool { return s.Name == Open && refusedCode(s.Code) }

// NextProbe is when the next probe may be claimed.
func (s State) NextProbe() time.Time {
	if s.RefusesDatabase() {
		return s.OpenUntil.Add(-heldFor)
	}
	return s.OpenUntil
}

// until sets when the next probe may be claimed.
func (s State) until(at time.Time) State {
	if s.OpenUntil = at; s.RefusesDatabase() {
		s.OpenUntil = at.Add(heldFor)
	}
	return s
}

// next is the breaker: state and event in, state out. Instances that agree on the state agree on the breaker.
func (s State) next(in input, now time.Time) State {
	switch in.event {
	case failed:
		return s.fail(in, now)
	case claimed:
		if s.due(now, in.by) {
			s = s.until(now.Add(probeEvery + in.jitter))
			s.HeldBy = in.by
		}
	case committed:
		return s.commit(in, now)
	case answered:
		return s.answer(in, now)
	case paused:
		return State{Name: Paused, Code: CodePaused, Reason: in.reason, Since: now, ChangedAt: now, HeldBy: in.by}
	case resumed:
		if s.name() == Closed {
			return s
		}
		return s.halfOpen(in.by, now)
	}
	return s
}

// halfOpen lets bookkeeping pass and one request for one document. Why it had stopped stays to be read.
func (s State) halfOpen(by string, now time.Time) State {
	s.Name, s.Limit, s.OpenUntil, s.ChangedAt, s.HeldBy = HalfOpen, 1, now, now, by
	return s
}

// closed is the state of a breaker that recovered.
func (s State) closed(by string, now time.Time) State {
	c := State{Name: Closed, Since: now, ChangedAt: now, HeldBy: by}
	if s.Kind == fault.Throttled {
		c.SerialUntil = now.Add(serialFor)
	}
	return c
}

// fail opens the breaker, or keeps it open for longer after a failed probe.
func (s State) fail(in input, now time.Time) State {
	if s.Name == Paused || (s.Name == Open && !in.probe) {
		return s
	}
	if s.RefusesDatabase() && !refusedCode(in.code) {
		return s // an outage meanwhile must not hide what is refused; the probe's claim is the wait
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
		wait := firstThrottle
		if was.Kind == fault.Throttled && was.name() != Closed {
			wait = min(lastThrottle, 2*time.Duration(was.WaitSeconds)*time.Second)
		}
		if in.retryAfter > 0 {
			wait = in.retryAfter
		}
		s.WaitSeconds = int(max(wait, firstThrottle) / time.Second)
		s.OpenUntil = now.Add(wait)
	case fault.Quota:
		s.OpenUntil = now.Add(quotaWait)
	default:
		at := was.NextProbe()
		if was.Name != Open || at.Before(now) { // a failed probe's claim is the wait already
			at = now.Add(probeEvery + in.jitter)
		}
		s = s.until(at)
	}
	return s
}

// commit takes in a committed heartbeat: a probe's lets bookkeeping pass, and a second one closes a breaker that no document
// needs.
func (s State) commit(in input, now time.Time) State {
	switch {
	case s.Name == Open && in.probe:
		return s.halfOpen(in.by, now)
	case s.Name == HalfOpen && now.Sub(s.ChangedAt) >= idleFor:
		return s.closed(in.by, now)
	}
	return s
}

// answer takes in an answered request for documents: the ramp is 1, 5, 25, then closed. After throttling the size is no
// matter, but the number of requests is: one answer closes, and each instance makes one request at a time for a while.
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

// Flow is the state in the words that operators read.
type Flow string

// The flows.
const (
	Running     Flow = "running"
	RampingUp   Flow = "ramping up"
	StoppedFlow Flow = "stopped"
	PausedFlow  Flow = "paused"
)

// Flow answers the state in operators' words.
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

// Describe says for people what the breaker does.
func (s State) Describe(now time.Time) string {
	cause := fmt.Sprintf("since %s (%s %s: %s)", s.Since.UTC().Format(time.RFC3339), s.Kind, s.Code, s.Reason)
	switch s.name() {
	case Paused:
		return fmt.Sprintf("paused by %s since %s: %s", s.HeldBy, s.Since.UTC().Format(time.RFC3339), s.Reason)
	case Open:
		return fmt.Sprintf("stopped %s, next probe in %s", cause, max(0, s.NextProbe().Sub(now)).Round(time.Second))
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

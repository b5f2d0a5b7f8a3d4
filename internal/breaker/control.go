package breaker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// Control is the control document: the state that all instances of an app share. It is written as one value. Members
// that this build does not know are preserved, because old and new builds run together.
type Control struct {
	Breaker State `json:"breaker"`
	// Transitions are the breaker's changes that are not yet in the audit log, which is in the database that was down.
	Transitions []Transition `json:"transitions,omitempty"`
	// Applied has the time of the last write of content for each of the latest builds, the one that changed last first.
	Applied []Applied `json:"applied,omitempty"`
	// Heartbeat is the heartbeat row of the database that was last written to. Each request compares it.
	Heartbeat Heartbeat `json:"heartbeat,omitzero"`
	// Poison counts the poison messages of the current hour.
	Poison PoisonCount `json:"poison"`
	Feed   FeedLag     `json:"feed"`
	// Missed are documents that the feed did not bring.
	Missed Missed `json:"missed,omitzero"`
	// Skipped are documents that the feed brought for another sys_name, newest first.
	Skipped []Skipped `json:"skipped,omitempty"`
	// AppVersion is the build that wrote the document last.
	AppVersion string `json:"app_version,omitempty"`
	// Extra has the members that this build does not know, unchanged.
	Extra map[string]json.RawMessage `json:"-"`
}

// ControlStore keeps the control document of an app.
type ControlStore interface {
	// Load returns the control document and its etag. A missing document is the zero Control with an empty etag. Errors
	// by kind: infrastructure (also for a missing container), throttled.
	Load(ctx context.Context) (Control, string, error)
	// Store writes the whole control document if it still has the etag, and returns the new etag. An empty etag means
	// that the document must not exist yet. Errors by kind: condition Changed when it has another etag (nothing was
	// written); infrastructure (it may have been written); throttled.
	Store(ctx context.Context, c Control, etag string) (string, error)
	// LoadStatuses returns the statuses of all instances that were written since a time, in no order. Errors by kind:
	// infrastructure, throttled.
	LoadStatuses(ctx context.Context, since time.Time) ([]Status, error)
	// StoreStatus replaces the status of an instance, without a condition. Errors as LoadStatuses.
	StoreStatus(ctx context.Context, s Status) error
}

// Applied is when a build last wrote content.
type Applied struct {
	// Build is the version and the settings file. What another build can write proves nothing about this one.
	Build string `json:"build"`
	// At is zero for a build that never wrote any.
	At time.Time `json:"at,omitzero"`
	// Unproven counts the documents that the build gave up without proof since then.
	Unproven int `json:"unproven,omitempty"`
}

// Transition is a change of the breaker for the audit log.
type Transition struct {
	At time.Time `json:"at"`
	// From and To are states. To is half_open only after an operator's command.
	From Name `json:"from"`
	To   Name `json:"to"`
	// By is the instance or the operator. Why and Code are the reason.
	By   string `json:"by"`
	Why  string `json:"why"`
	Code string `json:"code,omitempty"`
	// StoppedFor is the length of the stop in seconds, for a transition to closed.
	StoppedFor int `json:"stopped_s,omitempty"`
	// Forced names the old and the new heartbeat when an operator accepted another database. Copied is when that one
	// was copied: it lacks what was written since; zero if it may lack everything.
	Forced string    `json:"forced,omitempty"`
	Copied time.Time `json:"copied,omitzero"`
}

// PoisonCount counts the poison messages of one hour.
type PoisonCount struct {
	// Hour is the start of the hour of Count.
	Hour  time.Time `json:"hour,omitzero"`
	Count int       `json:"count,omitempty"`
}

// FeedLag is the age of a batch's oldest document when the batch was done.
type FeedLag struct {
	Seconds int64     `json:"lag_seconds,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Missed are documents that the feed should have brought and did not, by the last tick that could tell. The zero Missed
// means that there are none.
type Missed struct {
	Documents int `json:"documents"`
	// Ticks counts the ticks in a row that found some.
	Ticks int `json:"ticks"`
	// Oldest is the oldest _ts of them, At the time of the tick.
	Oldest time.Time `json:"oldest"`
	At     time.Time `json:"at"`
	// Sample is the id of one of them. Code is document.too_deep when the feed stops at it.
	Sample string `json:"sample"`
	Code   string `json:"code,omitempty"`
}

// Holds reports whether it is no coincidence: an instance that starts, or a feed that catches up, may leave some to a
// tick or two.
func (m Missed) Holds() bool { return m.Ticks >= missedTicks || m.Code != "" }

// Skipped counts documents of another sys_name, which this app leaves alone.
type Skipped struct {
	// SysName is theirs; empty when they name none.
	SysName string `json:"sys_name"`
	// Documents is their number since Since; LastAt is the latest.
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
	LastAt    time.Time `json:"last_at"`
	// Sample is the id of the latest.
	Sample string `json:"sample"`
}

const (
	// Bounds of the control document: remembered builds, transitions not yet in the audit log (the log has them all),
	// and names of other environments.
	maxBuilds      = 5
	maxTransitions = 20
	maxNames       = 8
	// mostAhead is how much later than now a noted time may be. It exceeds the time that a request takes.
	mostAhead = 5 * time.Second
	// slowestFor is how long the slowest range's lag stays noted.
	slowestFor = 5 * time.Minute
	// missedTicks is how many ticks in a row must find documents that the feed did not bring.
	missedTicks = 3
)

// AppliedBy is when a build last wrote content; zero when unknown.
func (c Control) AppliedBy(build string) time.Time { return c.of(build).At }

// of is the entry of a build.
func (c Control) of(build string) Applied {
	for _, a := range c.Applied {
		if a.Build == build {
			return a
		}
	}
	return Applied{Build: build}
}

// LastApplied is when any build last wrote content; zero when unknown.
func (c Control) LastApplied() time.Time {
	var last time.Time
	for _, a := range c.Applied {
		if a.At.After(last) {
			last = a.At
		}
	}
	return last
}

// lastReachedByOthers is when SQL last answered another instance, as far as is known: content was applied, or another
// instance closed or half-opened the breaker.
func (c Control) lastReachedByOthers(instance string) time.Time {
	last := c.LastApplied()
	if !c.Breaker.Stopped() && c.Breaker.HeldBy != instance && c.Breaker.ChangedAt.After(last) {
		last = c.Breaker.ChangedAt
	}
	return last
}

// noteApplied moves a build's time forward, never back.
func (c *Control) noteApplied(build string, at time.Time) {
	if at.After(c.AppliedBy(build)) {
		c.putFirst(Applied{Build: build, At: at})
	}
}

// putFirst replaces the entry of a build. The one that was left alone for longest makes room.
func (c *Control) putFirst(entry Applied) {
	others := slices.DeleteFunc(slices.Clone(c.Applied), func(a Applied) bool { return a.Build == entry.Build })
	c.Applied = append([]Applied{entry}, others...)
	c.Applied = c.Applied[:min(len(c.Applied), maxBuilds)]
}

// noteHeartbeat moves the heartbeat's number forward, never back. Only an operator changes the database.
func (c *Control) noteHeartbeat(row Heartbeat) {
	if c.Heartbeat.Number == 0 || (c.Heartbeat.DatabaseID == row.DatabaseID && c.Heartbeat.Number < row.Number) {
		c.Heartbeat = row
	}
}

// PoisonSince is the number of poison messages in the hour of now.
func (c Control) PoisonSince(now time.Time) int { return c.poisonIn(now).Count }

// poisonIn is the count that goes on now. Around a full hour the clocks of two instances may name different hours: only
// a later one begins a new count. An hour that no clock can have reached is not there.
func (c Control) poisonIn(now time.Time) PoisonCount {
	hour := now.UTC().Truncate(time.Hour)
	if c.Poison.Hour.Before(hour) || c.Poison.Hour.After(hour.Add(time.Hour)) {
		return PoisonCount{Hour: hour}
	}
	return c.Poison
}

// until leaves out the times that are later than now, because the clock that noted them is wrong: they must decide
// nothing. The next change of this instance replaces them.
func (c Control) until(now time.Time) Control {
	later := func(at time.Time) bool { return at.After(now.Add(mostAhead)) }
	c = c.clone()
	for i, a := range c.Applied {
		if later(a.At) {
			c.Applied[i].At = time.Time{}
		}
	}
	if later(c.Feed.At) {
		c.Feed = FeedLag{}
	}
	c.Breaker = c.Breaker.asOf(now, later)
	return c
}

// apply applies an event to the breaker and reports whether the state changed.
func (c *Control) apply(in input, now time.Time) bool {
	was := c.Breaker
	c.Breaker = was.next(in, now)
	if c.Breaker == was {
		return false
	}
	c.recordTransition(was, in, now)
	return true
}

// recordTransition keeps a transition for the audit log: every command of an operator, and changes between closed and
// open. Probes and the ramp are not logged.
func (c *Control) recordTransition(was State, in input, now time.Time) {
	is := c.Breaker
	byOperator := in.event == paused || in.event == resumed
	from, to := was.name(), is.name()
	if !byOperator && (to == HalfOpen || (from == HalfOpen && to == Open) || from == to) {
		return
	}
	t := Transition{At: now.UTC().Round(0), From: from, To: to, By: is.HeldBy, Why: is.Reason, Code: is.Code}
	switch {
	case byOperator:
		t.Why, t.Forced, t.Copied = in.reason, in.forced, in.copied
	case to == Closed:
		t.StoppedFor, t.Why, t.Code = int(now.Sub(was.Since)/time.Second), was.Reason, was.Code
	}
	c.Transitions = append(slices.Clone(c.Transitions), t)
	c.Transitions = c.Transitions[max(0, len(c.Transitions)-maxTransitions):]
}

// noteFeed notes a measurement of the feed.
func (c *Control) noteFeed(lag FeedLag) {
	if lag.replaces(c.Feed) {
		c.Feed = lag
	}
}

// replaces reports whether a measurement replaces a noted one: a slow range counts before quick ones, until it says
// nothing any more.
func (l FeedLag) replaces(noted FeedLag) bool {
	return l.At.After(noted.At) && (l.Seconds > noted.Seconds || l.At.Sub(noted.At) >= slowestFor)
}

// clone is a copy whose slices and maps can be changed.
func (c Control) clone() Control {
	c.Applied, c.Transitions, c.Skipped = slices.Clone(c.Applied), slices.Clone(c.Transitions), slices.Clone(c.Skipped)
	return c
}

// controlMembers is Control without its methods, for encoding/json.
type controlMembers Control

// controlNames are the members that this build knows.
func controlNames() []string {
	return []string{
		"breaker", "transitions", "applied", "heartbeat", "poison", "feed", "missed", "skipped", "app_version",
	}
}

// MarshalJSON writes the known members, then those of Extra.
func (c Control) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(controlMembers(c))
	if err != nil {
		return nil, fmt.Errorf("breaker: write the control document: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Extra)) {
		if slices.Contains(controlNames(), name) || len(c.Extra[name]) == 0 {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("breaker: write the control document: %w", err)
		}
		b = append(append(append(append(b[:len(b)-1], ','), quoted...), ':'), c.Extra[name]...)
		b = append(b, '}')
	}
	return b, nil
}

// UnmarshalJSON reads a control document. A known member that cannot be read is an error: no person edits it.
func (c *Control) UnmarshalJSON(raw []byte) error {
	var own controlMembers
	if err := json.Unmarshal(raw, &own); err != nil {
		return fmt.Errorf("breaker: read the control document: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("breaker: read the control document: %w", err)
	}
	for _, name := range controlNames() {
		delete(all, name)
	}
	*c = Control(own)
	if len(all) > 0 {
		c.Extra = all
	}
	return nil
}

// errControl is the error of a command that other instances would not see.
func errControl() error {
	return fault.New(fault.Infrastructure, op, CodeControl,
		"the control document is not available, so other instances would not see the change")
}

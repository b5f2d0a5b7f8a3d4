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

// Control is the control document: what all instances of an app must agree on. It is written as one value; members that
// this build does not know are carried over, because old and new builds run together.
type Control struct {
	// Breaker is the breaker in front of SQL.
	Breaker State `json:"breaker"`
	// Transitions are those of the breaker that the audit log does not have yet: it is in the database that was away.
	Transitions []Transition `json:"transitions,omitempty"`
	// Applied says for the latest builds when content was last written, newest first.
	Applied []Applied `json:"applied,omitempty"`
	// Heartbeat is the row of the table heartbeat in the database that was written to last: each request compares it.
	Heartbeat Heartbeat `json:"heartbeat,omitzero"`
	// Failing counts the documents that began to fail, by code.
	Failing []Failing `json:"failing,omitempty"`
	// Poison counts the poison messages of the running hour.
	Poison PoisonCount `json:"poison"`
	// Feed is how far the change feed is behind.
	Feed FeedLag `json:"feed"`
	// AppVersion is the build that wrote last.
	AppVersion string `json:"app_version,omitempty"`
	// Extra holds the members that we do not know, untouched.
	Extra map[string]json.RawMessage `json:"-"`
}

// ControlStore keeps the one control document of an app: what all its instances must agree on.
type ControlStore interface {
	// Load gives the control document and its etag. One that is not there is the zero Control with an empty etag.
	// Errors by kind: infrastructure (a container that is missing too), throttled.
	Load(ctx context.Context) (Control, string, error)
	// Store writes the whole control document if it still has the etag (empty: if it is still not there) and answers the
	// new one. Errors by kind: condition Changed when it is another (nothing was done); infrastructure (it may or may not
	// have been written), throttled.
	Store(ctx context.Context, c Control, etag string) (string, error)
}

// Applied is when a build last wrote content.
type Applied struct {
	// Build is the version and the settings file: what another build can write says nothing about this one.
	Build string    `json:"build"`
	At    time.Time `json:"at"`
}

// Failing counts documents that failed for the first time with one code.
type Failing struct {
	Code string `json:"code"`
	// Documents is how many since Since; LastAt is when the latest did.
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
	LastAt    time.Time `json:"last_at"`
}

// Transition is a change of the breaker for the audit log.
type Transition struct {
	At time.Time `json:"at"`
	// From and To are states; by a person's word To may be half_open.
	From Name `json:"from"`
	To   Name `json:"to"`
	// By is the instance or the person; Why and Code are the reason.
	By   string `json:"by"`
	Why  string `json:"why"`
	Code string `json:"code,omitempty"`
	// StoppedFor is how long it had stopped, in seconds, for a transition to closed.
	StoppedFor int `json:"stopped_s,omitempty"`
	// Forced says which heartbeats were given up for which, when a person accepted a database that is not the one written to last.
	Forced string `json:"forced,omitempty"`
}

// PoisonCount counts poison messages per hour.
type PoisonCount struct {
	// Hour is the beginning of the hour that Count speaks of.
	Hour  time.Time `json:"hour,omitzero"`
	Count int       `json:"count,omitempty"`
}

// FeedLag is how old the oldest document of a batch was when the batch was done.
type FeedLag struct {
	Seconds int64     `json:"lag_seconds,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

const (
	// mostBuilds is how many builds the control document remembers, mostTransitions how many changes wait for the audit
	// log (the log has them all), mostCodes how many codes are counted.
	mostBuilds      = 5
	mostTransitions = 20
	mostCodes       = 8
	// failingForget is when a code is forgotten with which nothing new has failed; massFailure is from how many documents on
	// the operators are told.
	failingForget = time.Hour
	massFailure   = 20
)

// AppliedBy is when a build last wrote content; zero when it is not known to have.
func (c Control) AppliedBy(build string) time.Time {
	for _, a := range c.Applied {
		if a.Build == build {
			return a.At
		}
	}
	return time.Time{}
}

// LastApplied is when any build last wrote content.
func (c Control) LastApplied() time.Time {
	var last time.Time
	for _, a := range c.Applied {
		if a.At.After(last) {
			last = a.At
		}
	}
	return last
}

// othersReach is when SQL last answered anybody else, as far as it is known: something was applied, or another instance let
// work pass again.
func (c Control) othersReach(instance string) time.Time {
	last := c.LastApplied()
	if !c.Breaker.Stopped() && c.Breaker.HeldBy != instance && c.Breaker.ChangedAt.After(last) {
		last = c.Breaker.ChangedAt
	}
	return last
}

// noteApplied moves a build's time forward, never back.
func (c *Control) noteApplied(build string, at time.Time) {
	if !at.After(c.AppliedBy(build)) {
		return
	}
	others := slices.DeleteFunc(slices.Clone(c.Applied), func(a Applied) bool { return a.Build == build })
	c.Applied = append([]Applied{{build, at}}, others...)
	c.Applied = c.Applied[:min(len(c.Applied), mostBuilds)]
}

// noteHeartbeat moves the heartbeat's number forward, never back, and never to another database: only a person does that.
func (c *Control) noteHeartbeat(row Heartbeat) {
	if c.Heartbeat.Number == 0 || (c.Heartbeat.DatabaseID == row.DatabaseID && c.Heartbeat.Number < row.Number) {
		c.Heartbeat = row
	}
}

// noteFailing adds documents that failed for the first time, and forgets codes that have been silent for an hour.
func (c *Control) noteFailing(found []Failing, now time.Time) {
	all := slices.DeleteFunc(slices.Clone(c.Failing), func(f Failing) bool { return now.Sub(f.LastAt) > failingForget })
	for _, f := range found {
		at := slices.IndexFunc(all, func(a Failing) bool { return a.Code == f.Code })
		if at < 0 {
			all = append(all, f)
			continue
		}
		if all[at].Documents < massFailure && now.Sub(all[at].Since) > failingForget {
			all[at] = f // so few in so long are no mass
			continue
		}
		all[at].Documents += f.Documents
		if f.LastAt.After(all[at].LastAt) {
			all[at].LastAt = f.LastAt
		}
	}
	slices.SortStableFunc(all, func(a, b Failing) int { return b.LastAt.Compare(a.LastAt) })
	c.Failing = all[:min(len(all), mostCodes)]
}

// MassFailures are the codes with which so many documents began to fail that somebody should look.
func (c Control) MassFailures(now time.Time) []Failing {
	return slices.DeleteFunc(slices.Clone(c.Failing), func(f Failing) bool {
		return f.Documents < massFailure || now.Sub(f.LastAt) > failingForget
	})
}

// PoisonSince is how many poison messages were made in the hour of now.
func (c Control) PoisonSince(now time.Time) int {
	if !c.Poison.Hour.Equal(now.Truncate(time.Hour)) {
		return 0
	}
	return c.Poison.Count
}

// take passes an event to the breaker. It reports whether that changed anything.
func (c *Control) take(in input, now time.Time) bool {
	was := c.Breaker
	c.Breaker = was.next(in, now)
	if c.Breaker == was {
		return false
	}
	c.note(was, in, now)
	return true
}

// note keeps a change of the breaker for the audit log: every one that a person made, and those between closed and open. Probes
// and the ramp are not told.
func (c *Control) note(was State, in input, now time.Time) {
	is := c.Breaker
	said := in.event == paused || in.event == resumed
	from, to := was.name(), is.name()
	if !said && (to == HalfOpen || (from == HalfOpen && to == Open) || from == to) {
		return
	}
	t := Transition{At: now.UTC().Round(0), From: from, To: to, By: is.HeldBy, Why: is.Reason, Code: is.Code}
	switch {
	case said:
		t.Why, t.Forced = in.reason, in.forced
	case to == Closed:
		t.StoppedFor, t.Why, t.Code = int(now.Sub(was.Since)/time.Second), was.Reason, was.Code
	}
	c.Transitions = append(slices.Clone(c.Transitions), t)
	c.Transitions = c.Transitions[max(0, len(c.Transitions)-mostTransitions):]
}

// clone is a copy that can be changed.
func (c Control) clone() Control {
	c.Applied, c.Failing, c.Transitions = slices.Clone(c.Applied), slices.Clone(c.Failing), slices.Clone(c.Transitions)
	return c
}

// controlMembers is Control without its methods, for encoding/json.
type controlMembers Control

// controlNames are the members of our own.
func controlNames() []string {
	return []string{"breaker", "transitions", "applied", "heartbeat", "failing", "poison", "feed", "app_version"}
}

// MarshalJSON writes the members of our own, then those of Extra that are not ours.
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

// UnmarshalJSON reads a control document; a member of ours that cannot be read is an error: nobody edits it by hand.
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

// errControl is the error of a command that the other instances would not learn of.
func errControl() error {
	return fault.New(fault.Infrastructure, op, CodeControl, "the control document cannot be had, so the other instances would not know")
}

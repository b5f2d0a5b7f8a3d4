package writer

import (
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
	// Gate is the state of the gate in front of SQL.
	Gate GateState `json:"gate"`
	// Suspects are the documents that failed alike, by code.
	Suspects []Suspects `json:"suspects,omitempty"`
	// AppliedAt is when a document was last written, or found written, by anybody. It lags by a few seconds.
	AppliedAt time.Time `json:"applied_at,omitzero"`
	// AppliedBy is the app version that wrote it: what another build can write says nothing for this one.
	AppliedBy string `json:"applied_by,omitempty"`
	// Poison counts the poison pills of the running hour.
	Poison PoisonCount `json:"poison"`
	// Feed is how far the change feed is behind.
	Feed FeedLag `json:"feed"`
	// AppVersion is the build that wrote last.
	AppVersion string `json:"app_version,omitempty"`
	// Extra holds the members that we do not know, untouched.
	Extra map[string]json.RawMessage `json:"-"`
}

// GateState is the gate in front of SQL: closed (flowing) while OpenUntil is zero, otherwise open (nothing passes) until
// then, when a probe may be made. The words are those of a circuit breaker.
type GateState struct {
	// Limit is the most documents of one SQL request of one instance; 0 means no limit but the writer's own.
	Limit int `json:"limit,omitempty"`
	// RaisedAt is when Limit last changed.
	RaisedAt time.Time `json:"raised_at,omitzero"`
	// OpenUntil is when the next probe may be claimed; zero while the gate is closed.
	OpenUntil time.Time `json:"open_until,omitzero"`
	// Paused says that an operator holds the gate open, whatever OpenUntil is; there are no probes.
	Paused bool `json:"paused,omitempty"`
	// Kind and Code are those of the failure that opened the gate; Reason says it for people.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Since is when the gate opened, or closed when it is closed.
	Since time.Time `json:"since,omitzero"`
	// HeldBy is the instance that opened the gate or claimed the probe, or the person who paused it.
	HeldBy string `json:"held_by,omitempty"`
	// Step counts the waits of a schedule that grows (throttled, quota, systemic).
	Step int `json:"step,omitempty"`
	// OpenedBy is the app version under which the gate became systemic: another one closes it.
	OpenedBy string `json:"opened_by,omitempty"`
}

// Suspects are different documents that failed with one code and no success between. Twenty of them make it systemic.
type Suspects struct {
	Code string `json:"code"`
	// Since is when the first one failed.
	Since time.Time `json:"since,omitzero"`
	// ContrastAt is when another document was written after they failed: they are to blame themselves, and do not count
	// any more. Zero until then.
	ContrastAt time.Time `json:"contrast_at,omitzero"`
	// Documents are their ids, the latest hundred.
	Documents []string `json:"documents,omitempty"`
}

// PoisonCount counts poison pills per hour.
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

// controlMembers is Control without its methods, for encoding/json.
type controlMembers Control

// MarshalJSON writes the members of our own, then those of Extra that are not ours.
func (c Control) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(controlMembers(c))
	if err != nil {
		return nil, fmt.Errorf("writer: write the control document: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Extra)) {
		if slices.Contains(controlNames(), name) || len(c.Extra[name]) == 0 {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("writer: write the control document: %w", err)
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
		return fmt.Errorf("writer: read the control document: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("writer: read the control document: %w", err)
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

// controlNames are the members of our own.
func controlNames() []string {
	return []string{"gate", "suspects", "applied_at", "applied_by", "poison", "feed", "app_version"}
}

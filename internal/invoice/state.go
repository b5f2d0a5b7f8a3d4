package invoice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
)

// Status is sql_writer.status. Other programs count the first four.
type Status string

// The statuses. Only the old writer writes Processing.
const (
	Pending        Status = "pending"
	RetryScheduled Status = "retry_scheduled"
	Committed      Status = "committed"
	Failed         Status = "failed"
	Processing     Status = "processing"
)

// State is the member sql_writer: what we know about a document. It is patched as one value, so Extra preserves unknown
// members.
type State struct {
	// Present is false if the document has no object sql_writer.
	Present bool
	// Status is lower case; StatusFound is the original text. Unknown texts stay in both. An empty Status means that
	// the document was never offered.
	Status      Status
	StatusFound string
	// Outcome is the result of a committed document: applied, unchanged, superseded, or manual after an operator's
	// command. SupersededBy names the newer document.
	Outcome      Outcome
	SupersededBy string
	// RetryCount is the number of retries that the document's own errors have used, at most five.
	RetryCount int
	// RetryAfter is the earliest next try, in seconds since 1970; 0 (also if missing or not a number) means now. See
	// Due.
	RetryAfter int64
	// Postponed is true when the retries are spent: the next failure may be the last. Only the JSON value true counts.
	Postponed bool
	// FirstFailedAt is the document's first own failure since it was committed or reset. It has the layout of Stamp.
	FirstFailedAt string
	// LastError is at most MaxErrorBytes.
	LastError     string
	LastErrorAt   string
	LastErrorKind string
	// LastErrorCode is the dependency's number or the name of our rule.
	LastErrorCode string
	CommittedAt   string
	FailedAt      string
	// Error and FinalError are written with status failed: the reason, and the lines without a failure mark.
	Error      string
	FinalError string
	// ReprocessCount is how often an operator has reset the document.
	ReprocessCount int
	// Version is Version.US for an id without a time; 0 if not set.
	Version int64
	// Attempts are the last MaxAttempts failures, oldest first.
	Attempts []Attempt
	// Extra has the unknown members, unchanged.
	Extra map[string]json.RawMessage
}

// Attempt is one failure. Times have the layout of Stamp.
type Attempt struct {
	At      string `json:"at"`
	Kind    string `json:"kind"`
	Code    string `json:"code,omitempty"`
	Error   string `json:"error"`
	NextTry string `json:"next_try,omitempty"`
}

// MaxAttempts is the length of State.Attempts; MaxErrorBytes bounds every error text in a document.
const (
	MaxAttempts   = 10
	MaxErrorBytes = 1024
)

// statusUnreadable is the status if the member is not a text or is empty. It counts as unknown.
const statusUnreadable = "unreadable"

// ResetByHand reports whether an operator has set a failed document back to pending: it still has failed_at. It then
// starts again with Afresh.
func (s State) ResetByHand() bool { return s.Status == Pending && s.FailedAt != "" }

// Afresh is the state of a reset document: no retries used, ReprocessCount + 1, and no sign of failure. The attempts
// stay.
func (s State) Afresh() State {
	s.RetryCount, s.RetryAfter = 0, 0
	s.ReprocessCount++
	s.FailedAt, s.Error, s.FinalError = "", "", ""
	s.Postponed, s.FirstFailedAt = false, ""
	return s
}

// wireState is sql_writer as written: retry_count always, other members if they are not empty.
type wireState struct {
	Status         Status    `json:"status,omitempty"`
	RetryCount     int       `json:"retry_count"`
	Outcome        Outcome   `json:"outcome,omitempty"`
	SupersededBy   string    `json:"superseded_by,omitempty"`
	RetryAfter     int64     `json:"retry_after,omitempty"`
	Postponed      bool      `json:"postponed,omitempty"`
	FirstFailedAt  string    `json:"first_failed_at,omitempty"`
	LastError      string    `json:"last_error,omitempty"`
	LastErrorAt    string    `json:"last_error_at,omitempty"`
	LastErrorKind  string    `json:"last_error_kind,omitempty"`
	LastErrorCode  string    `json:"last_error_code,omitempty"`
	CommittedAt    string    `json:"committed_at,omitempty"`
	FailedAt       string    `json:"failed_at,omitempty"`
	Error          string    `json:"error,omitempty"`
	FinalError     string    `json:"final_error,omitempty"`
	ReprocessCount int       `json:"reprocess_count,omitempty"`
	Version        int64     `json:"version,omitempty"`
	Attempts       []Attempt `json:"attempts,omitempty"`
}

// MarshalJSON writes sql_writer. Error texts are cut to MaxErrorBytes and attempts to the last MaxAttempts. An empty
// status is omitted: writing one would offer the document.
//
// Members of Extra follow unchanged, except those with our names. A json.Marshal around this may still compact white
// space and escape <, > and &.
func (s State) MarshalJSON() ([]byte, error) {
	w := wireState{
		Status: s.Status, RetryCount: s.RetryCount, Outcome: s.Outcome, SupersededBy: s.SupersededBy,
		RetryAfter: s.RetryAfter, Postponed: s.Postponed, FirstFailedAt: s.FirstFailedAt,
		LastError: fault.Truncate(s.LastError, MaxErrorBytes), LastErrorAt: s.LastErrorAt,
		LastErrorKind: s.LastErrorKind, LastErrorCode: s.LastErrorCode,
		CommittedAt: s.CommittedAt, FailedAt: s.FailedAt,
		Error: fault.Truncate(s.Error, MaxErrorBytes), FinalError: fault.Truncate(s.FinalError, MaxErrorBytes),
		ReprocessCount: s.ReprocessCount, Version: s.Version,
	}
	for _, a := range s.Attempts[max(0, len(s.Attempts)-MaxAttempts):] {
		a.Error = fault.Truncate(a.Error, MaxErrorBytes)
		w.Attempts = append(w.Attempts, a)
	}
	b, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("invoice: write sql_writer: %w", err)
	}
	b = b[:len(b)-1]
	var own State
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		if own.set(name, nil) || len(s.Extra[name]) == 0 {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("invoice: write sql_writer: %w", err)
		}
		b = append(append(append(append(b, ','), quoted...), ':'), s.Extra[name]...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads sql_writer. Known members of a wrong type count as empty: a document must not be stuck because a
// person wrote "0" for 0. Null is an absent state; any other value that is not an object is an error.
func (s *State) UnmarshalJSON(raw []byte) error {
	if !json.Valid(raw) {
		return errors.New("invoice: read sql_writer: not JSON")
	}
	raw = bytes.Trim(raw, " \t\r\n")
	switch t := typeOf(raw); t {
	case jsonNull:
		*s = State{}
	case jsonObject:
		*s = readState(raw)
	default:
		return fmt.Errorf("invoice: read sql_writer: expected an object, found %s", t)
	}
	return nil
}

// readState reads the object sql_writer, which must be valid JSON.
func readState(object []byte) State {
	s := State{Present: true}
	eachMember(object, func(name, value []byte) {
		if s.set(string(name), value) {
			return
		}
		if s.Extra == nil {
			s.Extra = map[string]json.RawMessage{}
		}
		s.Extra[string(name)] = bytes.Clone(value)
	})
	return s
}

// set reads a known member; false if the name is unknown.
func (s *State) set(name string, value []byte) bool {
	switch name {
	case "status":
		s.setStatus(value)
	case "retry_count":
		s.RetryCount = count(value)
	case "outcome":
		s.Outcome = Outcome(lenientText(value))
	case "superseded_by":
		s.SupersededBy = lenientText(value)
	case "retry_after":
		s.RetryAfter = wholeSecondsUp(value)
	case "last_error":
		s.LastError = lenientText(value)
	case "last_error_at":
		s.LastErrorAt = lenientText(value)
	case "last_error_kind":
		s.LastErrorKind = lenientText(value)
	case "last_error_code":
		s.LastErrorCode = lenientText(value)
	case "postponed":
		s.Postponed = string(value) == "true"
	case "first_failed_at":
		s.FirstFailedAt = lenientText(value)
	case "committed_at":
		s.CommittedAt = lenientText(value)
	case "failed_at":
		s.FailedAt = lenientText(value)
	case "error":
		s.Error = lenientText(value)
	case "final_error":
		s.FinalError = lenientText(value)
	case "reprocess_count":
		s.ReprocessCount = count(value)
	case "version":
		s.Version = wholeNumber(value)
	case "attempts":
		s.Attempts = readAttempts(value)
	default:
		return false
	}
	return true
}

func (s *State) setStatus(value []byte) {
	s.StatusFound = lenientText(value)
	switch typeOf(value) {
	case absent, jsonNull:
		s.Status = ""
	case jsonText:
		s.Status = Status(strings.ToLower(strings.TrimSpace(s.StatusFound)))
		if s.Status == "" {
			s.Status = statusUnreadable
		}
	case jsonBool, jsonNumber, jsonList, jsonObject:
		s.Status = statusUnreadable
	}
}

// readAttempts reads the attempts and skips elements that are not objects.
func readAttempts(value []byte) []Attempt {
	if typeOf(value) != jsonList {
		return nil
	}
	var attempts []Attempt
	eachElement(value, func(_ int, element []byte) {
		if typeOf(element) != jsonObject {
			return
		}
		var a Attempt
		eachMember(element, func(name, v []byte) {
			switch string(name) {
			case "at":
				a.At = lenientText(v)
			case "kind":
				a.Kind = lenientText(v)
			case "code":
				a.Code = lenientText(v)
			case "error":
				a.Error = lenientText(v)
			case "next_try":
				a.NextTry = lenientText(v)
			}
		})
		attempts = append(attempts, a)
	})
	return attempts
}

// lenientText returns a text member, or the JSON text of a number or boolean; lists, objects and null are "".
func lenientText(value []byte) string {
	switch typeOf(value) {
	case jsonText:
		return decode(value)
	case jsonNumber, jsonBool:
		return string(value)
	case absent, jsonNull, jsonList, jsonObject:
	}
	return ""
}

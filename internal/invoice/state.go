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

// Status is sql_writer.status. Readers outside count these four.
type Status string

// The statuses. Processing belongs to the old writer and is never written by us.
const (
	Pending        Status = "pending"
	RetryScheduled Status = "retry_scheduled"
	Committed      Status = "committed"
	Failed         Status = "failed"
	Processing     Status = "processing"
)

// State is the member sql_writer: everything we know and promise about a document. It is patched as one value, so
// members that we do not know are carried over in Extra.
type State struct {
	// Present is false when the document has no object sql_writer.
	Present bool
	// Status is normalised to lower case; StatusFound is the text as it stood. An unknown text stays in both. Status is
	// empty when there is none: the document was never offered.
	Status      Status
	StatusFound string
	// Outcome says how a committed document ended: applied, unchanged, superseded, or manual when an operator said so;
	// SupersededBy names the newer document.
	Outcome      string
	SupersededBy string
	// RetryCount is how many retries the document's own errors have spent.
	RetryCount int
	// RetryAfter is when the next try is due, epoch seconds; 0 (missing, or not a number) means due. See Due.
	RetryAfter int64
	// Postponed is true while nothing was applied since the document's last failure. Only the JSON value true is true.
	Postponed bool
	// LastError (at most 1 KB), LastErrorAt, LastErrorKind speak of the last failure.
	LastError     string
	LastErrorAt   string
	LastErrorKind string
	// LastErrorCode is the dependency's number or our rule's name for it.
	LastErrorCode string
	CommittedAt   string
	FailedAt      string
	// Error and FinalError are written with status failed: why, and what could not be marked in SQL.
	Error      string
	FinalError string
	// ReprocessCount is how often a person reset the document.
	ReprocessCount int
	// Version is the version's microseconds for an id without a time; 0 when there is none.
	Version int64
	// Attempts are the last ten failures, oldest first.
	Attempts []Attempt
	// Extra holds the members that we do not know, untouched.
	Extra map[string]json.RawMessage
}

// Attempt is one failure in a document's history. Times are stamps in the layout that readers know.
type Attempt struct {
	At      string `json:"at"`
	Kind    string `json:"kind"`
	Code    string `json:"code,omitempty"`
	Error   string `json:"error"`
	NextTry string `json:"next_try,omitempty"`
}

// MaxAttempts is how many attempts a document remembers; MaxErrorBytes bounds every error text in it.
const (
	MaxAttempts   = 10
	MaxErrorBytes = 1024
)

// statusUnreadable stands for a status that is no text or an empty one. Nobody agreed on it, so it is an unknown status.
const statusUnreadable = "unreadable"

// ResetByHand reports whether a person has set a failed document back to pending: it still carries failed_at. It then
// starts afresh (see Afresh).
func (s State) ResetByHand() bool { return s.Status == Pending && s.FailedAt != "" }

// Afresh is the state of a document that a person has reset: no retries spent, one reprocessing more, and nothing
// that says failed. The history of attempts stays.
func (s State) Afresh() State {
	s.RetryCount, s.RetryAfter = 0, 0
	s.ReprocessCount++
	s.FailedAt, s.Error, s.FinalError = "", "", ""
	s.Postponed = false
	return s
}

// wireState is sql_writer as it is written: retry_count always, the others when they say something.
type wireState struct {
	Status         Status    `json:"status,omitempty"`
	RetryCount     int       `json:"retry_count"`
	Outcome        string    `json:"outcome,omitempty"`
	SupersededBy   string    `json:"superseded_by,omitempty"`
	RetryAfter     int64     `json:"retry_after,omitempty"`
	Postponed      bool      `json:"postponed,omitempty"`
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

// MarshalJSON writes sql_writer. Error texts are cut to MaxErrorBytes and attempts to the last MaxAttempts, so the
// member stays small whatever went wrong. A state without a status gets none: writing it would offer the document. Members of Extra follow byte for byte (json.Marshal around this compacts
// white space and escapes <, > and & inside texts, which changes no value); names of our own are not taken from there.
func (s State) MarshalJSON() ([]byte, error) {
	w := wireState{
		Status: s.Status, RetryCount: s.RetryCount, Outcome: s.Outcome, SupersededBy: s.SupersededBy,
		RetryAfter: s.RetryAfter, Postponed: s.Postponed, LastError: fault.Truncate(s.LastError, MaxErrorBytes), LastErrorAt: s.LastErrorAt,
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

// UnmarshalJSON reads sql_writer. Members of our own with a wrong type never fail, they count as empty: the state says
// how far we came, and a document must not be stuck because somebody's editor wrote "0" for 0. Null is a state that is
// not there; anything else but an object is an error.
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

// set fills one of our own members; false when the name is none of ours.
func (s *State) set(name string, value []byte) bool {
	switch name {
	case "status":
		s.setStatus(value)
	case "retry_count":
		s.RetryCount = count(value)
	case "outcome":
		s.Outcome = loose(value)
	case "superseded_by":
		s.SupersededBy = loose(value)
	case "retry_after":
		s.RetryAfter = wholeUp(value)
	case "last_error":
		s.LastError = loose(value)
	case "last_error_at":
		s.LastErrorAt = loose(value)
	case "last_error_kind":
		s.LastErrorKind = loose(value)
	case "last_error_code":
		s.LastErrorCode = loose(value)
	case "postponed":
		s.Postponed = string(value) == "true"
	case "committed_at":
		s.CommittedAt = loose(value)
	case "failed_at":
		s.FailedAt = loose(value)
	case "error":
		s.Error = loose(value)
	case "final_error":
		s.FinalError = loose(value)
	case "reprocess_count":
		s.ReprocessCount = count(value)
	case "version":
		s.Version = whole(value)
	case "attempts":
		s.Attempts = readAttempts(value)
	default:
		return false
	}
	return true
}

func (s *State) setStatus(value []byte) {
	s.StatusFound = loose(value)
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

// readAttempts reads the history; what is no attempt is left out.
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
				a.At = loose(v)
			case "kind":
				a.Kind = loose(v)
			case "code":
				a.Code = loose(v)
			case "error":
				a.Error = loose(v)
			case "next_try":
				a.NextTry = loose(v)
			}
		})
		attempts = append(attempts, a)
	})
	return attempts
}

// loose gives a text member, or the JSON text of a number or boolean that somebody wrote instead; lists, objects and
// null are "".
func loose(value []byte) string {
	switch typeOf(value) {
	case jsonText:
		return decode(value)
	case jsonNumber, jsonBool:
		return string(value)
	case absent, jsonNull, jsonList, jsonObject:
	}
	return ""
}

package run

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"sqlwriter/internal/fault"
)

// The longest texts that a Store and the audit log keep, in UTF-16 units, as nvarchar counts them.
const (
	// MaxRunID bounds the id of a run. A longer one is refused.
	MaxRunID = 64
	// MaxKind bounds the kind of a run and Audit.Action.
	MaxKind = 40
	// MaxBy bounds names of people.
	MaxBy = 256
	// MaxWhy bounds reasons.
	MaxWhy = 2000
	// MaxSubject bounds Audit.Subject. The longest id of Cosmos DB fits.
	MaxSubject = 1023
)

// Normalize returns the run as Store.StartRun stores it, with truncated texts. Errors by kind: internal. Code "run_id":
// the ID is not 1 to MaxRunID visible ASCII characters. Code "bug": Filter is neither empty nor JSON.
func (r Run) Normalize() (Run, error) {
	if !IsRunID(r.ID) {
		return Run{},
			fault.New(fault.Internal, "run: run", "run_id",
				"expected 1 to %d visible ASCII characters, found %d bytes", MaxRunID, len(r.ID))
	}
	var err error
	if r.Filter, err = normalizeJSON("run: run", r.Filter); err != nil {
		return Run{}, err
	}
	r.Kind, r.RequestedBy, r.Why = Kind(Truncate(string(r.Kind), MaxKind)),
		Truncate(r.RequestedBy, MaxBy), Truncate(r.Why, MaxWhy)
	return r, nil
}

// IsRunID accepts 1 to MaxRunID characters of visible ASCII: a collation could take other characters for the same.
func IsRunID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= MaxRunID
}

// normalizeJSON replaces bytes that are not UTF-8; empty is nil.
func normalizeJSON(op string, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil,
			fault.New(fault.Internal, op, fault.CodeBug, "expected JSON, found %d bytes of something else", len(raw))
	}
	return json.RawMessage(clean(string(raw))), nil
}

// cut ends a truncated text.
const cut = '…'

// Truncate is text as far as it fits into limit UTF-16 units. A longer text is cut between two characters, and an
// ellipsis takes the last place, so that a reader sees it. NUL and bytes that are not UTF-8, which databases keep
// differently, become U+FFFD.
func Truncate(text string, limit int) string {
	text = clean(text)
	units, end := 0, 0 // end is where the text is cut to leave room for the ellipsis
	for i, r := range text {
		if units < limit {
			end = i
		}
		if units += width(r); units > limit {
			return text[:end] + string(cut)
		}
	}
	return text
}

// width is how many UTF-16 units a character takes.
func width(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// clean replaces characters and bytes that databases keep differently.
func clean(text string) string {
	return strings.Map(func(r rune) rune { // a byte that is no UTF-8 comes as RuneError
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, text)
}

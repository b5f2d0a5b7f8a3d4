package writer

import (
	"strings"

	"sqlwriter/internal/invoice"
)

// Spellings are the texts that a Backlog finds for a status: lower case, upper case and capitalised. A database that
// compares texts by an index compares them exactly.
func Spellings(status invoice.Status) []string {
	lower := strings.ToLower(string(status))
	upper := strings.ToUpper(lower)
	if lower == "" {
		return nil
	}
	return []string{lower, upper, upper[:1] + lower[1:]}
}

// WaitingOf makes the entry of a document from what it says of itself, read as leniently as everywhere.
func WaitingOf(id string, ts int64, state invoice.State) Waiting {
	return Waiting{
		ID: id, TS: ts, Status: state.Status, RetryAfter: state.RetryAfter,
		Kind: state.LastErrorKind, Code: state.LastErrorCode, FailedAt: state.FailedAt,
	}
}

package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Blame (docs/requirements.md R40): a document's failure counts only when another document was applied at least a minute
// after it. retry_count includes the last failure; the next failure takes an unproven one back. An outage of everything
// therefore never counts.

// maxFailures is the limit of proven own failures: five retries, and a sixth failure that only a later success proves.
const maxFailures = MaxRetries + 1

// unreadableFailures is the limit for a document that cannot be read as a result: no retry can repair it.
const unreadableFailures = 1

// failsAlone is the number of failures alone, like an outage, after which the failure is the document's own.
const failsAlone = 3

// CodeFailsAlone is the code of a document whose request fails like an outage each time it is sent alone, while others
// succeed.
const CodeFailsAlone = "fails_alone"

// isOwn reports whether an error is the document's own.
func isOwn(err error) bool {
	return err != nil && fault.ScopeOf(fault.KindOf(err)) == fault.ScopeDocument
}

// ownKind reports whether a document's last_error_kind is one of its own failures.
func ownKind(kind string) bool {
	return kind == string(fault.Document) || kind == string(fault.Internal)
}

// lastFailure is the time of a document's last own failure; false without one, or when its time is unknown.
func lastFailure(s invoice.State, loc *time.Location) (time.Time, bool) {
	if s.RetryCount == 0 {
		return time.Time{}, false
	}
	at := ""
	if ownKind(s.LastErrorKind) {
		at = s.LastErrorAt
	} else {
		for _, a := range s.Attempts {
			if ownKind(a.Kind) {
				at = a.At
			}
		}
	}
	return invoice.ParseStamp(at, loc)
}

// ownFailures counts the own failures in a document's history, proven or not.
func ownFailures(s invoice.State) int {
	n := 0
	for _, a := range present(s) {
		if ownKind(a.Kind) {
			n++
		}
	}
	return max(n, s.RetryCount)
}

// present are the attempts since the document last failed for good: a reset keeps the earlier ones as history.
func present(s invoice.State) []invoice.Attempt {
	from := 0
	for i, a := range s.Attempts {
		if a.NextTry == "" {
			from = i + 1
		}
	}
	return s.Attempts[from:]
}

// alone makes the third failure that looked like an outage the document's own.
func alone(s invoice.State, err error) error {
	if !fault.Has(err, fault.OthersAnswered) || outages(s) < failsAlone-1 {
		return err
	}
	return &fault.Error{
		Kind: fault.Internal, Code: CodeFailsAlone, Op: "commit: apply", Err: err,
		Reason: "the request fails like an outage each time that this document is sent alone, while the database answers others",
	}
}

// outages counts the failures in a document's history that looked like an outage.
func outages(s invoice.State) int {
	n := 0
	for _, a := range present(s) {
		if a.Kind == string(fault.Infrastructure) || a.Code == CodeFailsAlone {
			n++
		}
	}
	return n
}

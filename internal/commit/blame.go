package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Blame (docs/requirements.md R40): a document's failure counts when others got through after it. retry_count counts its own
// failures; at its next one the failure before is taken back, unless something was applied at least a minute after it. So a
// failure is proven by what comes later, and a break of everything proves nothing.

// maxFailures is how many own failures a document may have, each proven: five retries, and one more because the sixth failure is
// proven only by what comes after it.
const maxFailures = MaxRetries + 1

// unreadableFailures is the same for a document that cannot be read as a result: no retry mends it.
const unreadableFailures = 1

// failsAlone is how often a document may fail like an outage by itself before that is its own failure.
const failsAlone = 3

// CodeFailsAlone is the code of a document that fails like an outage each time, alone, while others are answered.
const CodeFailsAlone = "fails_alone"

// isOwn reports whether an error is the document's own.
func isOwn(err error) bool {
	return err != nil && fault.ScopeOf(fault.KindOf(err)) == fault.ScopeDocument
}

// ownKind reports whether a kind as it stands in a document is one of its own failures.
func ownKind(kind string) bool {
	return kind == string(fault.Document) || kind == string(fault.Internal)
}

// lastFailure is when a document last failed by itself; false when it has no such failure or nobody knows when.
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

// ownFailures is how many own failures a document remembers, proven or not.
func ownFailures(s invoice.State) int {
	n := 0
	for _, a := range present(s) {
		if ownKind(a.Kind) {
			n++
		}
	}
	return max(n, s.RetryCount)
}

// present are the attempts since the document last failed for good: a reset keeps those before as history.
func present(s invoice.State) []invoice.Attempt {
	from := 0
	for i, a := range s.Attempts {
		if a.NextTry == "" {
			from = i + 1
		}
	}
	return s.Attempts[from:]
}

// alone makes a document's own failure of the third one that looked like an outage.
func alone(s invoice.State, err error) error {
	if !fault.Has(err, fault.OthersAnswered) || outages(s) < failsAlone-1 {
		return err
	}
	return &fault.Error{
		Kind: fault.Internal, Code: CodeFailsAlone, Op: "commit: apply", Err: err,
		Reason: "the request fails like an outage each time that this document is sent alone, while the database answers others",
	}
}

// outages is how often a document failed like an outage by itself, as far as it remembers.
func outages(s invoice.State) int {
	n := 0
	for _, a := range present(s) {
		if a.Kind == string(fault.Infrastructure) || a.Code == CodeFailsAlone {
			n++
		}
	}
	return n
}

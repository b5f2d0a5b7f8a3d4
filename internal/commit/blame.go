package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Blame (docs/requirements.md R40): a document's own failures count plainly, and the sixth spends its retries. It is
// given up only at a later failure, and only with proof: this build wrote another document a minute or more after the
// failure before. Without proof the cause may be the build or the database, so it is given up only after a day, and few
// of them.

// EndsAlone is how long a document has failed before it may be given up without proof.
const EndsAlone = 24 * time.Hour

// failsAlone is the number of failures alone, like an outage, after which the failure is the document's own.
const failsAlone = 3

// CodeFailsAlone is the code of a document whose request fails like an outage each time it is sent alone, while others
// succeed.
const CodeFailsAlone = "fails_alone"

// isOwn reports whether an error is the document's own.
func isOwn(err error) bool {
	return err != nil && fault.ScopeOf(fault.KindOf(err)) == fault.ScopeDocument
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

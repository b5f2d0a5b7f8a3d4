package invoice

import "time"

// Eligibility says whether a document may be processed now, and if not, why. It follows from the snapshot alone.
type Eligibility string

// Only Eligible documents are processed.
const (
	// Eligible: pending, a retry that is due, or abandoned by the old writer.
	Eligible Eligibility = "take"
	// NotOurs: request_details.sys_name is empty or another environment.
	NotOurs Eligibility = "not_ours"
	// NotOffered: sql_writer.status is absent. The programs that make results offer a document by the status pending
	// (docs/requirements.md R10). A document without it is never written.
	NotOffered Eligibility = "not_offered"
	// Done: committed or failed. Only an operator can reset it.
	Done Eligibility = "done"
	// NotDue: a retry before its time.
	NotDue Eligibility = "not_due"
	// InOldWriter: status processing for less than ten minutes; the old writer may still be working on it.
	InOldWriter Eligibility = "in_old_writer"
	// UnknownStatus: any other status. It is left alone and logged.
	UnknownStatus Eligibility = "unknown_status"
)

// OrphanAge is how long after its last change a document may stay pending, or processing in the old writer. An older
// one counts as left behind (docs/requirements.md R11, R28).
const OrphanAge = 10 * time.Minute

// MostAhead is the furthest a time of retry can be in the future. The longest wait is about an hour. A later time was
// set by hand or is in milliseconds, which would mean 54,000 years.
const MostAhead = 24 * time.Hour

// Due reports whether retryAfter (seconds since 1970) has passed, or is further ahead than MostAhead.
func Due(retryAfter int64, now time.Time) bool {
	return retryAfter <= now.Unix() || retryAfter > now.Add(MostAhead).Unix()
}

// Eligibility decides whether the environment sysName processes the document now. A document with a Problem is eligible
// too, so that the problem is recorded.
func (d Document) Eligibility(now time.Time, sysName string) Eligibility {
	if d.SysName == "" || d.SysName != sysName {
		return NotOurs
	}
	switch d.State.Status {
	case "":
		return NotOffered
	case Pending:
		return Eligible
	case RetryScheduled:
		if Due(d.State.RetryAfter, now) {
			return Eligible
		}
		return NotDue
	case Committed, Failed:
		return Done
	case Processing:
		if now.Sub(time.Unix(d.TS, 0)) > OrphanAge {
			return Eligible
		}
		return InOldWriter
	}
	return UnknownStatus
}

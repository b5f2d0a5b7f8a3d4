package invoice

import "time"

// Eligibility says whose turn a document is, from its snapshot alone.
type Eligibility string

// The turns. Only Take leads to work.
const (
	// Take: pending, a retry that is due, or one that the old writer left behind.
	Eligible Eligibility = "take"
	// NotOurs: request_details.sys_name is another environment's, or nobody's.
	NotOurs Eligibility = "not_ours"
	// NotOffered: no sql_writer.status. The programs that make results offer a document by the status pending
	// (docs/requirements.md R10); one without may be anything and is never written.
	NotOffered Eligibility = "not_offered"
	// Done: committed or failed. Only a person takes it up again.
	Done Eligibility = "done"
	// NotDue: a retry whose time has not come.
	NotDue Eligibility = "not_due"
	// InOldWriter: status processing, younger than ten minutes: the old writer may be at it.
	InOldWriter Eligibility = "in_old_writer"
	// UnknownStatus: a status that nobody agreed on. It is left alone, and the log says so.
	UnknownStatus Eligibility = "unknown_status"
)

// OrphanAge is how long after its last change a document may stay pending, or processing in the old writer, before it counts as left
// behind (docs/requirements.md R11, R28).
const OrphanAge = 10 * time.Minute

// MostAhead is how far ahead a time of retry can be meant. The longest wait is about an hour; a larger number was written
// by hand, or in milliseconds, which would be 54,000 years.
const MostAhead = 24 * time.Hour

// Due reports whether a retry's time has come: retryAfter is not after now, or further ahead than anybody can mean.
func Due(retryAfter int64, now time.Time) bool {
	return retryAfter <= now.Unix() || retryAfter > now.Add(MostAhead).Unix()
}

// Eligibility decides whether a document is to be taken up now by the environment sysName. A document with a Problem is taken
// up too: that is how the problem gets recorded.
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

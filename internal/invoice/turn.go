package invoice

import "time"

// Turn says whose turn a document is, from its snapshot alone.
type Turn string

// The turns. Only Take leads to work.
const (
	// Take: pending, a retry that is due, or one that the old writer left behind.
	Take Turn = "take"
	// NotOurs: request_details.sys_name is another environment's, or nobody's.
	NotOurs Turn = "not_ours"
	// NotOffered: no sql_writer.status. The programs that make results offer a document by the status pending
	// (requirements/000); one without may be anything and is never written.
	NotOffered Turn = "not_offered"
	// Done: committed or failed. Only a person takes it up again.
	Done Turn = "done"
	// NotDue: a retry whose time has not come.
	NotDue Turn = "not_due"
	// InOldWriter: status processing, younger than ten minutes: the old writer may be at it.
	InOldWriter Turn = "in_old_writer"
	// UnknownStatus: a status that nobody agreed on. It is left alone, and the log says so.
	UnknownStatus Turn = "unknown_status"
)

// oldWriterAge is how long a document may be processing before it counts as left behind (design.md section 2).
const oldWriterAge = 10 * time.Minute

// MostAhead is how far ahead a time of retry can be meant. The longest wait is about an hour; a larger number was written
// by hand, or in milliseconds, which would be 54,000 years.
const MostAhead = 24 * time.Hour

// Due reports whether a retry's time has come: retryAfter is not after now, or further ahead than anybody can mean.
func Due(retryAfter int64, now time.Time) bool {
	return retryAfter <= now.Unix() || retryAfter > now.Add(MostAhead).Unix()
}

// Turn decides whether a document is to be taken up now by the environment sysName. A document with a Problem is taken
// up too: that is how the problem gets recorded.
func (d Document) Turn(now time.Time, sysName string) Turn {
	if d.SysName == "" || d.SysName != sysName {
		return NotOurs
	}
	switch d.State.Status {
	case "":
		return NotOffered
	case Pending:
		return Take
	case RetryScheduled:
		if Due(d.State.RetryAfter, now) {
			return Take
		}
		return NotDue
	case Committed, Failed:
		return Done
	case Processing:
		if now.Sub(time.Unix(d.TS, 0)) > oldWriterAge {
			return Take
		}
		return InOldWriter
	}
	return UnknownStatus
}

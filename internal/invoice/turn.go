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

// Turn decides whether a document is to be taken up now by the environment sysName. A document with a Problem is taken
// up too: that is how the problem gets recorded.
func (d Document) Turn(now time.Time, sysName string) Turn {
	if d.SysName == "" || d.SysName != sysName {
		return NotOurs
	}
	if !d.State.Present {
		return Take
	}
	switch d.State.Status {
	case Pending:
		return Take
	case RetryScheduled:
		if d.State.RetryAfter > now.Unix() {
			return NotDue
		}
		return Take
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

package commit

import (
	"fmt"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// transitions makes the next sql_writer of a document: state in, state out. The clock is read for each, because a batch
// may take minutes and a retry must not be early.
type transitions struct {
	now  func() time.Time
	loc  *time.Location
	draw func() float64
	// reprocess says that a person wants failed documents tried again.
	reprocess bool
}

// begin is what every transition starts from: a document that a person reset, by hand or by asking for it again, starts its
// budget anew.
func (t transitions) begin(s invoice.State) invoice.State {
	if s.ResetByHand() || (s.Status == invoice.Failed && t.reprocess) {
		return s.Afresh()
	}
	return s
}

// withVersion keeps the version of a document whose id has no time.
func (t transitions) withVersion(s invoice.State, us int64) invoice.State {
	if s.ResetByHand() { // one that is asked for again starts anew in the patch that says how it ended
		s = s.Afresh()
	}
	if s.Status == "" || !s.Present {
		s.Status = invoice.Pending
	}
	s.Version = us
	return s
}

// committed is the state after a verdict. What spoke of failure is over and goes; attempts stay as history.
func (t transitions) committed(s invoice.State, o Outcome) invoice.State {
	s = t.begin(s)
	s.Status = invoice.Committed
	s.Outcome = string(o.Verdict)
	s.SupersededBy = o.SupersededBy
	s.CommittedAt = invoice.Stamp(t.now(), t.loc)
	s.RetryAfter, s.Postponed = 0, false
	s.LastError, s.LastErrorAt, s.LastErrorKind, s.LastErrorCode = "", "", "", ""
	s.Error, s.FinalError, s.FailedAt = "", "", ""
	return s
}

// failure is the state after an own failure. proven says that others got through after the one before it: only then does that
// one count. Otherwise it is taken back and the document is postponed: tried on the same schedule, and as soon as others get
// through. The last failure before it would be poison waits for the same.
func (t transitions) failure(s invoice.State, err error, proven bool) invoice.State {
	s = t.begin(s)
	first := s.RetryCount == 0
	wait := Backoff(s.RetryCount, t.draw())
	switch {
	case first || proven:
		s.RetryCount++
		s.Postponed = s.RetryCount >= maxFailures
	default:
		wait = Backoff(ownFailures(s), t.draw())
		s.Postponed = true
	}
	return t.again(s, err, wait)
}

// exhausted reports whether an error is the document's last.
func (t transitions) exhausted(s invoice.State, err error, proven bool) bool {
	if !isOwn(err) || !proven {
		return false
	}
	most := maxFailures
	if fault.Has(err, fault.Unreadable) {
		most = unreadableFailures
	}
	return t.begin(s).RetryCount >= most
}

// putOff is the state of a document that was tried and not judged: nothing is counted. What it met by itself is remembered.
func (t transitions) putOff(s invoice.State, err error) invoice.State {
	s = t.begin(s)
	s.Postponed = false
	switch {
	case fault.CodeOf(err) == codeCutOff:
		return t.schedule(s, err, 0)
	case fault.CodeOf(err) == codeUndecided:
		return t.schedule(s, err, withJitter(aloneBackoff, t.draw()))
	case fault.Has(err, fault.OthersAnswered):
		return t.again(s, err, Backoff(outages(s), t.draw()))
	}
	return t.again(s, err, withJitter(aloneBackoff, t.draw()))
}

// waits is the state of a document that would be poison and may not be yet: nothing is counted.
func (t transitions) waits(s invoice.State, err error, wait time.Duration) invoice.State {
	s = t.begin(s)
	s.Postponed = false
	return t.again(s, err, withJitter(wait, t.draw()))
}

// again schedules another try and remembers this one.
func (t transitions) again(s invoice.State, err error, wait time.Duration) invoice.State {
	s = t.schedule(s, err, wait)
	return t.remember(s, invoice.Stamp(time.Unix(s.RetryAfter, 0), t.loc))
}

// schedule schedules another try and says why.
func (t transitions) schedule(s invoice.State, err error, wait time.Duration) invoice.State {
	s.Status = invoice.RetryScheduled
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.FailedAt, s.Error, s.FinalError = "", "", ""
	s.RetryAfter = dueAt(t.now(), wait)
	return t.tell(s, err)
}

// failed is the state of a poison message whose evidence is kept: finalError says what could not be marked in SQL.
func (t transitions) failed(s invoice.State, err error, finalError string) invoice.State {
	s = t.begin(s)
	s.Status = invoice.Failed
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.RetryAfter, s.Postponed = 0, false
	s.FailedAt = invoice.Stamp(t.now(), t.loc)
	s.Error = fmt.Sprintf("SQL Writer: Failed to process document after %d retries: %s", s.RetryCount, sentence(err))
	if fault.Has(err, fault.Unreadable) {
		s.Error = "SQL Writer: the document cannot be read as a result: " + sentence(err)
	}
	s.FinalError = finalError
	return t.remember(t.tell(s, err), "")
}

// tell says what the last failure was.
func (t transitions) tell(s invoice.State, err error) invoice.State {
	s.LastError = fault.Truncate(sentence(err), invoice.MaxErrorBytes)
	s.LastErrorAt = invoice.Stamp(t.now(), t.loc)
	s.LastErrorKind, s.LastErrorCode = string(fault.KindOf(err)), fault.CodeOf(err)
	return s
}

// remember adds the last failure to the document's history.
func (t transitions) remember(s invoice.State, next string) invoice.State {
	a := invoice.Attempt{At: s.LastErrorAt, Kind: s.LastErrorKind, Code: s.LastErrorCode, Error: s.LastError, NextTry: next}
	all := append(append([]invoice.Attempt{}, s.Attempts...), a)
	s.Attempts = all[max(0, len(all)-invoice.MaxAttempts):]
	return s
}

// sentence is an error as people read it in the document: what we found ourselves in our own words, without the path it
// came by; what a driver said, whole.
func sentence(err error) string {
	if e, ok := err.(*fault.Error); ok && e.Err == nil && e.Reason != "" { //nolint:errorlint // only the outermost error speaks
		return e.Reason
	}
	return err.Error()
}

// minimal keeps only what readers and we cannot do without, for a document that has no room for more (Cosmos 413).
func minimal(s invoice.State) invoice.State {
	return invoice.State{
		Present: true, Status: s.Status, Outcome: s.Outcome, RetryCount: s.RetryCount, RetryAfter: s.RetryAfter, Postponed: s.Postponed,
		LastErrorAt: s.LastErrorAt, LastErrorKind: s.LastErrorKind,
		CommittedAt: s.CommittedAt, FailedAt: s.FailedAt, ReprocessCount: s.ReprocessCount, Version: s.Version,
	}
}

package commit

import (
	"fmt"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// transitions makes the next sql_writer of a document. It reads the clock for each document, because a batch may take
// minutes and a retry must not be early.
type transitions struct {
	now  func() time.Time
	loc  *time.Location
	draw func() float64
	// reprocess is true when failed documents are tried again on request.
	reprocess bool
}

// begin is the start of every transition. It resets the retries of a document that a person reset, by hand or by a
// request.
func (t transitions) begin(s invoice.State) invoice.State {
	if s.ResetByHand() || (s.Status == invoice.Failed && t.reprocess) {
		return s.Afresh()
	}
	return s
}

// withVersion sets the version of a document whose id has no time.
func (t transitions) withVersion(s invoice.State, us int64) invoice.State {
	if s.ResetByHand() { // a requested document is reset in the patch of its outcome
		s = s.Afresh()
	}
	if s.Status == "" || !s.Present {
		s.Status = invoice.Pending
	}
	s.Version = us
	return s
}

// committed is the state after a verdict. The members of the failure are cleared; attempts stay as history.
func (t transitions) committed(s invoice.State, o DocumentOutcome) invoice.State {
	s = t.begin(s)
	s.Status = invoice.Committed
	s.Outcome = o.Verdict
	s.SupersededBy = o.SupersededBy
	s.CommittedAt = invoice.Stamp(t.now(), t.loc)
	s.RetryAfter, s.Postponed, s.FirstFailedAt = 0, false, ""
	s.LastError, s.LastErrorAt, s.LastErrorKind, s.LastErrorCode = "", "", "", ""
	s.Error, s.FinalError, s.FailedAt = "", "", ""
	return s
}

// failure is the state after an own failure. Each of the first five costs a retry of the schedule. The sixth postpones
// the document: its retries are spent, and it is tried once more after an hour, or as soon as others are written.
func (t transitions) failure(s invoice.State, err error) invoice.State {
	s = t.begin(s)
	wait := Backoff(s.RetryCount, t.draw())
	s.Postponed = s.RetryCount >= MaxRetries
	s.RetryCount = min(s.RetryCount+1, MaxRetries)
	if first, known := t.firstFailure(s); !known || first.After(t.now()) {
		s.FirstFailedAt = invoice.Stamp(t.now(), t.loc)
	}
	return t.again(s, err, wait)
}

// firstFailure is the time of a document's first own failure; false when it is not known.
func (t transitions) firstFailure(s invoice.State) (time.Time, bool) {
	return invoice.ParseStamp(s.FirstFailedAt, t.loc)
}

// Spent reports whether a document's retries are used up, so that another error of its own may end it. A failed
// document has none used: it is tried again on request only.
func Spent(s invoice.State, err error) bool {
	return usedUp(transitions{reprocess: true}.begin(s), err)
}

// usedUp is Spent of a state that begin has reset if a person asked for it. No retry can repair a document that cannot
// be read as a result.
func usedUp(s invoice.State, err error) bool {
	return s.Postponed || (fault.Has(err, fault.Unreadable) && s.RetryCount > 0)
}

// statePutOff is the state of a document without a result. It counts no failure. An error that it met alone goes into
// its attempts.
func (t transitions) statePutOff(s invoice.State, err error) invoice.State {
	s = t.begin(s)
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

// stateWaiting is the state of a document that may not become a poison message yet. It counts no failure.
func (t transitions) stateWaiting(s invoice.State, err error, wait time.Duration) invoice.State {
	return t.again(t.begin(s), err, withJitter(wait, t.draw()))
}

// again schedules another try and adds this one to the attempts.
func (t transitions) again(s invoice.State, err error, wait time.Duration) invoice.State {
	s = t.schedule(s, err, wait)
	return t.remember(s, invoice.Stamp(time.Unix(s.RetryAfter, 0), t.loc))
}

// schedule schedules another try with the error as its reason.
func (t transitions) schedule(s invoice.State, err error, wait time.Duration) invoice.State {
	s.Status = invoice.RetryScheduled
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.FailedAt, s.Error, s.FinalError = "", "", ""
	s.RetryAfter = dueAt(t.now(), wait)
	return t.withLastError(s, err)
}

// failed is the state of a poison message whose evidence is stored. finalError names what could not be marked in SQL.
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
	return t.remember(t.withLastError(s, err), "")
}

// withLastError sets the members of the last error.
func (t transitions) withLastError(s invoice.State, err error) invoice.State {
	s.LastError = fault.Truncate(sentence(err), invoice.MaxErrorBytes)
	s.LastErrorAt = invoice.Stamp(t.now(), t.loc)
	s.LastErrorKind, s.LastErrorCode = string(fault.KindOf(err)), fault.CodeOf(err)
	return s
}

// remember adds the last error to the document's attempts.
func (t transitions) remember(s invoice.State, next string) invoice.State {
	a := invoice.Attempt{
		At: s.LastErrorAt, Kind: s.LastErrorKind, Code: s.LastErrorCode, Error: s.LastError, NextTry: next,
	}
	all := append(append([]invoice.Attempt{}, s.Attempts...), a)
	s.Attempts = all[max(0, len(all)-invoice.MaxAttempts):]
	return s
}

// sentence is the text of an error in the document. It is the reason alone for errors of this product, and the whole
// text for a driver's.
func sentence(err error) string {
	if e, ok := err.(*fault.Error); ok && e.Err == nil && e.Reason != "" { //nolint:errorlint // only the outermost error counts
		return e.Reason
	}
	return err.Error()
}

// minimal has only the necessary members, for a document that has no room for more (Cosmos DB 413).
func minimal(s invoice.State) invoice.State {
	return invoice.State{
		Present: true, Status: s.Status, Outcome: s.Outcome, RetryCount: s.RetryCount,
		RetryAfter: s.RetryAfter, Postponed: s.Postponed,
		FirstFailedAt: s.FirstFailedAt, LastErrorAt: s.LastErrorAt, LastErrorKind: s.LastErrorKind,
		CommittedAt: s.CommittedAt, FailedAt: s.FailedAt, ReprocessCount: s.ReprocessCount, Version: s.Version,
	}
}

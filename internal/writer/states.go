package writer

import (
	"fmt"
	"time"
	"unicode/utf8"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// transitions makes the next sql_writer of a document: state in, state out. The clock is read for each, because a batch
// may take minutes and a retry must not be early.
type transitions struct {
	now  func() time.Time
	loc  *time.Location
	draw func() float64
}

// begin is what every transition starts from: a document that a person reset by hand starts its budget anew.
func (t transitions) begin(s invoice.State) invoice.State {
	if s.ResetByHand() {
		return s.Afresh()
	}
	return s
}

// withVersion keeps the version of a document whose id has no time.
func (t transitions) withVersion(s invoice.State, us int64) invoice.State {
	s = t.begin(s)
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
	s.RetryAfter = 0
	s.LastError, s.LastErrorAt, s.LastErrorKind = "", "", ""
	s.Error, s.FinalError, s.FailedAt = "", "", ""
	return s
}

// failure is the state after an error of the document's own or after it lost every race alone.
func (t transitions) failure(s invoice.State, err error) invoice.State {
	s = t.begin(s)
	kind := fault.KindOf(err)
	if fault.Has(err, fault.Unreadable) {
		return t.unreadable(s, err)
	}
	wait := withJitter(aloneBackoff, t.draw())
	if fault.ScopeOf(kind) == fault.ScopeDocument {
		wait = Backoff(s.RetryCount, t.draw())
		// The sixth failure is the poison pill's; until its evidence is kept, the document stays due hourly.
		s.RetryCount = min(s.RetryCount+1, MaxRetries)
	}
	s.Status = invoice.RetryScheduled
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.RetryAfter = dueAt(t.now(), wait)
	return t.remember(s, kind, err, invoice.Stamp(time.Unix(s.RetryAfter, 0), t.loc))
}

// unreadable fails a document at once: no retry can make it readable.
func (t transitions) unreadable(s invoice.State, err error) invoice.State {
	s.Status = invoice.Failed
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.RetryAfter = 0
	s.FailedAt = invoice.Stamp(t.now(), t.loc)
	s.Error = clip(fmt.Sprintf("SQL Writer: the document cannot be read as a result: %v", err))
	return t.remember(s, fault.KindOf(err), err, "")
}

func (t transitions) remember(s invoice.State, kind fault.Kind, err error, next string) invoice.State {
	s.LastError = clip(sentence(err))
	s.LastErrorAt = invoice.Stamp(t.now(), t.loc)
	s.LastErrorKind = string(kind)
	a := invoice.Attempt{At: s.LastErrorAt, Kind: s.LastErrorKind, Error: s.LastError, NextTry: next}
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
		Present: true, Status: s.Status, Outcome: s.Outcome, RetryCount: s.RetryCount, RetryAfter: s.RetryAfter,
		CommittedAt: s.CommittedAt, FailedAt: s.FailedAt, ReprocessCount: s.ReprocessCount, Version: s.Version,
	}
}

// clip bounds an error text for the document without cutting a character in two.
func clip(s string) string {
	if len(s) <= invoice.MaxErrorBytes {
		return s
	}
	cut := invoice.MaxErrorBytes
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

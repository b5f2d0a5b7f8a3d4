package crashtest

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// What is asserted at every call about blame and about the breaker.

const (
	// provenAfter is how long after a failure something else must have been written (docs/requirements.md R40).
	provenAfter = time.Minute
	// endsAlone is how long a document has failed that ends without that.
	endsAlone = 24 * time.Hour
)

// isOwn reports whether a kind in a document is its own failure.
func isOwn(kind string) bool { return kind == string(fault.Document) || kind == string(fault.Internal) }

// failedAt is when a document last failed by itself, zero when it says nothing of it.
func failedAt(s invoice.State) time.Time {
	text := ""
	for _, a := range s.Attempts {
		if isOwn(a.Kind) {
			text = a.At
		}
	}
	if isOwn(s.LastErrorKind) {
		text = s.LastErrorAt
	}
	at, _ := invoice.ParseStamp(text, time.UTC)
	return at
}

// proven reports whether something was written at least a minute after a document was last tried in vain. Both times
// are of an instance's clock: as far as two clocks are apart, the order of the two is not known.
func (w *world) proven(s invoice.State) bool {
	at, known := invoice.ParseStamp(s.LastErrorAt, time.UTC)
	return known && !w.applied.Before(at.Add(provenAfter-w.apart))
}

// spentBy reports whether the retries of a document are spent: by the sixth own failure, or the first of one that
// cannot be read.
func spentBy(g *given, s invoice.State) bool {
	return s.Postponed || g.code == unreadableCode && s.RetryCount > 0
}

// charged asserts that a patch spends a retry for each own failure and for nothing else, that only the sixth failure
// postpones, and that the next try is neither early nor soon.
func (w *world) charged(i *instance, d, now invoice.Document) {
	was, is := d.State, now.State
	if is.ReprocessCount > was.ReprocessCount { // a person had it begin anew
		was = invoice.State{}
	}
	g := w.given[d.ID]
	failure := is.Status == invoice.RetryScheduled && isOwn(is.LastErrorKind) && len(is.Attempts) > 0 &&
		is.Attempts[len(is.Attempts)-1].At == is.LastErrorAt
	switch grown := is.RetryCount - was.RetryCount; {
	case grown == 0 && failure && was.RetryCount < commit.MaxRetries && !spentBy(g, was):
		w.violated("G5", "%s: retry_count stays %d, and it has failed by itself", d.ID, is.RetryCount)
	case grown == 0:
	case grown < 0:
		w.violated("G5", "%s: retry_count went back from %d to %d", d.ID, was.RetryCount, is.RetryCount)
	case !failure:
		w.violated("G5", "%s: retry_count grew to %d, and it has not failed by itself", d.ID, is.RetryCount)
	case grown > 1:
		w.violated("G5", "%s: retry_count grew by %d", d.ID, grown)
	case is.RetryCount > commit.MaxRetries:
		w.violated("G5", "%s: retry_count grew to %d", d.ID, is.RetryCount)
	}
	if is.Postponed && !was.Postponed && (!failure || was.RetryCount < commit.MaxRetries) {
		w.violated("G5", "%s: its retries are spent after %d failures", d.ID, was.RetryCount)
	}
	if !failure {
		return
	}
	if is.LastErrorCode != g.code && (is.LastErrorCode != commit.CodeFailsAlone || outagesOf(was) < 2) {
		w.violated("G5", "%s was charged for %s: its own error is %q", d.ID, is.LastErrorCode, g.code)
	}
	if early := time.Unix(was.RetryAfter, 0); was.Status == invoice.RetryScheduled && i.now().Before(early) &&
		!w.path.operator &&
		(!was.Postponed || w.applied.Before(time.Unix(d.TS, 0).Add(provenAfter-w.apart))) {
		w.violated("G5", "%s failed again, and is due at %s", d.ID, early)
	}
	if next := time.Unix(is.RetryAfter, 0).Sub(failedAt(is)); next < w.leastWait(g, was) {
		w.violated("G5", "%s is to be tried again in %v, after %d failures", d.ID, next, was.RetryCount)
	}
}

// outagesOf counts the failures that looked like an outage.
func outagesOf(s invoice.State) int {
	n := 0
	for _, a := range s.Attempts {
		if a.Kind == string(fault.Infrastructure) || a.Code == commit.CodeFailsAlone {
			n++
		}
	}
	return n
}

// leastWait is how long a document waits at least after so many failures: 2, 4, 8, 16, 32 minutes, an hour
// (docs/requirements.md R38). What would be poison and may not be yet waits two minutes.
func (w *world) leastWait(g *given, was invoice.State) time.Duration {
	if spentBy(g, was) && w.proven(was) {
		return 120 * time.Second
	}
	return min(time.Hour, 120*time.Second<<was.RetryCount)
}

// poisonedOnlyWithProof asserts that a document becomes a poison message only when its retries are spent, and its last
// failure is proven or its first one is a day ago.
func (w *world) poisonedOnlyWithProof(i *instance, was invoice.Document) {
	g, s := w.given[was.ID], was.State
	if !spentBy(g, s) {
		w.violated("G6", "%s failed after %d failures, and its retries are not spent", was.ID, s.RetryCount)
	}
	first, known := invoice.ParseStamp(s.FirstFailedAt, time.UTC)
	if !w.proven(s) && (!known || i.now().Sub(first) < endsAlone) {
		w.violated("G6", "%s failed, and nothing was written a minute after it failed at %s: the last was at %s",
			was.ID, s.LastErrorAt, w.applied)
	}
}

// breakerNow is the breaker that all instances share, if an instance can know it.
func (w *world) breakerNow(i *instance) (breaker.State, bool) {
	c, _, err := w.control.Load(context.Background())
	if err != nil || !w.numbering || i.breaker.Seen().Lost {
		return breaker.State{}, false
	}
	return c.Breaker, true
}

// asks is called for a heartbeat, with no documents, and for a request for documents before it is made. While the
// breaker is open there is one heartbeat for each claim and no request; while it is half-open there is one first
// request for each claim. Under the scheduler an instance does two things at once, and one of them may have begun
// before the breaker opened.
func (w *world) asks(i *instance, documents int) {
	s, known := w.breakerNow(i)
	if !known || w.scheduled {
		return
	}
	switch {
	case !s.Stopped() && documents > s.MaxDocuments():
		w.violated("G5", "%s sends %d documents, and the breaker allows %d", i.name, documents, s.MaxDocuments())
	case s.Name == breaker.Paused, s.Name == breaker.Open && documents > 0:
		w.violated("G5", "%s asks SQL while the breaker is %s", i.name, s.Name)
	case s.Name == breaker.Open, s.Name == breaker.HalfOpen && s.Limit == 1 && documents > 0:
		if s.HeldBy != i.name { // one that was frozen after its claim may ask late
			w.violated("G5", "%s asks SQL while the breaker is %s, without a claim: %s has it until %s", i.name,
				s.Name, s.HeldBy, s.OpenUntil)
		}
		claim := string(s.Name) + s.OpenUntil.String()
		if slices.Contains(w.claims, claim) {
			w.violated("G5", "%s asks SQL twice with one claim while the breaker is %s", i.name, s.Name)
		}
		w.claims = append(w.claims, claim)
	}
}

// stored is called for a change of the control document. A claim begins when the one before is over, and lasts for a
// minute by the clock of who claims: nothing is asserted where clocks differ, because a time that is too far ahead
// decides nothing.
func (w *world) stored(i *instance, was, is breaker.State) {
	same := is.Name == was.Name && is.Limit == was.Limit && is.ChangedAt.Equal(was.ChangedAt)
	claimed := is.HeldBy == i.name && (is.HeldBy != was.HeldBy || !is.OpenUntil.Equal(was.OpenUntil))
	if w.apart > 0 || !same || !claimed || is.Name != breaker.Open && is.Name != breaker.HalfOpen ||
		is.Kind != fault.Infrastructure {
		return
	}
	if between := is.OpenUntil.Sub(was.OpenUntil); between < time.Minute {
		w.violated("G5", "%s claimed a probe %v after the one before", i.name, between)
	}
}

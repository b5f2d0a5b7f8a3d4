package commit

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// tally counts the results of one batch. It is safe for concurrent use.
type tally struct {
	log      events.Log
	now      func() time.Time
	onResult func(DocumentResult)

	mu      sync.Mutex
	report  Report
	counted int
	// firstOffer says that the feed brings the batch for the first time. foreign then has the documents of each other
	// sys_name.
	firstOffer bool
	foreign    map[string]breaker.Skipped
	// others counts documents that another program finished after adoptedAt, when the ledger was adopted; other is one
	// of them.
	adoptedAt time.Time
	others    int
	other     string
	// canaries are those that nobody has seen.
	canaries []invoice.Snapshot
	// committed counts verdicts committed: a document that was committed already has none.
	committed int
	// offerAgain is the error of notFinal.
	offerAgain error
}

func newTally(in Delivery, log events.Log, now func() time.Time, adoptedAt time.Time) *tally {
	return &tally{
		log: log, now: now, onResult: in.OnResult, adoptedAt: adoptedAt,
		firstOffer: in.Purpose == FromFeed && in.RetryCount == 0, foreign: map[string]breaker.Skipped{},
		report: Report{Documents: len(in.Documents), Outcomes: map[invoice.Outcome]int{}, Kinds: map[string]int{}},
	}
}

// count counts one document. OnResult is not called without an id.
func (t *tally) count(id string, outcome invoice.Outcome, kind fault.Kind) {
	t.add(DocumentResult{ID: id, Outcome: outcome, Kind: kind})
}

// add counts one document and calls OnResult.
func (t *tally) add(r DocumentResult) {
	t.mu.Lock()
	t.report.Outcomes[r.Outcome]++
	t.counted++
	if r.Kind != "" {
		t.report.Kinds[string(r.Kind)]++
	}
	t.mu.Unlock()
	if t.onResult != nil && r.ID != "" {
		t.onResult(r)
	}
}

// skip counts a document that the batch does not take. One of another sys_name counts as foreign when it is pending, as
// its writer offers it, and not when a batch is offered again or its own environment has patched it.
func (t *tally) skip(d invoice.Snapshot, why invoice.Eligibility) {
	outcome := invoice.OutcomeSkipped
	switch why { //nolint:exhaustive // the others need no more
	case invoice.NotOffered:
		outcome = invoice.OutcomeNotOffered
	case invoice.Done:
		if t.firstOffer && t.byAnother(d.State) {
			t.mu.Lock()
			t.others, t.other = t.others+1, d.ID
			t.mu.Unlock()
		}
	case invoice.NotOurs:
		if t.firstOffer && d.State.Status == invoice.Pending {
			t.mu.Lock()
			t.foreign[d.SysName] = breaker.Skipped{
				SysName: d.SysName, Documents: t.foreign[d.SysName].Documents + 1, Sample: d.ID,
			}
			t.mu.Unlock()
		}
	case invoice.UnknownStatus:
		t.log.Write(events.DocumentUnknownStatus,
			events.Fields{Document: d.ID, Status: fault.Truncate(d.State.StatusFound, fault.MaxForeign)})
	}
	t.count(d.ID, outcome, "")
}

// byAnother reports whether another program finished a document after the adoption. This product writes an outcome into
// a committed document, and a kind into a failed one.
func (t *tally) byAnother(s invoice.State) bool {
	stamp := s.CommittedAt
	if s.Status == invoice.Failed {
		stamp = s.FailedAt
	}
	us, ok := invoice.TimeOfID(stamp)
	return ok && s.Outcome == "" && s.LastErrorKind == "" && !t.adoptedAt.IsZero() &&
		time.UnixMicro(us).After(t.adoptedAt)
}

// countLeftAlone counts a document that a rewrite leaves alone, wholly or in part.
func (t *tally) countLeftAlone(d invoice.Snapshot, outcome invoice.Outcome, why string) {
	t.add(DocumentResult{ID: d.ID, Line: d.Main, Outcome: outcome, Code: string(outcome), Reason: why})
	t.log.Write(events.RewriteLeftAlone, events.Fields{Document: d.ID, Outcome: string(outcome), Reason: why})
}

// leave counts and logs a document that is left to the recovery timer.
func (t *tally) leave(d invoice.Snapshot, err error) {
	t.add(resultOf(d, invoice.OutcomeLeft, err))
	t.log.Write(events.DocumentLeft, events.Fields{Document: d.ID}.Of(err))
}

// recorded counts and logs a recorded state. cause is its error; nil for a verdict.
func (t *tally) recorded(d invoice.Snapshot, s invoice.State, cause error) {
	if cause == nil {
		if s.Status == invoice.Committed {
			t.mu.Lock()
			t.committed++
			t.mu.Unlock()
		}
		t.count(d.ID, s.Outcome, "")
		t.log.Write(events.DocumentCommitted, events.Fields{
			Document: d.ID, Line: d.Main, Duplicates: d.Duplicates, Outcome: string(s.Outcome),
			LagMS: age(d.TS, t.now()).Milliseconds(),
		})
		return
	}
	result := resultOf(d, invoice.Outcome(s.Status), cause)
	result.RetryCount, result.Again = s.RetryCount, s.Status == invoice.RetryScheduled
	t.add(result)
	f := events.Fields{
		Document: d.ID, Line: d.Main, Status: string(s.Status), RetryCount: s.RetryCount, RetryAfter: s.RetryAfter,
	}.Of(cause)
	switch {
	case s.Status == invoice.Failed:
		t.log.Write(events.DocumentFailed, f)
	case f.Kind == fault.Internal: // the minimal state has no kind
		t.log.Write(events.DocumentError, f)
	default:
		t.log.Write(events.DocumentRetryScheduled, f)
	}
}

// done gives the report with the lag. oldest is the oldest _ts of the batch.
func (t *tally) done(oldest int64) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Lag = age(oldest, t.now())
	return t.report
}

// age is the time since a _ts in epoch seconds; 0 without one.
func age(ts int64, now time.Time) time.Duration {
	if ts == 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(ts, 0)))
}

// notFinal remembers an error of a committed document that is not its own: a lost race, or a request that failed like
// an outage. The document is not counted: the batch is offered again.
func (t *tally) notFinal(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offerAgain = err
}

// rest counts the documents that have no result.
func (t *tally) rest(outcome invoice.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rest := t.report.Documents - t.counted; rest > 0 {
		t.report.Outcomes[outcome] += rest
	}
}

// requested counts one request to SQL.
func (t *tally) requested(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.SQLRequests++
	t.report.SQL += took
}

// resultOf is the result of a failed document.
func resultOf(d invoice.Snapshot, outcome invoice.Outcome, err error) DocumentResult {
	r := DocumentResult{ID: d.ID, Line: d.Main, Outcome: outcome, Kind: fault.KindOf(err), Code: fault.CodeOf(err)}
	if e := fault.As(err); e != nil {
		r.Reason = e.Reason // a driver's own text may hold content
	}
	return r
}

// measured counts and times the calls of Documents.
type measured struct {
	Documents
	tally *tally
	now   func() time.Time
}

// Read implements Documents.
func (m measured) Read(ctx context.Context, id string) (json.RawMessage, error) {
	defer m.add(m.now(), &m.tally.report.Reads)
	return m.Documents.Read(ctx, id)
}

// ReadMany implements Documents.
func (m measured) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	defer m.add(m.now(), &m.tally.report.Reads)
	return m.Documents.ReadMany(ctx, ids)
}

// Record implements Documents.
func (m measured) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (string, error) {
	defer m.add(m.now(), &m.tally.report.Writes)
	return m.Documents.Record(ctx, doc, s)
}

func (m measured) add(begin time.Time, calls *int) {
	took := m.now().Sub(begin)
	m.tally.mu.Lock()
	defer m.tally.mu.Unlock()
	*calls++
	m.tally.report.Cosmos += took
}

package ops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Explanation says why a document is in its state, and what happens next.
type Explanation struct {
	ID      string `json:"id"`
	SysName string `json:"sys_name"`
	// Status is the document's; an unknown one as it stands, and "not offered" without one.
	Status       string          `json:"status"`
	Outcome      invoice.Outcome `json:"outcome,omitempty"`
	SupersededBy string          `json:"superseded_by,omitempty"`
	// Summary is the answer in one line; Next says what happens next and when.
	Summary string `json:"summary"`
	Next    string `json:"next"`
	// RetriesUsed counts the retries spent, of Retries.
	RetriesUsed int `json:"retries_used"`
	Retries     int `json:"retries"`
	// NextTry is the earliest next try; zero when it is due, or when none follows.
	NextTry time.Time `json:"next_try,omitzero"`
	// StoppedSeconds is the wait because the flow is stopped. It spends no retry.
	StoppedSeconds int64 `json:"stopped_seconds,omitempty"`
	// Attempts are its last failures, oldest first.
	Attempts []Tried `json:"attempts"`
	// LastError is the last failure since it was committed or reset; otherwise nil.
	LastError *Tried `json:"last_error,omitempty"`
	// Error is why a failed document failed; FinalError is why that could not be marked in SQL. An operator sees them.
	Error      string `json:"error,omitempty" role:"Operator"`
	FinalError string `json:"final_error,omitempty" role:"Operator"`
	// Evidence is the folder in the container of evidence that has the newest of a failed document; empty where none
	// was found in some seconds.
	Evidence string `json:"evidence,omitempty"`
	// Problem says what in the document prevents it from being written; empty when nothing does. ProblemFound also has
	// the values that were found. An operator sees it.
	Problem      string `json:"problem,omitempty"`
	ProblemFound string `json:"problem_found,omitempty" role:"Operator"`
	// Warning says what in the document keeps the change feed from bringing others; empty when nothing does.
	Warning string `json:"warning,omitempty"`
	// Marked says who marked it as committed, by the audit log; nil when nobody did, or the log cannot be read.
	Marked *Mark `json:"marked,omitempty"`
	// Line is about the line that was asked for; nil for a document that was asked for by its id.
	Line *AboutLine `json:"line,omitempty"`
	// Flow describes the flow in words.
	Flow string `json:"flow"`
}

// Tried is one failure.
type Tried struct {
	// At is its time, NextTry the planned next try; zero when the document has no readable time.
	At   time.Time `json:"at,omitzero"`
	Kind string    `json:"kind"`
	Code string    `json:"code,omitempty"`
	// Error is its text, which may quote a value. An operator sees it.
	Error   string    `json:"error,omitempty" role:"Operator"`
	NextTry time.Time `json:"next_try,omitzero"`
}

// Mark is the entry of MarkCommitted in the audit log.
type Mark struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// whyDocument explains one document. Only who marked it needs SQL. Errors as Why.
func (o *Ops) whyDocument(ctx context.Context, id string) (Explanation, error) {
	if err := checkDocumentID(id); err != nil {
		return Explanation{}, err
	}
	doc, tooDeep, err := o.document(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	e := o.explaining(ctx).explanation(doc.Document, tooDeep)
	if doc.SysName == o.o.SysName && doc.State.Status == invoice.Committed && e.Outcome == invoice.OutcomeManual {
		o.sayWhoMarked(ctx, &e, doc.State.CommittedAt)
	}
	if doc.State.Status == invoice.Failed && doc.SysName == o.o.SysName {
		e.Evidence = o.newestFolder(ctx, doc.Document)
	}
	return e, nil
}

// sayWhoMarked adds who marked a document, by the audit log: whoever may write the container can write the rest.
func (o *Ops) sayWhoMarked(ctx context.Context, e *Explanation, committedAt string) {
	var marks map[run.Mark]run.Audit
	err := o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		marks, err = s.Audit.Marks(ctx, []string{e.ID})
		return err
	})
	switch a, audited := marks[run.Mark{Document: e.ID, CommittedAt: committedAt}]; {
	case err != nil:
		e.Summary = "it says: " + e.Summary + "; the audit log, which says who did it, cannot be read now"
	case !audited:
		e.Summary = "it says: " + e.Summary + "; the audit log has no entry of it"
		e.Next = "nothing by itself: `explain mark_without_audit` says what to do"
	default:
		e.Marked = &Mark{By: a.By, Why: a.Why, At: o.in(a.At)}
		e.Summary += fmt.Sprintf(" by %s: %s", a.By, short(a.Why))
	}
}

// explaining looks at what explanations of documents share: the flow and the timer.
func (o *Ops) explaining(ctx context.Context) why {
	now, view := o.o.Now(), o.p.Breaker.View(ctx)
	counts, err := o.loadCounts(ctx)(view)
	return why{
		o: o, now: now, flow: view.Control.Breaker, flowSays: o.flowSays(view),
		control: view.Control, told: view.Status,
		timer: o.timerView(counts.Counts, err, view, now), mayPoison: o.p.Breaker.MayPoison(ctx),
	}
}

// explanation explains one document.
func (w why) explanation(doc invoice.Document, tooDeep bool) Explanation {
	o := w.o
	w.doc = doc
	e := Explanation{
		ID: doc.ID, SysName: doc.SysName, Status: string(doc.State.Status), Outcome: doc.State.Outcome,
		SupersededBy: doc.State.SupersededBy,
		RetriesUsed:  min(doc.State.RetryCount, commit.MaxRetries), Retries: commit.MaxRetries,
		Attempts: o.tried(doc.State.Attempts),
		Error:    doc.State.Error, FinalError: doc.State.FinalError, Flow: w.flowSays,
	}
	if s := doc.State; s.LastError != "" || s.LastErrorKind != "" {
		e.LastError = &Tried{
			At: o.stamp(s.LastErrorAt), Kind: s.LastErrorKind, Code: s.LastErrorCode, Error: s.LastError,
		}
	}
	var invalid *invoice.Invalid
	if errors.As(doc.Problem, &invalid) {
		e.Problem, e.ProblemFound = invalid.Safe(), invalid.Error()
	}
	if tooDeep {
		e.Warning = invoice.CodeTooDeep +
			": it has 64 levels or more. The change feed stops at it and brings nothing behind it: put a flat version, or delete it"
	}
	w.explain(&e)
	return e
}

// tried are the failures that a document remembers.
func (o *Ops) tried(attempts []invoice.Attempt) []Tried {
	all := make([]Tried, len(attempts))
	for i, a := range attempts {
		all[i] = Tried{At: o.stamp(a.At), Kind: a.Kind, Code: a.Code, Error: a.Error, NextTry: o.stamp(a.NextTry)}
	}
	return all
}

// document reads a document, and reports whether the change feed stops at it.
func (o *Ops) document(ctx context.Context, id string) (doc invoice.Snapshot, tooDeep bool, err error) {
	raw, err := o.p.Documents.Read(ctx, id)
	if fault.Has(err, fault.Gone) {
		return doc, false, refuse(NotFound, "no document has the id %q", id)
	}
	if e := fault.As(err); e != nil && e.Code == commit.CodeIDTwice {
		return doc, false, refuse(Conflict, "%s: %s", e.Code, e.Reason)
	}
	if err != nil {
		return doc, false, err
	}
	doc, err = o.o.Reader.ReadSnapshot(raw, o.o.Now())
	return doc, err == nil && invoice.TooDeep(raw), err
}

// why builds an Explanation.
type why struct {
	o        *Ops
	doc      invoice.Document
	now      time.Time
	flow     breaker.State
	flowSays string
	// control is what the instances know of the feed, and told what they tell of the dependencies.
	control breaker.Control
	told    breaker.Status
	timer   DependencyView
	// mayPoison says that the limit of poison messages per hour is not reached.
	mayPoison bool
}

func (w why) explain(e *Explanation) {
	eligibility := w.doc.Eligibility(w.now, w.o.o.SysName)
	switch {
	case eligibility == invoice.NotOurs && w.doc.SysName == "":
		e.Summary, e.Next = "it names no environment (request_details.sys_name)", "nothing: no app takes it"
	case eligibility == invoice.NotOurs:
		e.Summary = fmt.Sprintf("it belongs to the environment %q, this app is %q", w.doc.SysName, w.o.o.SysName)
		e.Next = "nothing here: " + notOurs
	case eligibility == invoice.NotOffered:
		e.Status = "not offered"
		e.Summary = "it was never offered: it has no sql_writer.status"
		e.Next = "nothing: it is left alone until a person sets sql_writer.status to pending"
	case eligibility == invoice.UnknownStatus:
		e.Status = w.doc.State.StatusFound
		e.Summary = fmt.Sprintf("sql_writer.status is %q, which is unknown", e.Status)
		e.Next = "nothing: it is left alone until a person corrects the status"
	case w.doc.State.Status == invoice.Committed:
		w.committed(e)
	case w.doc.State.Status == invoice.Failed:
		w.failed(e)
	case w.doc.State.Status == invoice.RetryScheduled:
		w.scheduled(e)
	case w.doc.State.Status == invoice.Processing:
		w.processing(e)
	default:
		w.pending(e)
	}
}

// notOurs is what becomes of a document that names another environment.
const notOurs = "the app of that environment takes it. If request_details.sys_name is a mistake, who wrote the document corrects it"

func (w why) committed(e *Explanation) {
	at := ""
	if t := w.o.stamp(w.doc.State.CommittedAt); !t.IsZero() {
		at = " " + w.o.clock(t)
	}
	e.Next = "nothing: it is done"
	switch e.Outcome {
	case invoice.OutcomeApplied:
		e.Summary = "committed" + at + ": its lines were written"
	case invoice.OutcomeUnchanged:
		e.Summary = "committed" + at + ": its lines held this very content already"
	case invoice.OutcomeSuperseded:
		e.Summary = "committed" + at + ": a newer result holds its lines"
		if e.SupersededBy != "" {
			e.Summary += ": " + e.SupersededBy
		}
	case invoice.OutcomeManual:
		e.Summary = "committed by hand" + at
	default:
		e.Summary = "committed" + at + "; the outcome is not said: another program did it"
	}
}

func (w why) failed(e *Explanation) {
	at := ""
	if t := w.o.stamp(w.doc.State.FailedAt); !t.IsZero() {
		at = " " + w.o.clock(t)
	}
	e.Summary = fmt.Sprintf("failed%s after %s", at, used(w.doc.State))
	if code := w.doc.State.LastErrorCode; code != "" {
		e.Summary += ": " + w.doc.State.LastErrorKind + " " + code
	}
	e.Next = "nothing by itself: fix the cause and `document retry`, or repair by hand and `document mark-committed`"
}

func (w why) scheduled(e *Explanation) {
	due := time.Unix(w.doc.State.RetryAfter, 0)
	e.Summary = used(w.doc.State) + " used" + w.waitingFor()
	for _, m := range w.told.MassFailures(w.now) {
		if m.Code == w.doc.State.LastErrorCode {
			e.Summary += fmt.Sprintf("; %s began to fail with %s since %s, so the cause is hardly this one",
				documents(m.Documents), m.Code, w.o.clock(m.Since))
		}
	}
	if invoice.Due(w.doc.State.RetryAfter, w.now) {
		if due.After(w.now) {
			due = w.now // a time this far ahead is a mistake
		}
		if w.flow.Stopped() {
			w.stopped(e, due)
			return
		}
		e.Summary += "; due"
		if w.doc.State.RetryAfter > 0 {
			e.Summary += " since " + w.o.clock(due)
		}
		e.Next = w.timerTakesUp("at its next tick")
		if failing := w.sqlFails(); failing != "" {
			e.Next = failing
			return
		}
		if w.flow.Flow() == breaker.RampingUp {
			e.Next += "; the flow is " + w.o.describe(w.flow)
		}
		return
	}
	if w.flow.Name == breaker.Open && w.flow.OpenUntil.After(due) {
		due = w.flow.OpenUntil
	}
	e.NextTry = w.o.in(due)
	e.Summary += "; next try " + w.o.clock(due)
	e.Next = w.timerTakesUp("at its first tick after " + w.o.clock(due))
	if w.doc.State.Postponed && w.mayPoison {
		e.Next += ", or when another document was applied at least 60 s after the failure"
	}
	if w.flow.Name == breaker.Paused {
		e.Next += ", if the flow is resumed by then"
	}
}

// waitingFor says what else a waiting document waits for.
func (w why) waitingFor() string {
	s := w.doc.State
	switch {
	case isPutOff(s.LastErrorKind):
		return fmt.Sprintf("; put off: it was tried and not judged (%s %s), so nothing was counted",
			s.LastErrorKind, s.LastErrorCode)
	case s.Postponed && !w.mayPoison:
		return ", and it failed again: it may become a poison message, but this hour's number of them is reached"
	case s.Postponed:
		text := ", and it failed again: it becomes a poison message at its next failure, if another document was applied at least 60 s after the one before"
		if first := w.o.stamp(s.FirstFailedAt); !first.IsZero() {
			text += ", or after " + w.o.clock(first.Add(commit.EndsAlone)) + ", which is a day after its first failure"
		}
		return text
	}
	return ""
}

func (w why) processing(e *Explanation) {
	since := time.Unix(w.doc.TS, 0)
	e.Summary = "the old writer took it up " + ago(w.now.Sub(since)) + " ago"
	if w.doc.Eligibility(w.now, w.o.o.SysName) == invoice.Eligible {
		e.Next = "left behind: " + w.timerTakesUp("at its next tick")
		return
	}
	e.NextTry = w.o.in(since.Add(invoice.OrphanAge))
	e.Next = "the old writer may be at it; " + w.timerTakesUp("after "+w.o.clock(since.Add(invoice.OrphanAge)))
}

func (w why) pending(e *Explanation) {
	since := time.Unix(w.doc.TS, 0)
	e.Summary = "pending"
	if w.doc.State.ResetByHand() {
		e.Summary = "pending, reset by hand: its retries start anew"
		e.RetriesUsed = 0
	} else if w.doc.State.RetryCount > 0 {
		e.Summary = "pending; " + used(w.doc.State) + " used"
	}
	if w.flow.Stopped() {
		w.stopped(e, since)
		return
	}
	e.Summary += "; waiting for " + ago(w.now.Sub(since))
	if w.flow.Flow() == breaker.RampingUp {
		e.Next = "the flow is " + w.o.describe(w.flow) + ": it is taken up as more may pass"
		return
	}
	feed, missed := w.control.Feed, w.control.Missed
	switch failing := w.sqlFails(); {
	case failing != "":
		e.Next = failing
		return
	case missed.Holds():
		e.Next = fmt.Sprintf("the change feed stands still: it did not bring %s that %s due; ",
			documents(missed.Documents), Plural(missed.Documents, "was", "were")) + w.timerTakesUp("after 10 min")
		return
	}
	lag := ""
	if !feed.At.IsZero() {
		lag = fmt.Sprintf(" (it was %s behind at %s)", ago(time.Duration(feed.Seconds)*time.Second), w.o.clock(feed.At))
	}
	e.Next = "the change feed brings it" + lag + "; if not within 10 min, or twice its lag, " + w.timerTakesUp("")
	if w.now.Sub(since) > invoice.OrphanAge {
		e.Next = "the change feed has not brought it" + lag + "; " + w.timerTakesUp("at its next tick")
	}
}

// sqlFails says that SQL fails although the breaker is closed; empty when it does not.
func (w why) sqlFails() string {
	sql := w.told.Dependencies[DepSQL]
	if sql.State != DepFailing {
		return ""
	}
	return fmt.Sprintf("SQL fails since %s (%s %s: %s): it is tried again when SQL answers, and this spends no retry",
		w.o.clock(sql.Since), sql.Kind, sql.Code, sql.Reason)
}

// timerTakesUp says when the recovery timer takes the document up, and that it does not while the timer is silent.
func (w why) timerTakesUp(when string) string {
	says := strings.TrimSpace("the recovery timer takes it up " + when)
	if w.timer.State == DepSilent {
		return says + ", but " + w.timer.Reason
	}
	return says
}

// stopped explains a document that could be tried since a time, if the flow were not stopped.
func (w why) stopped(e *Explanation, since time.Time) {
	if w.flow.Since.After(since) {
		since = w.flow.Since
	}
	waited := max(0, w.now.Sub(since))
	e.StoppedSeconds = int64(waited / time.Second)
	e.Summary += fmt.Sprintf("; %s waiting because the flow is %s, not counted", ago(waited), w.flow.Flow())
	e.Next = "the flow is " + w.o.describe(w.flow)
	if w.flow.Name == breaker.Paused {
		e.Summary += "; next try after a resume"
		return
	}
	probe := w.flow.OpenUntil
	if probe.Before(w.now) {
		probe = w.now
	}
	e.NextTry = w.o.in(probe)
	e.Summary += "; next try " + w.o.clock(probe)
	e.Next += ": when a probe succeeds, it is taken up"
}

func used(s invoice.State) string {
	return fmt.Sprintf("%d of %d retries", min(s.RetryCount, commit.MaxRetries), commit.MaxRetries)
}

// stamp reads a time of sql_writer; zero when it is unreadable.
func (o *Ops) stamp(text string) time.Time {
	t, ok := invoice.ParseStamp(text, o.o.Location)
	if !ok {
		return time.Time{}
	}
	return o.in(t)
}

// clock formats a time in a sentence: RFC 3339 says the zone, and its reader can show it in another one.
func (o *Ops) clock(t time.Time) string { return o.in(t).Format(time.RFC3339) }

func ago(d time.Duration) string {
	switch d = max(0, d); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(math.Floor(d.Hours()/24)))
}

package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The bounds of a reprocessing.
const (
	// maxMatched bounds the documents of a run. The same request continues with the rest.
	maxMatched = 10_000
	// maxIDs bounds the documents that a request names.
	maxIDs = 1000
	// maxBatch bounds the documents of one Commit.
	maxBatch = 100
	// stopBefore its deadline a run starts no more work.
	stopBefore = 30 * time.Second
)

// Filter selects failed documents.
type Filter struct {
	// Kind and Code are those of the last error; empty means any.
	Kind fault.Kind `json:"kind,omitempty"`
	Code string     `json:"code,omitempty"`
	// From and To (exclusive) bound failed_at; zero means no bound.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// IDs names documents. Named ones are also taken while they wait for a retry.
	IDs []string `json:"ids,omitempty"`
}

// Empty reports whether the filter matches every failed document.
func (f Filter) Empty() bool {
	return f.Kind == "" && f.Code == "" && f.From.IsZero() && f.To.IsZero() && len(f.IDs) == 0
}

// ReprocessRequest asks to try failed documents again.
type ReprocessRequest struct {
	Filter
	// All is required when the filter is empty, and refused otherwise.
	All bool `json:"all,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is documents per minute; 0 means no bound.
	Rate int `json:"rate_per_minute,omitempty"`
	// Limit bounds the documents; 0 means 10,000, the maximum. Those that failed first come first.
	Limit int    `json:"limit,omitempty"`
	By    string `json:"by,omitempty"`
	Why   string `json:"why,omitempty"`
}

func (r ReprocessRequest) check() error {
	known := func(rule fault.Rule) bool { return rule.Kind == r.Kind }
	switch {
	case r.Kind != "" && !slices.ContainsFunc(fault.Rules(), known):
		return refuse(Usage, "kind: expected one of %s, found %q", kinds(), r.Kind)
	case !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To):
		return refuse(Usage, "to: expected a time after from")
	case len(r.IDs) > maxIDs:
		return refuse(Usage, "ids: expected at most %d, found %d", maxIDs, len(r.IDs))
	case r.Rate < 0 || r.Rate > maxRate:
		return refuse(Usage, "rate: expected 0 to %d documents a minute, found %d", maxRate, r.Rate)
	case r.Limit < 0 || r.Limit > maxMatched:
		return refuse(Usage, "limit: expected 0 to %d, found %d", maxMatched, r.Limit)
	case r.Empty() && !r.All:
		return refuse(Usage, "all: expected a filter, or that all failed documents are meant")
	case r.All && !r.Empty():
		return refuse(Usage, "all: goes with no filter")
	}
	for _, id := range r.IDs {
		if err := checkDocumentID(id); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	return checkReason(r.By, r.Why)
}

// Reprocessed is the result of a reprocess.
type Reprocessed struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Run is the run's id; empty for a dry run, and when nothing matches.
	Run string `json:"run,omitempty"`
	// Status is the last status; Reason says why the run was stopped.
	Status RunStatus `json:"status,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Matched is how many documents match, within the limit; AtLeast says that there are more.
	Matched int  `json:"matched"`
	AtLeast bool `json:"at_least,omitempty"`
	// Failures counts the matching documents by status, kind and code. First lists those that failed first, at most 20.
	Failures []Failures `json:"failures"`
	First    []Match    `json:"first"`
	// NotTaken are documents that were named and do not match.
	NotTaken []NotTaken `json:"not_taken,omitempty"`
	// Counts is documents by outcome: those of commit.Report, and "changed" for documents that match no more.
	Counts map[string]int `json:"counts,omitempty"`
	// Left is how many were not tried.
	Left int `json:"left"`
	// Note says that the run's end could not be recorded.
	Note string `json:"note,omitempty"`
}

// Reprocess tries failed documents again, directly from failed. The patch that records the result also resets the document's retries. A
// dry run only counts and lists. Otherwise a run takes the documents in batches, at the rate given. A cancellation, the deadline of ctx
// or a dependency's failure ends it early. Documents that were not tried stay failed, and the same request continues with them.
//
// An error means that nothing was changed: *RequestError (usage; conflict in a shadow); infrastructure, throttled, quota, contention.
func (o *Ops) Reprocess(ctx context.Context, r ReprocessRequest) (Reprocessed, error) {
	r.IDs = distinct(r.IDs)
	if err := r.check(); err != nil {
		return Reprocessed{}, err
	}
	if o.o.ReadOnly != "" && !r.DryRun {
		return Reprocessed{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	found, err := o.find(ctx, r)
	if err != nil {
		return Reprocessed{}, err
	}
	res := found.result()
	res.DryRun = r.DryRun
	if r.DryRun {
		return res, nil
	}
	if len(found.list) == 0 {
		res.Status = Completed
		return res, nil
	}
	return o.runReprocess(ctx, r, found, res)
}

type matches struct {
	list     []Match
	atLeast  bool
	notTaken []NotTaken
}

// result returns the reply before any document is tried.
func (m matches) result() Reprocessed {
	counts := map[Failures]int{}
	for _, d := range m.list {
		counts[Failures{Status: d.Status, Kind: d.Kind, Code: d.Code}]++
	}
	failures := []Failures{}
	for f, n := range counts {
		f.Documents = n
		failures = append(failures, f)
	}
	sortFailures(failures)
	return Reprocessed{
		Matched: len(m.list), AtLeast: m.atLeast, Failures: failures, NotTaken: m.notTaken, Left: len(m.list),
		First: append([]Match{}, m.list[:min(len(m.list), shown)]...),
	}
}

func (o *Ops) find(ctx context.Context, r ReprocessRequest) (matches, error) {
	limit := r.Limit
	if limit == 0 {
		limit = maxMatched
	}
	var found matches
	var err error
	if len(r.IDs) > 0 {
		found, err = o.findNamed(ctx, r.Filter)
	} else {
		found, err = o.findFailed(ctx, r.Filter)
	}
	if err != nil {
		return matches{}, err
	}
	slices.SortStableFunc(found.list, func(a, b Match) int { return cmp.Or(a.FailedAt.Compare(b.FailedAt), cmp.Compare(a.ID, b.ID)) })
	if len(found.list) > limit {
		found.list, found.atLeast = found.list[:limit], true
	}
	return found, nil
}

// findFailed lists failed documents. A document's _ts is never before its failure, so older windows are not searched.
func (o *Ops) findFailed(ctx context.Context, f Filter) (found matches, err error) {
	finding, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	found.atLeast, err = o.scan(finding, []invoice.Status{invoice.Failed}, invoice.EarliestTS(f.From), o.o.Now(), maxMatched, func(doc commit.PendingDoc) bool {
		m := o.match(doc)
		if !f.accepts(m) {
			return false
		}
		found.list = append(found.list, m)
		return true
	})
	if err != nil && finding.Err() != nil && ctx.Err() == nil {
		if len(found.list) == 0 {
			return matches{}, refuse(Conflict, "nothing was found within %s: narrow the search with from and to", findWithin)
		}
		found.atLeast, err = true, nil
	}
	return found, err
}

func (o *Ops) findNamed(ctx context.Context, f Filter) (found matches, err error) {
	seen := map[string]bool{}
	for ids := range slices.Chunk(f.IDs, maxBatch) {
		raws, err := o.p.Documents.ReadMany(ctx, ids)
		if err != nil {
			return matches{}, err
		}
		for _, raw := range raws {
			doc, err := invoice.Read(raw, o.o.Now())
			if err != nil {
				return matches{}, err
			}
			seen[doc.ID] = true
			if why := o.takeable(doc, f); why != "" {
				found.notTaken = append(found.notTaken, NotTaken{doc.ID, why})
				continue
			}
			found.list = append(found.list, o.match(commit.PendingDocOf(doc.ID, doc.TS, doc.State)))
		}
	}
	for _, id := range f.IDs {
		if !seen[id] {
			found.notTaken = append(found.notTaken, NotTaken{id, "no document has this id"})
		}
	}
	slices.SortFunc(found.notTaken, func(a, b NotTaken) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// takeable returns the reason why a document is not tried again; empty when it is.
func (o *Ops) takeable(doc invoice.Document, f Filter) string {
	status := doc.State.Status
	switch {
	case doc.SysName != o.o.SysName:
		return fmt.Sprintf("it belongs to the environment %q", doc.SysName)
	case status == invoice.RetryScheduled && len(f.IDs) == 0:
		return "it waits for a retry, and was not named"
	case status != invoice.Failed && status != invoice.RetryScheduled:
		return fmt.Sprintf("it is %s", cmp.Or(string(status), string(invoice.Pending)))
	case !f.accepts(o.match(commit.PendingDocOf(doc.ID, doc.TS, doc.State))):
		return "its error or its time is not what was asked for"
	}
	return ""
}

// accepts reports whether the filter matches a document's error and time.
func (f Filter) accepts(m Match) bool {
	return (f.Kind == "" || string(f.Kind) == m.Kind) && (f.Code == "" || strings.EqualFold(f.Code, m.Code)) &&
		(f.From.IsZero() || !m.FailedAt.Before(f.From)) && (f.To.IsZero() || m.FailedAt.Before(f.To))
}

// runReprocess executes a run, from its first audit entry to its last status.
func (o *Ops) runReprocess(ctx context.Context, r ReprocessRequest, found matches, res Reprocessed) (Reprocessed, error) {
	res.Run, res.Counts = runID(o.o.Now()), map[string]int{}
	filter, err := json.Marshal(struct {
		Filter
		All   bool `json:"all,omitempty"`
		Rate  int  `json:"rate_per_minute,omitempty"`
		Limit int  `json:"limit,omitempty"`
	}{r.Filter, r.All, r.Rate, r.Limit})
	if err != nil {
		return Reprocessed{}, fault.Wrap(fault.Internal, "ops: reprocess", "encode", "the filter cannot be written as JSON", err)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Start(ctx,
			Run{
				ID: res.Run, Kind: "reprocess", Filter: filter, Matched: len(found.list), AtLeast: found.atLeast, RequestedBy: r.By, Why: r.Why,
			},
			Audit{
				Action: "reprocess", By: r.By, Why: r.Why, Subject: res.Run,
				Detail: json.RawMessage(fmt.Sprintf(`{"matched":%d,"at_least":%t}`, len(found.list), found.atLeast)),
			})
	})
	if err != nil {
		return Reprocessed{}, unaudited(err)
	}
	res.Status, res.Reason = o.commitBatches(ctx, r, found.list, &res)
	err = o.withStores(context.WithoutCancel(ctx), func(ctx context.Context, s Stores) error {
		return s.Audit.End(ctx, res.Run, res.Status, res.Counts)
	})
	if err != nil {
		res.Note = "the end of the run could not be recorded, it is listed as running until `run cancel --gone`: " + errorText(err)
	}
	return res, nil
}

// commitBatches takes the documents batch by batch, until all are tried or the run must end.
func (o *Ops) commitBatches(ctx context.Context, r ReprocessRequest, list []Match, res *Reprocessed) (RunStatus, string) {
	next, done := o.o.Now(), 0
	for batch := range slices.Chunk(list, batchSize(r.Rate)) {
		if why := o.pace(ctx, next); why != "" {
			return Stopped, why
		}
		next = o.o.Now()
		if r.Rate > 0 {
			next = next.Add(time.Duration(len(batch)) * time.Minute / time.Duration(r.Rate))
		}
		if err := o.commitBatch(ctx, r.Filter, batch, res); err != nil {
			return Stopped, errorText(err)
		}
		if done += len(batch); done == len(list) {
			break
		}
		cancel, err := o.progress(ctx, res)
		switch {
		case hasEnded(err), cancel:
			return Cancelled, ""
		case err != nil:
			return Stopped, "its progress could not be recorded: " + errorText(err)
		}
	}
	return completion(res.Counts), ""
}

// outcomeChanged counts documents that no longer match the operator's filter. They are left alone.
const outcomeChanged = "changed"

// completion is the last status of a run that tried all its documents. A changed document leaves nothing to do under its filter.
func completion(counts map[string]int) RunStatus {
	for word, n := range counts {
		if n > 0 && word != outcomeChanged && !run.OutcomeOf(word).Success() {
			return CompletedWithFailures
		}
	}
	return Completed
}

// batchSize is ten seconds' worth of documents, to avoid bursts.
func batchSize(rate int) int {
	if rate == 0 {
		return maxBatch
	}
	return min(maxBatch, max(1, rate/6))
}

// pace waits for the time of the next batch. It returns the reason when the run must stop instead.
func (o *Ops) pace(ctx context.Context, next time.Time) string {
	d := max(0, next.Sub(o.o.Now()))
	if deadline, ok := ctx.Deadline(); ok && deadline.Sub(o.o.Now())-d < stopBefore {
		return "the time for one request is over; ask again, it continues with the rest"
	}
	if d > 0 {
		if err := o.o.Wait(ctx, d); err != nil {
			return "stopped while it waited for its rate"
		}
	}
	if ctx.Err() != nil {
		return "stopped by the caller"
	}
	return ""
}

// commitBatch reads one batch again and commits the documents that still match.
func (o *Ops) commitBatch(ctx context.Context, f Filter, batch []Match, res *Reprocessed) error {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.ID
	}
	raws, err := o.p.Documents.ReadMany(ctx, ids)
	if err != nil {
		return err
	}
	var taken []json.RawMessage
	for _, raw := range raws {
		doc, err := invoice.Read(raw, o.o.Now())
		if err != nil || o.takeable(doc, f) != "" {
			res.add(outcomeChanged, 1)
			continue
		}
		taken = append(taken, raw)
	}
	res.add("gone", len(ids)-len(raws))
	if len(taken) == 0 {
		return nil
	}
	report, err := o.p.Commit.Run(ctx, commit.Batch{Documents: taken, Received: o.o.Now(), Purpose: commit.Reprocess, BatchID: res.Run})
	for outcome, n := range report.Outcomes {
		if outcome != "waiting" { // these documents were not changed
			res.add(outcome, n)
		}
	}
	return err
}

func (r *Reprocessed) add(outcome string, n int) {
	if n > 0 {
		r.Counts[outcome] += n
		r.Left -= n
	}
}

func (o *Ops) progress(ctx context.Context, res *Reprocessed) (cancel bool, err error) {
	err = o.stores(context.WithoutCancel(ctx), func(ctx context.Context, s Stores) (err error) {
		cancel, err = s.Audit.Progress(ctx, res.Run, maps.Clone(res.Counts))
		return err
	})
	return cancel, err
}

func runID(now time.Time) string {
	return fmt.Sprintf("reprocess-%s-%08x", now.UTC().Format("20060102-150405"), rand.Uint32())
}

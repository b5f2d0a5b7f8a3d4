package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

const (
	// maxRunIDs bounds the documents that a run may name.
	maxRunIDs = 10_000
	// maxOverwritten bounds the lines that a rewrite may be told to overwrite.
	maxOverwritten = 10_000
	// maxRunLimit bounds the limit of a request.
	maxRunLimit = 100_000_000
	// maxRunsCounted bounds the runs of a list whose batches are counted.
	maxRunsCounted = 100
	// maxBatchesRead bounds the batches of a shared database that are searched for those of one environment. Each query reads
	// minBatchesRead or more.
	maxBatchesRead = 10_000
	minBatchesRead = 100
	// requeueWithin bounds one requeue request: Azure's front end ends an HTTP request after 230 s.
	requeueWithin = 2 * time.Minute
	// maxRate bounds the rate, in documents a minute.
	maxRate = 100_000
	// sendWithin bounds the sending of a run's first message.
	sendWithin = 20 * time.Second
)

// StartRequest asks for a run with a manager and workers.
type StartRequest struct {
	// Kind is one of Options.Kinds.
	Kind run.Kind `json:"kind"`
	run.Filter
	// Findings are classes of reconcile.Rewritable. The documents and lines of the open ones are then the filter; no other is allowed.
	Findings []reconcile.Class `json:"findings,omitempty"`
	// All is required when the filter is empty, and refused otherwise. A drain needs no filter.
	All bool `json:"all,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is documents handed off per minute; Limit bounds their number. 0 means no bound.
	Rate  int `json:"rate_per_minute,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Pattern is the hand-off's; empty: two_phase, or checkpoint above 10,000 documents.
	Pattern string `json:"pattern,omitempty"`
	// Here executes the run in this process, without messages, as long as the request lasts.
	Here bool   `json:"-"`
	Why  string `json:"why,omitempty"`
}

func (r StartRequest) check(table run.KindTable) error {
	kind, there := table.Find(r.Kind)
	empty := r.ErrorKind == "" && r.Code == "" && r.From.IsZero() && r.To.IsZero() && len(r.IDs) == 0 && r.Run == "" && len(r.Statuses) == 0
	if err := r.checkFindings(kind.Rewrite, !empty); there && err != nil {
		return err
	}
	empty = empty && len(r.Findings) == 0
	switch {
	case !there:
		return refuse(Usage, "kind: expected %s, found %q", table, string(r.Kind))
	case r.ErrorKind != "" && !knownKind(fault.Kind(r.ErrorKind)):
		return refuse(Usage, "error_kind: expected one of %s, found %q", kinds(), r.ErrorKind)
	case !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To):
		return refuse(Usage, "to: expected a time after from")
	case len(r.Statuses) > 0 && (len(kind.Passes) > 0 || len(r.IDs) > 0 || r.Run != ""):
		return refuse(Usage, "statuses: go with a search for documents")
	case slices.ContainsFunc(r.Statuses, func(s invoice.Status) bool { return !slices.Contains(kind.Selectable(), s) }):
		return refuse(Usage, "statuses: a %s takes %s, found %s", r.Kind, joined(kind.Selectable()), Truncate(joined(r.Statuses), MaxBy))
	case len(r.IDs) > maxRunIDs:
		return refuse(Usage, "ids: expected at most %d, found %d", maxRunIDs, len(r.IDs))
	case kind.Compares:
		if err := r.checkComparison(); err != nil {
			return err
		}
		empty = len(r.IDs) == 0
	case len(kind.Passes) > 0 && (len(r.IDs) > 0 || r.ErrorKind != "" || r.Code != "" || r.Pattern != ""):
		return refuse(Usage, "kind: a %s takes no documents: it goes with a time, a rate and a limit", r.Kind)
	case r.Mend || r.Whole:
		return refuse(Usage, "mend, whole: go with a comparison, found %q", string(r.Kind))
	case len(r.IDs) > 0 && (r.ErrorKind != "" || r.Code != "" || !r.From.IsZero() || !r.To.IsZero()):
		return refuse(Usage, "ids: go with no other filter")
	case r.Run != "" && (!kind.OfRun || r.ErrorKind != "" || !r.From.IsZero() || !r.To.IsZero() || len(r.IDs) > 0):
		return refuse(Usage, "run: goes with a kind that tries failed documents again, and with no other filter than a code")
	}
	return r.checkBounds(kind, empty)
}

// checkComparison checks the filter of a kind that compares.
func (r StartRequest) checkComparison() error {
	switch {
	case r.ErrorKind != "" || r.Code != "" || r.Pattern != "" || r.Limit != 0 || !r.From.IsZero() || !r.To.IsZero():
		return refuse(Usage, "kind: a %s searches for no documents and has no batches: it goes with ids or all, run, mend, and a rate; found a time, an error, a limit or a pattern", r.Kind)
	case r.DryRun:
		return refuse(Usage, "dry_run: a %s changes no row, unless it is to mend: there is nothing to preview", r.Kind)
	case r.Whole && !r.All:
		return refuse(Usage, "whole: say all in its place")
	}
	return nil
}

// checkBounds checks the rest. empty says that the filter selects nothing.
func (r StartRequest) checkBounds(kind run.KindRow, empty bool) error {
	_, known := run.PatternOf(r.Pattern)
	switch {
	case r.Run != "" && !isRunID(r.Run):
		return notARun(r.Run)
	case r.Rate < 0 || r.Rate > maxRate:
		return refuse(Usage, "rate: expected 0 to %d documents a minute, found %d", maxRate, r.Rate)
	case r.Limit < 0 || r.Limit > maxRunLimit:
		return refuse(Usage, "limit: expected 0 to %d, found %d", maxRunLimit, r.Limit)
	case r.Pattern != "" && !known:
		return refuse(Usage, "pattern: expected two_phase, checkpoint or optimistic, found %q", r.Pattern)
	case (len(r.OverwriteEdits) > 0 || r.NotComparable) && !kind.Rewrite:
		return refuse(Usage, "overwrite_edits, not_comparable: go with a kind that writes lines again, found %q", string(r.Kind))
	case len(r.OverwriteEdits) > maxOverwritten:
		return refuse(Usage, "overwrite_edits: expected at most %d lines, found %d", maxOverwritten, len(r.OverwriteEdits))
	case slices.ContainsFunc(r.OverwriteEdits, func(line int64) bool { return line < 1 }):
		return refuse(Usage, "overwrite_edits: expected the ids of lines, found %d", slices.Min(r.OverwriteEdits))
	case empty && len(r.OverwriteEdits) > 0 && !r.All:
		return refuse(Usage, "overwrite_edits: names lines, not documents: expected ids, another filter, or all")
	case empty && !r.All && !kind.Unfiltered:
		return refuse(Usage, "all: expected a filter, or that all documents are meant")
	case r.All && !empty:
		return refuse(Usage, "all: goes with no filter")
	}
	for _, id := range r.IDs {
		if err := checkDocumentID(id); err != nil {
			return err
		}
	}
	return nil
}

func knownKind(k fault.Kind) bool {
	return slices.ContainsFunc(fault.Rules(), func(rule fault.Rule) bool { return rule.Kind == k })
}

// Started is the result of StartRun.
type Started struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Run is its id; empty for a dry run, and when nothing matches.
	Run  string   `json:"run,omitempty"`
	Kind run.Kind `json:"kind"`
	// Matched is how many documents match now, within the limit. With AtLeast there may be more: the count ended at 10,000, or after a
	// minute.
	Matched int  `json:"matched"`
	AtLeast bool `json:"at_least,omitempty"`
	// Pattern is the hand-off's, in batches of 100.
	Pattern string `json:"pattern"`
	// Failures counts them by status, kind and code of the last error, the most frequent first. First lists some of them, at most 20.
	Failures []Failures `json:"failures"`
	First    []Match    `json:"first"`
	// NotTaken are documents that a dry run names and the run would leave alone.
	NotTaken []NotTaken `json:"not_taken,omitempty"`
	// Diffs say what a dry run for findings would do to their lines, of at most 20 documents.
	Diffs []DocumentDiff `json:"diffs,omitempty"`
	// Progress is the run after its execution in this process (StartRequest.Here).
	Progress *RunProgress `json:"progress,omitempty"`
	// Note is a problem that does not prevent the run.
	Note string `json:"note,omitempty"`
}

// StartRun starts a run: its row, its audit entry, its first message. A dry run only counts and lists. If the message cannot be sent, or
// with Here, the run is executed in this process until it has ended or ctx is nearly over. Errors: *RequestError (usage; conflict in a
// shadow); infrastructure, throttled, quota, contention. After an error no run was started.
func (o *Ops) StartRun(ctx context.Context, r StartRequest) (Started, error) {
	r.IDs = distinct(r.IDs)
	if err := r.check(o.o.Kinds); err != nil {
		return Started{}, err
	}
	kind, _ := o.o.Kinds.Find(r.Kind) // checked
	r.Whole = r.All && kind.Compares
	var err error
	if kind.Compares && r.Run != "" { // it waits for that run, and a wrong name would let it begin at once
		if err = o.stores(ctx, func(ctx context.Context, s Stores) error { _, err := o.requireRun(ctx, s, r.Run); return err }); err != nil {
			return Started{}, err
		}
	}
	if r.Code, err = o.code("code", r.Code); err != nil {
		return Started{}, err
	}
	if !r.DryRun {
		if _, err = checkReason(ctx, r.Why); err != nil {
			return Started{}, err
		}
	}
	if o.o.ReadOnly != "" && !r.DryRun {
		return Started{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	var lines map[int64]bool
	if len(r.Findings) > 0 {
		if lines, err = o.resolveFindings(ctx, &r); err != nil {
			return Started{}, err
		}
		if len(lines) == 0 {
			return Started{
				DryRun: r.DryRun, Kind: r.Kind, Failures: []Failures{}, First: []Match{}, Note: "no finding is open of " + joined(r.Findings),
			}, nil
		}
	}
	res, err := o.previewRun(ctx, kind, r, lines)
	if err != nil || r.DryRun || (res.Matched == 0 && !res.AtLeast && len(kind.Passes) == 0) {
		return res, err
	}
	if res, err = o.begin(ctx, r, res); err != nil {
		return Started{}, err
	}
	here := r.Here || (res.Note != "" && len(kind.Passes) == 0) // its message could not be sent
	if !here {
		return res, nil
	}
	p, err := o.execute(ctx, res.Run)
	if err != nil {
		res.Note = joinNotes(res.Note, fmt.Sprintf("it was left before its end, or its state cannot be read: `run show %s` shows it: %s", res.Run, errorText(err)))
		return res, nil
	}
	res.Progress, res.Note = &p, joinNotes(res.Note, p.Note)
	return res, nil
}

// begin starts a run that was checked and counted: its row, its audit entry, its first message unless it is executed here. Errors as
// StartRun.
func (o *Ops) begin(ctx context.Context, r StartRequest, res Started) (Started, error) {
	by, err := actor(ctx)
	if err != nil {
		return Started{}, err
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return Started{}, fault.Wrap(fault.Internal, "ops: start run", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: newRunID(string(r.Kind), o.o.Now()), SysName: o.o.SysName, Kind: r.Kind, Filter: filter, Pattern: res.Pattern,
		Rate: r.Rate, Limit: r.Limit, Matched: res.Matched, AtLeast: res.AtLeast,
		RequestedBy: by, Why: r.Why,
	}
	res.Run = row.ID
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Runs.StartRun(ctx, row, run.Audit{
			Code: run.CodeRunStart, Level: run.LevelInfo, By: by, Why: r.Why, Run: row.ID, Detail: startDetail(r, res),
		})
	})
	if err != nil {
		return Started{}, unaudited(err)
	}
	if !r.Here {
		res.Note = o.notify(ctx, row)
	}
	return res, nil
}

// startDetail is the detail of a run's audit entry.
func startDetail(r StartRequest, res Started) json.RawMessage {
	found := ""
	if len(r.Findings) > 0 {
		found = fmt.Sprintf(`,"findings":%q`, joined(r.Findings)) // names of a table
	}
	return json.RawMessage(fmt.Sprintf(`{"kind":%q,"matched":%d,"at_least":%t,"pattern":%q,"here":%t%s}`, r.Kind, res.Matched, res.AtLeast, res.Pattern, r.Here, found))
}

// execute executes a run in this process, unless the flow is paused, and shows it. A note says how it goes on. Errors as RunShow; *RequestError (conflict) when
// another live process has the run.
func (o *Ops) execute(ctx context.Context, id string) (RunProgress, error) {
	var executor Executor
	err := o.withStores(ctx, func(_ context.Context, s Stores) error { executor = s.Executor; return nil })
	if err != nil {
		return RunProgress{}, err
	}
	var done run.Executed
	var failed error
	if flow := o.p.Breaker.View(ctx).Control.Breaker; flow.Name == breaker.Paused {
		done.Left = "the flow is " + o.describe(flow) // who asks does not wait for that
	} else if done, failed = executor.Execute(ctx, id); done.Busy {
		return RunProgress{}, refuse(Conflict, "run %q: %s", id, done.Left)
	}
	p, err := o.showRun(context.WithoutCancel(ctx), o.withStores, id)
	switch {
	case err != nil:
		return p, err
	case p.Status != run.RunRunning: // also after a failure of the run, which its row tells
		return p, nil
	case failed != nil:
		return p, failed
	}
	p.Note = fmt.Sprintf("the run is not over: %s; `run resume %s --why TEXT` goes on with it, otherwise the timer does",
		cmp.Or(done.Left, "another process works on its last batches"), id)
	return p, nil
}

// notify sends the run's message. It returns a note when that fails. A run without documents needs none.
func (o *Ops) notify(ctx context.Context, row run.Run) string {
	if kind, _ := o.o.Kinds.Find(row.Kind); len(kind.Passes) > 0 {
		return "the timer executes it, for some minutes at a time"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	errs := o.p.RunQueue.Send(ctx, []run.Outgoing{run.RunPayload(row).Outgoing(0)})
	if len(errs) == 1 && errs[0] == nil {
		return ""
	}
	why := "no answer"
	if len(errs) > 0 {
		why = errorText(errs[0])
	}
	return "its message could not be sent (" + why + "): the timer sends one within about ten minutes, unless the run has ended by then"
}

func newRunID(kind string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%08x", kind, now.UTC().Format("20060102-150405"), rand.Uint32())
}

// joinNotes joins those that are not empty.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

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
	// maxBatchesRead bounds the batches of a shared database that are searched for those of one environment. Each query
	// reads minBatchesRead or more.
	maxBatchesRead = 10_000
	minBatchesRead = 100
	// requeueWithin bounds one requeue request: Azure's front end ends an HTTP request after 230 s.
	requeueWithin = 2 * time.Minute
	// maxRate bounds the rate, in documents a minute.
	maxRate = 100_000
	// sendWithin bounds the sending of a run's first message.
	sendWithin = 20 * time.Second
	// atOnce is the most documents of a retry that the process executes that is asked; more are handed to the workers.
	// executeWithin bounds it, as requeueWithin.
	atOnce        = 100
	executeWithin = 3 * time.Minute
)

// StartRequest asks for a run with a manager and workers. It selects documents by one of IDs, Since, Run, Findings and
// All.
type StartRequest struct {
	// Kind is one of Options.Kinds.
	Kind run.Kind `json:"kind"`
	// IDs names documents, 10,000 at most.
	IDs []string `json:"ids,omitempty"`
	// Since is the earliest last change.
	Since time.Time `json:"since,omitzero"`
	// Run names another run: the documents that it left undone.
	Run string `json:"run,omitempty"`
	// Findings are classes of reconcile.FindingClasses: their documents and lines, for a kind that writes lines again.
	Findings []reconcile.Class `json:"findings,omitempty"`
	// All means all documents. A kind that needs no filter goes without.
	All bool `json:"all,omitempty"`
	// OverwriteEdits are lines that a kind that writes lines again writes although a person edited them. NotComparable
	// lets it write lines that cannot be compared with what was written. Neither selects documents.
	OverwriteEdits []int64 `json:"overwrite_edits,omitempty"`
	NotComparable  bool    `json:"not_comparable,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is documents handed off per minute; Limit bounds their number. 0 means no bound.
	Rate  int    `json:"rate_per_minute,omitempty"`
	Limit int    `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"`
}

// check returns the request's kind, and refuses what does not go together.
func (r StartRequest) check(table run.KindTable) (run.KindRow, error) {
	kind, there := table.Find(r.Kind)
	ways := 0
	for _, one := range []bool{len(r.IDs) > 0, !r.Since.IsZero(), r.Run != "", len(r.Findings) > 0, r.All} {
		if one {
			ways++
		}
	}
	switch {
	case !there:
		return kind, refuse(Usage, "kind: expected %s, found %q", table, string(r.Kind))
	case ways > 1:
		return kind, refuse(Usage, "ids: expected one of ids, since, run, findings and all, found %d", ways)
	case ways == 0 && !kind.Unfiltered:
		return kind, refuse(Usage, "all: expected a filter, or that all documents are meant")
	case r.Run != "" && !kind.OfRun:
		return kind, refuse(Usage, "run: goes with a kind that tries failed documents again, found %q", string(r.Kind))
	case (len(r.Findings) > 0 || len(r.OverwriteEdits) > 0 || r.NotComparable) && !kind.Rewrite:
		return kind,
			refuse(Usage,
				"findings, overwrite_edits, not_comparable: go with a kind that writes lines again, found %q",
				string(r.Kind))
	case len(r.Findings) > 0 && (len(r.OverwriteEdits) > 0 || r.NotComparable):
		return kind, refuse(Usage, "findings: name the lines themselves, without overwrite_edits and not_comparable")
	}
	unknown := slices.IndexFunc(r.Findings, func(c reconcile.Class) bool {
		return !slices.Contains(reconcile.FindingClasses(), c)
	})
	if unknown >= 0 {
		return kind,
			refuse(Usage, "findings: expected %s, found %q", joined(reconcile.FindingClasses()),
				run.Truncate(string(r.Findings[unknown]), run.MaxKind))
	}
	return kind, nil
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
	// Matched is how many documents match now, within the limit. With AtLeast there may be more: the count ended at
	// 10,000, or after a minute.
	Matched int  `json:"matched"`
	AtLeast bool `json:"at_least,omitempty"`
	// Failures counts them by status, kind and code of the last error, the most frequent first. First lists some of
	// them, at most 20.
	Failures []Failures `json:"failures"`
	First    []Match    `json:"first"`
	// NotTaken are documents that a dry run names and the run would leave alone.
	NotTaken []NotTaken `json:"not_taken,omitempty"`
	// Diffs say what a kind that writes lines again would do to those of the findings or of the documents that a dry
	// run names, of at most 20 documents.
	Diffs []DocumentDiff `json:"diffs,omitempty"`
	// Progress is the run as it was when this process had executed it for a while: a retry of few documents, and any
	// run whose message could not be sent.
	Progress *RunProgress `json:"progress,omitempty"`
	// Note is a problem that does not prevent the run.
	Note string `json:"note,omitempty"`
}

// runPlan is a run to start: what a request asks for, checked and resolved.
type runPlan struct {
	kind   run.KindRow
	filter run.Filter
	// rate and limit are those of the request; 0 means no bound.
	rate, limit int
	dryRun      bool
	why         string
	// findings are the classes whose lines are written again. lines are these lines; a dry run shows their change.
	findings []reconcile.Class
	lines    map[int64]bool
	// left are lines whose document is not named by the finding, but found (release).
	left []int64
	// id is that of the run; empty for a new one.
	id string
	// retry: somebody waits for the documents, so few of them are not handed to workers.
	retry bool
}

// StartRun starts a run: its row, its audit entry, its first message. A dry run only counts and lists. If the message
// cannot be sent, this process executes the run for some minutes, and the timer goes on. Errors: *RequestError (usage;
// conflict in a shadow); infrastructure, throttled, quota, contention. After an error no run was started.
func (o *Ops) StartRun(ctx context.Context, r StartRequest) (Started, error) {
	kind, err := r.check(o.o.Kinds)
	if err != nil {
		return Started{}, err
	}
	p := runPlan{
		kind: kind, rate: r.Rate, limit: r.Limit, dryRun: r.DryRun, why: r.Why,
		findings: r.Findings, filter: run.Filter{
			IDs: distinct(r.IDs), From: r.Since, Run: r.Run, OverwriteEdits: r.OverwriteEdits,
			NotComparable: r.NotComparable,
		},
	}
	if err = p.checkBounds(); err != nil {
		return Started{}, err
	}
	if err := o.mayStart(ctx, p); err != nil {
		return Started{}, err
	}
	if len(r.Findings) > 0 {
		if err = o.resolveFindings(ctx, &p); err != nil {
			return Started{}, err
		}
		if len(p.lines) == 0 {
			return nothing(p, "there is no finding of "+joined(r.Findings)), nil
		}
	}
	return o.start(ctx, p)
}

// nothing is the result where no document matches.
func nothing(p runPlan, note string) Started {
	return Started{DryRun: p.dryRun, Kind: p.kind.Kind, Failures: []Failures{}, First: []Match{}, Note: note}
}

// checkBounds checks what any request for a run may have.
func (p runPlan) checkBounds() error {
	lines := p.filter.OverwriteEdits
	switch {
	case len(p.filter.IDs) > maxRunIDs:
		return refuse(Usage, "ids: expected at most %d, found %d", maxRunIDs, len(p.filter.IDs))
	case p.filter.Run != "" && !run.IsRunID(p.filter.Run):
		return notARun(p.filter.Run)
	case p.rate < 0 || p.rate > maxRate:
		return refuse(Usage, "rate: expected 0 to %d documents a minute, found %d", maxRate, p.rate)
	case p.limit < 0 || p.limit > maxRunLimit:
		return refuse(Usage, "limit: expected 0 to %d, found %d", maxRunLimit, p.limit)
	case len(lines) > maxOverwritten:
		return refuse(Usage, "overwrite_edits: expected at most %d lines, found %d", maxOverwritten, len(lines))
	case slices.ContainsFunc(lines, func(line int64) bool { return line < 1 }):
		return refuse(Usage, "overwrite_edits: expected the ids of lines, found %d", slices.Min(lines))
	}
	for _, id := range p.filter.IDs {
		if err := checkDocumentID(id); err != nil {
			return err
		}
	}
	return nil
}

// mayStart refuses a run without a reason, and any in a shadow. A dry run needs neither.
func (o *Ops) mayStart(ctx context.Context, p runPlan) error {
	if p.dryRun {
		return nil
	}
	_, err := o.mayAct(ctx, p.why)
	return err
}

// start counts the documents of a run, and starts it if there are any. Errors as StartRun.
func (o *Ops) start(ctx context.Context, p runPlan) (Started, error) {
	res, err := o.previewRun(ctx, p)
	if err != nil || p.dryRun || (res.Matched == 0 && !res.AtLeast) {
		return res, err
	}
	here := p.retry && !res.AtLeast && res.Matched <= atOnce
	row, err := o.begin(ctx, p, res, here)
	if err != nil {
		return Started{}, err
	}
	res.Run = row.ID
	if !here {
		var sent bool
		if res.Note, sent = o.notify(ctx, row); sent {
			return res, nil
		}
	}
	progress, err := o.execute(ctx, row.ID)
	if err != nil {
		res.Note = joinNotes(res.Note,
			fmt.Sprintf("it was left before its end, or its state cannot be read: `run show %s` shows it: %s",
				row.ID, errorText(err)))
		return res, nil
	}
	res.Progress, res.Note = &progress, joinNotes(res.Note, progress.Note)
	return res, nil
}

// begin stores a run that was checked and counted, with its audit entry. Errors as StartRun.
func (o *Ops) begin(ctx context.Context, p runPlan, res Started, here bool) (run.Run, error) {
	by, err := actor(ctx)
	if err != nil {
		return run.Run{}, err
	}
	filter, err := asJSON("ops: start run", p.filter)
	if err != nil {
		return run.Run{}, err
	}
	row := run.Run{
		ID: cmp.Or(p.id, newRunID(string(p.kind.Kind), o.o.Now())), SysName: o.o.SysName,
		Kind: p.kind.Kind, Filter: filter,
		Rate: p.rate, Limit: p.limit, Matched: res.Matched, AtLeast: res.AtLeast,
		RequestedBy: by, Why: p.why,
	}
	found := ""
	if len(p.findings) > 0 {
		found = fmt.Sprintf(`,"findings":%q`, joined(p.findings)) // names of a table
	}
	if n := len(p.filter.Releases); n > 0 {
		found += fmt.Sprintf(`,"releases":%d,"first_released":%d`, n, p.filter.Releases[0].Line)
	}
	detail := json.RawMessage(
		fmt.Sprintf(`{"kind":%q,"matched":%d,"at_least":%t,"here":%t%s}`, row.Kind, res.Matched,
			res.AtLeast, here, found))
	asked := false
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		asked = true
		return s.Runs.StartRun(ctx, row,
			run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: by, Why: p.why, Run: row.ID, Detail: detail})
	})
	switch {
	case err == nil:
		return row, nil
	case asked: // an answer may be lost after its commit
		return run.Run{}, because(err, fmt.Sprintf("run %s may have been started: `run list` says so", row.ID))
	}
	return run.Run{}, unaudited(err)
}

// execute executes a run in this process for a while, unless the flow is paused, and shows it. A note says how it goes
// on. Errors as RunShow;
// *RequestError (conflict) when another live process has the run.
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
	} else {
		within, cancel := context.WithTimeout(ctx, executeWithin)
		done, failed = executor.Execute(within, id)
		cancel()
	}
	if done.Busy {
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
	p.Note = fmt.Sprintf(
		"the run is not over: %s; `run resume %s --why TEXT` goes on with it, otherwise the timer does",
		cmp.Or(done.Left, "another process works on its last batches"), id)
	return p, nil
}

// notify sends the run's message. A note says why that failed.
func (o *Ops) notify(ctx context.Context, row run.Run) (note string, sent bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	errs := o.p.RunQueue.Send(ctx, []run.Outgoing{run.RunPayload(row).Outgoing(0)})
	if len(errs) == 1 && errs[0] == nil {
		return "", true
	}
	why := "no answer"
	if len(errs) > 0 {
		why = errorText(errs[0])
	}
	return "its message could not be sent: " + why, false
}

func newRunID(kind string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%08x", kind, now.UTC().Format("20060102-150405"), rand.Uint32())
}

// joinNotes joins those that are not empty.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

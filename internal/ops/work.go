package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

const (
	// mostListedIDs is how many documents a run may be given by name.
	mostListedIDs = 10_000
	// mostPreviewed is how many documents a preview counts; more are "at least".
	mostPreviewed = 10_000
	// mostRunLimit is the largest limit that can be asked for.
	mostRunLimit = 100_000_000
	// sendWithin bounds the sending of a run's first message.
	sendWithin = 20 * time.Second
)

// StartRequest asks for a run that a manager and workers do.
type StartRequest struct {
	// Kind is drain, replay or reindex.
	Kind run.Kind `json:"kind"`
	run.Filter
	// All must be said when the filter is empty, and only then; a drain needs no filter.
	All bool `json:"all,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is how many documents are handed off a minute, Limit how many at most; 0 means no bound.
	Rate  int `json:"rate_per_minute,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Pattern is how batches are handed off; empty: two_phase, or checkpoint for more than 10,000 documents.
	Pattern string `json:"pattern,omitempty"`
	By      string `json:"by,omitempty"`
	Why     string `json:"why,omitempty"`
}

// check refuses what cannot be meant.
func (r StartRequest) check() error {
	empty := r.ErrorKind == "" && r.Code == "" && r.From.IsZero() && r.To.IsZero() && len(r.IDs) == 0
	_, known := run.PatternOf(r.Pattern)
	switch {
	case !r.Kind.Known():
		return refuse(Usage, "kind: expected drain, replay or reindex, found %q", string(r.Kind))
	case r.ErrorKind != "" && !knownKind(fault.Kind(r.ErrorKind)):
		return refuse(Usage, "kind of error: expected one of %s, found %q", kinds(), r.ErrorKind)
	case !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To):
		return refuse(Usage, "to: expected a time after from")
	case len(r.IDs) > mostListedIDs:
		return refuse(Usage, "ids: expected at most %d, found %d", mostListedIDs, len(r.IDs))
	case len(r.IDs) > 0 && (r.ErrorKind != "" || r.Code != "" || !r.From.IsZero() || !r.To.IsZero()):
		return refuse(Usage, "ids: go with no other filter")
	case r.Rate < 0 || r.Rate > mostRate:
		return refuse(Usage, "rate: expected 0 to %d documents a minute, found %d", mostRate, r.Rate)
	case r.Limit < 0 || r.Limit > mostRunLimit:
		return refuse(Usage, "limit: expected 0 to %d, found %d", mostRunLimit, r.Limit)
	case r.Pattern != "" && !known:
		return refuse(Usage, "pattern: expected two_phase, checkpoint or optimistic, found %q", r.Pattern)
	case empty && !r.All && r.Kind != run.Drain:
		return refuse(Usage, "all: expected a filter, or that all documents are meant")
	case r.All && !empty:
		return refuse(Usage, "all: goes with no filter")
	}
	for _, id := range r.IDs {
		if err := document(id); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	return words(r.By, r.Why)
}

func knownKind(k fault.Kind) bool {
	for _, rule := range fault.Rules() {
		if rule.Kind == k {
			return true
		}
	}
	return false
}

// Started is what a run was found to be, and that it runs.
type Started struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Run is its id; empty for a dry run, and when nothing matches.
	Run  string   `json:"run,omitempty"`
	Kind run.Kind `json:"kind"`
	// Matched is how many documents match now and are within the limit; with AtLeast there are more.
	Matched int  `json:"matched"`
	AtLeast bool `json:"at_least,omitempty"`
	// Pattern is how they are handed off, in batches of 100.
	Pattern string `json:"pattern"`
	// First are some of them, at most 20.
	First []Match `json:"first"`
	// Note says what is not as it should be although the run is there.
	Note string `json:"note,omitempty"`
}

// StartRun begins a run: its row, its entry in the audit log, its first message. A dry run counts and lists what it would take
// and changes nothing. When the message cannot be sent the run is there all the same: the timer sends one. Errors:
// *RequestError (usage; conflict in a shadow); infrastructure, throttled, quota, contention: then nothing was begun.
func (o *Ops) StartRun(ctx context.Context, r StartRequest) (Started, error) {
	r.IDs = distinct(r.IDs)
	if err := r.check(); err != nil {
		return Started{}, err
	}
	if o.o.ReadOnly != "" && !r.DryRun {
		return Started{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	res, err := o.previewRun(ctx, r)
	if err != nil || r.DryRun || res.Matched == 0 {
		return res, err
	}
	if err := o.working(); err != nil {
		return Started{}, err
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return Started{}, fault.Wrap(fault.Internal, "ops: start run", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: newRunID(string(r.Kind), o.o.Now()), SysName: o.o.SysName, Kind: r.Kind, Filter: filter, Pattern: res.Pattern,
		Rate: r.Rate, Limit: r.Limit, RequestedBy: r.By, Why: r.Why,
	}
	res.Run = row.ID
	err = o.write(ctx, func(ctx context.Context) error {
		return o.p.Runs.StartRun(ctx, row, run.Audit{
			Code: run.CodeRunStart, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: row.ID,
			Detail: json.RawMessage(fmt.Sprintf(`{"kind":%q,"matched":%d,"at_least":%t,"pattern":%q}`, r.Kind, res.Matched, res.AtLeast, res.Pattern)),
		})
	})
	if err != nil {
		return Started{}, unaudited(err)
	}
	res.Note = o.notify(ctx, row)
	return res, nil
}

// notify sends the message that a manager begins with, and says what is to be said when that fails.
func (o *Ops) notify(ctx context.Context, row run.Run) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	errs := o.p.RunQueue.Send(ctx, []run.Message{run.RunNotice(row).Message(0)})
	if len(errs) == 1 && errs[0] == nil {
		return ""
	}
	why := "no answer"
	if len(errs) > 0 {
		why = said(errs[0])
	}
	return "its message could not be sent, the timer sends one within about ten minutes: " + why
}

// previewRun counts what a run would take.
func (o *Ops) previewRun(ctx context.Context, r StartRequest) (Started, error) {
	res := Started{DryRun: r.DryRun, Kind: r.Kind, Pattern: r.Pattern, First: []Match{}}
	if len(r.IDs) > 0 {
		res.Matched = len(r.IDs)
		for _, id := range r.IDs[:min(len(r.IDs), shown)] {
			res.First = append(res.First, Match{ID: id})
		}
	} else {
		finding, cancel := context.WithTimeout(ctx, findWithin)
		defer cancel()
		err := run.Preview(finding, o.p.Selection, o.o.SysName, r.Kind, r.Filter, o.o.Now(), func(w writer.Waiting) bool {
			if res.Matched++; len(res.First) < shown {
				res.First = append(res.First, o.match(w))
			}
			res.AtLeast = res.Matched > mostPreviewed
			return !res.AtLeast
		})
		if err != nil && (finding.Err() == nil || ctx.Err() != nil) {
			return Started{}, err
		}
		if err != nil {
			res.AtLeast = true
		}
	}
	if r.Limit > 0 && res.Matched > r.Limit {
		res.Matched, res.AtLeast = r.Limit, false
		res.First = res.First[:min(len(res.First), r.Limit)]
	}
	if res.AtLeast {
		res.Matched = min(res.Matched, mostPreviewed)
	}
	if res.Pattern == "" {
		res.Pattern = run.ChoosePattern(res.Matched, res.AtLeast)
	}
	return res, nil
}

// newRunID names a run: what it is, when it was asked for, and something that no other has.
func newRunID(kind string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%08x", kind, now.UTC().Format("20060102-150405"), rand.Uint32())
}

// RunProgress is a run and how far it is.
type RunProgress struct {
	run.Run
	// Stats are the numbers as the database counts them.
	Stats run.Stats `json:"stats"`
	// Done is how many documents have an outcome, PerSecond how many a second since it began. LeftSeconds is an estimate of the
	// rest; 0 when there is none. While the hand-off is not done, there may be more documents than are known yet.
	Done        int     `json:"done"`
	PerSecond   float64 `json:"per_second"`
	LeftSeconds int64   `json:"left_seconds,omitempty"`
}

// RunShow gives one run with its numbers. Errors: *RequestError (usage; not found); infrastructure, throttled, quota, contention.
func (o *Ops) RunShow(ctx context.Context, id string) (RunProgress, error) {
	if !isRunID(id) {
		return RunProgress{}, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	}
	var p RunProgress
	there := false
	err := o.books(ctx, func(ctx context.Context) (err error) {
		if p.Run, there, err = o.p.Runs.Run(ctx, id); err != nil || !there {
			return err
		}
		p.Stats, err = o.p.Runs.Stats(ctx, id)
		return err
	})
	switch {
	case err != nil:
		return RunProgress{}, err
	case !there:
		return RunProgress{}, refuse(NotFound, "no run %q", id)
	}
	return o.progressed(p), nil
}

// progressed fills in what follows from the numbers.
func (o *Ops) progressed(p RunProgress) RunProgress {
	p.Done = p.Stats.Done()
	if s := p.Age.Seconds(); s > 0 {
		p.PerSecond = float64(p.Done) / s
	}
	if left := p.Documents - p.Done; p.Status == run.RunRunning && left > 0 && p.PerSecond > 0 {
		p.LeftSeconds = int64(float64(left) / p.PerSecond)
	}
	p.StartedAt, p.EndedAt, p.HandedOffAt, p.HeartbeatAt = o.in(p.StartedAt), o.in(p.EndedAt), o.in(p.HandedOffAt), o.in(p.HeartbeatAt)
	return p
}

// RunList gives the latest runs with their numbers, newest first; 0 means 20. Errors as RunShow.
func (o *Ops) RunList(ctx context.Context, limit int) (all []RunProgress, err error) {
	if limit, err = listed(limit); err != nil {
		return nil, err
	}
	all = []RunProgress{}
	err = o.books(ctx, func(ctx context.Context) error {
		rows, err := o.p.Runs.ListRuns(ctx, limit)
		if err != nil {
			return err
		}
		all = all[:0]
		for _, row := range rows {
			p := RunProgress{Run: row}
			if row.Pattern != "" {
				if p.Stats, err = o.p.Runs.Stats(ctx, row.ID); err != nil {
					return err
				}
			}
			all = append(all, o.progressed(p))
		}
		return nil
	})
	return all, err
}

// RunRequest names a run for an action.
type RunRequest struct {
	Run string `json:"run"`
	By  string `json:"by"`
	Why string `json:"why"`
}

// RunCancel asks a run to end: its batches under way end, the others are not begun. Errors as RunShow; *RequestError also
// when it is not running (not found).
func (o *Ops) RunCancel(ctx context.Context, r RunRequest) (RunProgress, error) {
	return o.act(ctx, r, "is running", func(ctx context.Context) (bool, error) {
		return o.p.Runs.CancelRun(ctx, r.Run, run.Audit{Code: run.CodeRunCancel, Level: run.LevelWarn, By: r.By, Why: r.Why, Run: r.Run})
	})
}

// RunResume has a failed or cancelled run go on. Errors as RunCancel.
func (o *Ops) RunResume(ctx context.Context, r RunRequest) (RunProgress, error) {
	p, err := o.act(ctx, r, "has failed or was cancelled", func(ctx context.Context) (bool, error) {
		return o.p.Runs.ResumeRun(ctx, r.Run, run.Audit{Code: run.CodeRunResume, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: r.Run})
	})
	if err == nil && p.HandedOffAt.IsZero() {
		o.notify(ctx, p.Run) // when that fails, the timer does it
	}
	return p, err
}

// act changes a run and shows it.
func (o *Ops) act(ctx context.Context, r RunRequest, state string, change func(ctx context.Context) (bool, error)) (RunProgress, error) {
	if !isRunID(r.Run) {
		return RunProgress{}, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	}
	if err := words(r.By, r.Why); err != nil {
		return RunProgress{}, err
	}
	if err := o.working(); err != nil {
		return RunProgress{}, err
	}
	changed := false
	err := o.write(ctx, func(ctx context.Context) (err error) {
		changed, err = change(ctx)
		return err
	})
	switch {
	case err != nil:
		return RunProgress{}, unaudited(err)
	case !changed:
		return RunProgress{}, refuse(NotFound, "no run %q %s", r.Run, state)
	}
	return o.RunShow(ctx, r.Run)
}

// BatchQuery asks for batches.
type BatchQuery struct {
	// Run and Status bound them; empty means any.
	Run    string     `json:"run,omitempty"`
	Status run.Status `json:"status,omitempty"`
	Limit  int        `json:"limit,omitempty"`
}

// BatchList gives batches of a run by number, or the latest of all runs. Errors as RunShow.
func (o *Ops) BatchList(ctx context.Context, q BatchQuery) (jobs []run.Job, err error) {
	if q.Limit, err = listed(q.Limit); err != nil {
		return nil, err
	}
	if q.Status != "" && !knownStatus(q.Status) {
		return nil, refuse(Usage, "status: expected one of %s, found %q", statuses(), string(q.Status))
	}
	err = o.books(ctx, func(ctx context.Context) (err error) {
		jobs, err = o.p.Runs.ListJobs(ctx, q.Run, q.Status, q.Limit)
		return err
	})
	return jobs, err
}

func knownStatus(s run.Status) bool {
	for _, known := range run.Statuses() {
		if known == s {
			return true
		}
	}
	return false
}

func statuses() string {
	var all []string
	for _, s := range run.Statuses() {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

// BatchDetail is one batch with its errors.
type BatchDetail struct {
	run.Job
	Errors []run.ErrorDetail `json:"errors"`
}

// BatchShow gives one batch by its id. Errors as RunShow.
func (o *Ops) BatchShow(ctx context.Context, id string) (b BatchDetail, err error) {
	there := false
	err = o.books(ctx, func(ctx context.Context) (err error) {
		b.Job, b.Errors, there, err = o.p.Runs.Job(ctx, id)
		return err
	})
	if err == nil && !there {
		err = refuse(NotFound, "no batch %q", id)
	}
	if b.Errors == nil {
		b.Errors = []run.ErrorDetail{}
	}
	return b, err
}

// RequeueRequest asks to send failed batches again: one, or all of a run.
type RequeueRequest struct {
	Batch string `json:"batch,omitempty"`
	Run   string `json:"run,omitempty"`
	By    string `json:"by"`
	Why   string `json:"why"`
}

// Requeued says how many batches are sent again by the timer.
type Requeued struct {
	Batches int `json:"batches"`
}

// BatchRequeue has failed batches sent again. A completed run runs again. Errors as RunShow; *RequestError (conflict) when
// nothing failed, or its run was cancelled or failed.
func (o *Ops) BatchRequeue(ctx context.Context, r RequeueRequest) (done Requeued, err error) {
	if (r.Batch == "") == (r.Run == "") {
		return done, refuse(Usage, "batch: expected the id of a batch, or of a run, not both")
	}
	if err := words(r.By, r.Why); err != nil {
		return done, err
	}
	if err := o.working(); err != nil {
		return done, err
	}
	ids := []string{r.Batch}
	if r.Run != "" {
		jobs, err := o.BatchList(ctx, BatchQuery{Run: r.Run, Status: run.Failed, Limit: mostListed})
		if err != nil {
			return done, err
		}
		ids = ids[:0]
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
	}
	for _, id := range ids {
		err := o.write(ctx, func(ctx context.Context) error {
			again, err := o.p.Runs.RequeueJob(ctx, id, run.Audit{Code: run.CodeBatchRequeue, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: r.Run, Job: id})
			if again {
				done.Batches++
			}
			return err
		})
		if err != nil {
			return done, unaudited(err)
		}
	}
	if done.Batches == 0 {
		return done, refuse(Conflict, "no batch of it has failed, or its run was cancelled or has failed (resume that)")
	}
	return done, nil
}

// ItemQuery asks for the documents of a run.
type ItemQuery struct {
	Run string `json:"run"`
	// After is the id of the last document of the page before; empty begins. Limit is at most 1,000.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// RunItems gives the documents of a run with their outcomes, page by page: its receipt. Errors as RunShow.
func (o *Ops) RunItems(ctx context.Context, q ItemQuery) (items []run.ItemOutcome, err error) {
	if q.Limit, err = listed(q.Limit); err != nil {
		return nil, err
	}
	if !isRunID(q.Run) {
		return nil, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	}
	after := ""
	if q.After != "" {
		after = run.DocumentKey(q.After)
	}
	err = o.books(ctx, func(ctx context.Context) (err error) {
		items, err = o.p.Runs.Items(ctx, q.Run, after, q.Limit)
		return err
	})
	return items, err
}

// Report runs one of the monitoring queries. Errors as RunShow; *RequestError (not found) with the names when there is none.
func (o *Ops) Report(ctx context.Context, name string) (t run.Table, err error) {
	err = o.books(ctx, func(ctx context.Context) (err error) {
		t, err = o.p.Reports.Report(ctx, name)
		return err
	})
	if fault.CodeOf(err) == "no_report" {
		return t, refuse(NotFound, "%s", fault.As(err).Reason)
	}
	return t, err
}

// books reads the tables of runs.
func (o *Ops) books(ctx context.Context, use func(ctx context.Context) error) error {
	if err := o.working(); err != nil {
		return err
	}
	return o.read(ctx, use)
}

// working is an error while the tables of runs cannot be had.
func (o *Ops) working() error {
	if o.p.Runs == nil || o.p.Reports == nil || o.p.RunQueue == nil {
		return fault.New(fault.Infrastructure, "ops: runs", "starting", "SQL is not open yet, or no queue is named; Health says why")
	}
	return nil
}

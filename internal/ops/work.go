package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	// mostRunsListed is how many runs are listed with their numbers.
	mostRunsListed = 100
	// mostRunsRead and mostJobsRead are how many of the latest rows of a shared database are looked through for those of one
	// environment; seekFactor is how much more is asked for when these were not enough.
	mostRunsRead = 1000
	mostJobsRead = 10_000
	seekFactor   = 4
	// requeueWithin is how long one request sends batches again: Azure's front end gives an HTTP request up after 230 s.
	requeueWithin = 2 * time.Minute
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
		return refuse(Usage, "error_kind: expected one of %s, found %q", kinds(), r.ErrorKind)
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
	return slices.ContainsFunc(fault.Rules(), func(rule fault.Rule) bool { return rule.Kind == k })
}

// Started is what a run was found to be, and that it runs.
type Started struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Run is its id; empty for a dry run, and when nothing matches.
	Run  string   `json:"run,omitempty"`
	Kind run.Kind `json:"kind"`
	// Matched is how many documents match now and are within the limit; with AtLeast there may be more: the count ended at
	// 10,000, or after a minute.
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
	if err := o.working(); err != nil && !r.DryRun {
		return Started{}, err
	}
	res, err := o.previewRun(ctx, r)
	if err != nil || r.DryRun || (res.Matched == 0 && !res.AtLeast) {
		return res, err
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return Started{}, fault.Wrap(fault.Internal, "ops: start run", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: newRunID(string(r.Kind), o.o.Now()), SysName: o.o.SysName, Kind: r.Kind, Filter: filter, Pattern: res.Pattern,
		Rate: r.Rate, Limit: r.Limit, Matched: res.Matched, AtLeast: res.AtLeast,
		RequestedBy: r.By, Why: r.Why,
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
	errs := o.p.RunQueue.Send(ctx, []run.Message{run.NoticeOfRun(row).Message(0)})
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
		if err != nil {
			late := finding.Err() != nil && ctx.Err() == nil
			if !late && fault.CodeOf(err) != "continuation" { // the container forgot where the search was: what was found counts
				return Started{}, err
			}
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
	// Done is how many documents have an outcome, PerSecond how many a second on average since it was asked for. LeftSeconds is
	// an estimate of the rest that is known (Left); 0 when there is none.
	Done        int     `json:"done"`
	PerSecond   float64 `json:"per_second"`
	LeftSeconds int64   `json:"left_seconds,omitempty"`
	// Note says what is to be known about an action.
	Note string `json:"note,omitempty"`
}

// Left is how long the known rest takes at so many documents a second, and with a rate at least as long as the hand-off of what
// has no batch yet; 0 when there is no estimate, no rest, or none that will be done.
func (p RunProgress) Left(perSecond float64) time.Duration {
	known, _ := p.Known()
	rest := known - p.Done
	if p.Status != run.RunRunning || p.Cancel || rest <= 0 {
		return 0
	}
	left := 0.0
	if perSecond > 0 {
		left = float64(rest) / perSecond
	}
	if p.Rate > 0 {
		left = max(left, float64(known-p.Documents)/float64(p.Rate)*time.Minute.Seconds())
	}
	return time.Duration(left * float64(time.Second))
}

// mine reports whether a run is of this environment; the database may be shared. A run that one process does alone names none.
func (o *Ops) mine(r run.Run) bool { return r.SysName == "" || r.SysName == o.o.SysName }

// mineJob reports the same of a batch: its id is made of what it is the batch of.
func (o *Ops) mineJob(j run.Job) bool { return j.ID == run.JobID(o.o.SysName, j.Run, j.Number) }

// latest looks for rows of this environment among the latest of all, at most limit of them. Of other environments there may be any
// number in front: more and more is asked for, but no more than most.
func latest[T any](limit, most int, mine func(T) bool, list func(limit int) ([]T, error)) ([]T, error) {
	for asked := limit; ; asked = min(most, asked*seekFactor) {
		rows, err := list(asked)
		if err != nil {
			return nil, err
		}
		all := len(rows) < asked || asked >= most
		rows = slices.DeleteFunc(rows, func(row T) bool { return !mine(row) })
		if all || len(rows) >= limit {
			return rows[:min(len(rows), limit)], nil
		}
	}
}

// theRun reads a run that must be there, and of this environment.
func (o *Ops) theRun(ctx context.Context, id string) (run.Run, error) {
	row, there, err := o.p.Runs.Run(ctx, id)
	if err == nil && (!there || !o.mine(row)) {
		err = refuse(NotFound, "no run %q", id)
	}
	return row, err
}

// RunShow gives one run with its numbers. Errors: *RequestError (usage; not found, also for a run of another environment);
// infrastructure, throttled, quota, contention.
func (o *Ops) RunShow(ctx context.Context, id string) (RunProgress, error) {
	if !isRunID(id) {
		return RunProgress{}, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	}
	var p RunProgress
	err := o.books(ctx, func(ctx context.Context) (err error) {
		if p.Run, err = o.theRun(ctx, id); err != nil {
			return err
		}
		p.Stats, err = o.p.Runs.Stats(ctx, id)
		return err
	})
	if err != nil {
		return RunProgress{}, err
	}
	return o.progressed(p), nil
}

// progressed fills in what follows from the numbers.
func (o *Ops) progressed(p RunProgress) RunProgress {
	p.Done = p.Stats.Done()
	if s := p.Age.Seconds(); s > 0 {
		p.PerSecond = float64(p.Done) / s
	}
	p.LeftSeconds = int64(p.Left(p.PerSecond).Seconds())
	p.Run = o.localRun(p.Run)
	return p
}

// localRun is a run for people: its times in the deployment's zone, and not more of its filter than they read.
func (o *Ops) localRun(r run.Run) run.Run {
	r.StartedAt, r.EndedAt, r.HandedOffAt, r.HeartbeatAt = o.in(r.StartedAt), o.in(r.EndedAt), o.in(r.HandedOffAt), o.in(r.HeartbeatAt)
	r.Filter = shortFilter(r.Filter)
	return r
}

// shortFilter is a filter with the first of its documents: a run may name 10,000, and this is asked for every few seconds.
func shortFilter(raw json.RawMessage) json.RawMessage {
	var f run.Filter
	if json.Unmarshal(raw, &f) != nil || len(f.IDs) <= shown {
		return raw
	}
	short := struct {
		run.Filter
		Named int `json:"ids_named"`
	}{f, len(f.IDs)}
	short.IDs = f.IDs[:shown]
	text, err := json.Marshal(short)
	if err != nil {
		return raw
	}
	return text
}

// RunSummary is a run in a list: what became of its documents is not counted, there may be millions.
type RunSummary struct {
	run.Run
	// Jobs counts its batches by status; null for a run that one process does alone.
	Jobs map[run.Status]int `json:"batches_by_status"`
}

// RunList gives the latest runs with their batches by status, newest first, at most 100; 0 means 20. Errors as RunShow.
func (o *Ops) RunList(ctx context.Context, limit int) (all []RunSummary, err error) {
	if limit > mostRunsListed { // the batches of each are counted
		return nil, refuse(Usage, "limit: expected 1 to %d, found %d", mostRunsListed, limit)
	}
	if limit, err = listed(limit); err != nil {
		return nil, err
	}
	err = o.books(ctx, func(ctx context.Context) error {
		all = []RunSummary{}
		rows, err := latest(limit, mostRunsRead, o.mine, func(limit int) ([]run.Run, error) { return o.p.Runs.ListRuns(ctx, limit) })
		if err != nil {
			return err
		}
		for _, row := range rows {
			s := RunSummary{Run: o.localRun(row)}
			if row.Pattern != "" {
				if s.Jobs, err = o.p.Runs.JobCounts(ctx, row.ID); err != nil {
					return err
				}
			}
			all = append(all, s)
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
	if o.o.ReadOnly != "" {
		return RunProgress{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	p, err := o.act(ctx, r, "has failed or was cancelled", func(ctx context.Context) (bool, error) {
		return o.p.Runs.ResumeRun(ctx, r.Run, run.Audit{Code: run.CodeRunResume, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: r.Run})
	})
	switch {
	case err != nil:
	case p.HandedOffAt.IsZero():
		p.Note = o.notify(ctx, p.Run)
	default:
		p.Note = "the timer sends its batches again"
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
	err := o.write(ctx, func(ctx context.Context) error {
		row, there, err := o.p.Runs.Run(ctx, r.Run)
		if err != nil || !there || !o.mine(row) {
			return err
		}
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

// BatchList gives batches of a run, those that failed first, by number; or the latest of all runs. Errors as RunShow.
func (o *Ops) BatchList(ctx context.Context, q BatchQuery) (jobs []run.Job, err error) {
	if q.Limit, err = listed(q.Limit); err != nil {
		return nil, err
	}
	switch {
	case q.Run != "" && !isRunID(q.Run):
		return nil, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	case q.Status != "" && !slices.Contains(run.Statuses(), q.Status):
		return nil, refuse(Usage, "status: expected one of %s, found %q", statuses(), string(q.Status))
	}
	err = o.books(ctx, func(ctx context.Context) (err error) {
		jobs = []run.Job{}
		if q.Run != "" {
			if _, err := o.theRun(ctx, q.Run); err != nil {
				return err
			}
			if q.Status == "" { // what failed is not behind the thousand that did not
				if jobs, err = o.p.Runs.ListJobs(ctx, q.Run, run.Failed, q.Limit); err != nil {
					return err
				}
			}
		}
		more, err := latest(q.Limit, mostJobsRead, o.mineJob, func(limit int) ([]run.Job, error) {
			return o.p.Runs.ListJobs(ctx, q.Run, q.Status, limit)
		})
		first := len(jobs)
		for _, j := range more {
			if first == 0 || j.Status != run.Failed {
				jobs = append(jobs, j)
			}
		}
		jobs = jobs[:min(len(jobs), q.Limit)]
		return err
	})
	for i := range jobs {
		jobs[i] = o.localJob(jobs[i])
	}
	return jobs, err
}

// localJob is a batch with its times in the deployment's zone.
func (o *Ops) localJob(j run.Job) run.Job {
	j.CreatedAt, j.QueuedAt, j.StartedAt = o.in(j.CreatedAt), o.in(j.QueuedAt), o.in(j.StartedAt)
	j.EndedAt, j.HeartbeatAt = o.in(j.EndedAt), o.in(j.HeartbeatAt)
	return j
}

func statuses() string {
	var all []string
	for _, s := range run.Statuses() {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

// batchID is the id of a batch that is named by it, or by its run and number: RUN/12.
func (o *Ops) batchID(name string) (string, error) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 && isRunID(name) {
		return name, nil
	}
	if at > 0 && isRunID(name[:at]) {
		if number, err := strconv.Atoi(name[at+1:]); err == nil && number > 0 {
			return run.JobID(o.o.SysName, name[:at], number), nil
		}
	}
	return "", refuse(Usage, "batch: expected RUN/NUMBER or the id of a batch, as `batch list` shows them")
}

// BatchDetail is one batch with its errors.
type BatchDetail struct {
	run.Job
	Errors []run.ErrorDetail `json:"errors"`
}

// BatchShow gives one batch by its id, or by RUN/NUMBER. Errors as RunShow.
func (o *Ops) BatchShow(ctx context.Context, name string) (b BatchDetail, err error) {
	id, err := o.batchID(name)
	if err != nil {
		return b, err
	}
	err = o.books(ctx, func(ctx context.Context) (err error) {
		b, err = o.batch(ctx, id, name)
		return err
	})
	b.Job = o.localJob(b.Job)
	for i := range b.Errors {
		b.Errors[i].At = o.in(b.Errors[i].At)
	}
	return b, err
}

// batch reads one that must be there.
func (o *Ops) batch(ctx context.Context, id, name string) (b BatchDetail, err error) {
	there := false
	b.Job, b.Errors, there, err = o.p.Runs.Job(ctx, id)
	if err == nil && (!there || !o.mineJob(b.Job)) {
		return BatchDetail{}, refuse(NotFound, "no batch %q", name)
	}
	if b.Errors == nil {
		b.Errors = []run.ErrorDetail{}
	}
	return b, err
}

// RequeueRequest asks to send failed batches again: one, or all of a run.
type RequeueRequest struct {
	// Batch is the id of one, or RUN/NUMBER.
	Batch string `json:"batch,omitempty"`
	Run   string `json:"run,omitempty"`
	By    string `json:"by"`
	Why   string `json:"why"`
}

// Requeued says how many batches are sent again by the timer.
type Requeued struct {
	Batches int `json:"batches"`
	// Note says why these are not all; asked for again, it goes on with the others.
	Note string `json:"note,omitempty"`
}

// BatchRequeue has failed batches sent again, of a run at most 1,000. A completed run runs again. Errors as RunShow;
// *RequestError (conflict) when nothing failed, or its run was cancelled or failed. With an error nothing was changed.
func (o *Ops) BatchRequeue(ctx context.Context, r RequeueRequest) (done Requeued, err error) {
	if (r.Batch == "") == (r.Run == "") {
		return done, refuse(Usage, "batch: expected a batch, or a run, not both")
	}
	if err := words(r.By, r.Why); err != nil {
		return done, err
	}
	if o.o.ReadOnly != "" {
		return done, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	jobs, err := o.requeueable(ctx, r)
	if err != nil {
		return done, err
	}
	begin := o.o.Now()
	for _, j := range jobs {
		if o.o.Now().Sub(begin) > requeueWithin {
			done.Note = "the time for one request is over: the others not, ask again"
			return done, nil
		}
		err := o.write(ctx, func(ctx context.Context) error {
			again, err := o.p.Runs.RequeueJob(ctx, j.ID, run.Audit{Code: run.CodeBatchRequeue, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: j.Run, Job: j.ID})
			if again {
				done.Batches++
			}
			return err
		})
		switch {
		case err != nil && done.Batches == 0:
			return done, unaudited(err)
		case err != nil:
			done.Note = "the others not, ask again: " + said(err)
			return done, nil
		}
	}
	switch {
	case done.Batches == 0:
		return done, refuse(Conflict, "nothing has failed any more, or the run has ended meanwhile")
	case len(jobs) == mostListed:
		done.Note = "there may be more, ask again"
	}
	return done, nil
}

// requeueable are the failed batches that are meant, of a run that can go on.
func (o *Ops) requeueable(ctx context.Context, r RequeueRequest) (jobs []run.Job, err error) {
	id := ""
	switch {
	case r.Batch != "":
		if id, err = o.batchID(r.Batch); err != nil {
			return nil, err
		}
	case !isRunID(r.Run):
		return nil, refuse(Usage, "run: expected the id of a run, as `run list` shows them")
	}
	err = o.books(ctx, func(ctx context.Context) error {
		runID := r.Run
		if id != "" {
			b, err := o.batch(ctx, id, r.Batch)
			if err != nil {
				return err
			}
			if b.Status != run.Failed {
				return refuse(Conflict, "the batch is %s: only one that has failed is sent again", b.Status)
			}
			jobs, runID = []run.Job{b.Job}, b.Run
		}
		row, err := o.theRun(ctx, runID)
		switch {
		case err != nil:
			return err
		case row.Status != run.RunRunning && row.Status != run.RunCompleted:
			return refuse(Conflict, "its run is %s: `run resume %s` has it go on", row.Status, runID)
		case id == "":
			jobs, err = o.p.Runs.ListJobs(ctx, runID, run.Failed, mostListed)
		}
		if err == nil && len(jobs) == 0 {
			err = refuse(Conflict, "no batch of run %q has failed", runID)
		}
		return err
	})
	return jobs, err
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
		if _, err = o.theRun(ctx, q.Run); err != nil {
			return err
		}
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

// ReportNames are the names of the reports and what they answer. It never fails for SQL's sake.
func (o *Ops) ReportNames(context.Context) ([]run.ReportName, error) {
	if o.p.Reports == nil {
		return nil, o.working()
	}
	return o.p.Reports.Names(), nil
}

// books reads the tables of runs.
func (o *Ops) books(ctx context.Context, use func(ctx context.Context) error) error {
	if err := o.working(); err != nil {
		return err
	}
	var refused *RequestError
	err := o.read(ctx, func(ctx context.Context) error {
		err := use(ctx)
		if errors.As(err, &refused) {
			return nil // the database has answered, and that is all that the gate is to see
		}
		return err
	})
	if err == nil && refused != nil {
		return refused
	}
	return err
}

// working is an error while the tables of runs cannot be had.
func (o *Ops) working() error {
	if o.p.Runs == nil || o.p.Reports == nil || o.p.RunQueue == nil {
		return fault.New(fault.Infrastructure, "ops: runs", "starting", "SQL is not open yet, or no queue is named; Health says why")
	}
	return nil
}

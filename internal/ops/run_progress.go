package ops

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"sqlwriter/internal/run"
)

// RunProgress is a run with its progress.
type RunProgress struct {
	run.Run
	// Stats are counts of the database.
	Stats run.Stats `json:"stats"`
	// State is one of the RunStates; Says describes it.
	State string `json:"state"`
	Says  string `json:"says"`
	// Done counts documents with an outcome; PerSecond is their average rate since the start. LeftSeconds estimates the
	// known rest (Left); 0 when there is no estimate.
	Done        int     `json:"done"`
	PerSecond   float64 `json:"per_second"`
	LeftSeconds int64   `json:"left_seconds,omitempty"`
	// Note says what came of an action on the run.
	Note string `json:"note,omitempty"`
}

// Left estimates the time for the known rest at perSecond documents a second. With a rate it is at least the time to
// hand off the documents without a batch. 0 means that nothing is left, or that no estimate is possible.
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

// ownRun reports whether a run is of this environment: environments may share a database.
func (o *Ops) ownRun(r run.Run) bool { return r.SysName == o.o.SysName }

// ownBatch recognises the environment by the batch's id, which contains its hash.
func (o *Ops) ownBatch(batch run.Batch) bool {
	return batch.ID == run.BatchID(o.o.SysName, batch.Run, batch.Number)
}

// requireRun reads a run and refuses one that is missing or of another environment.
func (o *Ops) requireRun(ctx context.Context, s Stores, id string) (run.Run, error) {
	row, there, err := s.Runs.Run(ctx, id)
	if err == nil && (!there || !o.ownRun(row)) {
		err = refuse(NotFound, "no run %q", id)
	}
	return row, err
}

// RunShow returns a run with its progress. Errors: *RequestError (usage; not found, also for a run of another
// environment); infrastructure, throttled, quota, contention.
func (o *Ops) RunShow(ctx context.Context, id string) (RunProgress, error) {
	if !run.IsRunID(id) {
		return RunProgress{}, notARun(id)
	}
	return o.showRun(ctx, o.stores, id)
}

// showRun is RunShow by a way to the stores.
func (o *Ops) showRun(
	ctx context.Context, stores func(context.Context, func(context.Context, Stores) error) error, id string,
) (p RunProgress, err error) {
	err = stores(ctx, func(ctx context.Context, s Stores) (err error) {
		if p.Run, err = o.requireRun(ctx, s, id); err != nil {
			return err
		}
		p.Stats, err = s.Runs.Stats(ctx, id)
		return err
	})
	if err != nil {
		return RunProgress{}, err
	}
	p.State, p.Says = o.runState(p.Run, p.Stats.Batches, o.p.Breaker.Seen().Control.Breaker)
	return o.progressed(p), nil
}

// progressed computes the derived fields.
func (o *Ops) progressed(p RunProgress) RunProgress {
	p.Done = p.Stats.Done()
	if s := p.Age.Seconds(); s > 0 {
		p.PerSecond = float64(p.Done) / s
	}
	p.LeftSeconds = int64(p.Left(p.PerSecond).Seconds())
	p.Run = o.localRun(p.Run)
	return p
}

// localRun converts times to the deployment's zone and shortens the filter.
func (o *Ops) localRun(r run.Run) run.Run {
	r.StartedAt, r.EndedAt, r.HandedOffAt, r.HeartbeatAt = o.in(r.StartedAt), o.in(r.EndedAt),
		o.in(r.HandedOffAt), o.in(r.HeartbeatAt)
	r.Filter = shortFilter(r.Filter)
	return r
}

// shortFilter keeps the first ids of a filter and counts them in ids_named. A filter may name 10,000, and a view polls
// it every few seconds.
func shortFilter(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var ids []json.RawMessage
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["ids"], &ids) != nil || len(ids) <= shown {
		return raw
	}
	first, err := json.Marshal(ids[:shown])
	if err != nil {
		return raw
	}
	members["ids"], members["ids_named"] = first, json.RawMessage(strconv.Itoa(len(ids)))
	text, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return text
}

// RunSummary is a run in a list. Its documents are not counted, because there may be millions. A filter that names
// documents is only in RunShow; here Named is their number.
type RunSummary struct {
	run.Run
	// State is one of the RunStates; Says describes it.
	State string `json:"state"`
	Says  string `json:"says"`
	// Batches counts batches by status; null of an ended run beyond the latest hundred.
	Batches map[run.BatchStatus]int `json:"batches_by_status"`
}

// RunQuery selects runs.
type RunQuery struct {
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// RunPage is a page of runs.
type RunPage struct {
	Runs []RunSummary `json:"runs"`
	// Next is the RunQuery.Page of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// RunList returns the latest runs, newest first. Errors as RunShow.
func (o *Ops) RunList(ctx context.Context, q RunQuery) (page RunPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	if q.Page != "" && !run.IsRunID(q.Page) {
		return page, notAPage(q.Page)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		flow := o.p.Breaker.Seen().Control.Breaker
		rows, err := s.Runs.ListRuns(ctx, q.Page, q.Limit)
		if err != nil {
			return err
		}
		for i, row := range rows {
			summary := RunSummary{Run: o.localRun(row)}
			summary.Why = short(row.Why)
			if i < maxRunsCounted || row.Status == run.RunRunning { // its state needs them
				if summary.Batches, err = s.Runs.BatchCounts(ctx, row.ID); err != nil {
					return err
				}
			}
			summary.State, summary.Says = o.runState(row, summary.Batches, flow)
			page.Runs = append(page.Runs, summary)
		}
		return nil
	})
	page.Runs = present(page.Runs)
	if n := len(page.Runs); n == q.Limit {
		page.Next = page.Runs[n-1].ID
	}
	return page, err
}

// RunRequest names a run for an action.
type RunRequest struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// RunCancel asks a run to end. Batches under way finish, others do not start. Errors as RunShow; *RequestError (not
// found) when the run is not running, or (conflict) in a shadow.
func (o *Ops) RunCancel(ctx context.Context, r RunRequest) (RunProgress, error) {
	return o.changeRun(ctx, r, action{
		state: "is running", from: []run.RunStatus{run.RunRunning},
		change: func(ctx context.Context, s Stores, _ run.Run, by string) (bool, error) {
			return s.Runs.CancelRun(ctx, r.Run,
				run.Audit{Action: run.CodeRunCancel, Level: run.LevelWarn, By: by, Why: r.Why, Run: r.Run})
		},
	})
}

// RunResume continues a run that has failed or was cancelled, or a running one that no live process has. If its message
// cannot be sent, the run is executed in this process, as StartRun does. Errors as RunShow; *RequestError when its
// state does not allow it (not found), and when another process has it (conflict).
func (o *Ops) RunResume(ctx context.Context, r RunRequest) (RunProgress, error) {
	p, err := o.changeRun(ctx, r, action{
		state: "is running, has failed or was cancelled",
		from:  []run.RunStatus{run.RunRunning, run.RunFailed, run.RunCancelled},
		change: func(ctx context.Context, s Stores, row run.Run, by string) (bool, error) {
			if held := row.HeldBy(); held != "" {
				return false, refuse(Conflict, "run %q: %s", r.Run, held)
			}
			if row.Status == run.RunRunning && row.Cancel {
				return false, refuse(Conflict, "run %q: it is to be cancelled: resume it when it has ended", r.Run)
			}
			if row.Status == run.RunRunning { // only its executor changes
				return true,
					s.Audit.Write(ctx,
						run.Audit{Action: run.CodeRunResume, By: by, Why: r.Why, Subject: r.Run, Run: r.Run})
			}
			return s.Runs.ResumeRun(ctx, r.Run,
				run.Audit{Action: run.CodeRunResume, Level: run.LevelInfo, By: by, Why: r.Why, Run: r.Run})
		},
	})
	if err != nil {
		return p, err
	}
	note, sent := o.notify(ctx, p.Run)
	if !sent {
		if p, err = o.execute(ctx, r.Run); err != nil {
			return p, err
		}
		note = joinNotes(note, p.Note)
	}
	p.Note = note
	return p, nil
}

// action is a change of a run.
type action struct {
	// from are the statuses that allow it; state describes them.
	from  []run.RunStatus
	state string
	// change applies it, with its audit entry; false when the status no longer allows it.
	change func(ctx context.Context, s Stores, row run.Run, by string) (bool, error)
}

// changeRun applies an action and shows the run.
func (o *Ops) changeRun(ctx context.Context, r RunRequest, a action) (RunProgress, error) {
	if !run.IsRunID(r.Run) {
		return RunProgress{}, notARun(r.Run)
	}
	by, err := o.mayAct(ctx, r.Why)
	if err != nil {
		return RunProgress{}, err
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		row, there, err := s.Runs.Run(ctx, r.Run)
		switch {
		case err != nil:
			return err
		case !there || !o.ownRun(row):
			return refuse(NotFound, "no run %q %s", r.Run, a.state)
		case !slices.Contains(a.from, row.Status):
			return refuse(NotFound, "no run %q %s: it is %s", r.Run, a.state, row.Status)
		}
		changed, err := a.change(ctx, s, row, by)
		if err == nil && !changed {
			err = refuse(NotFound, "no run %q %s any more", r.Run, a.state)
		}
		return err
	})
	var refused *RequestError
	switch {
	case errors.As(err, &refused):
		return RunProgress{}, err
	case err != nil:
		return RunProgress{}, unaudited(err)
	}
	return o.RunShow(ctx, r.Run)
}

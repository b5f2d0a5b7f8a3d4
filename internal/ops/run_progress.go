package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sqlwriter/internal/run"
)

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

// mine reports whether a run is of this environment; the database may be shared.
func (o *Ops) ownRun(r run.Run) bool { return r.SysName == o.o.SysName }

// ownBatch reports the same of a batch: its id is made of what it is the batch of.
func (o *Ops) ownBatch(batch run.Batch) bool {
	return batch.ID == run.BatchID(o.o.SysName, batch.Run, batch.Number)
}

// latest looks for rows of this environment among the latest of all, at most limit of them. Of other environments there may be any
// number in front: more and more is asked for, but no more than most.
func latest[T any](limit, most int, own func(T) bool, list func(limit int) ([]T, error)) ([]T, error) {
	for asked := limit; ; asked = min(most, asked*seekFactor) {
		rows, err := list(asked)
		if err != nil {
			return nil, err
		}
		all := len(rows) < asked || asked >= most
		rows = slices.DeleteFunc(rows, func(row T) bool { return !own(row) })
		if all || len(rows) >= limit {
			return rows[:min(len(rows), limit)], nil
		}
	}
}

// theRun reads a run that must be there, and of this environment.
func (o *Ops) requireRun(ctx context.Context, s Stores, id string) (run.Run, error) {
	row, there, err := s.Runs.Run(ctx, id)
	if err == nil && (!there || !o.ownRun(row)) {
		err = refuse(NotFound, "no run %q", id)
	}
	return row, err
}

// RunShow gives one run with its numbers, whoever does it. Errors: *RequestError (usage; not found, also for a run of another environment);
// infrastructure, throttled, quota, contention.
func (o *Ops) RunShow(ctx context.Context, id string) (RunProgress, error) {
	if !isRunID(id) {
		return RunProgress{}, notARun(id)
	}
	var p RunProgress
	err := o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		if p.Run, err = o.requireRun(ctx, s, id); err != nil {
			return err
		}
		if p.Pattern == "" {
			p.Stats = run.Stats{Batches: map[run.BatchStatus]int{}, Outcomes: map[run.Outcome]int{}}
			return nil
		}
		p.Stats, err = s.Runs.Stats(ctx, id)
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
	for _, n := range p.Counts { // of one process that does it alone
		p.Done += n
	}
	if s := p.Age.Seconds(); s > 0 {
		p.PerSecond = float64(p.Done) / s
	}
	p.LeftSeconds = int64(p.Left(p.PerSecond).Seconds())
	p.Run = o.localRun(p.Run)
	if p.Pattern == "" && p.Status == run.RunRunning && p.Silent >= aloneSilent {
		p.Note = fmt.Sprintf("nothing was heard of it since %s: if the process that did it is gone, `run cancel %s --gone --why TEXT` ends it",
			p.HeartbeatAt.Format(time.DateTime), p.ID)
	}
	return p
}

// localRun is a run for people: its times in the deployment's zone, and not more of its filter than they read.
func (o *Ops) localRun(r run.Run) run.Run {
	r.StartedAt, r.EndedAt, r.HandedOffAt, r.HeartbeatAt = o.in(r.StartedAt), o.in(r.EndedAt), o.in(r.HandedOffAt), o.in(r.HeartbeatAt)
	r.Filter = shortFilter(r.Filter)
	return r
}

// shortFilter is a filter with the first of its documents, and how many it names: a run may name 10,000, and this is asked for every
// few seconds. Whose filter it is does not matter, so its other members stay as they are.
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

// RunSummary is a run in a list: what became of its documents is not counted, there may be millions. One process that does it
// alone counts them itself (Counts). A filter of workers that names documents is in RunShow only: here is how many (Named).
type RunSummary struct {
	run.Run
	// Batches counts its batches by status; null for a run that one process does alone, and for those beyond the latest hundred that
	// workers do.
	Batches map[run.BatchStatus]int `json:"batches_by_status"`
}

// RunList gives the latest runs, whoever does them, newest first, at most 1,000; 0 means 20. Errors as RunShow.
func (o *Ops) RunList(ctx context.Context, limit int) (all []RunSummary, err error) {
	if limit, err = checkLimit(limit); err != nil {
		return nil, err
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		all = []RunSummary{}
		rows, err := s.Runs.ListRuns(ctx, limit)
		if err != nil {
			return err
		}
		counted := 0
		for _, row := range rows {
			summary := RunSummary{Run: o.localRun(row)}
			if row.Pattern != "" && counted < maxRunsCounted {
				counted++
				if summary.Batches, err = s.Runs.BatchCounts(ctx, row.ID); err != nil {
					return err
				}
			}
			all = append(all, summary)
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

// RunCancel asks a run to end: the batches under way end, the others are not begun. One process that does it alone learns of it
// after its batch; one that died asks nobody any more, and Gone ends its entry. Errors as RunShow; *RequestError also when the run is
// not running (not found), and for Gone of a run that workers do (conflict).
func (o *Ops) RunCancel(ctx context.Context, r CancelRequest) (RunProgress, error) {
	p, err := o.changeRun(ctx, RunRequest{Run: r.Run, By: r.By, Why: r.Why}, action{
		state: "is running", from: []run.RunStatus{run.RunRunning},
		check: func(row run.Run) error {
			if row.Pattern != "" && r.Gone { // its batches would be left open
				return refuse(Conflict, "run %q is done by workers, no single process can be gone: `run cancel` without --gone ends it with its batches", r.Run)
			}
			return nil
		},
		change: func(ctx context.Context, s Stores, row run.Run) (bool, error) {
			if row.Pattern == "" {
				return s.Audit.Cancel(ctx, r.Run, Audit{Action: "cancel", By: r.By, Why: r.Why, Subject: r.Run})
			}
			return s.Runs.CancelRun(ctx, r.Run, run.Audit{Code: run.CodeRunCancel, Level: run.LevelWarn, By: r.By, Why: r.Why, Run: r.Run})
		},
	})
	if err != nil || !r.Gone {
		return p, err
	}
	err = o.withStores(ctx, func(ctx context.Context, s Stores) error { return s.Audit.End(ctx, r.Run, Cancelled, p.Counts) })
	if err != nil {
		return RunProgress{}, err
	}
	return o.RunShow(ctx, r.Run)
}

// RunResume has a failed or cancelled run go on. Errors as RunShow; *RequestError also when it is neither (not found), and for a run
// that one process did alone (conflict).
func (o *Ops) RunResume(ctx context.Context, r RunRequest) (RunProgress, error) {
	if o.o.ReadOnly != "" {
		return RunProgress{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	p, err := o.changeRun(ctx, r, action{
		state: "has failed or was cancelled", from: []run.RunStatus{run.RunFailed, run.RunCancelled},
		check: func(row run.Run) error {
			if row.Pattern == "" {
				return refuse(Conflict, "run %q was not done by workers, nobody goes on with it: the same `%s` asked for again takes what is left", r.Run, row.Kind)
			}
			return nil
		},
		change: func(ctx context.Context, s Stores, _ run.Run) (bool, error) {
			return s.Runs.ResumeRun(ctx, r.Run, run.Audit{Code: run.CodeRunResume, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: r.Run})
		},
	})
	if err == nil {
		p.Note = o.notify(ctx, p.Run)
	}
	return p, err
}

// action is what is done to a run.
type action struct {
	// from are the statuses that it begins from, state says them.
	from  []run.RunStatus
	state string
	// check refuses what the run is not for.
	check func(row run.Run) error
	// change does it, with its audit entry; false when the run is not in such a state any more.
	change func(ctx context.Context, s Stores, row run.Run) (bool, error)
}

// act changes a run and shows it.
func (o *Ops) changeRun(ctx context.Context, r RunRequest, a action) (RunProgress, error) {
	if !isRunID(r.Run) {
		return RunProgress{}, notARun(r.Run)
	}
	if err := checkReason(r.By, r.Why); err != nil {
		return RunProgress{}, err
	}
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		row, err := o.changeable(ctx, s, r.Run, a)
		if err != nil {
			return err
		}
		changed, err := a.change(ctx, s, row)
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

// actable reads a run for an action, and refuses one that it is not for.
func (o *Ops) changeable(ctx context.Context, s Stores, id string, a action) (run.Run, error) {
	row, there, err := s.Runs.Run(ctx, id)
	switch {
	case err != nil:
		return run.Run{}, err
	case !there || !o.ownRun(row):
		return run.Run{}, refuse(NotFound, "no run %q %s", id, a.state)
	}
	if err := a.check(row); err != nil {
		return run.Run{}, err
	}
	if !slices.Contains(a.from, row.Status) {
		return run.Run{}, refuse(NotFound, "no run %q %s: it is %s", id, a.state, row.Status)
	}
	return row, nil
}

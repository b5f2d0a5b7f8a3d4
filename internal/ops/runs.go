package ops

import (
	"context"
	"slices"

	"sqlwriter/internal/fault"
)

// The bounds of a list.
const (
	defaultListed = 20
	mostListed    = 1000
)

// CancelRequest asks a run to end.
type CancelRequest struct {
	Run string `json:"run"`
	By  string `json:"by"`
	Why string `json:"why"`
	// Gone says that the process which ran it is gone: the run is ended here and now.
	Gone bool `json:"gone,omitempty"`
}

// CancelResult is what became of it.
type CancelResult struct {
	Run string `json:"run"`
	// Ended says that it is over; otherwise it ends after the batch under way.
	Ended bool `json:"ended"`
}

// Cancel asks a running run to end after its batch. A run whose process died asks nobody any more: Gone ends its entry.
// Errors by kind: *RequestError (usage; not found when no such run is running; conflict for Gone of a run that workers do);
// infrastructure, throttled, quota, contention.
func (o *Ops) Cancel(ctx context.Context, r CancelRequest) (CancelResult, error) {
	if !isRunID(r.Run) {
		return CancelResult{}, refuse(Usage, "run: expected the id of a run, as `runs` lists them")
	}
	if err := words(r.By, r.Why); err != nil {
		return CancelResult{}, err
	}
	if r.Gone {
		if err := o.alone(ctx, r.Run); err != nil {
			return CancelResult{}, err
		}
	}
	found := false
	err := o.write(ctx, func(ctx context.Context) (err error) {
		if foreign, err := o.foreign(ctx, r.Run); err != nil || foreign {
			return err
		}
		found, err = o.p.Journal.Cancel(ctx, r.Run, Audit{Action: "cancel", By: r.By, Why: r.Why, Subject: r.Run})
		return err
	})
	switch {
	case err != nil:
		return CancelResult{}, unaudited(err)
	case !found:
		return CancelResult{}, refuse(NotFound, "no run %q is running", r.Run)
	case !r.Gone:
		return CancelResult{Run: r.Run}, nil
	}
	err = o.write(ctx, func(ctx context.Context) error {
		runs, err := o.p.Journal.Runs(ctx, mostListed)
		if err != nil {
			return err
		}
		var counts map[string]int
		if i := slices.IndexFunc(runs, func(other Run) bool { return other.ID == r.Run }); i >= 0 {
			counts = runs[i].Counts
		}
		return o.p.Journal.End(ctx, r.Run, Cancelled, counts)
	})
	return CancelResult{Run: r.Run, Ended: err == nil}, err
}

// alone refuses a run that many do: no single process can be gone, and its batches would be left open.
func (o *Ops) alone(ctx context.Context, id string) error {
	if o.p.Runs == nil {
		return nil
	}
	return o.books(ctx, func(ctx context.Context) error {
		row, there, err := o.p.Runs.Run(ctx, id)
		if err == nil && there && row.Pattern != "" && o.mine(row) {
			err = refuse(Conflict, "run %q is done by workers: `run cancel` ends it with its batches", id)
		}
		return err
	})
}

// foreign reports whether a run is another environment's.
func (o *Ops) foreign(ctx context.Context, id string) (bool, error) {
	if o.p.Runs == nil {
		return false, nil
	}
	row, there, err := o.p.Runs.Run(ctx, id)
	return there && !o.mine(row), err
}

// Runs gives the latest runs, newest first; 0 means 20. Errors by kind: *RequestError (usage); infrastructure, throttled,
// quota, contention.
func (o *Ops) Runs(ctx context.Context, limit int) (runs []Run, err error) {
	if limit, err = listed(limit); err != nil {
		return nil, err
	}
	err = o.read(ctx, func(ctx context.Context) (err error) {
		runs, err = o.p.Journal.Runs(ctx, limit)
		return err
	})
	for i := range runs {
		runs[i].StartedAt, runs[i].EndedAt = o.in(runs[i].StartedAt), o.in(runs[i].EndedAt)
	}
	return runs, err
}

// Audits gives the latest entries of the audit log, newest first; 0 means 20. Errors as Runs.
func (o *Ops) Audits(ctx context.Context, limit int) (audits []Audit, err error) {
	if limit, err = listed(limit); err != nil {
		return nil, err
	}
	err = o.read(ctx, func(ctx context.Context) (err error) {
		audits, err = o.p.Journal.Audits(ctx, limit)
		return err
	})
	for i := range audits {
		audits[i].At = o.in(audits[i].At)
	}
	return audits, err
}

func listed(limit int) (int, error) {
	if limit == 0 {
		return defaultListed, nil
	}
	if limit < 0 || limit > mostListed {
		return 0, refuse(Usage, "limit: expected 1 to %d, found %d", mostListed, limit)
	}
	return limit, nil
}

// ended reports whether a run is not running any more.
func ended(err error) bool { return fault.CodeOf(err) == "no_run" }

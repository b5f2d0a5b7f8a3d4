package ops

import (
	"context"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

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

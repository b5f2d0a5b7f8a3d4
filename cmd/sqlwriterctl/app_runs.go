package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// StartRun implements operations.
func (c *appClient) StartRun(ctx context.Context, r ops.StartRequest) (ops.Started, error) {
	answer, err := act[ops.Started](ctx, c, "run/start", r)
	var lost *lostError
	if errors.As(err, &lost) && !r.DryRun {
		err = fmt.Errorf("%w; the run may have started anyway: see `run list` before you start another", err)
	}
	return answer, err
}

// RunShow implements operations.
func (c *appClient) RunShow(ctx context.Context, id string) (ops.RunProgress, error) {
	return ask[ops.RunProgress](ctx, c, "run/show", url.Values{"id": {id}})
}

// RunList implements operations.
func (c *appClient) RunList(ctx context.Context, limit int) ([]ops.RunSummary, error) {
	answer, err := ask[struct{ Runs []ops.RunSummary }](ctx, c, "run/list", limited(limit))
	return answer.Runs, err
}

// RunItems implements operations.
func (c *appClient) RunItems(ctx context.Context, q ops.ItemQuery) ([]run.ItemOutcome, error) {
	wanted := make([]string, len(q.Outcomes))
	for i, o := range q.Outcomes {
		wanted[i] = string(o)
	}
	parameters := map[string]string{"run": q.Run, "outcome": strings.Join(wanted, ","), "after": q.After}
	answer, err := ask[struct{ Items []run.ItemOutcome }](ctx, c, "run/items", query(q.Limit, parameters))
	return answer.Items, err
}

// RunCancel implements operations.
func (c *appClient) RunCancel(ctx context.Context, r ops.RunRequest) (ops.RunProgress, error) {
	return act[ops.RunProgress](ctx, c, "run/cancel", r)
}

// RunResume implements operations.
func (c *appClient) RunResume(ctx context.Context, r ops.ResumeRequest) (ops.RunProgress, error) {
	return act[ops.RunProgress](ctx, c, "run/resume", r)
}

// BatchList implements operations.
func (c *appClient) BatchList(ctx context.Context, q ops.BatchQuery) ([]run.Batch, error) {
	answer, err := ask[struct{ Batches []run.Batch }](ctx, c, "batch/list", query(q.Limit, map[string]string{"run": q.Run, "status": string(q.Status)}))
	return answer.Batches, err
}

// BatchShow implements operations.
func (c *appClient) BatchShow(ctx context.Context, name string) (ops.BatchDetail, error) {
	return ask[ops.BatchDetail](ctx, c, "batch/show", url.Values{"id": {name}})
}

// BatchRequeue implements operations.
func (c *appClient) BatchRequeue(ctx context.Context, r ops.RequeueRequest) (ops.Requeued, error) {
	return act[ops.Requeued](ctx, c, "batch/requeue", r)
}

// Report implements operations.
func (c *appClient) Report(ctx context.Context, name string) (run.Table, error) {
	return ask[run.Table](ctx, c, "report", url.Values{"name": {name}})
}

// ReportNames implements operations.
func (c *appClient) ReportNames(ctx context.Context) ([]run.ReportName, error) {
	answer, err := ask[struct{ Reports []run.ReportName }](ctx, c, "reports", nil)
	return answer.Reports, err
}

// query makes the parameters of a list, without the empty ones.
func query(limit int, parameters map[string]string) url.Values {
	values := url.Values{}
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
	if limit != 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	return values
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

type batchCommands struct {
	List    batchListCommand    `cmd:"" help:"List the batches of a run, failed ones first; the latest of all runs; or one with the errors of its documents."`
	Requeue batchRequeueCommand `cmd:"" help:"Send a failed batch again, or all failed batches of a run."`
}

type batchListCommand struct {
	limitFlag

	Status run.BatchStatus `help:"Only batches with this status." placeholder:"STATUS"`
	ID     string          `arg:"" optional:"" name:"run" help:"The run's id, or RUN/NUMBER for one batch."`
}

// Run lists the batches.
func (c *batchListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	q := ops.BatchQuery{Run: c.ID, Status: c.Status}
	if strings.Contains(c.ID, "/") {
		q.Batch, q.Run = c.ID, ""
	}
	var found []run.ErrorDetail
	all, err := collect(a, c.Limit, func(limit int, page string) ([]run.Batch, string, error) {
		q.Limit, q.Page = limit, page
		p, err := ask(ctx, a, opsapi.BatchList, q)
		found = p.Errors
		return p.Batches, p.Next, err
	})
	if err != nil {
		return err
	}
	return a.emit(ops.BatchPage{Batches: all, Errors: found}, idsOf(all, batchName), func() error {
		rows := [][]string{
			{"BATCH", "STATUS", "DOCUMENTS", "SUCCESS", "FAILURE", "QUEUED", "STARTED", "ENDED", "ERROR"},
		}
		for _, b := range all {
			rows = append(rows, []string{
				batchName(b), batchStatus(b.Status), strconv.Itoa(b.Total), strconv.Itoa(b.Success),
				strconv.Itoa(b.Failure), a.time(b.QueuedAt), a.time(b.StartedAt), a.time(b.EndedAt),
				orDash(a.says(batchError(b))),
			})
		}
		return errors.Join(a.table(rows), a.tables(errorRows(a, found)))
	})
}

// batchName is the short name of a batch. Package ops accepts it in place of the id.
func batchName(b run.Batch) string { return b.Run + "/" + strconv.Itoa(b.Number) }

// batchStatus is a status as it is listed. Capitals make a failure stand out.
func batchStatus(s run.BatchStatus) string {
	if s == run.Failed {
		return "FAILED"
	}
	return string(s)
}

// batchError is the error of a failed batch, or the last error of the queue.
func batchError(b run.Batch) string {
	if b.Error == "" && b.LastQueueError != "" && b.Status.Open() {
		return "queue: " + b.LastQueueError
	}
	return b.Error
}

// errorRows are the errors of documents of a batch.
func errorRows(a *app, found []run.ErrorDetail) [][]string {
	rows := [][]string{{"AT", "TYPE", "CODE", "RETRIES", "AGAIN", "LINE", "DOCUMENT", "MESSAGE"}}
	for _, e := range found {
		again := "no"
		if e.Retryable {
			again = "yes"
		}
		rows = append(rows, []string{
			a.time(e.At), e.Type, orDash(e.Code), strconv.Itoa(e.RetryCount), again, lineOr(e.EntityID, "-"),
			e.Document, a.says(e.Message),
		})
	}
	return rows
}

type batchRequeueCommand struct {
	whyFlag
	yesFlag

	RunID string `name:"run" help:"All failed batches of this run." placeholder:"RUN"`
	ID    string `arg:"" optional:"" name:"batch" help:"RUN/NUMBER, or the batch's id."`
}

// Run requeues the batches. It asks before it requeues those of a run.
func (c *batchRequeueCommand) Run(ctx context.Context, a *app) error {
	switch {
	case c.ID == "" && c.RunID == "":
		return usagef("which batches? expected a batch (RUN/NUMBER), or --run RUN for all failed batches of a run")
	case c.ID != "" && c.RunID != "":
		return usagef("expected a batch or --run RUN, not both")
	case c.RunID != "":
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
		if err := a.confirm(c.Yes,
			fmt.Sprintf("All failed batches of run %s will be sent again.", c.RunID)); err != nil {
			return err
		}
	}
	done, err := ask(ctx, a, opsapi.BatchRequeue, ops.RequeueRequest{Batch: c.ID, Run: c.RunID, Why: c.Why})
	if err != nil {
		return err
	}
	if done.Note != "" {
		a.notef("%s", a.says(done.Note))
	}
	return a.emit(done, nil, func() error {
		a.printf("the timer will send %s again", batches(done.Batches))
		return nil
	})
}

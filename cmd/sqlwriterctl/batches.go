package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

type batchCommands struct {
	List    batchListCommand    `cmd:"" help:"List the batches of a run, failed ones first; or the latest batches of all runs."`
	Show    batchShowCommand    `cmd:"" help:"Show a batch and the errors of its documents."`
	Requeue batchRequeueCommand `cmd:"" help:"Send a failed batch again, or all failed batches of a run."`
}

type batchListCommand struct {
	appFlags

	Status string `help:"Only batches with this status: pending_queue, pending_retry, queued, processing, completed or failed." placeholder:"STATUS"`
	Limit  int    `help:"At most N batches." default:"20" placeholder:"N"`
	JSON   bool   `name:"json" help:"Print JSON."`
	ID     string `arg:"" optional:"" name:"run" help:"The run's id."`
}

// Run lists the batches.
func (c *batchListCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.BatchList, ops.BatchQuery{Run: c.ID, Status: run.BatchStatus(c.Status), Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, page.Batches)
		}
		rows := [][]string{{"BATCH", "STATUS", "DOCUMENTS", "SUCCESS", "FAILURE", "QUEUED", "STARTED", "ENDED", "ERROR"}}
		for _, b := range page.Batches {
			rows = append(rows, []string{
				batchName(b), batchStatus(b.Status), strconv.Itoa(b.Total), strconv.Itoa(b.Success), strconv.Itoa(b.Failure),
				clock(b.QueuedAt), clock(b.StartedAt), clock(b.EndedAt), orDash(oneLine(batchError(b))),
			})
		}
		return a.table(rows)
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

type batchShowCommand struct {
	appFlags

	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"batch" help:"RUN/NUMBER, or the batch's id."`
}

// Run shows the batch.
func (c *batchShowCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		b, err := opsapi.Do(ctx, o, opsapi.BatchShow, opsapi.Batch{Batch: c.ID})
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(a, b)
		} else {
			err = printBatch(a, b)
		}
		if err == nil && b.Status == run.Failed {
			a.notef("batch %s failed: `batch requeue %s --why TEXT` sends it again", batchName(b.Batch), batchName(b.Batch))
		}
		return err
	})
}

func printBatch(a *app, b ops.BatchDetail) error {
	rows := [][]string{{"batch", batchName(b.Batch)}, {"id", b.ID}, {"status", batchStatus(b.Status)}}
	if b.Error != "" {
		rows = append(rows, []string{"error", oneLine(b.Error)})
	}
	rows = append(rows, []string{"documents", fmt.Sprintf("%d: %d success, %d failure", b.Total, b.Success, b.Failure)})
	queue := fmt.Sprintf("attempt %d, refused %d times", b.Attempt, b.QueueAttempts)
	if b.LastQueueError != "" {
		queue += ", last error: " + oneLine(b.LastQueueError)
	}
	rows = append(rows,
		[]string{"message", queue}, []string{"worker", orDash(b.Owner)}, []string{"created", clock(b.CreatedAt)}, []string{"queued", clock(b.QueuedAt)},
		[]string{"started", clock(b.StartedAt)}, []string{"heartbeat", clock(b.HeartbeatAt)}, []string{"ended", clock(b.EndedAt)},
	)
	if err := a.table(rows); err != nil {
		return err
	}
	if len(b.Errors) == 0 {
		return nil
	}
	a.printf("")
	rows = [][]string{{"AT", "TYPE", "CODE", "RETRIES", "AGAIN", "LINE", "DOCUMENT", "MESSAGE"}}
	for _, e := range b.Errors {
		again, line := "no", "-"
		if e.Retryable {
			again = "yes"
		}
		if e.EntityID != 0 {
			line = strconv.FormatInt(e.EntityID, 10)
		}
		rows = append(rows, []string{clock(e.At), e.Type, orDash(e.Code), strconv.Itoa(e.RetryCount), again, line, e.Document, oneLine(e.Message)})
	}
	return a.table(rows)
}

type batchRequeueCommand struct {
	appFlags

	RunID string `name:"run" help:"All failed batches of this run." placeholder:"RUN"`
	Why   string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON  bool   `name:"json" help:"Print JSON."`
	ID    string `arg:"" optional:"" name:"batch" help:"RUN/NUMBER, or the batch's id."`
}

// Run requeues the batches.
func (c *batchRequeueCommand) Run(ctx context.Context, a *app) error {
	if (c.ID == "") == (c.RunID == "") {
		return &usageError{errors.New("batch requeue: expected a batch, or --run, not both")}
	}
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		done, err := opsapi.Do(ctx, o, opsapi.BatchRequeue, ops.RequeueRequest{Batch: c.ID, Run: c.RunID, Why: c.Why})
		if err != nil {
			return err
		}
		if done.Note != "" {
			a.notef("%s", done.Note)
		}
		if c.JSON {
			return printJSON(a, done)
		}
		a.printf("the timer will send %s again", batches(done.Batches))
		return nil
	})
}

type reportCommand struct {
	appFlags

	JSON bool   `name:"json" help:"Print JSON."`
	Name string `arg:"" optional:"" name:"name" help:"The report's name; without one the names are listed with their meaning."`
}

// Run runs the report, or lists all reports.
func (c *reportCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		if c.Name == "" {
			return c.list(ctx, a, o)
		}
		t, err := opsapi.Do(ctx, o, opsapi.ReportShow, opsapi.Report{Name: c.Name})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, t)
		}
		rows := [][]string{t.Columns}
		for _, values := range t.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				row[i] = reportCell(v)
			}
			rows = append(rows, row)
		}
		if err := a.table(rows); err != nil {
			return err
		}
		if len(t.Rows) == 0 {
			a.notef("no rows")
		}
		return nil
	})
}

func (c *reportCommand) list(ctx context.Context, a *app, o opsapi.Caller) error {
	all, err := opsapi.Do(ctx, o, opsapi.ReportList, opsapi.None{})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, all.Reports)
	}
	rows := [][]string{{"REPORT", "ANSWERS"}}
	for _, n := range all.Reports {
		rows = append(rows, []string{n.Name, n.Meaning})
	}
	return a.table(rows)
}

// reportCell formats a value of a report: a text, a number or nil.
func reportCell(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return orDash(oneLine(v))
	case float64: // JSON gives whole numbers as float64, too
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// batchCommands are about the batches of runs.
type batchCommands struct {
	List    batchListCommand    `cmd:"" help:"List the batches of a run, those that failed first; or the latest of all runs."`
	Show    batchShowCommand    `cmd:"" help:"Show one with the errors of its documents."`
	Requeue batchRequeueCommand `cmd:"" help:"Send a failed batch again, or all of a run."`
}

// batchListCommand lists batches.
type batchListCommand struct {
	appFlags

	Status string `help:"Only those with this status: pending_queue, pending_retry, queued, processing, completed or failed." placeholder:"STATUS"`
	Limit  int    `help:"At most so many." default:"20" placeholder:"N"`
	JSON   bool   `name:"json" help:"Print JSON."`
	ID     string `arg:"" optional:"" name:"run" help:"The run's id."`
}

// Run lists them.
func (c *batchListCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	return c.operate(ctx, a, func(o operations) error {
		jobs, err := o.BatchList(ctx, ops.BatchQuery{Run: c.ID, Status: run.BatchStatus(c.Status), Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, append([]run.Batch{}, jobs...))
		}
		rows := [][]string{{"BATCH", "STATUS", "DOCUMENTS", "SUCCESS", "FAILURE", "QUEUED", "STARTED", "ENDED", "ERROR"}}
		for _, j := range jobs {
			rows = append(rows, []string{
				batchName(j), batchStatus(j.Status), strconv.Itoa(j.Total), strconv.Itoa(j.Success), strconv.Itoa(j.Failure),
				clock(j.QueuedAt), clock(j.StartedAt), clock(j.EndedAt), orDash(oneLine(batchError(j))),
			})
		}
		return a.table(rows)
	})
}

// batchName names a batch for people; ops takes it for the id.
func batchName(j run.Batch) string { return j.Run + "/" + strconv.Itoa(j.Number) }

// batchStatus is a status as it is listed: what failed is seen at once.
func batchStatus(s run.BatchStatus) string {
	if s == run.Failed {
		return "FAILED"
	}
	return string(s)
}

// batchError is why a batch failed, or what the queue said last.
func batchError(j run.Batch) string {
	if j.Error == "" && j.LastQueueError != "" && j.Status.Open() {
		return "queue: " + j.LastQueueError
	}
	return j.Error
}

// batchShowCommand shows a batch.
type batchShowCommand struct {
	appFlags

	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"batch" help:"RUN/NUMBER, or the batch's id."`
}

// Run shows it.
func (c *batchShowCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o operations) error {
		b, err := o.BatchShow(ctx, c.ID)
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
		queue += ", at last: " + oneLine(b.LastQueueError)
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
	rows = [][]string{{"AT", "TYPE", "CODE", "RETRIES", "AGAIN", "DOCUMENT", "MESSAGE"}}
	for _, e := range b.Errors {
		again := "no"
		if e.Retryable {
			again = "yes"
		}
		rows = append(rows, []string{clock(e.At), e.Type, orDash(e.Code), strconv.Itoa(e.RetryCount), again, e.Document, oneLine(e.Message)})
	}
	return a.table(rows)
}

// batchRequeueCommand sends failed batches again.
type batchRequeueCommand struct {
	appFlags

	RunID string `name:"run" help:"All failed batches of this run." placeholder:"RUN"`
	Why   string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON  bool   `name:"json" help:"Print JSON."`
	ID    string `arg:"" optional:"" name:"batch" help:"RUN/NUMBER, or the batch's id."`
}

// Run has them sent.
func (c *batchRequeueCommand) Run(ctx context.Context, a *app) error {
	if (c.ID == "") == (c.RunID == "") {
		return &usageError{errors.New("batch requeue: expected a batch, or --run, not both")}
	}
	return c.operate(ctx, a, func(o operations) error {
		done, err := o.BatchRequeue(ctx, ops.RequeueRequest{Batch: c.ID, Run: c.RunID, By: who(), Why: c.Why})
		if err != nil {
			return err
		}
		if done.Note != "" {
			a.notef("%s", done.Note)
		}
		if c.JSON {
			return printJSON(a, done)
		}
		a.printf("%s to be sent again by the timer", batches(done.Batches))
		return nil
	})
}

// reportCommand runs a monitoring query.
type reportCommand struct {
	appFlags

	JSON bool   `name:"json" help:"Print JSON."`
	Name string `arg:"" optional:"" name:"name" help:"The report's name; without one the names are listed with their meaning."`
}

// Run runs it, or lists what there is.
func (c *reportCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o operations) error {
		if c.Name == "" {
			return c.list(ctx, a, o)
		}
		t, err := o.Report(ctx, c.Name)
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

func (c *reportCommand) list(ctx context.Context, a *app, o operations) error {
	names, err := o.ReportNames(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, append([]run.ReportName{}, names...))
	}
	rows := [][]string{{"REPORT", "ANSWERS"}}
	for _, n := range names {
		rows = append(rows, []string{n.Name, n.Meaning})
	}
	return a.table(rows)
}

// reportCell is a value of a report for people: a text, a number or nothing.
func reportCell(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return orDash(oneLine(v))
	case float64: // whole numbers are this, too, when they come as JSON
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

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

// runCommands groups the commands about runs.
type runCommands struct {
	Start  runStartCommand  `cmd:"" help:"Start a run. --dry-run counts and lists its documents."`
	List   runListCommand   `cmd:"" help:"List the latest runs with their numbers, newest first."`
	Show   runShowCommand   `cmd:"" help:"Show a run. Exit code 1 for an ended run with failures."`
	Watch  runWatchCommand  `cmd:"" help:"Watch a run until it has ended. Exit code 1 unless it completed without failures."`
	Items  runItemsCommand  `cmd:"" help:"List the outcome of each document of a run."`
	Cancel runCancelCommand `cmd:"" help:"Cancel a run: running batches finish, the others do not start."`
	Resume runResumeCommand `cmd:"" help:"Resume a run that was cancelled or has failed; --here also one whose process is gone."`
}

// kindsHelp names the kinds of runs with their meaning.
func kindsHelp() string {
	var words []string
	for _, k := range run.Kinds() {
		words = append(words, fmt.Sprintf("%s (%s)", k.Kind, k.Meaning))
	}
	return strings.Join(words, ", ")
}

// receiptFlag is the flag of the commands that can wait for the end of a run.
type receiptFlag struct {
	Receipt string `help:"When the run has ended, write the outcome of each document as JSON lines; the first line is about the run." placeholder:"FILE"`
}

// newReceipt creates the receipt; nil without --receipt.
func (f receiptFlag) newReceipt() (*runReceipt, error) {
	if f.Receipt == "" {
		return nil, nil //nolint:nilnil // nil means no receipt
	}
	return newReceipt(f.Receipt)
}

// newWatcher makes the watcher of a run.
func newWatcher(a *app, o opsapi.Caller, id string) *watcher {
	return &watcher{
		run: id, now: a.clock, wait: a.pause(), out: a.stderr, redraw: a.terminal, quiet: a.Quiet, shown: a.time,
		ask: func(ctx context.Context, id string) (ops.RunProgress, error) {
			return opsapi.Do(ctx, o, opsapi.RunShow, opsapi.Run{Run: id})
		},
	}
}

// watch follows a run to its end, writes its receipt, and prints it.
func (f receiptFlag) watch(ctx context.Context, a *app, o opsapi.Caller, w *watcher, file *runReceipt) error {
	p, err := w.watch(ctx)
	if err != nil {
		return err
	}
	return errors.Join(emitRun(a, p), f.writeReceipt(ctx, a, o, w, p, file), verdict(p))
}

// writeReceipt writes the receipt. It retries when the app does not answer.
func (f receiptFlag) writeReceipt(ctx context.Context, a *app, o opsapi.Caller, w *watcher, p ops.RunProgress, file *runReceipt) error {
	if file == nil {
		return nil
	}
	err := file.write(ctx, p, func(ctx context.Context, q ops.ItemQuery) (page ops.ItemPage, err error) {
		err = w.retry(ctx, func(ctx context.Context) (err error) {
			page, err = opsapi.Do(ctx, o, opsapi.RunItems, q)
			return err
		})
		return page, err
	})
	if err == nil {
		a.notef("receipt: %s", f.Receipt)
	}
	return err
}

func emitRun(a *app, p ops.RunProgress) error {
	return a.emit(p, []string{p.ID}, func() error { return printRun(a, p) })
}

type runListCommand struct{ pageFlags }

// Run lists the runs.
func (c *runListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.RunList, ops.RunQuery{Limit: c.Limit, Page: c.Page})
		if err != nil {
			return err
		}
		a.more(page.Next)
		return a.emit(page, idsOf(page.Runs, func(r ops.RunSummary) string { return r.ID }), func() error { return printRuns(a, page.Runs) })
	})
}

type runShowCommand struct {
	receiptFlag

	Watch bool   `short:"w" help:"As run watch."`
	ID    string `arg:"" name:"run" help:"The run's id."`
}

// Run shows the run.
func (c *runShowCommand) Run(ctx context.Context, a *app) error {
	if c.Watch {
		return (&runWatchCommand{c.receiptFlag, c.ID}).Run(ctx, a)
	}
	file, err := c.newReceipt()
	if err != nil {
		return err
	}
	defer file.discard()
	return a.operate(ctx, func(o opsapi.Caller) error {
		p, err := opsapi.Do(ctx, o, opsapi.RunShow, opsapi.Run{Run: c.ID})
		if err != nil {
			return err
		}
		if file != nil && p.Status == run.RunRunning {
			return &advisedError{fmt.Errorf("run %s is running, and a receipt is of an ended one", c.ID), "`sqlwriterctl run watch " + c.ID + " --receipt FILE` waits for its end"}
		}
		if err := errors.Join(emitRun(a, p), c.writeReceipt(ctx, a, o, newWatcher(a, o, c.ID), p, file)); err != nil {
			return err
		}
		advice := verdict(p)
		if advice != nil && p.Status == run.RunRunning { // the command succeeds as long as the run goes on
			what, do := a.describe(advice)
			a.notef("%s\nhint: %s", what, do)
			return nil
		}
		return advice
	})
}

type runWatchCommand struct {
	receiptFlag

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run watches the run.
func (c *runWatchCommand) Run(ctx context.Context, a *app) error {
	file, err := c.newReceipt()
	if err != nil {
		return err
	}
	defer file.discard()
	return a.operate(ctx, func(o opsapi.Caller) error { return c.watch(ctx, a, o, newWatcher(a, o, c.ID), file) })
}

type runItemsCommand struct {
	pageFlags

	Outcome []run.Outcome `help:"Only documents with one of these outcomes, separated by commas: failed,deferred." placeholder:"OUTCOMES" values:"outcomes"`
	ID      string        `arg:"" name:"run" help:"The run's id."`
}

// Run lists the documents.
func (c *runItemsCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.RunItems, ops.ItemQuery{Run: c.ID, Outcomes: c.Outcome, Page: c.Page, Limit: c.Limit})
		if err != nil {
			return err
		}
		a.more(page.Next)
		return a.emit(page, idsOf(page.Items, func(i run.ItemOutcome) string { return i.Document }), func() error {
			rows := [][]string{{"DOCUMENT", "OUTCOME", "CODE", "BATCH"}}
			for _, it := range page.Items {
				rows = append(rows, []string{it.Document, orDash(string(it.Outcome)), orDash(it.Code), strconv.Itoa(it.Number)})
			}
			return a.table(rows)
		})
	})
}

type runCancelCommand struct {
	whyFlag

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run cancels the run.
func (c *runCancelCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		p, err := opsapi.Do(ctx, o, opsapi.RunCancel, ops.RunRequest{Run: c.ID, Why: c.Why})
		return printActed(a, p, err, "ends after the running batches; written rows stay written")
	})
}

type runResumeCommand struct {
	whyFlag

	Here bool   `help:"Execute it in this process, as run start --here does. It also takes a running run that no live process has."`
	ID   string `arg:"" name:"run" help:"The run's id."`
}

// Run resumes the run.
func (c *runResumeCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		p, err := opsapi.Do(ctx, o, opsapi.RunResume, ops.ResumeRequest{RunRequest: ops.RunRequest{Run: c.ID, Why: c.Why}, Here: c.Here})
		if c.Here && err == nil {
			if p.Note != "" {
				a.notef("%s", a.says(p.Note))
			}
			return errors.Join(emitRun(a, p), executed(p))
		}
		return printActed(a, p, err, "resumed")
	})
}

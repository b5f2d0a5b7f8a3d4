package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// runCommands groups the commands about runs.
type runCommands struct {
	Start  runStartCommand  `cmd:"" help:"Start a run. --dry-run counts and lists its documents."`
	List   runListCommand   `cmd:"" help:"List the latest runs with their numbers, newest first."`
	Show   runShowCommand   `cmd:"" help:"Show a run. Exit code 1 for an ended run with failures."`
	Items  runItemsCommand  `cmd:"" help:"List the outcome of each document of a run: its receipt, once it has ended."`
	Cancel runCancelCommand `cmd:"" help:"Cancel a run: running batches finish, the others do not start."`
	Resume runResumeCommand `cmd:"" help:"Resume a run that was cancelled or has failed, or whose process is gone."`
}

// kindsHelp names the kinds of runs with their meaning.
func kindsHelp() string {
	var words []string
	for _, k := range run.Kinds() {
		words = append(words, fmt.Sprintf("%s (%s)", k.Kind, k.Meaning))
	}
	return strings.Join(words, ", ")
}

func emitRun(a *app, p ops.RunProgress) error {
	return a.emit(p, []string{p.ID}, func() error { return printRun(a, p) })
}

type runListCommand struct{ limitFlag }

// Run lists the runs.
func (c *runListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	runs, err := collect(a, c.Limit, func(limit int, page string) ([]ops.RunSummary, string, error) {
		p, err := ask(ctx, a, opsapi.RunList, ops.RunQuery{Limit: limit, Page: page})
		return p.Runs, p.Next, err
	})
	if err != nil {
		return err
	}
	return a.emit(ops.RunPage{Runs: runs}, idsOf(runs, func(r ops.RunSummary) string { return r.ID }),
		func() error { return printRuns(a, runs) })
}

// run asks for a run with its progress.
func (a *app) run(ctx context.Context, id string) (ops.RunProgress, error) {
	return ask(ctx, a, opsapi.RunShow, opsapi.Run{Run: id})
}

type runShowCommand struct {
	Watch bool   `short:"w" help:"Print its progress at each change until it has ended. Ctrl-C ends the watching, not the run."`
	ID    string `arg:"" name:"run" help:"The run's id."`
}

// Run shows the run, with --watch when it has ended.
func (c *runShowCommand) Run(ctx context.Context, a *app) error {
	show := a.run
	if c.Watch {
		show = a.watch
	}
	p, err := show(ctx, c.ID)
	if err == nil {
		err = emitRun(a, p)
	}
	if err != nil {
		return err
	}
	advice := verdict(p)
	if advice != nil && p.Status == run.RunRunning { // the command succeeds as long as the run goes on
		what, do := a.describe(advice)
		a.notef("%s\nhint: %s", what, do)
		return nil
	}
	return advice
}

type runItemsCommand struct {
	Limit   int               `help:"At most N documents; all without it." placeholder:"N"`
	Outcome []invoice.Outcome `help:"Only documents with one of these outcomes, separated by commas: failed,retry_scheduled,left." placeholder:"OUTCOMES"`
	ID      string            `arg:"" name:"run" help:"The run's id."`
}

// Run lists the documents.
func (c *runItemsCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usagef("--limit: expected a number of documents, found %d", c.Limit)
	}
	items, err := collect(a, c.Limit, func(limit int, page string) ([]run.ItemOutcome, string, error) {
		p, err := ask(ctx, a, opsapi.RunItems, ops.ItemQuery{Run: c.ID, Outcomes: c.Outcome, Page: page, Limit: limit})
		return p.Items, p.Next, err
	})
	if err != nil {
		return err
	}
	ids := idsOf(items, func(i run.ItemOutcome) string { return i.Document })
	return a.emit(ops.ItemPage{Items: items}, ids, func() error {
		rows := [][]string{{"DOCUMENT", "OUTCOME", "CODE", "BATCH"}}
		for _, it := range items {
			rows = append(rows, []string{
				it.Document, outcomeName(it.Outcome), orDash(it.Code), strconv.Itoa(it.Number),
			})
		}
		return a.table(rows)
	})
}

type runCancelCommand struct {
	whyFlag

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run cancels the run.
func (c *runCancelCommand) Run(ctx context.Context, a *app) error {
	p, err := ask(ctx, a, opsapi.RunCancel, ops.RunRequest{Run: c.ID, Why: c.Why})
	return printActed(a, p, err, "ends after the running batches; written rows stay written")
}

type runResumeCommand struct {
	whyFlag

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run resumes the run.
func (c *runResumeCommand) Run(ctx context.Context, a *app) error {
	p, err := ask(ctx, a, opsapi.RunResume, ops.RunRequest{Run: c.ID, Why: c.Why})
	if err == nil && p.Status != run.RunRunning { // its message could not be sent, so the app executed it
		a.notef("%s", a.says(p.Note))
		return errors.Join(emitRun(a, p), verdict(p))
	}
	return printActed(a, p, err, "resumed")
}

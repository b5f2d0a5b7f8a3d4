package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// runCommands are about runs: those that managers and workers do over Service Bus, and those that one process does alone.
type runCommands struct {
	Start  runStartCommand  `cmd:"" help:"Begin one. --dry-run counts and lists what it would take."`
	List   runListCommand   `cmd:"" help:"List the latest with their numbers, newest first."`
	Show   runShowCommand   `cmd:"" help:"Show one; --wait watches it until it has ended. Exit code 1 when it has ended, unless it completed without failures."`
	Items  runItemsCommand  `cmd:"" help:"List what became of each document of one."`
	Cancel runCancelCommand `cmd:"" help:"End one: batches under way end, the others are not begun. --gone ends a reprocess whose process is gone."`
	Resume runResumeCommand `cmd:"" help:"Have one go on that was cancelled or has failed."`
}

// watchFlags are those of the commands that can wait for a run.
type watchFlags struct {
	Wait    bool   `help:"Watch it until it has ended; exit code 1 unless it completed without failures. Ctrl-C ends the watching, not the run."`
	Receipt string `help:"When it has ended, write what became of each document: JSON lines, the first is about the run." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// runStartCommand begins a run.
type runStartCommand struct {
	appFlags
	watchFlags

	What    string   `arg:"" name:"kind" help:"drain (what waits), replay (what failed) or reindex (what is committed, written again)."`
	Kind    string   `help:"Only documents whose last error is of this kind." placeholder:"KIND"`
	Code    string   `help:"Only documents whose last error has this code." placeholder:"CODE"`
	Since   string   `help:"Only documents that failed (replay) or were changed since: 2026-01-02T15:04:05-06:00, or 90m for so long ago." placeholder:"TIME"`
	Until   string   `help:"Only documents that failed or were changed before." placeholder:"TIME"`
	ID      []string `name:"id" sep:"none" help:"Only this document; may be repeated." placeholder:"ID"`
	IDsFile string   `name:"ids-file" help:"Only the documents of this file, one id a line, 10,000 at most; - is stdin." placeholder:"FILE"`
	Of      string   `name:"run" help:"Only documents that failed or were deferred in this run (replay); --code goes with it." placeholder:"RUN"`
	All     bool     `help:"All documents; without it a replay or a reindex without a filter is refused."`
	Rate    int      `help:"Hand off at most so many documents a minute." placeholder:"N"`
	Limit   int      `help:"At most so many documents." placeholder:"N"`
	Pattern string   `help:"How batches are handed off: two_phase, checkpoint or optimistic. By default checkpoint above 10,000 documents, else two_phase." placeholder:"NAME"`
	Why     string   `help:"The reason, for the audit log." placeholder:"TEXT"`
	DryRun  bool     `help:"Count and list, and change nothing."`
}

// Run begins it, and watches it with --wait.
func (c *runStartCommand) Run(ctx context.Context, a *app) error {
	r, err := c.request(a)
	if err != nil {
		return err
	}
	paper, err := c.begin()
	if err != nil {
		return err
	}
	defer paper.discard()
	return c.operate(ctx, a, func(o operations) error {
		started, err := o.StartRun(ctx, r)
		if err != nil {
			return err
		}
		if started.Note != "" {
			a.notef("%s", started.Note)
		}
		if c.Wait && started.Run != "" {
			a.notef("run %s: %s documents", started.Run, atLeast(started.Matched, started.AtLeast))
			return c.watch(ctx, a, o, started.Run, paper, true)
		}
		if c.Receipt != "" {
			a.notef("no document matches: there is no run and no receipt")
		}
		if c.JSON {
			return printJSON(a, started)
		}
		return printStarted(a, started)
	})
}

// request is what is asked for.
func (c *runStartCommand) request(a *app) (r ops.StartRequest, err error) {
	switch {
	case c.DryRun && (c.Wait || c.Receipt != ""):
		return r, &usageError{errors.New("--dry-run begins nothing: it goes with neither --wait nor --receipt")}
	case c.Receipt != "" && !c.Wait:
		return r, &usageError{errors.New("--receipt goes with --wait: it is of a run that has ended (`run show RUN --receipt FILE` writes it later)")}
	}
	r = ops.StartRequest{
		Kind: run.Kind(c.What), Filter: run.Filter{ErrorKind: c.Kind, Code: c.Code, IDs: c.ID, Run: c.Of},
		All: c.All, DryRun: c.DryRun, Rate: c.Rate, Limit: c.Limit, Pattern: c.Pattern, By: who(), Why: c.Why,
	}
	if r.From, r.To, err = period(c.Since, c.Until, a.clock()()); err != nil {
		return r, err
	}
	if c.IDsFile == "" {
		return r, nil
	}
	ids, err := a.idsOf(c.IDsFile)
	if err != nil {
		return r, &usageError{fmt.Errorf("--ids-file: %w", err)}
	}
	r.IDs = append(r.IDs, ids...)
	return r, nil
}

// mostIDsRead is how many ids of a file are read: more than any run takes, so that the refusal says how many there are.
const mostIDsRead = 1_000_000

// idsOf reads a file of ids, one a line. Blank lines and the spaces around an id are left out, and an id is taken once.
func (e environment) idsOf(path string) ([]string, error) {
	in := e.stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	var ids []string
	seen := map[string]bool{}
	lines := bufio.NewScanner(in)
	for lines.Scan() && len(ids) < mostIDsRead {
		id := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if id == "" || seen[id] {
			continue
		}
		seen[id] = true
		ids = append(ids, id)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: expected one id a line: %w", path, err)
	}
	if len(ids) == 0 { // no ids must not become no filter
		return nil, fmt.Errorf("%s: expected one id a line, found none", path)
	}
	return ids, nil
}

// begin begins the receipt that is asked for; nil when none is.
func (f watchFlags) begin() (*runReceipt, error) {
	if f.Receipt == "" {
		return nil, nil //nolint:nilnil // none is an answer here
	}
	return newReceipt(f.Receipt)
}

// watch follows a run to its end, writes its receipt, and prints it. known says that the run is there for sure.
func (f watchFlags) watch(ctx context.Context, a *app, o operations, id string, paper *runReceipt, known bool) error {
	w := &watcher{run: id, ask: o.RunShow, now: a.clock(), wait: a.pause(), out: a.stderr, redraw: a.terminal, heard: known}
	p, err := w.watch(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f.print(a, p), f.keep(ctx, a, o, w, p, paper), verdict(p))
}

// keep writes the receipt. An app that does not answer is asked again, as while the run went on.
func (f watchFlags) keep(ctx context.Context, a *app, o operations, w *watcher, p ops.RunProgress, paper *runReceipt) error {
	if paper == nil {
		return nil
	}
	err := paper.write(ctx, p, func(ctx context.Context, q ops.ItemQuery) (items []run.ItemOutcome, err error) {
		err = w.patiently(ctx, func(ctx context.Context) (err error) {
			items, err = o.RunItems(ctx, q)
			return err
		})
		return items, err
	})
	if err == nil {
		a.notef("receipt: %s", f.Receipt)
	}
	return err
}

// print shows a run.
func (f watchFlags) print(a *app, p ops.RunProgress) error {
	if f.JSON {
		return printJSON(a, p)
	}
	return printRun(a, p)
}

// runListCommand lists runs.
type runListCommand struct {
	appFlags

	Limit int  `help:"At most so many, 1,000 at most. Batches are counted for the latest 100." default:"20" placeholder:"N"`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists them, newest first.
func (c *runListCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	return c.operate(ctx, a, func(o operations) error {
		runs, err := o.RunList(ctx, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, append([]ops.RunSummary{}, runs...))
		}
		return printRuns(a, runs)
	})
}

// runShowCommand shows a run.
type runShowCommand struct {
	appFlags
	watchFlags

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run shows it, or watches it with --wait.
func (c *runShowCommand) Run(ctx context.Context, a *app) error {
	paper, err := c.begin()
	if err != nil {
		return err
	}
	defer paper.discard()
	return c.operate(ctx, a, func(o operations) error {
		if c.Wait && paper == nil {
			return c.watch(ctx, a, o, c.ID, nil, false)
		}
		p, err := o.RunShow(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case paper != nil && p.Pattern == "": // said before anybody waits for it
			return fmt.Errorf("--receipt: run %s was not done by workers: it keeps its counts, and not what became of each document "+
				"(`run start replay` tries failed documents again with a receipt)", c.ID)
		case c.Wait:
			return c.watch(ctx, a, o, c.ID, paper, true)
		}
		if paper != nil && p.Status == run.RunRunning {
			return fmt.Errorf("run %s is running: --wait writes its receipt when it has ended", c.ID)
		}
		w := &watcher{run: c.ID, now: a.clock(), wait: a.pause(), out: a.stderr}
		if err := errors.Join(c.print(a, p), c.keep(ctx, a, o, w, p, paper)); err != nil {
			return err
		}
		advice := verdict(p)
		if advice != nil && p.Status == run.RunRunning { // it has not ended: that is no failure of this command
			a.notef("%v", advice)
			return nil
		}
		return advice
	})
}

// runItemsCommand lists the documents of a run.
type runItemsCommand struct {
	appFlags

	Outcome string `help:"Only those with one of these outcomes, with commas between them: failed,deferred." placeholder:"OUTCOMES"`
	After   string `help:"Go on after this document." placeholder:"ID"`
	Limit   int    `help:"At most so many, 1,000 at most." default:"100" placeholder:"N"`
	JSON    bool   `name:"json" help:"Print JSON."`
	ID      string `arg:"" name:"run" help:"The run's id."`
}

// Run lists them.
func (c *runItemsCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	q := ops.ItemQuery{Run: c.ID, Outcomes: ops.OutcomesOf(c.Outcome), After: c.After, Limit: c.Limit}
	return c.operate(ctx, a, func(o operations) error {
		items, err := o.RunItems(ctx, q)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, append([]run.ItemOutcome{}, items...))
		}
		rows := [][]string{{"DOCUMENT", "OUTCOME", "CODE", "BATCH"}}
		for _, it := range items {
			rows = append(rows, []string{it.Document, orDash(string(it.Outcome)), orDash(it.Code), strconv.Itoa(it.Number)})
		}
		if err := a.table(rows); err != nil {
			return err
		}
		if len(items) == c.Limit {
			a.notef("there may be more: --after %q goes on", items[len(items)-1].Document)
		}
		return nil
	})
}

// runCancelCommand ends a run.
type runCancelCommand struct {
	appFlags

	Why  string `help:"The reason, for the audit log." placeholder:"TEXT"`
	Gone bool   `help:"The process that did it alone (reprocess) is gone: end it now."`
	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"run" help:"The run's id."`
}

// Run asks it to end.
func (c *runCancelCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o operations) error {
		p, err := o.RunCancel(ctx, c.request())
		return printActed(a, p, err, c.JSON, cancelledWords(p.Status != run.RunRunning))
	})
}

func (c *runCancelCommand) request() ops.CancelRequest {
	return ops.CancelRequest{Run: c.ID, By: who(), Why: c.Why, Gone: c.Gone}
}

// runResumeCommand has a run go on.
type runResumeCommand struct {
	appFlags

	Why  string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"run" help:"The run's id."`
}

// Run has it go on.
func (c *runResumeCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o operations) error {
		p, err := o.RunResume(ctx, ops.RunRequest{Run: c.ID, By: who(), Why: c.Why})
		return printActed(a, p, err, c.JSON, "it goes on")
	})
}

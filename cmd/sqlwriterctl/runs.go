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
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// runCommands groups the commands about runs.
type runCommands struct {
	Start  runStartCommand  `cmd:"" help:"Start a run. --dry-run counts and lists the documents of the run."`
	List   runListCommand   `cmd:"" help:"List the latest runs with their numbers, newest first."`
	Show   runShowCommand   `cmd:"" help:"Show a run; --wait watches it until it has ended. Exit code 1 for an ended run with failures."`
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

// watchFlags are the flags of the commands that can wait for a run.
type watchFlags struct {
	Wait    bool   `help:"Watch it until it has ended; exit code 1 unless it completed without failures. Ctrl-C ends the watching, not the run; with --here it also ends the execution in this process."`
	Receipt string `help:"When the run has ended, write the outcome of each document as JSON lines; the first line is about the run." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type runStartCommand struct {
	appFlags
	watchFlags

	What    string   `arg:"" name:"kind" help:"${kinds}."`
	Kind    string   `help:"Only documents whose last error is of this kind." placeholder:"KIND"`
	Code    string   `help:"Only documents whose last error has this code." placeholder:"CODE"`
	Since   string   `help:"Only documents that failed (replay) or changed since: 2026-01-02T15:04:05-06:00, or 90m for 90 minutes ago." placeholder:"TIME"`
	Until   string   `help:"Only documents that failed or changed before." placeholder:"TIME"`
	ID      []string `name:"id" sep:"none" help:"Only this document; may be repeated." placeholder:"ID"`
	IDsFile string   `name:"ids-file" help:"Only the documents of this file, one id a line, 10,000 at most; - is stdin." placeholder:"FILE"`
	Of      string   `name:"run" help:"Only documents that failed or were deferred in this run (replay); can be combined with --code." placeholder:"RUN"`
	All     bool     `help:"All documents; without it a replay or a reindex without a filter is refused."`
	Rate    int      `help:"Hand off at most N documents a minute." placeholder:"N"`
	Limit   int      `help:"At most N documents." placeholder:"N"`
	Pattern string   `help:"How batches are handed off: two_phase, checkpoint or optimistic. By default checkpoint above 10,000 documents, else two_phase." placeholder:"NAME"`
	Why     string   `help:"The reason, for the audit log." placeholder:"TEXT"`

	OverwriteEdits []int64 `help:"Reindex: write these lines although a person edited them, with the document's status; may be repeated. Name their documents with --id." placeholder:"LINE"`
	NotComparable  bool    `help:"Reindex: also write lines that cannot be compared with what was written: adopted ones, those with AI-ERROR, and those of another hash version."`

	DryRun bool `help:"Count and list, and change nothing."`
	Here   bool `help:"Execute it in this process (with --app: in the app's, for some minutes), without Service Bus. Ctrl-C leaves it; see run resume."`
}

// Run starts the run, and watches it with --wait.
func (c *runStartCommand) Run(ctx context.Context, a *app) error {
	r, err := c.request(a)
	if err != nil {
		return err
	}
	file, err := c.newReceipt()
	if err != nil {
		return err
	}
	defer file.discard()
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		started, err := startRun(ctx, o, r)
		if err != nil {
			return err
		}
		if started.Note != "" {
			a.notef("%s", started.Note)
		}
		if p := started.Progress; p != nil && (!c.Wait || ctx.Err() != nil) {
			return errors.Join(c.print(a, *p), executed(*p))
		}
		if c.Wait && started.Run != "" {
			a.notef("run %s: %s documents", started.Run, atLeast(started.Matched, started.AtLeast))
			return c.watch(ctx, a, o, started.Run, file, true)
		}
		if c.Receipt != "" {
			a.notef("no document matches: no run was started and no receipt was written")
		}
		var end error
		if c.Here && started.Run != "" { // SQL went away meanwhile: its progress is not known
			end = fmt.Errorf("run %s is not over", started.Run)
		}
		if c.JSON {
			return errors.Join(printJSON(a, started), end)
		}
		return errors.Join(printStarted(a, started), end)
	})
}

// startRun starts a run. A lost reply leaves open whether it started.
func startRun(ctx context.Context, o opsapi.Caller, r ops.StartRequest) (ops.Started, error) {
	started, err := opsapi.Do(ctx, o, opsapi.RunStart, r)
	var lost *opsapi.LostError
	if errors.As(err, &lost) && !r.DryRun {
		err = fmt.Errorf("%w; the run may have started anyway: see `run list` before you start another", err)
	}
	return started, err
}

// showRun returns the call that shows a run.
func showRun(o opsapi.Caller) func(context.Context, string) (ops.RunProgress, error) {
	return func(ctx context.Context, id string) (ops.RunProgress, error) {
		return opsapi.Do(ctx, o, opsapi.RunShow, opsapi.Run{Run: id})
	}
}

// outcomesIn splits a list with commas. Package ops refuses unknown outcomes.
func outcomesIn(text string) (list []run.Outcome) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, run.Outcome(part))
		}
	}
	return list
}

func (c *runStartCommand) request(a *app) (r ops.StartRequest, err error) {
	switch {
	case c.DryRun && (c.Wait || c.Receipt != ""):
		return r, &usageError{errors.New("--dry-run starts nothing: it cannot be combined with --wait or --receipt")}
	case c.Receipt != "" && !c.Wait:
		return r, &usageError{errors.New("--receipt requires --wait, because the run must have ended (`run show RUN --receipt FILE` writes it later)")}
	}
	r = ops.StartRequest{
		Kind: run.Kind(c.What), Filter: run.Filter{ErrorKind: c.Kind, Code: c.Code, IDs: c.ID, Run: c.Of, OverwriteEdits: c.OverwriteEdits, NotComparable: c.NotComparable},
		All: c.All, DryRun: c.DryRun, Rate: c.Rate, Limit: c.Limit, Pattern: c.Pattern, Here: c.Here, Why: c.Why,
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

// maxIDsRead is how many ids of a file are read. It is more than a run may have, so that the error can name the number.
const maxIDsRead = 1_000_000

// idsOf reads a file of ids, one a line. It ignores blank lines, spaces around an id, and repeated ids.
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
	for lines.Scan() && len(ids) < maxIDsRead {
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
	if len(ids) == 0 { // an empty list would mean no filter
		return nil, fmt.Errorf("%s: expected one id a line, found none", path)
	}
	return ids, nil
}

// newReceipt creates the receipt; nil without --receipt.
func (f watchFlags) newReceipt() (*runReceipt, error) {
	if f.Receipt == "" {
		return nil, nil //nolint:nilnil // nil means no receipt
	}
	return newReceipt(f.Receipt)
}

// watch follows a run to its end, writes its receipt, and prints it. exists means that the run is known to exist.
func (f watchFlags) watch(ctx context.Context, a *app, o opsapi.Caller, id string, file *runReceipt, exists bool) error {
	w := &watcher{run: id, ask: showRun(o), now: a.clock(), wait: a.pause(), out: a.stderr, redraw: a.terminal, exists: exists}
	p, err := w.watch(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f.print(a, p), f.writeReceipt(ctx, a, o, w, p, file), verdict(p))
}

// writeReceipt writes the receipt. It retries when the app does not answer.
func (f watchFlags) writeReceipt(ctx context.Context, a *app, o opsapi.Caller, w *watcher, p ops.RunProgress, file *runReceipt) error {
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

func (f watchFlags) print(a *app, p ops.RunProgress) error {
	if f.JSON {
		return printJSON(a, p)
	}
	return printRun(a, p)
}

type runListCommand struct {
	appFlags

	Limit int  `help:"At most N runs, 1,000 at most. Batches are counted for the latest 100." default:"20" placeholder:"N"`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists the runs, newest first.
func (c *runListCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.RunList, ops.RunQuery{Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, page.Runs)
		}
		return printRuns(a, page.Runs)
	})
}

type runShowCommand struct {
	appFlags
	watchFlags

	ID string `arg:"" name:"run" help:"The run's id."`
}

// Run shows the run, or watches it with --wait.
func (c *runShowCommand) Run(ctx context.Context, a *app) error {
	file, err := c.newReceipt()
	if err != nil {
		return err
	}
	defer file.discard()
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		if c.Wait && file == nil {
			return c.watch(ctx, a, o, c.ID, nil, false)
		}
		p, err := showRun(o)(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case c.Wait:
			return c.watch(ctx, a, o, c.ID, file, true)
		}
		if file != nil && p.Status == run.RunRunning {
			return fmt.Errorf("run %s is running: --wait writes its receipt when it has ended", c.ID)
		}
		w := &watcher{run: c.ID, now: a.clock(), wait: a.pause(), out: a.stderr}
		if err := errors.Join(c.print(a, p), c.writeReceipt(ctx, a, o, w, p, file)); err != nil {
			return err
		}
		advice := verdict(p)
		if advice != nil && p.Status == run.RunRunning { // the command succeeds as long as the run goes on
			a.notef("%v", advice)
			return nil
		}
		return advice
	})
}

type runItemsCommand struct {
	appFlags

	Outcome string `help:"Only documents with one of these outcomes, separated by commas: failed,deferred." placeholder:"OUTCOMES"`
	After   string `help:"Continue after this document." placeholder:"ID"`
	Limit   int    `help:"At most N documents, 1,000 at most." default:"100" placeholder:"N"`
	JSON    bool   `name:"json" help:"Print JSON."`
	ID      string `arg:"" name:"run" help:"The run's id."`
}

// Run lists the documents.
func (c *runItemsCommand) Run(ctx context.Context, a *app) error {
	if err := atLeastOne(c.Limit); err != nil {
		return err
	}
	q := ops.ItemQuery{Run: c.ID, Outcomes: outcomesIn(c.Outcome), Page: c.After, Limit: c.Limit}
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.RunItems, q)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, page.Items)
		}
		rows := [][]string{{"DOCUMENT", "OUTCOME", "CODE", "BATCH"}}
		for _, it := range page.Items {
			rows = append(rows, []string{it.Document, orDash(string(it.Outcome)), orDash(it.Code), strconv.Itoa(it.Number)})
		}
		if err := a.table(rows); err != nil {
			return err
		}
		if page.Next != "" {
			a.notef("there may be more: --after %q continues", page.Next)
		}
		return nil
	})
}

type runCancelCommand struct {
	appFlags

	Why  string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"run" help:"The run's id."`
}

// Run cancels the run.
func (c *runCancelCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		p, err := opsapi.Do(ctx, o, opsapi.RunCancel, ops.RunRequest{Run: c.ID, Why: c.Why})
		return printActed(a, p, err, c.JSON, "ends after the running batches; written rows stay written")
	})
}

type runResumeCommand struct {
	appFlags

	Here bool   `help:"Execute it in this process, as run start --here does. It also takes a running run that no live process has."`
	Why  string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" name:"run" help:"The run's id."`
}

// Run resumes the run.
func (c *runResumeCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		p, err := opsapi.Do(ctx, o, opsapi.RunResume, ops.ResumeRequest{RunRequest: ops.RunRequest{Run: c.ID, Why: c.Why}, Here: c.Here})
		if c.Here && err == nil {
			if p.Note != "" {
				a.notef("%s", p.Note)
			}
			return errors.Join(watchFlags{JSON: c.JSON}.print(a, p), executed(p))
		}
		return printActed(a, p, err, c.JSON, "resumed")
	})
}

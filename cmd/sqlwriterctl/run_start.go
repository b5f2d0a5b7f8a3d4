package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// yesFlag confirms what changes more than one document.
type yesFlag struct {
	Yes bool `short:"y" help:"Do not ask. Required where there is no terminal to ask on."`
}

type runStartCommand struct {
	whyFlag
	yesFlag

	What    string   `arg:"" name:"kind" enum:"${kind_names}" help:"${kinds}."`
	Since   string   `help:"Only documents that changed since: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	ID      []string `name:"id" sep:"none" help:"Only this document; may be repeated." placeholder:"ID"`
	IDsFile string   `name:"ids-file" help:"Only the documents of this file, one id a line, 10,000 at most; - is stdin." placeholder:"FILE"`
	Of      string   `name:"run" help:"Only documents that this run left undone (replay, reapply)." placeholder:"RUN"`
	All     bool     `help:"All documents; without it a run without a filter is refused, unless it is a drain."`
	Rate    int      `help:"Hand off at most N documents a minute." placeholder:"N"`
	Limit   int      `help:"At most N documents." placeholder:"N"`

	OverwriteEdits []int64           `help:"Reindex: write these lines although a person edited them, with the document's status; may be repeated. Name their documents with --id." placeholder:"LINE"`
	Findings       []reconcile.Class `help:"Reindex: the lines of findings of these classes, separated by commas, and their documents. A dry run shows the columns before and after of 20 documents." placeholder:"CLASSES"`
	NotComparable  bool              `help:"Reindex: also write lines that cannot be compared with what was written: adopted ones, those with AI-ERROR, and those of another mapping."`

	DryRun bool `help:"Count and list, and change nothing."`
}

// Run counts the documents, asks, and starts the run.
func (c *runStartCommand) Run(ctx context.Context, a *app) error {
	r, err := c.request(a)
	if err != nil {
		return err
	}
	many := !c.DryRun && len(r.IDs) != 1
	if many {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	if many && !c.Yes {
		counting := r
		counting.DryRun = true
		counted, err := ask(ctx, a, opsapi.RunStart, counting)
		if err != nil {
			return err
		}
		if proceed, err := askForRun(a, counted, c.Yes); !proceed {
			return err
		}
	}
	started, err := ask(ctx, a, opsapi.RunStart, r)
	return printExecution(a, started, err)
}

// askForRun shows what would be taken, and asks. It does not ask when nothing would.
func askForRun(a *app, counted ops.Started, yes bool) (proceed bool, err error) {
	if counted.Matched == 0 && !counted.AtLeast {
		return false, emitStarted(a, counted)
	}
	for _, f := range counted.Failures {
		a.tellf("  %d %s %s %s", f.Documents, f.Status, orDash(f.Kind), orDash(f.Code))
	}
	err = a.confirm(yes, fmt.Sprintf("A %s takes %s.", counted.Kind, documentsMatched(counted)))
	return err == nil, err
}

// printExecution prints a run that was started: its progress where the app executed it in the request.
func printExecution(a *app, started ops.Started, err error) error {
	if err != nil {
		return err
	}
	if p := started.Progress; p != nil {
		tellFound(a, started)
		return errors.Join(emitRun(a, *p), executed(*p))
	}
	return emitStarted(a, started)
}

// tellFound tells what a start says beside its run.
func tellFound(a *app, s ops.Started) {
	for _, n := range s.NotTaken {
		a.notef("not taken: %s: %s", n.ID, n.Why)
	}
	if s.Note != "" {
		a.notef("%s", a.says(s.Note))
	}
}

func emitStarted(a *app, s ops.Started) error {
	tellFound(a, s)
	ids := []string{s.Run}
	if s.Run == "" {
		ids = idsOf(s.First, func(m ops.Match) string { return m.ID })
	}
	return a.emit(s, ids, func() error { return printStarted(a, s) })
}

func (c *runStartCommand) request(a *app) (r ops.StartRequest, err error) {
	r = ops.StartRequest{
		Kind: run.Kind(c.What), IDs: c.ID, Run: c.Of, Findings: c.Findings, All: c.All,
		OverwriteEdits: c.OverwriteEdits, NotComparable: c.NotComparable,
		DryRun: c.DryRun, Rate: c.Rate, Limit: c.Limit, Why: c.Why,
	}
	if r.Since, _, err = a.period(c.Since, ""); err != nil {
		return r, err
	}
	if c.IDsFile == "" {
		return r, nil
	}
	ids, err := a.idsInFile(c.IDsFile)
	if err != nil {
		return r, usagef("--ids-file: %w", err)
	}
	r.IDs = append(r.IDs, ids...)
	return r, nil
}

// maxIDsRead is how many ids of a file are read. It is more than a run may have, so that the error can name the number.
const maxIDsRead = 1_000_000

// idsInFile reads a file of ids, one a line. It ignores blank lines, spaces around an id, and repeated ids.
func (e environment) idsInFile(path string) ([]string, error) {
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

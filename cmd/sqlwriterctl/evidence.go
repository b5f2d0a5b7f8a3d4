package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type evidenceCommands struct {
	Prune evidencePruneCommand `cmd:"" help:"Delete evidence of failed documents that do not exist any more."`
}

type evidencePruneCommand struct {
	whyFlag
	yesFlag

	OlderThan string `name:"older-than" required:"" help:"Only evidence that was stored before: 90d or 2w ago, a date (2026-01-31) or a time; a day ago at least." placeholder:"TIME"`
	DryRun    bool   `help:"Count and list, and delete nothing."`
}

// Run counts the evidence, asks, and deletes it.
func (c *evidencePruneCommand) Run(ctx context.Context, a *app) error {
	before, err := a.moment("--older-than", c.OlderThan)
	if err != nil {
		return err
	}
	r := ops.PruneRequest{Before: before, DryRun: c.DryRun, Why: c.Why}
	if !c.DryRun {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		if !c.DryRun && !c.Yes {
			counting := r
			counting.DryRun = true
			counted, err := opsapi.Do(ctx, o, opsapi.EvidencePrune, counting)
			if err != nil {
				return err
			}
			if counted.Folders == 0 {
				return emitPruned(a, counted)
			}
			if err := a.confirm(c.Yes, fmt.Sprintf("The evidence of %s of %s that %s not exist any more will be deleted.",
				folders(counted.Folders), documentsThere(counted.Documents), ops.Plural(counted.Documents, "does", "do"))); err != nil {
				return err
			}
		}
		done, err := opsapi.Do(ctx, o, opsapi.EvidencePrune, r)
		var lost *opsapi.LostError
		switch {
		case errors.As(err, &lost) && !c.DryRun:
			return &advisedError{fmt.Errorf("no answer came, and evidence may have been deleted: %w", err), "run it again: it goes on with the rest"}
		case err != nil:
			return err
		}
		return emitPruned(a, done)
	})
}

func folders(n int) string { return strconv.Itoa(n) + " " + ops.Plural(n, "failure", "failures") }

func documentsThere(n int) string {
	return strconv.Itoa(n) + " " + ops.Plural(n, "document", "documents")
}

func emitPruned(a *app, p ops.Pruned) error {
	if p.More {
		a.notef("there may be more: run it again")
	}
	return a.emit(p, idsOf(p.First, func(f ops.PrunedFolder) string { return f.Folder }), func() error {
		switch {
		case p.Folders == 0:
			a.printf("no evidence is of a document that does not exist any more")
			return nil
		case p.DryRun:
			a.printf("the evidence of %s of %s would be deleted", folders(p.Folders), documentsThere(p.Documents))
		default:
			a.printf("the evidence of %s of %s was deleted: %d %s", folders(p.Folders), documentsThere(p.Documents), p.Files, ops.Plural(p.Files, "file", "files"))
		}
		rows := [][]string{{"FOLDER", "STORED", "DOCUMENT"}}
		for _, f := range p.First {
			rows = append(rows, []string{f.Folder, a.time(f.At), f.Document})
		}
		if err := a.table(rows); err != nil {
			return err
		}
		if more := p.Folders - len(p.First); more > 0 {
			a.printf("and %s more", atLeast(more, p.More))
		}
		return nil
	})
}

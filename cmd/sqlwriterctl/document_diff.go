package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type documentDiffCommand struct {
	IDs []string `arg:"" name:"id" help:"Documents, at most 100."`
}

// Run prints the differences.
func (c *documentDiffCommand) Run(ctx context.Context, a *app) error {
	d, err := diff(ctx, a, c.IDs)
	if err != nil {
		return err
	}
	a.notef("flow: %s", a.says(d.Flow))
	if d.Note != "" {
		a.notef("%s", d.Note)
	}
	return a.emit(d, idsOf(d.Documents, func(d ops.DocumentDiff) string { return d.ID }), func() error {
		return printDiffs(a, d.Documents)
	})
}

// diff asks for the differences. A comma separates ids on the way to the app.
func diff(ctx context.Context, a *app, ids []string) (ops.Diff, error) {
	for _, id := range ids {
		if strings.Contains(id, ",") {
			return ops.Diff{}, usagef("id: expected ids without a comma, which separates ids, found %q", id)
		}
	}
	return ask(ctx, a, opsapi.DocumentDiff, ops.DiffQuery{IDs: ids})
}

// printDiffs prints what would become of lines, column by column.
func printDiffs(a *app, diffs []ops.DocumentDiff) error {
	for i, d := range diffs {
		if i > 0 {
			a.printf("")
		}
		if err := a.table(told([][]string{
			{"document", d.ID},
			{"status", d.Status},
			{"why", a.says(d.Why)},
			{"next", a.says(d.Next)},
			{"outcome", string(d.Outcome)},
			{"problem", a.says(d.Problem)},
			{"warning", d.Warning},
		})); err != nil {
			return err
		}
		for _, l := range d.Lines {
			if err := printLineDiff(a, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func printLineDiff(a *app, l ops.LineDiff) error {
	what := "main"
	if l.Duplicate {
		what = "duplicate"
	}
	says := l.Says
	if l.Outcome != "" {
		says = string(l.Outcome) + ": " + says
	}
	a.printf("line %d (%s): %s", l.Line, what, says)
	if len(l.Columns) == 0 {
		return nil
	}
	rows := [][]string{{"  TABLE", "COLUMN", "IN SQL", "IN THE DOCUMENT"}}
	for _, c := range l.Columns {
		rows = append(rows, []string{fmt.Sprintf("  %s", c.Table), c.Column, text(c.Before), text(c.After)})
	}
	return a.table(rows)
}

// text quotes a value of a column.
func text(s *string) string {
	if s == nil {
		return "NULL"
	}
	return strconv.Quote(*s)
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
)

// findingCommands groups the commands about what comparisons found.
type findingCommands struct {
	List    findingListCommand    `cmd:"" help:"List findings. Exit code 3 if one of them asks for a person."`
	Compare findingCompareCommand `cmd:"" help:"Begin a comparison of documents, ledger and rows. The timer carries it on, and lists what it finds after a quarter of an hour."`
}

type findingListCommand struct {
	limitFlag

	Class []reconcile.Class `help:"Only findings of these classes, separated by commas." placeholder:"CLASSES"`
	Line  int64             `help:"Only findings about this invoice line." placeholder:"LINE"`
}

// Run lists the findings.
func (c *findingListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	q := ops.FindingQuery{Line: c.Line, Classes: c.Class}
	var page ops.FindingPage
	all, err := collect(a, c.Limit, func(limit int, at string) (_ []ops.FindingRow, _ string, err error) {
		q.Limit, q.Page = limit, at
		page, err = ask(ctx, a, opsapi.FindingList, q)
		return page.Findings, page.Next, err
	})
	if err != nil {
		return err
	}
	page.Findings, page.Next = all, ""
	a.notef("findings: %s", a.says(page.Found.Says))
	err = a.emit(page, idsOf(page.Findings, func(f ops.FindingRow) string { return f.Name }), func() error {
		return printFindings(a, page.Findings)
	})
	if err == nil && slices.ContainsFunc(page.Findings, func(f ops.FindingRow) bool { return f.Class.Asks() }) {
		return openFindings(page.Found)
	}
	return err
}

func printFindings(a *app, findings []ops.FindingRow) error {
	if len(findings) == 0 {
		a.printf("no finding")
		return nil
	}
	rows := [][]string{{"FINDING", "FIRST SEEN", "LAST SEEN", "DETAIL", "DOCUMENT"}}
	for _, f := range findings {
		rows = append(rows, []string{
			string(f.Class) + "/" + strconv.FormatInt(f.Line, 10), a.time(f.FirstSeen), a.time(f.LastSeen),
			orDash(oneLine(f.Detail)), f.Document,
		})
	}
	return a.table(rows)
}

// openFindings is the error while findings are open.
func openFindings(found ops.Found) error {
	var parts []string
	for _, c := range found.Classes {
		if c.Class.Asks() {
			parts = append(parts, fmt.Sprintf("%d %s", c.Findings, c.Class))
		}
	}
	open := fmt.Errorf("%d %s open: %s", found.Open, ops.Plural(found.Open, "finding is", "findings are"),
		strings.Join(parts, ", "))
	return advised(&attentionError{open},
		"`sqlwriterctl finding list` lists them, `sqlwriterctl explain CLASS` says what one means and what to do")
}

type findingCompareCommand struct {
	whyFlag

	ID  []string `arg:"" optional:"" help:"Compare these documents alone; 1,000 at most."`
	All bool     `help:"Compare everything, also what has not changed since the last comparison."`
}

// Run begins the comparison.
func (c *findingCompareCommand) Run(ctx context.Context, a *app) error {
	begun, err := ask(ctx, a, opsapi.FindingCompare, ops.CompareRequest{IDs: c.ID, All: c.All, Why: c.Why})
	if err != nil {
		return err
	}
	return a.emitLine(begun, begun.Comparison,
		"comparison %s: begun. It waits for those before it; `sqlwriterctl finding list` has what it finds some 20 minutes after its turn",
		begun.Comparison)
}

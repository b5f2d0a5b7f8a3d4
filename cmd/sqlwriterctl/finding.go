package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
)

// findingCommands groups the commands about what comparisons found.
type findingCommands struct {
	List   findingListCommand   `cmd:"" help:"List findings. Exit code 3 if one of them is open."`
	Accept findingAcceptCommand `cmd:"" help:"Accept findings: they stay as they are, and are open again when their rows change."`
}

type findingListCommand struct {
	limitFlag

	Class []string `help:"Only findings of these classes, separated by commas." placeholder:"CLASSES"`
	State string   `help:"Only findings with this state: open, accepted, gone or all." default:"open" placeholder:"STATE"`
	Line  int64    `help:"Only findings about this invoice line." placeholder:"LINE"`
}

// Run lists the findings.
func (c *findingListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	q := ops.FindingQuery{State: c.State, Line: c.Line}
	for _, class := range c.Class {
		q.Classes = append(q.Classes, reconcile.Class(class))
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		var page ops.FindingPage
		all, more, err := collect(c.Limit, func(limit int, at string) (_ []ops.FindingRow, _ string, err error) {
			q.Limit, q.Page = limit, at
			page, err = opsapi.Do(ctx, o, opsapi.FindingList, q)
			return page.Findings, page.Next, err
		})
		if err != nil {
			return err
		}
		page.Findings, page.Next = all, ""
		a.more(more)
		a.notef("findings: %s", a.says(page.Found.Says))
		err = a.emit(page, idsOf(page.Findings, func(f ops.FindingRow) string { return f.Name }), func() error { return printFindings(a, page.Findings) })
		for _, f := range page.Findings {
			if err == nil && f.State == reconcile.Open {
				return openFindings(page.Found)
			}
		}
		return err
	})
}

func printFindings(a *app, findings []ops.FindingRow) error {
	if len(findings) == 0 {
		a.printf("no finding")
		return nil
	}
	rows := [][]string{{"FINDING", "STATE", "FIRST SEEN", "LAST SEEN", "MENDED BY", "DETAIL", "DOCUMENT"}}
	for _, f := range findings {
		rows = append(rows, []string{
			shortName(f), string(f.State), a.time(f.FirstSeen), a.time(f.LastSeen), orDash(f.QueuedBy), orDash(findingDetail(f)), orDash(f.Document),
		})
	}
	return a.table(rows)
}

// findingDetail is what differs, and who accepted that: for good, or before its rows changed again.
func findingDetail(f ops.FindingRow) string {
	switch {
	case f.By == "":
		return oneLine(f.Detail)
	case f.State == reconcile.Accepted:
		return oneLine(fmt.Sprintf("%s; accepted by %s: %s", f.Detail, f.By, f.Why))
	}
	return oneLine(fmt.Sprintf("%s; was accepted by %s: %s", f.Detail, f.By, f.Why))
}

// shortName is the name without the document, which stands beside it.
func shortName(f ops.FindingRow) string {
	if f.Line == 0 {
		return string(f.Class)
	}
	return string(f.Class) + "/" + strconv.FormatInt(f.Line, 10)
}

// openFindings is the error while findings are open.
func openFindings(found ops.Found) error {
	var parts []string
	for _, c := range found.Classes {
		if c.Open > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.Open, c.Class))
		}
	}
	return &advisedError{
		&attentionError{fmt.Errorf("%d %s open: %s", found.Open, ops.Plural(found.Open, "finding is", "findings are"), strings.Join(parts, ", "))},
		"`sqlwriterctl finding list` lists them, `sqlwriterctl explain CLASS` says what one means and what to do",
	}
}

type findingAcceptCommand struct {
	whyFlag
	yesFlag

	Names []string `arg:"" name:"finding" help:"CLASS/LINE, CLASS/LINE/DOCUMENT, or CLASS/DOCUMENT without a line; 1,000 at most."`
}

// Run accepts the findings. It asks before it accepts several.
func (c *findingAcceptCommand) Run(ctx context.Context, a *app) error {
	if len(c.Names) > 1 {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		if len(c.Names) > 1 {
			if err := a.confirm(c.Yes, fmt.Sprintf("%d findings will stay as they are.", len(c.Names))); err != nil {
				return err
			}
		}
		done, err := opsapi.Do(ctx, o, opsapi.FindingAccept, ops.AcceptRequest{Findings: c.Names, Why: c.Why})
		if err != nil {
			return err
		}
		return a.emit(done, idsOf(done.Findings, func(f ops.FindingRow) string { return f.Name }), func() error {
			for _, f := range done.Findings {
				a.printf("%s: accepted, it was %s", f.Name, f.State)
			}
			return nil
		})
	})
}

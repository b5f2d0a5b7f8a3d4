package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

type documentCommands struct {
	List          documentListCommand   `cmd:"" help:"List documents, the latest change first."`
	Show          documentShowCommand   `cmd:"" help:"Show a document's state beside the SQL rows and ledger rows of its lines."`
	Why           documentWhyCommand    `cmd:"" help:"Explain why a document is where it is, and what happens next."`
	Retry         documentRetryCommand  `cmd:"" help:"Try failed documents again, now and in this process (a replay)."`
	Submit        documentSubmitCommand `cmd:"" help:"Submit documents to the container, as the API does."`
	MarkCommitted documentMarkCommand   `cmd:"" help:"Mark a document as committed after its lines were repaired by hand."`
}

// documentFilter selects documents.
type documentFilter struct {
	Status  string `help:"Only documents with this status." placeholder:"STATUS" values:"statuses"`
	Kind    string `help:"Only documents whose last error is of this kind." placeholder:"KIND" values:"kinds"`
	Code    string `help:"Only documents whose last error has this code." placeholder:"CODE" values:"codes"`
	Request string `help:"Only documents of this request (request_details.id)." placeholder:"ID"`
	Line    int64  `help:"Only documents that name this invoice line, as main line or as duplicate." placeholder:"LINE"`
	Since   string `help:"Only documents that changed since: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	Until   string `help:"Only documents that changed before." placeholder:"TIME"`
}

func (f documentFilter) query(a *app) (q ops.DocumentFilter, err error) {
	q = ops.DocumentFilter{Status: invoice.Status(f.Status), Kind: f.Kind, Code: f.Code, Request: f.Request, Line: f.Line}
	q.Since, q.Until, err = a.period(f.Since, f.Until)
	return q, err
}

type documentListCommand struct {
	documentFilter
	pageFlags
	watchFlag
}

// Run lists the documents.
func (c *documentListCommand) Run(ctx context.Context, a *app) error {
	filter, err := c.query(a)
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		return c.watch(ctx, a, func(ctx context.Context, out *app) (key any, err error) {
			page, err := opsapi.Do(ctx, o, opsapi.DocumentList, ops.DocumentQuery{DocumentFilter: filter, Limit: c.Limit, Page: c.Page})
			if err != nil {
				return nil, err
			}
			return page.Documents, printDocuments(out, page)
		})
	})
}

func printDocuments(a *app, page ops.DocumentPage) error {
	if r := page.Request; r != nil {
		a.notef("request %s: %s of %s", r.ID, present(*r), cmp.Or(positive(r.Expected), "an unknown number"))
	}
	if len(page.Documents) == 0 && page.Next == "" {
		a.notef("no document matches")
	}
	a.more(page.Next)
	return a.emit(page, idsOf(page.Documents, func(d ops.DocumentRow) string { return d.ID }), func() error {
		rows := [][]string{{"DOCUMENT", "LINE", "STATUS", "KIND", "CODE", "RETRIES", "CHANGED", "FAILED", "NEXT TRY"}}
		for _, d := range page.Documents {
			rows = append(rows, []string{
				d.ID, orDash(positive(int(d.Line))), d.Status, orDash(d.Kind), orDash(d.Code), strconv.Itoa(d.Retries),
				a.time(d.ChangedAt), a.time(d.FailedAt), a.time(d.RetryAt),
			})
		}
		return a.table(rows)
	})
}

func present(r ops.RequestCount) string {
	text := fmt.Sprintf("%s lines present in %s documents", atLeast(r.Present, r.AtLeast), atLeast(r.Documents, r.AtLeast))
	if r.Foreign > 0 {
		text += fmt.Sprintf(" (and %d documents that name another environment or none)", r.Foreign)
	}
	return text
}

// positive formats a number; empty for zero.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

type documentWhyCommand struct {
	ID   string `arg:"" optional:"" help:"The document's id."`
	Line int64  `help:"In place of an id: the newest result that names this invoice line, and the others." placeholder:"LINE"`
}

// Run prints the explanation.
func (c *documentWhyCommand) Run(ctx context.Context, a *app) error {
	if (c.ID == "") == (c.Line == 0) {
		return &usageError{errors.New("expected either a document's id or --line LINE")}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		e, err := opsapi.Do(ctx, o, opsapi.DocumentWhy, ops.WhyQuery{ID: c.ID, Line: c.Line})
		if err != nil {
			return err
		}
		return a.emit(e, []string{e.ID}, func() error { return printWhy(a, e) })
	})
}

func printWhy(a *app, e ops.Explanation) error {
	rows := [][]string{{"document", e.ID}, {"status", e.Status}, {"why", a.says(e.Summary)}, {"next", a.says(e.Next)}, {"flow", a.says(e.Flow)}}
	if e.LastError != nil {
		rows = append(rows, []string{"last error", fmt.Sprintf("%s %s %s: %s", a.time(e.LastError.At), e.LastError.Kind, e.LastError.Code, oneLine(e.LastError.Error))})
	}
	for _, row := range [][]string{{"error", e.Error}, {"final error", e.FinalError}, {"evidence", e.Evidence}, {"problem now", e.Problem}, {"warning", e.Warning}} {
		if row[1] != "" {
			rows = append(rows, []string{row[0], oneLine(row[1])})
		}
	}
	if err := a.facts(rows); err != nil {
		return err
	}
	rows = [][]string{{"ATTEMPT", "KIND", "CODE", "NEXT TRY"}}
	for _, t := range e.Attempts {
		rows = append(rows, []string{a.time(t.At), t.Kind, orDash(t.Code), a.time(t.NextTry)})
	}
	return a.tables(rows)
}

type documentRetryCommand struct {
	whyFlag
	yesFlag

	IDs    []string `arg:"" optional:"" name:"id" help:"Documents, in place of a filter."`
	Kind   string   `help:"Only documents whose last error is of this kind." placeholder:"KIND" values:"kinds"`
	Code   string   `help:"Only documents whose last error has this code." placeholder:"CODE" values:"codes"`
	Since  string   `help:"Only documents that failed since: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	Until  string   `help:"Only documents that failed before." placeholder:"TIME"`
	DryRun bool     `help:"Count and list, and change nothing."`
}

// Run counts the documents, asks, and tries them again.
func (c *documentRetryCommand) Run(ctx context.Context, a *app) error {
	failed := slices.IndexFunc(run.Kinds(), func(k run.KindRow) bool { return k.ByFailure })
	return (&runStartCommand{
		whyFlag: c.whyFlag, yesFlag: c.yesFlag, What: string(run.Kinds()[failed].Kind), ID: c.IDs, Kind: c.Kind, Code: c.Code, Since: c.Since, Until: c.Until,
		DryRun: c.DryRun, Here: true,
	}).Run(ctx, a)
}

type documentMarkCommand struct {
	ID  string `arg:"" help:"The document's id."`
	Why string `help:"What was done by hand, for the document and the audit log." placeholder:"TEXT"`
}

// Run marks the document.
func (c *documentMarkCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		res, err := opsapi.Do(ctx, o, opsapi.DocumentMarkCommitted, ops.MarkRequest{ID: c.ID, Why: c.Why})
		if err != nil {
			return err
		}
		return a.emit(res, []string{res.ID}, func() error {
			a.printf("%s: was %s, is committed (outcome %s). Its lines and the ledger did not change.", res.ID, res.From, commit.Manual)
			return nil
		})
	})
}

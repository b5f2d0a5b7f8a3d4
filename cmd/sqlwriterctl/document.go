package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type documentCommands struct {
	List          documentListCommand   `cmd:"" help:"List documents, the latest change first."`
	Why           documentWhyCommand    `cmd:"" help:"Explain why a document is where it is, what happens next, and what a write would change on its lines."`
	Diff          documentDiffCommand   `cmd:"" help:"Show what a write of documents would change now, by line and column. It only reads."`
	Retry         documentRetryCommand  `cmd:"" help:"Try failed documents, and those that wait for a retry, again (a replay): up to 100 at once, more by the workers. --status takes only one of both."`
	Submit        documentSubmitCommand `cmd:"" help:"Submit documents to the container, as the API does."`
	MarkCommitted documentMarkCommand   `cmd:"" help:"Mark a document as committed after its lines were repaired by hand."`
}

// documentFilter selects documents.
type documentFilter struct {
	ops.DocumentFilter

	Since string `help:"Only documents that changed since: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	Until string `help:"Only documents that changed before." placeholder:"TIME"`
}

func (f documentFilter) query(a *app) (q ops.DocumentFilter, err error) {
	q = f.DocumentFilter
	q.Since, q.Until, err = a.period(f.Since, f.Until)
	return q, err
}

type documentListCommand struct {
	documentFilter
	limitFlag
}

// Run lists the documents.
func (c *documentListCommand) Run(ctx context.Context, a *app) error {
	filter, err := c.query(a)
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	list, err := ask(ctx, a, opsapi.DocumentList, ops.DocumentQuery{DocumentFilter: filter, Limit: c.Limit})
	if err != nil {
		return err
	}
	if c.Request == "" && c.Line == 0 {
		a.notef("documents of other environments are left out: --line and --request find them too")
	}
	return printDocuments(a, list)
}

func printDocuments(a *app, list ops.DocumentList) error {
	if r := list.Request; r != nil {
		a.notef("%s", requestCounted(*r))
	}
	switch {
	case list.Says != "":
		a.notef("%s", a.says(list.Says))
	case len(list.Documents) == 0:
		a.notef(
			"no document matches: `sqlwriterctl status` counts the failed and waiting ones by status, kind and code")
	}
	return a.emit(list, idsOf(list.Documents, func(d ops.DocumentRow) string { return d.ID }), func() error {
		return a.table(documentRows(a, list.Documents))
	})
}

func documentRows(a *app, documents []ops.DocumentRow) [][]string {
	rows := [][]string{
		{"DOCUMENT", "SYS_NAME", "LINE", "STATUS", "KIND", "CODE", "RETRIES", "CHANGED", "FAILED", "NEXT TRY"},
	}
	for _, d := range documents {
		rows = append(rows, []string{
			d.ID, orDash(d.SysName), lineOr(d.Line, "-"), d.Status, orDash(d.Kind), orDash(d.Code),
			strconv.Itoa(d.Retries),
			a.time(d.ChangedAt), a.time(d.FailedAt), a.time(d.RetryAt),
		})
	}
	if !slices.ContainsFunc(documents, func(d ops.DocumentRow) bool { return d.Foreign }) {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 1, 2) // SYS_NAME
		}
	}
	return rows
}

// requestCounted says how much of a request is there.
func requestCounted(r ops.RequestCount) string {
	if r.Documents+r.Foreign == 0 {
		return fmt.Sprintf(
			"no document belongs to the request %q: an id is the whole request_details.id, such as %s", r.ID,
			sampleRequest)
	}
	lines := ops.Plural(r.Present, "line", "lines")
	text := fmt.Sprintf("request %s: %s %s present in %s %s", r.ID, atLeast(r.Present, r.AtLeast), lines,
		atLeast(r.Documents, r.AtLeast), ops.Plural(r.Documents, "document", "documents"))
	if r.Expected > 0 {
		text += fmt.Sprintf(", of %d that it has", r.Expected)
	} else {
		text += "; no document says how many it has"
	}
	if r.Foreign > 0 {
		text += fmt.Sprintf("; %d more %s another environment or none", r.Foreign,
			ops.Plural(r.Foreign, "document names", "documents name"))
	}
	return text
}

type documentWhyCommand struct {
	ID   string `arg:"" optional:"" help:"The document's id."`
	Line int64  `help:"In place of an id: the newest result that names this invoice line, and the others." placeholder:"LINE"`
}

// Run prints the explanation.
func (c *documentWhyCommand) Run(ctx context.Context, a *app) error {
	if (c.ID == "") == (c.Line == 0) {
		return usagef("expected either a document's id or --line LINE")
	}
	e, err := ask(ctx, a, opsapi.DocumentWhy, ops.WhyQuery{ID: c.ID, Line: c.Line})
	if err != nil {
		return err
	}
	w := explained{Explanation: e}
	if !a.Quiet {
		w.Diff, w.DiffUnknown = a.diffOf(ctx, e.ID)
	}
	return a.emit(w, []string{e.ID}, func() error { return printWhy(a, w) })
}

// explained is an explanation, and what a write of the document would change now.
type explained struct {
	ops.Explanation
	Diff *ops.DocumentDiff `json:"diff,omitempty"`
	// DiffUnknown says why there is no Diff: SQL is away, or values are for another role.
	DiffUnknown string `json:"diff_unknown,omitempty"`
}

// diffOf compares a document with its lines. An error is a part of the answer, because the explanation stands without
// SQL.
func (a *app) diffOf(ctx context.Context, id string) (found *ops.DocumentDiff, unknown string) {
	d, err := diff(ctx, a, []string{id})
	switch {
	case err != nil:
		unknown, _ = a.describe(err)
	case len(d.Documents) == 1:
		found = &d.Documents[0]
	}
	return found, unknown
}

func printWhy(a *app, e explained) error {
	rows := [][]string{
		{"document", e.ID},
		{"status", e.Status},
		{"why", a.says(e.Summary)},
		{"next", a.says(e.Next)},
		{"flow", a.says(e.Flow)},
	}
	if e.Line != nil {
		rows = append(rows, []string{"line", fmt.Sprintf("%d: %s", e.Line.Line, a.says(e.Line.Says))})
	}
	if e.LastError != nil {
		last := fmt.Sprintf("%s %s %s: %s", a.time(e.LastError.At), e.LastError.Kind, e.LastError.Code,
			oneLine(e.LastError.Error))
		rows = append(rows, []string{"last error", strings.TrimSuffix(last, ": ")})
	}
	rows = append(rows, told([][]string{
		{"error", e.Error},
		{"final error", e.FinalError},
		{"evidence", e.Evidence},
		{"problem now", cmp.Or(e.ProblemFound, e.Problem)},
		{"warning", e.Warning},
	})...)
	if e.DiffUnknown != "" {
		rows = append(rows, []string{"lines", "unknown: " + a.says(e.DiffUnknown)})
	}
	if d := e.Diff; d != nil {
		rows = append(rows, told([][]string{{"a write now", string(d.Outcome)}, {"", a.says(d.Problem)}})...)
		if d.Warning != e.Warning {
			rows = append(rows, told([][]string{{"", a.says(d.Warning)}})...)
		}
	}
	if err := a.table(rows); err != nil {
		return err
	}
	attempts := [][]string{{"ATTEMPT", "KIND", "CODE", "NEXT TRY"}}
	for _, t := range e.Attempts {
		attempts = append(attempts, []string{a.time(t.At), t.Kind, orDash(t.Code), a.time(t.NextTry)})
	}
	var others []ops.DocumentRow
	if e.Line != nil {
		others = e.Line.Others
	}
	if err := a.tables(attempts, documentRows(a, others)); err != nil || e.Diff == nil {
		return err
	}
	for _, l := range e.Diff.Lines {
		a.printf("")
		if err := printLineDiff(a, l); err != nil {
			return err
		}
	}
	return nil
}

type documentRetryCommand struct {
	documentFilter
	whyFlag
	yesFlag

	IDs    []string `arg:"" optional:"" name:"id" help:"Documents, in place of a filter."`
	Rate   int      `help:"Hand off at most N documents a minute." placeholder:"N"`
	Limit  int      `help:"At most N documents." placeholder:"N"`
	DryRun bool     `help:"Count and list, and change nothing."`
}

// Run counts the documents, asks, and tries them again.
func (c *documentRetryCommand) Run(ctx context.Context, a *app) error {
	r := ops.RetryRequest{IDs: c.IDs, Rate: c.Rate, Limit: c.Limit, Why: c.Why}
	var err error
	if r.DocumentFilter, err = c.query(a); err != nil {
		return err
	}
	many := len(c.IDs) != 1
	if many && !c.DryRun {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	if c.DryRun || (many && !c.Yes) {
		r.DryRun = true
		counted, err := ask(ctx, a, opsapi.DocumentRetry, r)
		if c.DryRun || err != nil {
			return printExecution(a, counted, err)
		}
		if proceed, err := askForRun(a, counted, c.Yes); !proceed {
			return err
		}
		r.DryRun = false
		if r.Limit == 0 && len(c.IDs) == 0 && !counted.AtLeast {
			r.Limit = counted.Matched // no more than was counted and agreed to; which ones is decided when it runs
		}
	}
	started, err := ask(ctx, a, opsapi.DocumentRetry, r)
	if err = printExecution(a, started, err); err == nil && len(c.IDs) > 0 {
		err = untried(started)
	}
	return err
}

// untried is an error if documents that were named were not tried.
func untried(s ops.Started) error {
	if s.Progress == nil {
		return nil
	}
	stats := s.Progress.Stats.Outcomes
	gone, skipped := stats[invoice.OutcomeGone], stats[invoice.OutcomeSkipped]+stats[invoice.OutcomeNotOffered]
	if gone+skipped == 0 {
		return nil
	}
	return advised(fmt.Errorf(
		"not every document was tried again: %d %s not exist (gone), %d neither failed nor waits for a retry (skipped)",
		gone, ops.Plural(gone, "does", "do"), skipped),
		"`sqlwriterctl run items %s --outcome gone,skipped,not_offered` lists them, `sqlwriterctl document why ID` explains one",
		s.Run)
}

type documentMarkCommand struct {
	ID  string `arg:"" help:"The document's id."`
	Why string `help:"What was done by hand, for the document and the audit log." placeholder:"TEXT"`
}

// Run marks the document.
func (c *documentMarkCommand) Run(ctx context.Context, a *app) error {
	res, err := ask(ctx, a, opsapi.DocumentMarkCommitted, ops.MarkRequest{ID: c.ID, Why: c.Why})
	if err != nil {
		return err
	}
	return a.emitLine(res, res.ID, "%s: was %s, is committed (outcome %s). Its lines and the ledger did not change.",
		res.ID, res.From, invoice.OutcomeManual)
}

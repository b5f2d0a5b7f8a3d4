package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type statusCommand struct {
	appFlags

	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the status.
func (c *statusCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		s, err := opsapi.Do(ctx, o, opsapi.StatusGet, opsapi.None{})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, s)
		}
		return printStatus(a, s)
	})
}

func printStatus(a *app, s ops.Status) error {
	rows := [][]string{{"flow", s.Flow.Says}}
	for _, m := range s.MassFailures {
		rows = append(rows, []string{"mass failure", fmt.Sprintf("%d documents fail with %s since %s; others go on", m.Documents, m.Code, clock(m.Since))})
	}
	if m := s.FeedMissed; m != nil {
		sample := m.Sample
		if m.Code != "" {
			sample += " (" + m.Code + ")"
		}
		rows = append(rows, []string{"feed missed", fmt.Sprintf(
			"it did not bring %d documents that were due, the oldest of %s, found %s, such as %s; a lease may be stuck: runbook, \"the feed stands still\"",
			m.Documents, clock(m.Oldest), clock(m.At), sample)})
	}
	if s.Flow.CutOff {
		rows = append(rows, []string{"cut off", "only this instance cannot reach SQL: it leaves its documents to the others"})
	}
	if s.Flow.Lost {
		rows = append(rows, []string{"control", "the control document is not available: the flow is this instance's own"})
	}
	rows = append(rows, []string{"environment", s.SysName + ", at " + clock(s.At)})
	if s.Feed != nil {
		rows = append(rows, []string{"feed", fmt.Sprintf("%s behind at %s", seconds(s.Feed.LagSeconds), clock(s.Feed.At))})
	}
	rows = append(rows, []string{"app version", orDash(s.AppVersion)})
	if s.CountsUnknown != "" {
		rows = append(rows, []string{"counts", s.CountsUnknown})
	}
	if s.Counts == nil {
		return a.table(rows)
	}
	rows = append(rows, countRows(s.Counts)...)
	if err := a.table(rows); err != nil {
		return err
	}
	groups := make([]ops.Failures, len(s.Counts.Groups))
	for i, g := range s.Counts.Groups {
		groups[i] = ops.Failures{Status: g.Status, Kind: g.Kind, Code: g.Code, Documents: g.Documents.Documents}
	}
	return printFailures(a, groups)
}

func countRows(c *ops.Counts) (rows [][]string) {
	for _, status := range []invoice.Status{invoice.Pending, invoice.RetryScheduled, invoice.Processing, invoice.Failed} {
		n := c.Depth[status]
		text := atLeast(n.Documents, n.AtLeast)
		if status == invoice.RetryScheduled && n.Documents > 0 {
			text += fmt.Sprintf(" (%d due, %d put off, %d postponed)", c.Due, c.PutOff, c.Postponed)
		}
		rows = append(rows, []string{string(status), text})
	}
	if o := c.Oldest; o != nil {
		rows = append(rows, []string{"oldest waiting", fmt.Sprintf("%s: %s, %s, first seen %s", seconds(o.AgeSeconds), o.ID, o.Status, clock(o.Since))})
	}
	return append(rows, []string{"poison pills", fmt.Sprintf("%d in the last 60 minutes", c.PoisonLastHour)})
}

func printFailures(a *app, all []ops.Failures) error {
	if len(all) == 0 {
		return nil
	}
	a.printf("")
	rows := [][]string{{"STATUS", "KIND", "CODE", "DOCUMENTS"}}
	for _, f := range all {
		rows = append(rows, []string{string(f.Status), orDash(f.Kind), orDash(f.Code), strconv.Itoa(f.Documents)})
	}
	return a.table(rows)
}

type whyCommand struct {
	appFlags

	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" help:"The document's id."`
}

// Run prints the explanation.
func (c *whyCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		e, err := opsapi.Do(ctx, o, opsapi.DocumentWhy, opsapi.Document{ID: c.ID})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, e)
		}
		return printWhy(a, e)
	})
}

func printWhy(a *app, e ops.Explanation) error {
	rows := [][]string{{"document", e.ID}, {"status", e.Status}, {"why", e.Summary}, {"next", e.Next}, {"flow", e.Flow}}
	if e.LastError != nil {
		rows = append(rows, []string{"last error", fmt.Sprintf("%s %s %s: %s", clock(e.LastError.At), e.LastError.Kind, e.LastError.Code, e.LastError.Error)})
	}
	for _, row := range [][]string{{"error", e.Error}, {"final error", e.FinalError}, {"evidence", e.Evidence}, {"problem now", e.Problem}, {"warning", e.Warning}} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if len(e.Attempts) == 0 {
		return nil
	}
	a.printf("")
	rows = [][]string{{"ATTEMPT", "KIND", "CODE", "NEXT TRY"}}
	for _, t := range e.Attempts {
		rows = append(rows, []string{clock(t.At), t.Kind, orDash(t.Code), clock(t.NextTry)})
	}
	return a.table(rows)
}

type pauseCommand struct {
	appFlags

	Why  string `help:"The reason, for the audit log." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run pauses the flow.
func (c *pauseCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		change, err := opsapi.Do(ctx, o, opsapi.FlowPause, ops.FlowRequest{Why: c.Why})
		return printFlowChange(a, change, err, c.JSON)
	})
}

type resumeCommand struct {
	appFlags

	Why   string `help:"The reason, for the audit log." placeholder:"TEXT"`
	Force bool   `help:"Accept a restored or another database: later writes are missing in it (docs/runbook.md)."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run resumes the flow.
func (c *resumeCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		change, err := opsapi.Do(ctx, o, opsapi.FlowResume, ops.FlowRequest{Why: c.Why, Force: c.Force})
		if err == nil && c.Force && change.Risk == "" && !c.JSON {
			a.printf("there was nothing to accept; the flow was resumed")
		}
		return printFlowChange(a, change, err, c.JSON)
	})
}

func printFlowChange(a *app, change ops.FlowChange, err error, asJSON bool) error {
	if err != nil {
		return err
	}
	if !change.Audited {
		a.notef("the entry goes to the audit log when SQL is available")
	}
	if asJSON {
		return printJSON(a, change)
	}
	if change.Risk != "" {
		a.printf("FORCED. %s.", change.Risk)
	}
	a.printf("the flow was %s", change.Was.Says)
	a.printf("the flow is %s", change.Is.Says)
	return nil
}

type markCommittedCommand struct {
	appFlags

	Why  string `help:"What was done by hand, for the document and the audit log." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
	ID   string `arg:"" help:"The document's id."`
}

// Run marks the document.
func (c *markCommittedCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		res, err := opsapi.Do(ctx, o, opsapi.DocumentMarkCommitted, ops.MarkRequest{ID: c.ID, Why: c.Why})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, res)
		}
		a.printf("%s: was %s, is committed (outcome %s). Its lines and the ledger did not change.", res.ID, res.From, commit.Manual)
		return nil
	})
}

type auditsCommand struct {
	appFlags

	RunID  string `name:"run" help:"Only entries about this run." placeholder:"RUN"`
	Action string `help:"Only entries of this action, such as FLOW_PAUSED, RUN_CANCEL, BATCH_DONE." placeholder:"ACTION"`
	All    bool   `help:"Also the steps of workers and timers (level INFO), three or more for each batch."`
	Limit  int    `help:"At most N entries, 1,000 at most; 0 means 20." default:"20" placeholder:"N"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run lists the entries, newest first.
func (c *auditsCommand) Run(ctx context.Context, a *app) error {
	return c.operate(ctx, a, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.AuditList, ops.AuditQuery{Run: c.RunID, Action: c.Action, All: c.All, Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a, page.Audits)
		}
		rows := [][]string{{"AT", "LEVEL", "ACTION", "BY", "SUBJECT", "WHY"}}
		for _, e := range page.Audits {
			rows = append(rows, []string{clock(e.At), orDash(e.Level), e.Action, e.By, orDash(e.Subject), oneLine(e.Why)})
		}
		if len(page.Audits) == 0 {
			a.notef("no entry found%s", c.leftOut())
		}
		return a.table(rows)
	})
}

// leftOut describes the entries that the default filter hides.
func (c *auditsCommand) leftOut() string {
	if c.All || c.Action != "" {
		return ""
	}
	return " of operators' actions, warnings and errors: --all also shows the steps of workers and timers"
}

// atLeastOne checks a --limit. The output for a limit of 0 would look as if there were no entries.
func atLeastOne(limit int) error {
	if limit < 1 {
		return &usageError{fmt.Errorf("--limit: expected 1 to 1000, found %d", limit)}
	}
	return nil
}

// period reads --since and --until.
func period(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = moment("--since", since, now); err != nil {
		return from, to, err
	}
	if to, err = moment("--until", until, now); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, &usageError{fmt.Errorf("--until: expected a time after --since (%s), found %s", clock(from), clock(to))}
	}
	return from, to, nil
}

// moment reads a time, or a duration before now. "" gives the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &usageError{fmt.Errorf("%s: expected a time with its offset (2026-01-02T15:04:05-06:00) or a duration before now (90m), found %q", flag, text)}
}

// clock formats a time in its own zone; "-" for the zero time.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05Z07:00")
}

// seconds formats a number of seconds.
func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }

func atLeast(n int, more bool) string {
	if more {
		return "at least " + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// counted formats counts by name.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// oneLine removes line breaks, so that a text fits into a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// isUsage reports whether an error is a mistake in the command line.
func isUsage(err error) bool {
	var usage *usageError
	var request *ops.RequestError
	return errors.As(err, &usage) || (errors.As(err, &request) && request.Refusal == ops.Usage)
}

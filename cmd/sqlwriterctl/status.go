package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type statusCommand struct {
	Check bool `help:"Print only what needs attention; exit code 3 if anything does, for monitors."`
}

// Run prints the status.
func (c *statusCommand) Run(ctx context.Context, a *app) error {
	s, err := ask(ctx, a, opsapi.StatusGet, ops.StatusQuery{})
	if err != nil {
		return err
	}
	codes := idsOf(s.Attention, func(at ops.Attention) string { return at.Code })
	if !c.Check {
		return a.emit(s, codes, func() error { return printStatus(a, s) })
	}
	err = a.emit(s.Attention, codes, func() error { return a.table(attentionRows(a, s)) })
	if err == nil && len(codes) > 0 {
		err = advised(&attentionError{errors.New("needs attention: " + strings.Join(codes, ", "))},
			"`sqlwriterctl explain %s` says what it means and what to do", codes[0])
	}
	return err
}

func attentionRows(a *app, s ops.Status) (rows [][]string) {
	for _, at := range s.Attention {
		rows = append(rows, []string{"ATTENTION", a.says(at.Says) + " (runbook: " + at.Page + ")"})
	}
	if len(rows) == 0 {
		rows = [][]string{{"attention", "nothing"}}
	}
	return rows
}

func printStatus(a *app, s ops.Status) error {
	rows := append(attentionRows(a, s), flowRows(a, s.Flow)...)
	rows = append(rows, []string{"environment", s.SysName + ", at " + a.time(s.At)})
	if s.Feed != nil {
		behind := fmt.Sprintf("%s behind at %s", seconds(s.Feed.LagSeconds), a.time(s.Feed.At))
		rows = append(rows, []string{"feed", behind})
	}
	rows = append(rows, []string{"app version", orDash(s.AppVersion)},
		[]string{"mapping", orDash(s.Mapping)}, []string{"partition key", orDash(s.PartitionKey)})
	if s.RunsUnknown != "" {
		rows = append(rows, []string{"runs", "unknown: " + a.says(s.RunsUnknown)})
	}
	if s.CountsUnknown != "" {
		rows = append(rows, []string{"counts", a.says(s.CountsUnknown)})
	}
	if s.Counts != nil {
		rows = append(rows, countRows(a, s)...)
	}
	if err := a.table(rows); err != nil {
		return err
	}
	err := a.tables(dependencyRows(a, s), runStateRows(a, s), skippedRows(a, s), queueRows(s), groupRows(a, s))
	if s.Counts != nil {
		for _, g := range s.Counts.Groups {
			if g.Retry != "" { // whole, because it is to be copied
				a.printf("%s", g.Retry)
			}
		}
	}
	return err
}

// tables writes the tables that have rows beside their head, each after an empty line.
func (a *app) tables(all ...[][]string) error {
	for _, rows := range all {
		if len(rows) < 2 {
			continue
		}
		a.printf("")
		if err := a.table(rows); err != nil {
			return err
		}
	}
	return nil
}

func flowRows(a *app, f ops.FlowView) [][]string {
	rows := [][]string{{"flow", a.says(f.Says)}}
	if f.Lost {
		rows = append(rows, []string{"control", "the control document is not available: the flow is this instance's own"})
	}
	return rows
}

func countRows(a *app, s ops.Status) (rows [][]string) {
	c := s.Counts
	rows = append(rows,
		[]string{"counted", fmt.Sprintf("%s, %s ago", a.time(c.At), seconds(int64(s.At.Sub(c.At).Seconds())))})
	for _, status := range []invoice.Status{
		invoice.Pending, invoice.RetryScheduled, invoice.Processing, invoice.Failed,
	} {
		n := c.Depth[status]
		text := n.String()
		if status == invoice.RetryScheduled && n.Documents > 0 {
			text += fmt.Sprintf(" (%d due, %d put off, %d with spent retries)", c.Due, c.PutOff, c.Postponed)
			if c.Postponed > 0 {
				text += "; spent ones are tried hourly, or when others are written: `document why`"
			}
		}
		rows = append(rows, []string{string(status), text})
	}
	if o := c.Oldest; o != nil {
		rows = append(rows, []string{
			"oldest waiting",
			fmt.Sprintf("%s: %s, %s, first seen %s", seconds(o.AgeSeconds), o.ID, o.Status, a.time(o.Since)),
		})
	}
	switch {
	case c.Findings != nil:
		rows = append(rows, []string{"findings", a.says(c.Findings.Says)})
	case c.FindingsUnknown != "":
		rows = append(rows, []string{"findings", "unknown: " + a.says(c.FindingsUnknown)})
	}
	return append(rows, []string{"poison messages", fmt.Sprintf("%d in the last 60 minutes", c.PoisonLastHour)})
}

func dependencyRows(a *app, s ops.Status) [][]string {
	rows := [][]string{{"DEPENDENCY", "STATE", "SINCE", "LAST SEEN", "BY", "CODE", "REASON"}}
	for _, d := range s.Dependencies {
		code := d.Code
		if d.Kind != "" {
			code = string(d.Kind) + " " + d.Code
		}
		rows = append(rows, []string{
			d.Name, d.State, a.time(d.Since), a.time(d.SeenAt), orDash(d.By), orDash(code), orDash(a.says(d.Reason)),
		})
	}
	return rows
}

func runStateRows(a *app, s ops.Status) [][]string {
	rows := [][]string{{"RUN", "STATE", "DOCUMENTS", "SAYS"}}
	for _, r := range s.Runs {
		rows = append(rows, []string{r.ID, r.State, fmt.Sprintf("%d of %d", r.Done, r.Known), a.says(r.Says)})
	}
	return rows
}

func skippedRows(a *app, s ops.Status) [][]string {
	rows := [][]string{{"SKIPPED SYS_NAME", "DOCUMENTS", "SINCE", "LAST", "SAMPLE"}}
	for _, k := range s.Skipped {
		rows = append(rows, []string{
			orDash(k.SysName), strconv.Itoa(k.Documents), a.time(k.Since), a.time(k.LastAt), k.Sample,
		})
	}
	return rows
}

func queueRows(s ops.Status) [][]string {
	rows := [][]string{{"QUEUE", "ACTIVE", "DEAD-LETTERED"}}
	if s.Counts == nil {
		return rows
	}
	for _, q := range s.Counts.Queues {
		if q.Unknown != "" {
			rows = append(rows, []string{q.Queue, "unknown", q.Unknown})
			continue
		}
		rows = append(rows, []string{q.Queue, q.Active.String(), q.DeadLettered.String()})
	}
	return rows
}

func groupRows(a *app, s ops.Status) [][]string {
	rows := [][]string{{"STATUS", "KIND", "CODE", "DOCUMENTS", "FIRST", "LAST", "LINE", "SAMPLE"}}
	if s.Counts == nil {
		return rows
	}
	for _, g := range s.Counts.Groups {
		rows = append(rows, []string{
			string(g.Status), orDash(g.Kind), orDash(g.Code), g.Documents.String(), a.time(g.First), a.time(g.Last),
			lineOr(g.Line, "-"), g.Sample,
		})
	}
	return rows
}

func atLeast(n int, more bool) string { return ops.Count{Documents: n, AtLeast: more}.String() }

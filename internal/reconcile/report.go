package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/fault"
)

const (
	// listed bounds the findings of a class in a report, shown those in its text.
	listed = 100
	shown  = 20
)

// Report is what a comparison found: a JSON file in blob storage.
type Report struct {
	Run     string `json:"run"`
	SysName string `json:"sys_name"`
	// Whole says that it compared everything, and Documents how many documents it was to compare alone.
	Whole     bool      `json:"whole,omitempty"`
	Documents int       `json:"documents,omitempty"`
	BeganAt   time.Time `json:"began_at"`
	WrittenAt time.Time `json:"written_at"`
	// Counts are what the run compared, by class: lines of the ledger, documents with each of their lines, episodes.
	Counts map[string]int `json:"counts"`
	// Findings are the open and accepted ones, also those that earlier runs found.
	Findings []ReportedClass `json:"findings"`
}

// ReportedClass is a class in a report.
type ReportedClass struct {
	Count
	// Listed are its first open findings, at most 100.
	Listed []Finding `json:"listed,omitempty"`
}

// report keeps the report as JSON and as text.
func (w *work) report(ctx context.Context) (stepped, error) {
	counts, err := w.p.Findings.Counts(ctx)
	if err != nil {
		return stepped{}, err
	}
	r := Report{
		Run: w.run.ID, SysName: w.o.SysName, Whole: w.filter.Whole, Documents: len(w.filter.IDs),
		BeganAt: w.run.StartedAt.UTC(), WrittenAt: w.o.Now().UTC(), Counts: w.run.Counts, Findings: []ReportedClass{},
	}
	for _, c := range counts {
		class := ReportedClass{Count: c}
		if class.Listed, err = w.p.Findings.List(ctx, Query{Classes: []Class{c.Class}, State: Open}, nil, listed); err != nil {
			return stepped{}, err
		}
		r.Findings = append(r.Findings, class)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return stepped{}, fault.Wrap(fault.Internal, "reconcile: report", "encode", "the report cannot be written as JSON", err)
	}
	name := fmt.Sprintf("%s/%s-%s", w.run.StartedAt.In(w.o.Location).Format(time.DateOnly), w.run.Kind, w.run.ID)
	if err := w.p.Evidence.KeepReport(ctx, name+".json", text.Bytes(), "application/json"); err != nil {
		return stepped{}, err
	}
	if err := w.p.Evidence.KeepReport(ctx, name+".txt", []byte(r.Text()), "text/plain; charset=utf-8"); err != nil {
		return stepped{}, err
	}
	return stepped{}, nil
}

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	what := "what changed since the last comparison"
	switch {
	case r.Documents > 0:
		what = fmt.Sprintf("%d documents", r.Documents)
	case r.Whole:
		what = "everything"
	}
	fmt.Fprintf(&b, "%s: run %s compared %s, from %s to %s\n\n", r.SysName, r.Run, what, clock(r.BeganAt), clock(r.WrittenAt))
	open, accepted := 0, 0
	for _, c := range r.Findings {
		open, accepted = open+c.Open, accepted+c.Accepted
	}
	switch open {
	case 0:
		b.WriteString("SQL equals Cosmos")
	case 1:
		b.WriteString("SQL equals Cosmos, except for 1 finding")
	default:
		fmt.Fprintf(&b, "SQL equals Cosmos, except for %d findings", open)
	}
	if accepted > 0 {
		fmt.Fprintf(&b, "; %d accepted", accepted)
	}
	b.WriteString(".\n")
	if left := r.notCompared(); left != "" {
		fmt.Fprintf(&b, "Not compared: %s.\n", left)
	}
	for _, c := range r.Findings {
		fmt.Fprintf(&b, "\n%s: %d open", c.Class, c.Open)
		if c.Open > 0 {
			fmt.Fprintf(&b, " since %s", clock(c.First))
		}
		fmt.Fprintf(&b, ", %d accepted\n", c.Accepted)
		if c.Open >= MaxOpen {
			b.WriteString("  that is the most that a class keeps: there may be more. When these are mended: sqlwriterctl run start reconcile --all\n")
		}
		for _, f := range c.Listed[:min(shown, len(c.Listed))] {
			b.WriteString("  " + f.words() + "\n")
		}
		if c.Open > shown {
			fmt.Fprintf(&b, "  and %d more: sqlwriterctl finding list --class %s\n", c.Open-min(shown, len(c.Listed)), c.Class)
		}
	}
	b.WriteString("\nCompared, by class:\n")
	for _, class := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "  %-24s %d\n", class, r.Counts[class])
	}
	return b.String()
}

// notCompared counts what nobody can tell about; empty if there is nothing.
func (r Report) notCompared() string {
	var parts []string
	for _, class := range []Class{NotComparable, Changing, Impossible} {
		if n := r.Counts[string(class)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
		}
	}
	return strings.Join(parts, ", ")
}

// words is a finding in one line.
func (f Finding) words() string {
	var parts []string
	if f.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", f.Line))
	}
	if f.Document != "" {
		parts = append(parts, "document "+f.Document)
	}
	text := strings.Join(parts, ", ")
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	if f.QueuedBy != "" {
		text += " (queued by " + f.QueuedBy + ")"
	}
	return text
}

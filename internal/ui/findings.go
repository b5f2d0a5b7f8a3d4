package ui

import (
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
)

// findingsPage is what the page of findings shows.
type findingsPage struct {
	Query ops.FindingQuery
	// Class is the one that is filtered by; empty means all.
	Class    string
	Classes  []reconcile.Class
	Findings []ops.FindingRow
	Found    ops.Found
	Next     string
	// One is the finding that was asked for by its name; nil for a list.
	One *oneFinding
	// Meaning is that of its class, or of the one that is filtered by; nil without one.
	Meaning *meaning
}

// findings lists what comparisons found, or shows one.
func (v *visit) findings() (content, error) {
	q, err := query(v, opsapi.FindingList)
	if err != nil {
		return content{}, err
	}
	if q.Limit == 0 {
		q.Limit = shownOnPage
	}
	found, err := do(v, opsapi.FindingList, q)
	if err != nil {
		return content{}, err
	}
	p := findingsPage{Query: q, Classes: reconcile.FindingClasses(), Findings: found.Findings, Found: found.Found}
	classes := make([]string, len(q.Classes))
	for i, c := range q.Classes {
		classes[i] = string(c)
	}
	p.Class = strings.Join(classes, ",")
	c := content{Title: "Findings", Live: q.Page == ""}
	if q.Finding != "" {
		p.One = v.finding(found.Findings[0])
		p.Class, q.Line = string(p.One.Class), p.One.Line
		c.Title = "Finding " + p.One.Name
	}
	p.Meaning = v.meaning(p.Class)
	p.Next = v.nextPage(found.Next)
	line := ""
	if q.Line != 0 {
		line = fmt.Sprint(q.Line)
	}
	c.Command, c.Main = flags("sqlwriterctl finding list", "--class", p.Class, "--line", line), p
	return c, nil
}

// oneFinding is what the page of findings shows of a single one.
type oneFinding struct {
	ops.FindingRow

	// Lines compares the finding's line with its document; empty when there is nothing to compare, when that is not
	// known, and for a reader.
	Lines []ops.LineDiff
}

// finding describes a finding. Its values are an operator's to see, so nobody else's page asks for them.
func (v *visit) finding(row ops.FindingRow) *oneFinding {
	p := &oneFinding{FindingRow: row}
	if !v.Who.May() {
		return p
	}
	if diff, err := v.diff(row.Document); err == nil {
		p.Lines = slices.DeleteFunc(slices.Clone(diff.Lines), func(l ops.LineDiff) bool { return l.Line != row.Line })
	}
	for i := range p.Lines {
		if p.Lines[i].Outcome == invoice.OutcomeSuperseded { // the values are another document's
			p.Lines[i].Columns = nil
		}
	}
	return p
}

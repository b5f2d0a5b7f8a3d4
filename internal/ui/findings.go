package ui

import (
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/explain"
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
	States   []string
	Findings []ops.FindingRow
	Found    ops.Found
	Next     string
}

// findings lists what comparisons found.
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
	p := findingsPage{Query: q, Classes: reconcile.FindingClasses(), States: ops.FindingStates(), Findings: found.Findings, Found: found.Found}
	classes := make([]string, len(q.Classes))
	for i, c := range q.Classes {
		classes[i] = string(c)
	}
	p.Class = strings.Join(classes, ",")
	if p.Query.State == "" {
		p.Query.State = string(reconcile.Open)
	}
	p.Next = v.nextPage(found.Next)
	line := ""
	if q.Line != 0 {
		line = fmt.Sprint(q.Line)
	}
	return content{
		Title: "Findings", Command: flags("sqlwriterctl finding list", "--class", p.Class, "--state", q.State, "--line", line), Main: p, Live: q.Page == "",
	}, nil
}

// findingPage is what the page of a finding shows.
type findingPage struct {
	Finding ops.FindingRow
	Means   explain.Entry
	// Open says that it is open.
	Open bool
	// Lines compares the finding's line with its document; empty when there is nothing to compare, when that is not known, and for a reader.
	Lines []ops.LineDiff
	// Accept is the command that accepts it.
	Accept string
}

// finding shows a finding.
func (v *visit) finding() (content, error) {
	name := v.Query.Get("finding")
	if name == "" {
		return content{}, usage("expected the name of a finding, found nothing")
	}
	found, err := do(v, opsapi.FindingList, ops.FindingQuery{Finding: name})
	if err != nil {
		return content{}, err
	}
	row := found.Findings[0]
	p := findingPage{
		Finding: row, Open: row.State == reconcile.Open,
		Accept: "sqlwriterctl finding accept " + shellWord(row.Name) + ` --why "..."`,
	}
	line := ""
	if row.Line != 0 {
		line = fmt.Sprint(row.Line)
	}
	c := content{Title: "Finding " + row.Name, Command: flags("sqlwriterctl finding list --state all", "--class", string(row.Class), "--line", line), Live: true}
	if found, _ := v.site.o.Codes.Look(string(row.Class)); len(found) > 0 {
		p.Means = found[0]
	}
	if row.Document != "" && row.Line != 0 && row.State != reconcile.Gone && v.Who.May() {
		if diff, err := v.diff(row.Document); err == nil {
			p.Lines = slices.DeleteFunc(slices.Clone(diff.Lines), func(l ops.LineDiff) bool { return l.Line != row.Line })
		}
		for i := range p.Lines {
			if p.Lines[i].Verdict == commit.Superseded { // the values are another document's
				p.Lines[i].Columns = nil
			}
		}
	}
	c.Main = p
	return c, nil
}

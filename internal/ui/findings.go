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
	// Accepted says that it is accepted now, Open that it is open.
	Open, Accepted bool
	// Lines compares the finding's line with its document; empty when there is nothing to compare, when that is not known, and for a reader.
	Lines   []ops.LineDiff
	Confirm confirm
}

// finding shows a finding.
func (v *visit) finding() (content, error) {
	p, err := v.readFinding(v.Query.Get("finding"))
	if err != nil {
		return content{}, err
	}
	line := ""
	if p.Finding.Line != 0 {
		line = fmt.Sprint(p.Finding.Line)
	}
	command := flags("sqlwriterctl finding list --state all", "--class", string(p.Finding.Class), "--line", line)
	return content{Title: "Finding " + p.Finding.Name, Command: command, Main: p, Live: true}, nil
}

func (v *visit) readFinding(name string) (findingPage, error) {
	row, err := do(v, opsapi.FindingShow, opsapi.Finding{Finding: name})
	if err != nil {
		return findingPage{}, err
	}
	p := findingPage{Finding: row, Open: row.State == reconcile.Open, Accepted: row.State == reconcile.Accepted}
	if found, _ := v.site.o.Codes.Look(string(row.Class)); len(found) > 0 {
		p.Means = found[0]
	}
	if row.Document == "" || row.Line == 0 || row.State == reconcile.Gone || !v.Who.May() {
		return p, nil
	}
	if diff, err := v.diff(row.Document); err == nil {
		p.Lines = slices.DeleteFunc(slices.Clone(diff.Lines), func(l ops.LineDiff) bool { return l.Line != row.Line })
		for i := range p.Lines {
			if p.Lines[i].Verdict == commit.Superseded { // the values are another document's
				p.Lines[i].Columns = nil
			}
		}
	}
	return p, nil
}

// aboutFinding names a finding for people.
func aboutFinding(f ops.FindingRow) string {
	if f.Line != 0 {
		return fmt.Sprintf("line %d, %s", f.Line, f.Class)
	}
	return f.Document + ", " + string(f.Class)
}

// accept asks before a finding is accepted.
func (v *visit) accept() (content, error) {
	name := v.Query.Get("finding")
	if v.Form != nil {
		name = v.Form.Get("finding")
	}
	p, err := v.readFinding(name)
	if err != nil {
		return content{}, err
	}
	p.Confirm = confirm{
		To: v.Path, Back: string(link("finding", "finding", p.Finding.Name)), BackName: "Back to the finding", Fields: []field{{"finding", p.Finding.Name}}, Why: v.Form.Get("why"),
		Says:   "The finding stays as it is and asks for attention no more.",
		Not:    []string{"No row and no document changes.", "It is open again when its rows change."},
		Button: "Accept the finding",
	}
	if p.Finding.State == reconcile.Gone {
		p.Confirm.Nothing = "it is gone: the last comparison did not find it"
	}
	return content{Title: "Accept: " + aboutFinding(p.Finding), Command: "sqlwriterctl finding accept " + shellWord(p.Finding.Name) + ` --why "..."`, Main: p}, nil
}

func (v *visit) doAccept() (string, error) {
	name := v.Form.Get("finding")
	_, err := do(v, opsapi.FindingAccept, ops.AcceptRequest{Findings: []string{name}, Why: v.Form.Get("why")})
	return string(link("finding", "finding", name)), err
}

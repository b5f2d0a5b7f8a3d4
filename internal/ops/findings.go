package ops

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// findingsRead is how many findings one query reads.
const findingsRead = 1000

// FindingQuery selects findings.
type FindingQuery struct {
	// Classes are those of reconcile.FindingClasses; none means all.
	Classes []reconcile.Class `json:"classes,omitempty"`
	// Line is the id of a line; 0 means any.
	Line int64 `json:"line,omitempty"`
	// Finding is a name of one finding, CLASS/LINE or CLASS/LINE/DOCUMENT: this one alone.
	Finding string `json:"finding,omitempty"`
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// FindingRow is a finding with its name.
type FindingRow struct {
	// Name is CLASS/LINE/DOCUMENT. FindingQuery.Finding takes it, also without the document.
	Name string `json:"name"`
	reconcile.Finding
}

// FindingPage is a page of findings, by class, line and document.
type FindingPage struct {
	Findings []FindingRow `json:"findings"`
	// Found counts all findings, whatever the query.
	Found Found `json:"found"`
	// Next is the FindingQuery.Page of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// FindingList returns findings. Errors: *RequestError (usage; of a named finding also not found, and conflict when the
// name is that of several); infrastructure, throttled, quota, contention.
func (o *Ops) FindingList(ctx context.Context, q FindingQuery) (page FindingPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	for _, class := range q.Classes {
		if err := checkClass("classes", class); err != nil {
			return page, err
		}
	}
	if q.Line < 0 {
		return page, refuse(Usage, "line: expected the id of a line, found %d", q.Line)
	}
	after, err := findingPosition(q.Page)
	if err != nil {
		return page, err
	}
	var named findingName
	if q.Finding != "" {
		if len(q.Classes) > 0 || q.Line != 0 || q.Page != "" {
			return page, refuse(Usage, "finding: goes with no other filter")
		}
		if named, err = findingNamed(q.Finding); err != nil {
			return page, err
		}
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		var found []reconcile.Finding
		if q.Finding != "" {
			found = make([]reconcile.Finding, 1)
			found[0], err = named.find(ctx, s.Findings)
		} else {
			found, err = s.Findings.List(ctx, reconcile.Query{Classes: q.Classes, Line: q.Line}, after, q.Limit)
		}
		if err != nil {
			return err
		}
		for _, f := range found {
			page.Findings = append(page.Findings, o.findingRow(f))
		}
		if n := len(found); n == q.Limit && q.Finding == "" {
			page.Next = findingPage(found[n-1].Key)
		}
		page.Found, err = o.countFindings(ctx, s)
		return err
	})
	page.Findings, page.Found = present(page.Findings), o.localFound(page.Found)
	return page, err
}

// findingRow converts times to the deployment's zone.
func (o *Ops) findingRow(f reconcile.Finding) FindingRow {
	f.FirstSeen, f.LastSeen = o.in(f.FirstSeen), o.in(f.LastSeen)
	return FindingRow{Name: nameOfFinding(f.Key), Finding: f}
}

// nameOfFinding is the whole name of a finding.
func nameOfFinding(k reconcile.Key) string {
	return string(k.Class) + "/" + strconv.FormatInt(k.Line, 10) + "/" + k.Document
}

// findingName is a name of a finding as a person gives it.
type findingName struct {
	text string
	reconcile.Key
}

// findingNamed reads a name.
func findingNamed(text string) (n findingName, err error) {
	n.text = run.Truncate(text, run.MaxSubject)
	class, rest, _ := strings.Cut(text, "/")
	n.Class = reconcile.Class(class)
	if err := checkClass("finding", n.Class); err != nil {
		return n, err
	}
	line, document, _ := strings.Cut(rest, "/")
	if n.Line, err = strconv.ParseInt(line, 10, 64); err != nil || n.Line < 1 {
		return n,
			refuse(Usage,
				"finding: expected CLASS/LINE or CLASS/LINE/DOCUMENT, as `finding list` shows them, found %q", n.text)
	}
	n.Document = document
	return n, nil
}

func checkClass(member string, class reconcile.Class) error {
	if slices.Contains(reconcile.FindingClasses(), class) {
		return nil
	}
	names := make([]string, len(reconcile.FindingClasses()))
	for i, c := range reconcile.FindingClasses() {
		names[i] = string(c)
	}
	return refuse(Usage, "%s: expected one of the classes %s, found %q", member, strings.Join(names, ", "),
		run.Truncate(string(class), run.MaxKind))
}

// find reads the finding. A line has a few findings of a class at most: one for each document.
func (n findingName) find(ctx context.Context, s FindingStore) (reconcile.Finding, error) {
	all, err := s.List(ctx, reconcile.Query{Classes: []reconcile.Class{n.Class}, Line: n.Line}, nil, findingsRead)
	if err != nil {
		return reconcile.Finding{}, err
	}
	all = slices.DeleteFunc(all, func(f reconcile.Finding) bool { return n.Document != "" && n.Document != f.Document })
	switch len(all) {
	case 0:
		return reconcile.Finding{}, refuse(NotFound, "no finding %q", n.text)
	case 1:
		return all[0], nil
	}
	return reconcile.Finding{},
		refuse(Conflict, "%d findings are named %s, such as %q: name the document too", len(all), n.text,
			nameOfFinding(all[0].Key))
}

// findingPage writes the position behind a finding, and findingPosition reads it.
func findingPage(k reconcile.Key) string {
	text, err := json.Marshal(k)
	if err != nil {
		return "" // cannot happen: texts and a number
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func findingPosition(page string) (*reconcile.Key, error) {
	if page == "" {
		return nil, nil //nolint:nilnil // nil begins
	}
	var k reconcile.Key
	text, err := base64.RawURLEncoding.DecodeString(page)
	if err != nil || json.Unmarshal(text, &k) != nil || k.Class == "" {
		return nil, notAPage(page)
	}
	return &k, nil
}

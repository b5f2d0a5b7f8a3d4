package ops

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

const (
	// maxAccepted bounds the findings of one request.
	maxAccepted = 1000
	// findingsRead is how many findings one query reads.
	findingsRead = 1000
	// anyState is the FindingQuery.State of all findings.
	anyState = "all"
)

// FindingStates are the values of FindingQuery.State.
func FindingStates() []string {
	return []string{string(reconcile.Open), string(reconcile.Accepted), string(reconcile.Gone), anyState}
}

// FindingQuery selects findings.
type FindingQuery struct {
	// Classes are those of reconcile.FindingClasses; none means all. State is one of FindingStates; empty means open.
	Classes []reconcile.Class `json:"classes,omitempty"`
	State   string            `json:"state,omitempty"`
	// Line is the id of a line; 0 means any.
	Line int64 `json:"line,omitempty"`
	// Finding is a name of one finding, as AcceptRequest has them: this one alone, whatever its state.
	Finding string `json:"finding,omitempty"`
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// FindingRow is a finding with its name.
type FindingRow struct {
	// Name is CLASS/LINE/DOCUMENT, as far as the finding has them. Other calls take it, also without the document.
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

// AcceptRequest asks to accept findings.
type AcceptRequest struct {
	// Findings are names of findings: CLASS/LINE, or CLASS/LINE/DOCUMENT, or CLASS/DOCUMENT without a line.
	Findings []string `json:"findings"`
	Why      string   `json:"why"`
}

// AcceptedFindings is the result.
type AcceptedFindings struct {
	// Findings are those that were accepted, as they were before.
	Findings []FindingRow `json:"findings"`
}

// FindingList returns findings. Errors: *RequestError (usage; of a named finding also not found, and conflict when the name is that of several);
// infrastructure, throttled, quota, contention.
func (o *Ops) FindingList(ctx context.Context, q FindingQuery) (page FindingPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	for _, class := range q.Classes {
		if err := checkClass("classes", class); err != nil {
			return page, err
		}
	}
	switch {
	case q.State != "" && !slices.Contains(FindingStates(), q.State):
		return page, refuse(Usage, "state: expected one of %s, found %q", strings.Join(FindingStates(), ", "), Truncate(q.State, MaxKind))
	case q.Line < 0:
		return page, refuse(Usage, "line: expected the id of a line, found %d", q.Line)
	}
	selected := reconcile.Query{Classes: q.Classes, State: reconcile.State(q.State), Line: q.Line}
	switch q.State {
	case "":
		selected.State = reconcile.Open
	case anyState:
		selected.State = ""
	}
	after, err := findingPosition(q.Page)
	if err != nil {
		return page, err
	}
	var named findingName
	if q.Finding != "" {
		if len(q.Classes) > 0 || q.State != "" || q.Line != 0 || q.Page != "" {
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
			found, err = s.Findings.List(ctx, selected, after, q.Limit)
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
		page.Found, err = o.countFindings(ctx, s.Findings)
		return err
	})
	page.Findings, page.Found = present(page.Findings), o.localFound(page.Found)
	return page, err
}

// FindingAccept accepts findings: they stay as they are, and do not ask for attention until their rows change. Their names are in the
// audit log. Errors: *RequestError (usage; not found; conflict when a name is that of several, when a finding is gone, or in a shadow);
// infrastructure, throttled, quota, contention; nothing was accepted then.
func (o *Ops) FindingAccept(ctx context.Context, r AcceptRequest) (done AcceptedFindings, err error) {
	r.Findings = distinct(r.Findings)
	switch n := len(r.Findings); {
	case n == 0:
		return done, refuse(Usage, "findings: expected names of findings, as `finding list` shows them, found none")
	case n > maxAccepted:
		return done, refuse(Usage, "findings: expected at most %d, found %d", maxAccepted, n)
	}
	named := make([]findingName, len(r.Findings))
	for i, name := range r.Findings {
		if named[i], err = findingNamed(name); err != nil {
			return done, err
		}
	}
	by, err := checkReason(ctx, r.Why)
	if err != nil {
		return done, err
	}
	if o.o.ReadOnly != "" {
		return done, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		var keys []reconcile.Key
		for _, name := range named {
			f, err := name.find(ctx, s.Findings)
			switch {
			case err != nil:
				return err
			case f.State == reconcile.Gone:
				return refuse(Conflict, "finding %s is gone: it was true for the last time at %s", name.text, o.clock(f.LastSeen))
			}
			keys = append(keys, f.Key)
			done.Findings = append(done.Findings, o.findingRow(f))
		}
		detail, err := json.Marshal(map[string]any{"findings": namesOf(done.Findings)})
		if err != nil {
			return fault.Wrap(fault.Internal, "ops: accept", "encode", "the audit entry cannot be written as JSON", err)
		}
		err = s.Findings.Accept(ctx, keys, run.Audit{Code: run.CodeFindingAccept, Level: run.LevelInfo, By: by, Why: r.Why, Detail: detail})
		if fault.Has(err, fault.Changed) {
			return refuse(Conflict, "a comparison changed one of the findings meanwhile: list them again")
		}
		return err
	})
	if err != nil {
		return AcceptedFindings{}, err
	}
	return done, nil
}

func namesOf(rows []FindingRow) []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	return names
}

// findingRow converts times to the deployment's zone.
func (o *Ops) findingRow(f reconcile.Finding) FindingRow {
	f.FirstSeen, f.LastSeen = o.in(f.FirstSeen), o.in(f.LastSeen)
	return FindingRow{Name: nameOfFinding(f.Key), Finding: f}
}

// nameOfFinding is the whole name of a finding.
func nameOfFinding(k reconcile.Key) string {
	name := string(k.Class)
	if k.Line != 0 {
		name += "/" + strconv.FormatInt(k.Line, 10)
	}
	if k.Document != "" {
		name += "/" + k.Document
	}
	return name
}

// findingName is a name of a finding as a person gives it.
type findingName struct {
	text string
	reconcile.Key
}

// findingNamed reads a name. A part that is a number is a line, if it is the last or the document comes behind it.
func findingNamed(text string) (n findingName, err error) {
	n.text = Truncate(text, MaxSubject)
	class, rest, _ := strings.Cut(text, "/")
	n.Class = reconcile.Class(class)
	if err := checkClass("finding", n.Class); err != nil {
		return n, err
	}
	line, document, _ := strings.Cut(rest, "/")
	if n.Line, err = strconv.ParseInt(line, 10, 64); err != nil || n.Line < 1 {
		n.Line, document = 0, rest
	}
	n.Document = document
	if n.Line == 0 && n.Document == "" {
		return n, refuse(Usage, "finding: expected CLASS/LINE, CLASS/LINE/DOCUMENT or CLASS/DOCUMENT, as `finding list` shows them, found %q", n.text)
	}
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
	return refuse(Usage, "%s: expected one of the classes %s, found %q", member, strings.Join(names, ", "), Truncate(string(class), MaxKind))
}

// find reads the finding. A name without a document that several findings have means the one that is not gone.
func (n findingName) find(ctx context.Context, s FindingStore) (reconcile.Finding, error) {
	var all []reconcile.Finding
	q := reconcile.Query{Classes: []reconcile.Class{n.Class}, Line: n.Line}
	for after := (*reconcile.Key)(nil); ; {
		found, err := s.List(ctx, q, after, findingsRead)
		if err != nil {
			return reconcile.Finding{}, err
		}
		for _, f := range found {
			if n.Document == "" || n.Document == f.Document {
				all = append(all, f)
			}
		}
		if len(found) < findingsRead {
			break
		}
		after = &found[len(found)-1].Key
	}
	if present := slices.DeleteFunc(slices.Clone(all), func(f reconcile.Finding) bool { return f.State == reconcile.Gone }); len(present) > 0 {
		all = present
	}
	switch len(all) {
	case 0:
		return reconcile.Finding{}, refuse(NotFound, "no finding %q", n.text)
	case 1:
		return all[0], nil
	}
	return reconcile.Finding{}, refuse(Conflict, "%d findings are named %s, such as %q: name the document too", len(all), n.text, nameOfFinding(all[0].Key))
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

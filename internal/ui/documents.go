package ui

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// documentsPage is what the page of documents shows.
type documentsPage struct {
	Filters  []field
	Statuses []invoice.Status
	ops.DocumentList

	// Meaning is that of the code which the list is filtered by; nil without one.
	Meaning *meaning
	// All is the address of the longest list; empty when this one has all that match, or is the longest.
	All string
	// Retry is the address of the page that retries what the filter selects; empty when the filter selects nothing that
	// is retried.
	Retry string
}

// documents lists documents.
func (v *visit) documents() (content, error) {
	q, err := query(v, opsapi.DocumentList)
	if err != nil {
		return content{}, err
	}
	if q.Limit == 0 {
		q.Limit = shownOnPage
	}
	found, err := do(v, opsapi.DocumentList, q)
	if err != nil {
		return content{}, err
	}
	p := documentsPage{Filters: v.filters(), Statuses: ops.DocumentStatuses(), DocumentList: found}
	if found.Says != "" && q.Limit < ops.MaxListed {
		p.All = string(link("documents", append(filterPairs(v), "limit", ops.MaxListed)...))
	}
	if v.Who.May() && retried(q.Status) && len(found.Documents) > 0 && q.DocumentFilter != (ops.DocumentFilter{}) {
		p.Retry = string(link("retry", filterPairs(v)...))
	}
	if q.ErrorCode != "" {
		p.Meaning = v.meaning(q.ErrorCode)
	}
	return content{
		Title: "Documents", Command: filterFlags("sqlwriterctl document list", v), Main: p,
		Live: q.Limit <= shownOnPage,
	}, nil
}

// filters are the page's parameters that are members of ops.DocumentFilter, as they were typed. Each is a field of the
// page's form, a parameter of its links and a flag of the command.
func (v *visit) filters() (all []field) {
	for _, m := range opsapi.Members(reflect.TypeFor[ops.DocumentFilter]()) {
		all = append(all, field{m.Name, v.Query.Get(m.Name)})
	}
	return all
}

// filterPairs are the page's filters as parameters of a link.
func filterPairs(v *visit) (pairs []any) {
	for _, f := range v.filters() {
		pairs = append(pairs, f.Name, f.Value)
	}
	return pairs
}

// filterFlags are the page's filters as flags of a command.
func filterFlags(command string, v *visit) string {
	for _, f := range v.filters() {
		command = flags(command, "--"+strings.ReplaceAll(f.Name, "_", "-"), f.Value)
	}
	return command
}

// retried reports whether documents with a status are retried on request; an empty one means any.
func retried(s invoice.Status) bool {
	return s == "" || slices.Contains(run.Kinds().OfRun().Selectable(), s)
}

// documentPage is what the page of a document shows.
type documentPage struct {
	ops.Explanation

	// State is the kind of the status's state. Heading is what is wrong with the document; empty when nothing is, or
	// when only its values say it and the person may not see them.
	State, Heading string
	// Retry is the page of its retry; empty when that makes no sense, and for a reader. Commands are for what else a
	// person can do.
	Retry    string
	Commands []string
	// Meaning is that of the last failure's code; nil without one.
	Meaning *meaning
	// Stopped says that nothing is written, and the document waits for it. SayFlow says that the other sentences leave
	// the flow out.
	Stopped, SayFlow bool
	// Diff is what a write would change now; nil when it is not known, and DiffProblem says why. Both are empty for a
	// reader.
	Diff        *ops.DocumentDiff
	DiffProblem string
}

// document explains a document, by its id or by a line, or by what was typed into the header's field: digits alone are
// a line.
func (v *visit) document() (content, error) {
	q, err := query(v, opsapi.DocumentWhy, "find")
	if err != nil {
		return content{}, err
	}
	if text := strings.TrimSpace(v.Query.Get("find")); text != "" {
		line, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			q.ID = text
		case line <= 0:
			return content{}, usage(fmt.Sprintf("expected a line or the id of a document, found %q", text))
		default:
			q.Line = line
		}
	} else if v.Query.Has("find") {
		return content{}, usage("expected a line or the id of a document, found nothing")
	}
	e, err := do(v, opsapi.DocumentWhy, q)
	if err != nil {
		return content{}, err
	}
	p := documentPage{Explanation: e, State: stateOf(e.Status)}
	p.Heading = cmp.Or(e.ProblemFound, e.Problem)
	if p.Heading == "" && e.LastError != nil && p.State != "good" {
		p.Heading = e.LastError.Error
	}
	p.Stopped = p.State != "good" && v.stopped() != ""
	p.SayFlow = !strings.Contains(e.Summary+e.Next, e.Flow)
	if e.LastError != nil && p.State != "good" {
		p.Meaning = v.meaning(e.LastError.Code)
	}
	if e.Evidence != "" {
		p.Commands = append(p.Commands, "sqlwriterctl evidence show "+shellWord(e.ID))
	}
	if v.Who.May() { // a reader's calls for content are refused, so they are not made
		if e.Status == string(invoice.Failed) || e.Status == string(invoice.RetryScheduled) {
			if !p.Stopped {
				p.Retry = string(link("retry", "ids", e.ID))
			}
			p.Commands = append(p.Commands, "sqlwriterctl document mark-committed "+shellWord(e.ID)+` --why "..."`)
		}
		if e.Evidence != "" {
			p.Commands = append(p.Commands, "sqlwriterctl evidence get "+shellWord(e.ID))
		}
		if p.Diff, err = v.diff(e.ID); err != nil {
			p.DiffProblem = reasonOf(err)
		}
	}
	asked := shellWord(e.ID)
	if q.Line != 0 {
		asked = fmt.Sprintf("--line %d", q.Line)
	}
	return content{Title: "Document " + e.ID, Command: "sqlwriterctl document why " + asked, Main: p, Live: true}, nil
}

// diff is what a write of a document would change now. Its values are an operator's to see.
func (v *visit) diff(id string) (*ops.DocumentDiff, error) {
	diff, err := do(v, opsapi.DocumentDiff, ops.DiffQuery{IDs: []string{id}})
	if err != nil {
		return nil, err
	}
	return &diff.Documents[0], nil
}

// stateOf is the kind of a document's state.
func stateOf(status string) string {
	switch invoice.Status(status) {
	case invoice.Committed:
		return "good"
	case invoice.Failed:
		return "bad"
	case invoice.Pending, invoice.RetryScheduled, invoice.Processing:
		return "wait"
	}
	return "off"
}

// retryRequest reads the request of a retry from the query or from the form.
func (v *visit) retryRequest() (r ops.RetryRequest, err error) {
	if v.Form != nil {
		v.Query = v.Form
	}
	q, err := query(v, opsapi.DocumentList, "ids", "why", "count")
	r.DocumentFilter = q.DocumentFilter
	for _, id := range v.Query["ids"] {
		if id != "" {
			r.IDs = append(r.IDs, id)
		}
	}
	r.Why = v.Form.Get("why")
	return r, err
}

// retry asks before documents are tried again.
func (v *visit) retry() (content, error) {
	r, err := v.retryRequest()
	if err != nil {
		return content{}, err
	}
	r.DryRun, r.Why = true, ""
	started, err := do(v, opsapi.DocumentRetry, r)
	if err != nil {
		return content{}, err
	}
	n := number(started.Matched)
	if started.AtLeast {
		n = "at least " + n
	}
	words := n + " " + ops.Plural(started.Matched, "document", "documents")
	p := action{
		To: v.Path, Back: string(link("documents", filterPairs(v)...)), BackName: "Documents",
		Why: v.Form.Get("why"), Started: started,
		Does: "Each is written as it is now, by the same rules as always. What fails again waits or fails as before, with its reason.",
		Not: []string{
			"A newer result on a line is never overwritten.",
			"A document that did not change fails again if its own content is the reason.",
			"Documents of other environments are left alone.",
		},
		Button: "Retry " + words,
	}
	for _, f := range v.filters() {
		if f.Value != "" && len(r.IDs) == 0 {
			p.Fields = append(p.Fields, f)
		}
	}
	for _, id := range r.IDs {
		p.Fields = append(p.Fields, field{"ids", id})
	}
	if !started.AtLeast { // no more than the button says
		p.Fields = append(p.Fields, field{"count", fmt.Sprint(started.Matched)})
	}
	if started.Matched == 0 {
		p.Nothing = "no document matches that has failed or waits for a retry"
		if started.Note != "" {
			p.Nothing = started.Note
		}
	}
	if stopped := v.stopped(); stopped != "" {
		p.Nothing, p.Back, p.BackName = "nothing is written now: the flow is "+stopped, "", "Look at the flow"
	}
	command := "sqlwriterctl document retry"
	if len(r.IDs) == 0 { // ids go with no filter
		command = filterFlags(command, v)
	}
	for _, id := range r.IDs {
		command += " " + shellWord(id)
	}
	return content{Title: "Retry " + words, Command: command + ` --why "..."`, Main: p}, nil
}

// doRetry tries documents again.
func (v *visit) doRetry() (string, error) {
	r, err := v.retryRequest()
	if err != nil {
		return "", err
	}
	if stopped := v.stopped(); stopped != "" { // the browser would wait for the flow
		return "", &ops.RequestError{Refusal: ops.Conflict, Message: "nothing is written now: the flow is " + stopped}
	}
	if len(r.IDs) == 0 {
		if r.Limit, err = said(v.Form.Get("count")); err != nil {
			return "", err
		}
	}
	started, err := do(v, opsapi.DocumentRetry, r)
	switch {
	case err != nil:
		return "", err
	case started.Run == "":
		return "", &ops.RequestError{Refusal: ops.Conflict, Message: "no document matches any more"}
	}
	return string(link("run", "run", started.Run)), nil
}

// said is the number of documents that a button said; 0 when it said "at least".
func said(count string) (int, error) {
	if count == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return 0,
			usage(fmt.Sprintf("count: expected a number of documents, found %q", run.Truncate(count, run.MaxKind)))
	}
	return n, nil
}

package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// maxRequestID is the longest request_details.id that is searched, in bytes.
	maxRequestID = 1023
	// notOffered stands for the status of a document without one.
	notOffered = "not offered"
)

// DocumentFilter selects documents. Empty fields mean any; the others must all match. The parameters of the API, the
// form of the page and the flags of the tool follow from it; help is that of the flag. For times, which people write in
// many forms, the tool has flags of its own.
type DocumentFilter struct {
	// Status is one of DocumentStatuses.
	Status invoice.Status `json:"status,omitempty" help:"Only documents with this status." placeholder:"STATUS"`
	// Kind and ErrorCode are those of the last error.
	Kind      string `json:"kind,omitempty" help:"Only documents whose last error is of this kind." placeholder:"KIND"`
	ErrorCode string `json:"error_code,omitempty" help:"Only documents whose last error has this code." placeholder:"CODE"`
	// Request is request_details.id.
	Request string `json:"request,omitempty" help:"Only documents of this request: the whole request_details.id." placeholder:"ID"`
	// Line is the id of the main line or of a duplicate.
	Line int64 `json:"line,omitempty" help:"Only documents that name this invoice line, as main line or as duplicate." placeholder:"LINE"`
	// Since and Until (exclusive) bound the last change.
	Since time.Time `json:"since,omitzero" kong:"-"`
	Until time.Time `json:"until,omitzero" kong:"-"`
}

// DocumentQuery asks for a list.
type DocumentQuery struct {
	DocumentFilter
	// Limit is at most 1,000; 0 means 20.
	Limit int `json:"limit,omitempty"`
}

// DocumentList are the documents that match and changed last.
type DocumentList struct {
	Documents []DocumentRow `json:"documents"`
	// Matched counts the documents that match since LookedSince: an hour ago, a week ago, or the filter's own begin;
	// zero means all. A window is only looked at when the one before brought fewer documents than the limit.
	Matched     Count     `json:"matched"`
	LookedSince time.Time `json:"looked_since,omitzero"`
	// Cut says that the time was over: the documents are the newest of those that were read, and newer ones may be left
	// out.
	Cut bool `json:"cut,omitempty"`
	// NarrowBy are the filters that would leave documents out; empty when all that match are there.
	NarrowBy []string `json:"narrow_by,omitempty"`
	// Says describes what is not there, in a line; empty when all is.
	Says string `json:"says,omitempty"`
	// Request counts the details of the request that the query names.
	Request *RequestCount `json:"request,omitempty"`
}

// DocumentRow is a document in a list.
type DocumentRow struct {
	ID string `json:"id"`
	// SysName is its environment; empty when it names none.
	SysName string `json:"sys_name"`
	// Foreign says that it is not the environment of the app that answers.
	Foreign bool `json:"foreign,omitempty"`
	// Line is the main line's id; 0 when it is unreadable.
	Line    int64  `json:"line"`
	Request string `json:"request,omitempty"`
	// Status is an unknown one as it stands, and "not offered" without one.
	Status string `json:"status"`
	// Kind and Code are those of the last error.
	Kind string `json:"kind,omitempty"`
	Code string `json:"code,omitempty"`
	// Retries counts the retries spent.
	Retries int `json:"retries"`
	// ChangedAt is its _ts. FailedAt is set for a failed document, RetryAt for one that waits for a retry.
	ChangedAt time.Time `json:"changed_at"`
	FailedAt  time.Time `json:"failed_at,omitzero"`
	RetryAt   time.Time `json:"retry_at,omitzero"`
}

// RequestCount counts the details of a request.
type RequestCount struct {
	ID string `json:"id"`
	// Expected is request_details.total_invoice_detail_ids; 0 when no document says it.
	Expected int `json:"expected"`
	// Present counts the lines that its Documents name, duplicates included.
	Present   int `json:"present"`
	Documents int `json:"documents"`
	// AtLeast says that there may be more documents.
	AtLeast bool `json:"at_least,omitempty"`
	// Foreign counts documents of the request that name another environment or none. They are in no other count.
	Foreign int `json:"foreign,omitempty"`
}

// DocumentStatuses are the statuses that a filter may name.
func DocumentStatuses() []invoice.Status {
	return []invoice.Status{
		invoice.Pending, invoice.RetryScheduled, invoice.Committed, invoice.Failed, invoice.Processing,
	}
}

// Documents returns the matching documents that changed last, newest first, and how many match. They are those of the
// environment. By a request or a line it also finds those that name another environment, or none.
//
// Errors by kind: *RequestError (usage; conflict when the container dropped the search); infrastructure, throttled.
func (o *Ops) Documents(ctx context.Context, q DocumentQuery) (DocumentList, error) {
	limit, err := checkLimit(q.Limit)
	if err != nil {
		return DocumentList{}, err
	}
	s, err := o.search(q.DocumentFilter)
	if err != nil {
		return DocumentList{}, err
	}
	n, err := o.newest(ctx, s, limit)
	if err != nil {
		return DocumentList{}, err
	}
	list := DocumentList{
		Documents: []DocumentRow{}, Matched: Count{Documents: n.matched, AtLeast: n.cut || n.more}, Cut: n.cut,
	}
	for _, doc := range n.docs {
		list.Documents = append(list.Documents, o.documentRow(doc))
	}
	if n.from > 0 {
		list.LookedSince = o.in(time.Unix(n.from, 0))
	}
	if n.cut || n.more || n.matched > len(n.docs) {
		list.NarrowBy = n.narrowBy()
		list.Says = o.listSays(list)
	}
	if q.Request != "" {
		list.Request, err = o.countRequest(ctx, q.Request)
	}
	return list, err
}

// listSays describes what a list leaves out.
func (o *Ops) listSays(l DocumentList) string {
	since := ""
	if !l.LookedSince.IsZero() {
		since = " since " + o.clock(l.LookedSince)
	}
	if l.Cut && l.Matched.Documents == 0 {
		return "the time was over before a document was found. Narrow by since"
	}
	says := fmt.Sprintf("the newest %d of %s that match%s", len(l.Documents), l.Matched, since)
	if l.Cut {
		says = fmt.Sprintf(
			"the time was over: the newest %d of the %d that were read%s, and newer ones may be left out",
			len(l.Documents), l.Matched.Documents, since)
	}
	return says + ". Narrow by " + strings.Join(l.NarrowBy, ", ")
}

// search checks a filter and translates it.
func (o *Ops) search(f DocumentFilter) (commit.Query, error) {
	s := commit.Query{
		SysName: o.o.SysName, Kind: f.Kind, Request: f.Request, Line: f.Line,
		To: o.o.Now().Add(invoice.ClockSkew).Unix(),
	}
	if f.Status != "" {
		s.Statuses = []invoice.Status{f.Status}
	}
	switch {
	case f.Status != "" && !slices.Contains(DocumentStatuses(), f.Status):
		return s,
			refuse(Usage, "status: expected one of %s, found %q", joined(DocumentStatuses()),
				run.Truncate(string(f.Status), run.MaxKind))
	case f.Kind != "" && !knownKind(fault.Kind(f.Kind)):
		return s, refuse(Usage, "kind: expected one of %s, found %q", kinds(), run.Truncate(f.Kind, run.MaxKind))
	case len(f.Request) > maxRequestID:
		return s, refuse(Usage, "request: expected at most %d bytes, found %d", maxRequestID, len(f.Request))
	case f.Line < 0:
		return s, refuse(Usage, "line: expected the id of a line, found %d", f.Line)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return s, refuse(Usage, "until: expected a time after since")
	}
	var err error
	if s.Code, err = o.code("error_code", f.ErrorCode); err != nil {
		return s, err
	}
	if f.Request != "" || f.Line > 0 { // a wrong sys_name must not hide what an operator looks for
		s.SysName = ""
	}
	if !f.Since.IsZero() {
		s.From = max(0, f.Since.Unix())
	}
	if !f.Until.IsZero() {
		s.To = min(s.To, f.Until.Unix())
	}
	return s, nil
}

// code returns a code as documents have it. An unknown one is refused under the name of its parameter.
func (o *Ops) code(parameter, code string) (string, error) {
	if code == "" {
		return "", nil
	}
	if known, ok := fault.Known(o.o.Faults, code); ok {
		return known, nil
	}
	return "",
		refuse(Usage, "%s: expected a number or a code of `sqlwriterctl explain`, found %q", parameter,
			run.Truncate(code, run.MaxKind))
}

func (o *Ops) documentRow(doc found) DocumentRow {
	row := DocumentRow{
		ID: doc.ID, SysName: doc.SysName, Foreign: doc.SysName != o.o.SysName, Line: doc.Main, Request: doc.request,
		Status: doc.State.StatusFound,
		Kind:   doc.State.LastErrorKind, Code: doc.State.LastErrorCode,
		Retries:   min(doc.State.RetryCount, commit.MaxRetries),
		ChangedAt: o.in(time.Unix(doc.TS, 0)),
	}
	switch {
	case slices.Contains(DocumentStatuses(), doc.State.Status):
		row.Status = string(doc.State.Status)
	case doc.State.Status == "":
		row.Status = notOffered
	}
	if doc.State.Status == invoice.Failed {
		row.FailedAt = o.stamp(doc.State.FailedAt)
	}
	if doc.State.Status == invoice.RetryScheduled && doc.State.RetryAfter > 0 && doc.State.RetryAfter < maxTS {
		row.RetryAt = o.in(time.Unix(doc.State.RetryAfter, 0))
	}
	return row
}

// countRequest counts up to 10,000 documents of a request.
func (o *Ops) countRequest(ctx context.Context, id string) (*RequestCount, error) {
	c, lines := &RequestCount{ID: id}, map[int64]bool{}
	err := o.each(ctx, commit.Query{Request: id, To: maxTS}, func(page []found) bool {
		for _, doc := range page {
			if doc.SysName != o.o.SysName {
				c.Foreign++
				continue
			}
			c.Documents++
			c.Expected = max(c.Expected, doc.expected)
			for _, line := range append(doc.Duplicates, doc.Main) {
				lines[line] = true
			}
		}
		c.AtLeast = c.Documents+c.Foreign >= maxPreviewed
		return !c.AtLeast
	})
	delete(lines, 0) // an unreadable id
	c.Present = len(lines)
	return c, err
}

// joined lists names in words.
func joined[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

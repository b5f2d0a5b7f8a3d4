package commit

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Finder lists documents of the container. It is the only way to list them.
type Finder interface {
	// Find gives one page of the documents that match, in no order. An empty continuation begins, and Page.Next is
	// empty after the last page. Another process may use a continuation, for the same Query with any Size. A document
	// that does not change meanwhile comes once; one that changes may be missed or come twice.
	//
	// Errors by kind: document, code "continuation", for an invalid or expired continuation (begin again);
	// infrastructure, throttled; internal for a window that does not exist.
	Find(ctx context.Context, q Query, continuation string) (Page, error)
}

// Query selects documents. Empty fields mean any; the others must all match.
type Query struct {
	// SysName is the environment, to the letter.
	SysName string
	// IDs are at most 100 ids. With them only SysName also counts.
	IDs []string
	// Window is a window of the recovery timer as of Times. With it only SysName also counts.
	Window Window
	Times  WindowTimes
	// From and To (exclusive) bound _ts, in seconds. 0 as To means that no document matches.
	From, To int64
	// Statuses match in the spellings of Spellings.
	Statuses []invoice.Status
	// Kind and Code are exactly those of the last error.
	Kind, Code string
	// Request is request_details.id.
	Request string
	// Line is the id of the main line or of a duplicate.
	Line int64

	// Members are what a document of the page has at least, nil for all: names of members, or of a member's members
	// ("sql_writer.status"). "[0]" after the name of a list means its first element. A member whose members are named
	// is an object in the page, also where the document has none.
	Members []string
	// Size is the largest number of documents in a page, 1 to 1,000.
	Size int
}

// MaxPage is the largest Query.Size.
const MaxPage = 1000

// Page is one page of the documents that match a query.
type Page struct {
	// Documents may be empty before the last page.
	Documents []invoice.Projection
	// Next is the continuation of the next page; empty after the last.
	Next string
	// Charge is what the page has cost, in request units.
	Charge float64
}

// Requests returns the values in a document that mean Request: the text, and the number with these digits.
func (q Query) Requests() []any { return textAndNumber(q.Request) }

// Lines returns the values in a document that mean Line. A number beyond 2^53-1 means no line (ADR 0004).
func (q Query) Lines() []any { return textAndNumber(strconv.FormatInt(q.Line, 10)) }

func textAndNumber(text string) []any {
	const maxExact = 1<<53 - 1
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= maxExact &&
		strconv.FormatInt(n, 10) == text {
		return []any{text, n}
	}
	return []any{text}
}

// Window is one of the queries of the recovery timer.
type Window string

// The windows. A retry is due when its retry_after is missing, not a number, not after Now, or more than a day after
// Now. A document is put off when its last error is of kind contention, infrastructure or throttled: such an error is
// not its own.
const (
	// PutOff: retry_scheduled, due, and put off.
	PutOff Window = "put_off"
	// Orphans: pending with a _ts before LeftBefore, or processing with a _ts before OldWriterBefore.
	Orphans Window = "orphans"
	// Blamed: retry_scheduled and not put off, so the last failure was the document's own; due, or postponed with a _ts
	// before AppliedBefore.
	Blamed Window = "blamed"
)

// Windows are all windows in the order of a tick: documents that nobody blames come first.
func Windows() []Window { return []Window{PutOff, Orphans, Blamed} }

// WindowTimes are the times of a window's query in epoch seconds. Now must be set; no document qualifies by another
// time that is 0.
type WindowTimes struct {
	Now, AppliedBefore, LeftBefore, OldWriterBefore int64
}

// PutOffKinds are the values of last_error_kind for documents that were put off.
func PutOffKinds() []fault.Kind {
	return []fault.Kind{fault.Contention, fault.Infrastructure, fault.Throttled}
}

// Spellings are the texts of a status that a Finder finds: lower case, upper case and capitalised. An index compares
// texts exactly. Other spellings are not found.
func Spellings(status invoice.Status) []string {
	lower := strings.ToLower(string(status))
	upper := strings.ToUpper(lower)
	return []string{lower, upper, upper[:min(1, len(upper))] + lower[min(1, len(lower)):]}
}

// Each gives the pages of a query to visit, also those without documents, until it wants no more or fails. It returns
// the error of visit unchanged. Other errors as Finder.Find.
func Each(ctx context.Context, f Finder, q Query, visit func(Page) (more bool, err error)) error {
	for continuation := ""; ; {
		page, err := f.Find(ctx, q, continuation)
		if err != nil {
			return err
		}
		if more, err := visit(page); err != nil || !more {
			return err
		}
		if continuation = page.Next; continuation == "" {
			return nil
		}
	}
}

// PendingDoc is a document in a list by its state: times and codes without content.
type PendingDoc struct {
	ID string
	// TS is the document's _ts in whole seconds.
	TS int64
	// Status is lower case.
	Status invoice.Status
	// RetryAfter is sql_writer.retry_after in epoch seconds, rounded up; 0 when it is missing or not a number. See
	// invoice.Due.
	RetryAfter int64
	// Postponed is sql_writer.postponed.
	Postponed bool
	// Kind, Code and FailedAt are last_error_kind, last_error_code and failed_at of sql_writer; empty when absent.
	Kind, Code, FailedAt string
	// FirstAt is the time of the oldest remembered attempt (attempts), ErrorAt is last_error_at; empty when absent.
	FirstAt, ErrorAt string
	// Line is the main line's id; 0 when the document has no readable one.
	Line int64
}

// PendingMembers are the members of which PendingDocs reads a PendingDoc.
func PendingMembers() []string {
	return []string{
		"id", "_ts", "invoice_details_from_rpa.IVCE_DTL_UID", "sql_writer.status",
		"sql_writer.retry_after", "sql_writer.postponed",
		"sql_writer.last_error_kind", "sql_writer.last_error_code", "sql_writer.failed_at", "sql_writer.last_error_at",
		"sql_writer.attempts[0].at",
	}
}

// PendingDocs reads documents with PendingMembers. A member of an unexpected type counts as empty. The service
// guarantees id and _ts; without them its answer is malformed, kind infrastructure.
func PendingDocs(docs []invoice.Projection) ([]PendingDoc, error) {
	found := make([]PendingDoc, len(docs))
	for i, raw := range docs {
		var doc struct {
			ID   string `json:"id"`
			TS   int64  `json:"_ts"`
			Main struct {
				Line json.RawMessage `json:"IVCE_DTL_UID"`
			} `json:"invoice_details_from_rpa"`
			State invoice.State `json:"sql_writer"`
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			return nil,
				fault.Wrap(fault.Infrastructure, "commit: find", "row",
					"the service answered with a malformed document", err)
		}
		found[i] = PendingDocOf(doc.ID, doc.TS, invoice.LineID(doc.Main.Line), doc.State)
	}
	return found, nil
}

// PendingDocOf makes a PendingDoc from a document's main line and state.
func PendingDocOf(id string, ts, line int64, state invoice.State) PendingDoc {
	p := PendingDoc{
		ID: id, TS: ts, Status: state.Status, RetryAfter: state.RetryAfter, Postponed: state.Postponed,
		Kind: state.LastErrorKind, Code: state.LastErrorCode, FailedAt: state.FailedAt,
		ErrorAt: state.LastErrorAt, Line: line,
	}
	if len(state.Attempts) > 0 {
		p.FirstAt = state.Attempts[0].At
	}
	return p
}

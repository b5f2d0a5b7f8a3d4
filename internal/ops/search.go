package ops

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"sqlwriter/internal/invoice"
)

// DocumentSearch finds documents by the values of members.
type DocumentSearch interface {
	// Search gives one page of the documents that match, and the continuation of the next page. "" begins, and comes with the last page.
	// A page has at most size documents in no order, and may be empty before the last. A document that does not change meanwhile comes
	// once, one that changes at most once for each of its _ts. Another process may use a continuation, with any size.
	//
	// A document has at least id, _ts, the id, sys_name and total_invoice_detail_ids of request_details, the main line's id, and of
	// sql_writer the status, the version, the counts, the times and the kind and code of the last error. A search by Request also gives
	// the duplicates. Errors by kind: document, code "continuation", for an invalid or expired continuation; infrastructure, throttled.
	Search(ctx context.Context, q Search, size int, continuation string) (docs []invoice.Projection, next string, err error)
}

// Search selects documents. Empty fields mean any; the others must all match.
type Search struct {
	// SysName is the environment. Without it documents of all environments match, and those that name none.
	SysName string
	// Status matches in the spellings of commit.Spellings.
	Status invoice.Status
	// Kind and Code are exactly those of the last error.
	Kind, Code string
	// Request is request_details.id.
	Request string
	// Line is the id of the main line or of a duplicate.
	Line int64
	// From and To (exclusive) bound _ts, in seconds.
	From, To int64
}

// Requests returns the values in a document that mean Request: the text, and the number with these digits.
func (q Search) Requests() []any { return spellings(q.Request) }

// Lines returns the values in a document that mean Line. A number beyond 2^53-1 means no line (ADR 0004).
func (q Search) Lines() []any { return spellings(strconv.FormatInt(q.Line, 10)) }

func spellings(text string) []any {
	const maxExact = 1<<53 - 1
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= maxExact && strconv.FormatInt(n, 10) == text {
		return []any{text, n}
	}
	return []any{text}
}

// found is a document of a search.
type found struct {
	invoice.Document
	// request is request_details.id; expected is request_details.total_invoice_detail_ids, 0 when it is no number.
	request  string
	expected int
}

// foundOf reads a document of a search. Members of an unexpected type count as missing. Of a document whose id the app cannot use, only
// the id and _ts are read.
func foundOf(doc invoice.Projection, now time.Time) (f found, err error) {
	if f.Document, err = invoice.Read(doc, now); err != nil {
		var head struct {
			ID string `json:"id"`
			TS int64  `json:"_ts"`
		}
		if json.Unmarshal(doc, &head) != nil {
			return f, err
		}
		f.Document = invoice.Document{ID: head.ID, TS: head.TS, Version: invoice.Version{Key: invoice.Key(head.ID)}}
		return f, nil //nolint:nilerr // the list shows it
	}
	var members struct {
		Request map[string]json.RawMessage `json:"request_details"`
	}
	_ = json.Unmarshal(doc, &members) // what is no object has no members
	if id := members.Request["id"]; json.Unmarshal(id, &f.request) != nil {
		var n json.Number
		if json.Unmarshal(id, &n) == nil {
			f.request = n.String()
		}
	}
	_ = json.Unmarshal(members.Request["total_invoice_detail_ids"], &f.expected) // stays 0
	return f, nil
}

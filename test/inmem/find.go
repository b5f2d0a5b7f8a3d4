package inmem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Paged lists these documents by looking at size of them for each page. Pages are thus as full as it happens, empty
// ones among them, as they come from a service.
func (d *Documents) Paged(size int) commit.Finder { return paged{d, size} }

type paged struct {
	docs *Documents
	size int
}

func (p paged) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	return p.docs.find(ctx, q, continuation, p.size)
}

// Find implements commit.Finder. It looks at 1,000 documents for each page.
func (d *Documents) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	return d.find(ctx, q, continuation, commit.MaxPage)
}

// find looks at some documents of the environment and of the bounds of _ts. A continuation is the slot that was looked
// at last, behind a mark of the query.
func (d *Documents) find(
	ctx context.Context, q commit.Query, continuation string, look int,
) (found commit.Page, err error) {
	const op = "inmem: find"
	if err := ended(ctx, op); err != nil {
		return found, err
	}
	if q.Window != "" && !slices.Contains(commit.Windows(), q.Window) {
		return found, fault.New(fault.Internal, op, fault.CodeBug, "there is no window %q", q.Window)
	}
	most := q.Size
	q.Size = 0 // another page of the same search may have another one
	text, err := json.Marshal(q)
	if err != nil {
		return found, fault.Wrap(fault.Internal, op, fault.CodeBug, "the query cannot be written as JSON", err)
	}
	sum := sha256.Sum256(text)
	mark, after := hex.EncodeToString(sum[:8])+":", ""
	if continuation != "" {
		place, ours := strings.CutPrefix(continuation, mark)
		slot, err := hex.DecodeString(place)
		if !ours || err != nil || len(slot) == 0 {
			return found,
				fault.New(fault.Document, op, "continuation", "the continuation does not belong to this search")
		}
		after = string(slot)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := slices.BinarySearch(d.slots, after)
	if known {
		at++
	}
	for ; at < len(d.slots); at++ {
		slot := d.slots[at]
		e := d.states[slot]
		if !e.concerns(q) {
			continue
		}
		if look == 0 || len(found.Documents) == most {
			found.Next = mark + hex.EncodeToString([]byte(after))
			break
		}
		after, look = slot, look-1
		if e.matches(q, d.stored[slot]) {
			found.Documents = append(found.Documents, projected(d.stored[slot], q.Members))
		}
	}
	found.Charge = charged(found.Documents)
	return found, nil
}

// charged estimates what a query costs, as the Cosmos DB emulator does.
func charged(docs []invoice.Projection) float64 {
	const page, row, free, perUnit = 2.3, 0.015, 1 << 10, 11 << 10
	charge := page
	for _, doc := range docs {
		charge += row + float64(max(0, len(doc)-free))/perUnit
	}
	return charge
}

// searched is what a search sees of a document without decoding it again.
type searched struct {
	id string
	ts int64
	// sysName is request_details.sys_name, status sql_writer.status, as they stand; empty when they are no texts.
	sysName, status string
	state           invoice.State
}

// searchedOf reads what a search sees. What stands in the place of sql_writer and is no object has no status.
func searchedOf(id string, members map[string]json.RawMessage) (searched, error) {
	e := searched{id: id, sysName: text(object(members["request_details"])["sys_name"])}
	err := json.Unmarshal(members["_ts"], &e.ts)
	own := object(members["sql_writer"])
	if err == nil && own != nil {
		err = json.Unmarshal(members["sql_writer"], &e.state)
	}
	if err != nil {
		return searched{},
			fault.Wrap(fault.Internal, "inmem: find", fault.CodeBug, "a stored document cannot be read", err)
	}
	e.status = text(own["status"])
	return e, nil
}

// concerns reports whether a document is of the environment, and one of the ids or within the bounds of _ts.
func (e searched) concerns(q commit.Query) bool {
	switch {
	case q.SysName != "" && e.sysName != q.SysName:
		return false
	case q.Window != "":
		return true
	case len(q.IDs) > 0:
		return slices.Contains(q.IDs, e.id)
	}
	return e.ts >= q.From && e.ts < q.To
}

// is reports whether the status is one of statuses, in a spelling that is promised.
func (e searched) is(statuses ...invoice.Status) bool {
	return slices.ContainsFunc(statuses, func(s invoice.Status) bool {
		return slices.Contains(commit.Spellings(s), e.status)
	})
}

// matches reports whether a document that concerns a query matches it.
func (e searched) matches(q commit.Query, members map[string]json.RawMessage) bool {
	switch {
	case q.Window != "":
		return e.in(q.Window, q.Times)
	case len(q.IDs) > 0:
		return true
	case len(q.Statuses) > 0 && !e.is(q.Statuses...):
		return false
	case q.Kind != "" && text(object(members["sql_writer"])["last_error_kind"]) != q.Kind,
		q.Code != "" && text(object(members["sql_writer"])["last_error_code"]) != q.Code,
		q.Request != "" && !slices.ContainsFunc(q.Requests(), means(object(members["request_details"])["id"])):
		return false
	case q.Line <= 0:
		return true
	}
	var lines []json.RawMessage
	if list := object(members["post-processing"])["duplicate_detail_uids"]; json.Unmarshal(list, &lines) != nil {
		lines = nil
	}
	lines = append(lines, object(members["invoice_details_from_rpa"])["IVCE_DTL_UID"])
	return slices.ContainsFunc(lines, func(v json.RawMessage) bool { return slices.ContainsFunc(q.Lines(), means(v)) })
}

// in reports whether a document is in a window.
func (e searched) in(w commit.Window, at commit.WindowTimes) bool {
	due := invoice.Due(e.state.RetryAfter, time.Unix(at.Now, 0))
	putOff := slices.Contains(commit.PutOffKinds(), fault.Kind(e.state.LastErrorKind))
	retry := e.is(invoice.RetryScheduled)
	switch w {
	case commit.PutOff:
		return retry && putOff && due
	case commit.Blamed:
		return retry && !putOff && (due || e.state.Postponed && e.ts < at.AppliedBefore)
	case commit.Orphans:
	}
	return e.is(invoice.Pending) && e.ts < at.LeftBefore || e.is(invoice.Processing) && e.ts < at.OldWriterBefore
}

// means compares a value with a text or a number, as Cosmos DB does: 1.0 and 1e0 are the number 1.
func means(value json.RawMessage) func(any) bool {
	return func(want any) bool {
		value := bytes.TrimSpace(value)
		switch want := want.(type) {
		case string:
			return len(value) > 0 && value[0] == '"' && text(value) == want
		case int64:
			n, err := strconv.ParseFloat(string(value), 64)
			return err == nil && n == float64(want)
		}
		return false
	}
}

// projected gives the members that a query asks for, and no other, so that a use case that forgets one fails. A list of
// which an element is asked for comes whole.
func projected(members map[string]json.RawMessage, names []string) invoice.Projection {
	if len(names) == 0 {
		return invoice.Projection(encode(members))
	}
	out, whole, parts := map[string]json.RawMessage{}, map[string]map[string]json.RawMessage{},
		map[string]map[string]json.RawMessage{}
	for _, name := range names {
		top, path, nested := strings.Cut(name, ".")
		if !nested {
			if value, there := members[top]; there {
				out[top] = value
			}
			continue
		}
		if parts[top] == nil {
			whole[top], parts[top] = object(members[top]), map[string]json.RawMessage{}
		}
		part := path[:strings.IndexAny(path+".", ".[")]
		if value, there := whole[top][part]; there {
			parts[top][part] = value
		}
	}
	for top, value := range parts {
		out[top] = encode(value)
	}
	return invoice.Projection(encode(out))
}

// PendingPage gives a page of documents with commit.PendingMembers, as a Finder that is made up does.
func PendingPage(docs []commit.PendingDoc, next string) commit.Page {
	page := commit.Page{Next: next}
	for _, doc := range docs {
		state := invoice.State{
			Status: doc.Status, RetryAfter: doc.RetryAfter, Postponed: doc.Postponed, LastErrorKind: doc.Kind,
			LastErrorCode: doc.Code,
			FailedAt:      doc.FailedAt, LastErrorAt: doc.ErrorAt,
		}
		text, err := json.Marshal(map[string]any{"id": doc.ID, "_ts": doc.TS, "sql_writer": state})
		if err != nil {
			panic(err) // texts and numbers always marshal
		}
		page.Documents = append(page.Documents, text)
	}
	return page
}

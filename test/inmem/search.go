package inmem

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// Search implements ops.DocumentSearch. It looks at size documents for each page, so that use cases meet the empty pages of a service.
func (d *Documents) Search(ctx context.Context, q ops.Search, size int, continuation string) (docs []invoice.Projection, next string, err error) {
	const op = "inmem: search"
	if err := ended(ctx, op); err != nil {
		return nil, "", err
	}
	mark, err := markOf(op, q)
	if err != nil {
		return nil, "", err
	}
	after := ""
	if continuation != "" {
		if after, err = placeOf(op, mark, continuation); err != nil {
			return nil, "", err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := slices.BinarySearch(d.slots, after)
	if known {
		at++
	}
	for look := size; at < len(d.slots); at, look = at+1, look-1 {
		if look == 0 {
			return docs, mark + hex.EncodeToString([]byte(d.slots[at-1])), nil
		}
		if id := d.slots[at]; d.pending[id].found(q, d.stored[id]) {
			docs = append(docs, invoice.Projection(encode(d.stored[id])))
		}
	}
	return docs, "", nil
}

// found reports whether a document matches.
func (e candidate) found(q ops.Search, members map[string]json.RawMessage) bool {
	own, request := object(members["sql_writer"]), object(members["request_details"])
	var listed []json.RawMessage
	if list := object(members["post-processing"])["duplicate_detail_uids"]; json.Unmarshal(list, &listed) != nil {
		listed = nil
	}
	line := append(listed, object(members["invoice_details_from_rpa"])["IVCE_DTL_UID"])
	return e.TS >= q.From && e.TS < q.To &&
		(q.SysName == "" || e.sysName == q.SysName) &&
		(q.Status == "" || e.is(q.Status)) &&
		(q.Kind == "" || text(own["last_error_kind"]) == q.Kind) &&
		(q.Code == "" || text(own["last_error_code"]) == q.Code) &&
		(q.Request == "" || slices.ContainsFunc(q.Requests(), means(request["id"]))) &&
		(q.Line <= 0 || slices.ContainsFunc(line, func(v json.RawMessage) bool { return slices.ContainsFunc(q.Lines(), means(v)) }))
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

package inmem

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
)

// ReconcileDocuments implements reconcile.Documents over documents in memory. It keeps nothing of its own.
type ReconcileDocuments struct {
	docs    *Documents
	sysName string
}

var _ reconcile.Documents = ReconcileDocuments{}

// Reconcile gives the reconcile.Documents of an environment.
func (d *Documents) Reconcile(sysName string) ReconcileDocuments {
	return ReconcileDocuments{d, sysName}
}

// charged estimates what a query costs, as the Cosmos DB emulator does.
func charged[T ~[]byte](docs []T) float64 {
	const page, row, free, perUnit = 2.3, 0.015, 1 << 10, 11 << 10
	charge := page
	for _, doc := range docs {
		charge += row + float64(max(0, len(doc)-free))/perUnit
	}
	return charge
}

// Changed looks at size of the environment's documents for each page, so that use cases meet the empty pages of a service.
func (r ReconcileDocuments) Changed(ctx context.Context, from, to int64, size int, continuation string) (docs []invoice.Projection, next string, charge float64, err error) {
	const op = "inmem: changed"
	if err := ended(ctx, op); err != nil {
		return nil, "", 0, err
	}
	mark, err := markOf(op, []any{r.sysName, from, to})
	if err != nil {
		return nil, "", 0, err
	}
	after := ""
	if continuation != "" {
		if after, err = placeOf(op, mark, continuation); err != nil {
			return nil, "", 0, err
		}
	}
	d := r.docs
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := slices.BinarySearch(d.slots, after)
	if known {
		at++
	}
	for look := size; at < len(d.slots); at++ {
		if d.pending[d.slots[at]].sysName != r.sysName {
			continue
		}
		if look == 0 {
			next = mark + hex.EncodeToString([]byte(after))
			break
		}
		after, look = d.slots[at], look-1
		if d.pending[after].between(r.sysName, from, to) {
			docs = append(docs, invoice.Projection(encode(d.stored[after])))
		}
	}
	return docs, next, charged(docs), nil
}

// ReadMany implements reconcile.Documents.
func (r ReconcileDocuments) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, float64, error) {
	docs, err := r.docs.ReadMany(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	return docs, charged(docs), nil
}

// Heads implements reconcile.Documents.
func (r ReconcileDocuments) Heads(ctx context.Context, ids []string) ([]invoice.Projection, float64, error) {
	docs, charge, err := r.ReadMany(ctx, ids)
	heads := make([]invoice.Projection, len(docs))
	for i, doc := range docs {
		members := object(doc)
		head := map[string]json.RawMessage{"id": members["id"], "_ts": members["_ts"], "_etag": members["_etag"]}
		request := map[string]json.RawMessage{}
		if name, ok := object(members["request_details"])["sys_name"]; ok {
			request["sys_name"] = name
		}
		own := map[string]json.RawMessage{}
		for name, value := range object(members["sql_writer"]) {
			if name != "attempts" {
				own[name] = value
			}
		}
		head["request_details"], head["sql_writer"] = encode(request), encode(own)
		heads[i] = invoice.Projection(encode(head))
	}
	return heads, charge, err
}

// OfLines implements reconcile.Documents.
func (r ReconcileDocuments) OfLines(ctx context.Context, lines []int64) (ids []string, charge float64, err error) {
	var found []json.RawMessage
	err = r.each(ctx, "inmem: documents of lines", func(e candidate, members map[string]json.RawMessage) error {
		if slices.ContainsFunc(lines, func(line int64) bool { return e.found(ops.Search{Line: line, To: math.MaxInt64}, members) }) {
			ids, found = append(ids, e.ID), append(found, nil)
		}
		return nil
	})
	return ids, charged(found), err
}

// each visits the environment's documents.
func (r ReconcileDocuments) each(ctx context.Context, op string, visit func(candidate, map[string]json.RawMessage) error) error {
	if err := ended(ctx, op); err != nil {
		return err
	}
	d := r.docs
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range d.slots {
		if d.pending[id].sysName != r.sysName {
			continue
		}
		if err := visit(d.pending[id], d.stored[id]); err != nil {
			return err
		}
	}
	return nil
}

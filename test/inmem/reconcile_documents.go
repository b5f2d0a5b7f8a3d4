package inmem

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"

	"sqlwriter/internal/invoice"
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

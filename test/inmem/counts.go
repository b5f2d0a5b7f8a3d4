package inmem

import (
	"context"
	"encoding/json"
	"sync"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Counts keeps counts in memory, as JSON like a database. It implements ops.CountsStore and is safe for concurrent use.
type Counts struct {
	mu  sync.Mutex
	doc []byte
}

var _ ops.CountsStore = (*Counts)(nil)

// LoadCounts implements ops.CountsStore.
func (k *Counts) LoadCounts(ctx context.Context) (counts ops.Saved, err error) {
	const op = "inmem: load counts"
	if err := ended(ctx, op); err != nil {
		return ops.Saved{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.doc == nil {
		return ops.Saved{}, nil
	}
	if err := json.Unmarshal(k.doc, &counts); err != nil {
		return ops.Saved{}, fault.Wrap(fault.Infrastructure, op, "unreadable", "the counts cannot be read", err)
	}
	return counts, nil
}

// StoreCounts implements ops.CountsStore.
func (k *Counts) StoreCounts(ctx context.Context, counts ops.Saved) error {
	const op = "inmem: store counts"
	if err := ended(ctx, op); err != nil {
		return err
	}
	doc, err := json.Marshal(counts)
	if err != nil {
		return fault.Wrap(fault.Internal, op, fault.CodeBug, "the counts cannot be written as JSON", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doc = doc
	return nil
}

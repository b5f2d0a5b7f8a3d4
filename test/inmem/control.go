package inmem

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// Control is a control document in memory. It implements breaker.ControlStore and passes the same suite as the Cosmos
// adapter. The document is stored as JSON, so that only what survives a database survives here. It is safe
// for concurrent use; all instances of an app share one.
type Control struct {
	mu sync.Mutex
	// doc is nil while nothing is stored.
	doc []byte
	// writes numbers the etags.
	writes int64
	// statuses has the status of each instance as JSON.
	statuses map[string][]byte
}

// NewControl makes a store with nothing in it.
func NewControl() *Control { return &Control{statuses: map[string][]byte{}} }

// Load gives the control document and its etag. See breaker.ControlStore.
func (k *Control) Load(ctx context.Context) (breaker.Control, string, error) {
	const op = "inmem: load control"
	if err := ended(ctx, op); err != nil {
		return breaker.Control{}, "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.doc == nil {
		return breaker.Control{}, "", nil
	}
	var c breaker.Control
	if err := json.Unmarshal(k.doc, &c); err != nil {
		return breaker.Control{}, "",
			fault.Wrap(fault.Infrastructure, op, "unreadable", "the control document cannot be read", err)
	}
	return c, k.etag(), nil
}

// Store writes the control document if it still has the etag, and answers the new one. See breaker.ControlStore.
func (k *Control) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	const op = "inmem: store control"
	if err := ended(ctx, op); err != nil {
		return "", err
	}
	doc, err := json.Marshal(c)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, fault.CodeBug, "the control document cannot be written as JSON", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.etag(); found != etag {
		return "", &fault.Error{
			Kind: fault.Contention, Condition: fault.Changed, Code: "412", Op: op,
			Reason: fmt.Sprintf("the control document is not the one that was read: etag %q, found %q", etag, found),
		}
	}
	k.doc = doc
	k.writes++
	return k.etag(), nil
}

// LoadStatuses implements breaker.ControlStore.
func (k *Control) LoadStatuses(ctx context.Context, since time.Time) (all []breaker.Status, err error) {
	const op = "inmem: load statuses"
	if err := ended(ctx, op); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.statuses)) {
		var s breaker.Status
		if err := json.Unmarshal(k.statuses[name], &s); err != nil {
			return nil, fault.Wrap(fault.Internal, op, fault.CodeBug, "a status cannot be read", err)
		}
		if !s.At.Before(since) {
			all = append(all, s)
		}
	}
	return all, nil
}

// StoreStatus implements breaker.ControlStore.
func (k *Control) StoreStatus(ctx context.Context, s breaker.Status) error {
	const op = "inmem: store status"
	if err := ended(ctx, op); err != nil {
		return err
	}
	doc, err := json.Marshal(s)
	if err != nil {
		return fault.Wrap(fault.Internal, op, fault.CodeBug, "the status cannot be written as JSON", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.statuses[s.Instance] = doc
	return nil
}

// etag is quoted, as Cosmos DB writes it; empty while nothing is stored. The caller has the lock.
func (k *Control) etag() string {
	if k.doc == nil {
		return ""
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%08x-0000", k.writes))
}

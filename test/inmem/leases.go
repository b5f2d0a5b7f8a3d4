package inmem

import (
	"context"
	"slices"
	"sync"

	"sqlwriter/internal/reconcile"
)

// Leases keeps the host's locks in memory. It implements reconcile.Leases and is safe for concurrent use.
type Leases struct {
	mu    sync.Mutex
	locks []reconcile.Lock
}

var _ reconcile.Leases = (*Leases)(nil)

// Locks implements reconcile.Leases.
func (l *Leases) Locks(ctx context.Context) ([]reconcile.Lock, error) {
	if err := ended(ctx, "inmem: read lock"); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.locks), nil
}

// Set replaces the locks.
func (l *Leases) Set(locks ...reconcile.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks = slices.Clone(locks)
}

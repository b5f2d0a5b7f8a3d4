// Package timer waits by the wall clock.
package timer

import (
	"context"
	"time"
)

// Wait returns nil after d, or the context's error when that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

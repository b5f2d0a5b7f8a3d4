package reconcile

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// Pace keeps a rate of request units. It waits after each request for as long as its charge lasts at that rate, so the
// rate is never exceeded over any two requests, and nothing is to be remembered.
type Pace struct {
	// PerSecond is the rate; 0 means no bound.
	PerSecond int
	// Wait sleeps unless the context ends first.
	Wait func(ctx context.Context, d time.Duration) error
}

// Spend waits after a request with a charge in request units. Errors by kind: infrastructure, when the context ends.
func (p Pace) Spend(ctx context.Context, charge float64) error {
	if p.PerSecond <= 0 || charge <= 0 {
		return nil
	}
	if err := p.Wait(ctx, time.Duration(charge/float64(p.PerSecond)*float64(time.Second))); err != nil {
		return fault.Wrap(fault.Infrastructure, "reconcile: pace", "cancelled",
			"stopped while it kept its rate of request units", err)
	}
	return nil
}

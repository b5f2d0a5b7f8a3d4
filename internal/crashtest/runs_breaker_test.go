package crashtest

import (
	"context"
	"time"
)

// breaker is an instance's breaker, as runs see it.
type breaker struct{ i *instance }

func (b breaker) Permit(ctx context.Context) error {
	if !b.i.gate.View(ctx).State().Open() {
		return nil
	}
	return b.i.gate.Guard(ctx, true, func(ctx context.Context) error { return sink{b.i}.Probe(ctx) })
}

func (b breaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state := b.i.gate.View(ctx).State()
	return state.Since, !state.Open()
}

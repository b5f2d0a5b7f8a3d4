package run_test

import (
	"context"
	"time"

	"sqlwriter/internal/run"
)

// doorBreaker is an instance's breaker: what its Commit goes through, as runs see it.
type doorBreaker struct{ i *instance }

var _ run.Breaker = doorBreaker{}

func (b doorBreaker) Permit(ctx context.Context) error {
	if !b.i.gate.View(ctx).State().Open() {
		return nil
	}
	return b.i.gate.Guard(ctx, true, doorSink{b.i}.Probe)
}

func (b doorBreaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state := b.i.gate.View(ctx).State()
	return state.Since, !state.Open()
}

package app

import (
	"context"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// gateBreaker is run.Breaker over the gate.
type gateBreaker struct {
	gate *writer.Gate
	// probe asks SQL for something that concerns no document.
	probe func(ctx context.Context) error
}

var _ run.Breaker = gateBreaker{}

// Permit implements run.Breaker.
func (b gateBreaker) Permit(ctx context.Context) error {
	if !b.gate.View(ctx).State().Open() {
		return nil
	}
	return b.gate.Guard(ctx, true, b.probe)
}

// ClosedSince implements run.Breaker.
func (b gateBreaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state := b.gate.View(ctx).State()
	return state.Since, !state.Open()
}

package run_test

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// doorBreaker is an instance's breaker, as runs see it: what its Commit goes through, and what a test shuts for a while.
type doorBreaker struct{ i *instance }

var _ run.Breaker = doorBreaker{}

func (b doorBreaker) Permit(ctx context.Context) error {
	if wait := time.Until(b.i.w.shutEnd()); wait > 0 {
		return &fault.Error{
			Kind: fault.Infrastructure, Code: "breaker_open", Op: "test: breaker", Reason: "the breaker is open", RetryAfter: wait,
		}
	}
	if !b.i.gate.View(ctx).State().Open() {
		return nil
	}
	return b.i.gate.Guard(ctx, true, doorSink{b.i}.Probe)
}

func (b doorBreaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state, end := b.i.gate.View(ctx).State(), b.i.w.shutEnd()
	if end.After(state.Since) {
		return end, !state.Open() && !end.After(time.Now())
	}
	return state.Since, !state.Open()
}

// shut opens the breaker of all instances for a while.
func (w *world) shut(wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shutUntil = time.Now().Add(wait)
}

func (w *world) shutEnd() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shutUntil
}

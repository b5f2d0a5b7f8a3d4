package breaker

import (
	"context"
	"time"
)

// Pause stops the flow until Resume, for all instances. SQL is not asked, and the audit log gets the entry when SQL takes
// it. Errors by kind: infrastructure (code "control": the control document cannot be had), throttled, contention.
func (b *Breaker) Pause(ctx context.Context, by, why string) error {
	return b.say(ctx, input{event: paused, by: by, reason: why})
}

// Resume lets work pass again, whatever stopped it: the next request is a probe. Errors as Pause.
func (b *Breaker) Resume(ctx context.Context, by, why string) error {
	b.mu.Lock()
	b.failures, b.ofDocuments, b.cutOff = 0, false, false
	clear(b.alone)
	b.mu.Unlock()
	return b.say(ctx, input{event: resumed, by: by, reason: why})
}

// say is an operator's event.
func (b *Breaker) say(ctx context.Context, in input) error {
	now := b.o.Now()
	return b.shared.command(ctx, func(c *Control) bool { return c.take(in, now) })
}

// View is what Health and the operators see.
type View struct {
	// Control is the control document as it was last seen.
	Control Control
	// Lost says that the control document cannot be had: this is the instance's own copy.
	Lost bool
	// CutOff says that this instance alone cannot reach SQL.
	CutOff bool
}

// View looks at the control document, at most every few seconds, and never at SQL.
func (b *Breaker) View(ctx context.Context) View {
	b.shared.get(ctx)
	return b.Seen()
}

// Seen is View without asking anybody: what this instance saw last.
func (b *Breaker) Seen() View {
	c, had := b.shared.seen()
	return View{Control: c, Lost: !had, CutOff: b.isCutOff()}
}

// ClosedSince is since when SQL can be used without a break, as far as this process knows; false while it cannot.
func (b *Breaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state := b.state(ctx)
	if state.Stopped() {
		return time.Time{}, false
	}
	return state.ChangedAt, true
}

// Unaudited gives the changes of the breaker that the audit log does not have yet.
func (b *Breaker) Unaudited(ctx context.Context) []Transition {
	c, _ := b.shared.get(ctx)
	return c.Transitions
}

// Audited takes in that the audit log has these.
func (b *Breaker) Audited(ctx context.Context, told []Transition) {
	b.shared.change(ctx, func(c *Control) bool {
		n := len(c.Transitions)
		for _, t := range told {
			if len(c.Transitions) > 0 && c.Transitions[0].At.Equal(t.At) && c.Transitions[0].To == t.To && c.Transitions[0].By == t.By {
				c.Transitions = c.Transitions[1:]
			}
		}
		return len(c.Transitions) < n
	})
}

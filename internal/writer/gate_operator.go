package writer

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// Pause holds the gate open until Resume, for all instances; SQL is not asked. Errors by kind: infrastructure (code
// "control": the control document cannot be had), throttled, contention.
func (g *Gate) Pause(ctx context.Context, by, why string) error {
	return g.command(ctx, gateInput{event: gatePaused, by: by, reason: why})
}

// Resume closes the gate, whatever held it open: a pause, an outage, a systemic stop. What failed alike is forgotten.
// Errors as Pause.
func (g *Gate) Resume(ctx context.Context, by string) error {
	g.mu.Lock()
	g.suspects, g.own, g.failures, g.failedUntil = nil, GateState{}, 0, time.Time{}
	g.mu.Unlock()
	return g.command(ctx, gateInput{event: gateResumed, by: by})
}

// command is an operator's event: it counts for all instances or not at all.
func (g *Gate) command(ctx context.Context, in gateInput) error {
	for range storeTries {
		if !g.reload(ctx) {
			return fault.New(fault.Infrastructure, opGate, "control", "the control document cannot be had, so the other instances would not know")
		}
		g.mu.Lock()
		c, etag := g.control, g.etag
		g.mu.Unlock()
		c.Gate = next(c.Gate, in, g.o.Now())
		if in.event == gateResumed {
			c.Suspects = nil
		}
		written, err := g.write(ctx, c, etag)
		if err == nil {
			g.see(c, written)
			return nil
		}
		if !fault.Has(err, fault.Changed) {
			return err
		}
	}
	return fault.New(fault.Contention, opGate, "412", "the control document changed %d times meanwhile: try again", storeTries)
}

// View is what Health and the operators see of the gate.
type View struct {
	// Control is the control document as it was last seen.
	Control Control
	// Own is this instance's own gate, zero when it keeps none; Lost says that the control document cannot be had.
	Own  GateState
	Lost bool
}

// State is the gate that counts for this instance.
func (v View) State() GateState {
	if !v.Control.Gate.Open() && v.Own.Open() {
		return v.Own
	}
	return v.Control.Gate
}

// View looks at the gate. It asks the control document at most every few seconds, and never SQL.
func (g *Gate) View(ctx context.Context) View {
	g.look(ctx)
	return g.Seen()
}

// Seen is View without asking anybody: what this instance saw last.
func (g *Gate) Seen() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return View{Control: g.control, Own: g.own, Lost: g.lost}
}

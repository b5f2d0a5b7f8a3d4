package writer

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// update passes an event to the shared gate.
func (g *Gate) update(ctx context.Context, in gateInput) {
	now := g.o.Now()
	g.change(ctx, storeTries, func(c *Control) bool {
		after := next(c.Gate, in, now)
		if after == c.Gate {
			return false
		}
		c.Gate = after
		return true
	})
}

// change changes the control document, again when somebody else did. When it cannot be stored the change is this
// instance's alone. It reports whether fn's change was made.
func (g *Gate) change(ctx context.Context, tries int, fn func(*Control) bool) bool {
	for range tries {
		g.mu.Lock()
		c, etag := g.control, g.etag
		g.mu.Unlock()
		c.Suspects = slices.Clone(c.Suspects)
		if !fn(&c) {
			return false
		}
		written, err := g.write(ctx, c, etag)
		switch {
		case err == nil:
			g.see(c, written)
			return true
		case ctx.Err() != nil:
			return false // we were told to stop: that is not the control document's failure
		case fault.Has(err, fault.Changed) && g.reload(ctx):
		default:
			g.lose(err)
			g.mu.Lock()
			g.mute = true
			g.mu.Unlock()
			g.see(c, etag)
			return true
		}
	}
	return false
}

// write stores a control document.
func (g *Gate) write(ctx context.Context, c Control, etag string) (string, error) {
	if g.store == nil {
		return "", nil
	}
	c.AppVersion = g.o.Version
	return g.store.Store(ctx, c, etag)
}

// refresh loads the control document when the one at hand is too old.
func (g *Gate) refresh(ctx context.Context) {
	g.mu.Lock()
	fresh := g.store == nil || (!g.loaded.IsZero() && g.o.Now().Sub(g.loaded) < controlAge)
	g.mu.Unlock()
	if fresh {
		return
	}
	c, etag, err := g.store.Load(ctx)
	g.mu.Lock()
	mute, paused := g.mute, g.control.Gate.Paused
	g.mu.Unlock()
	if err == nil && mute {
		written, werr := g.write(ctx, c, etag)
		if werr != nil && c.Gate.Paused != paused {
			g.see(c, etag) // an operator's word is heard all the same
		}
		etag, err = written, werr
	}
	if err != nil {
		if ctx.Err() == nil {
			g.lose(err)
		}
		return
	}
	g.mu.Lock()
	found := g.lost
	g.lost, g.mute = false, false
	g.mu.Unlock()
	if found {
		g.o.Log.Info().Msg("gate: the control document can be had again")
	}
	g.see(c, etag)
}

// reload loads the control document now, and reports whether it could be had.
func (g *Gate) reload(ctx context.Context) bool {
	g.forget()
	g.refresh(ctx)
	return !g.Seen().Lost
}

// forget makes the next refresh load.
func (g *Gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loaded = time.Time{}
}

// lose says once that the control document cannot be had; what this instance knows is then its own gate.
func (g *Gate) lose(err error) {
	g.mu.Lock()
	was := g.lost
	g.lost, g.loaded = true, g.o.Now()
	g.mu.Unlock()
	if !was {
		g.o.Log.Warn().Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).
			Msg("gate: the control document cannot be had: this instance keeps its own gate until it can")
	}
}

// see takes over a control document and logs what is another gate than before, whoever changed it.
func (g *Gate) see(c Control, etag string) {
	g.mu.Lock()
	was := g.control.Gate
	g.control, g.etag, g.loaded = c, etag, g.o.Now()
	g.mu.Unlock()
	is := c.Gate
	same := is.Open() == was.Open() && is.Paused == was.Paused && is.Kind == was.Kind && is.Code == was.Code && is.Step <= was.Step
	if same || (!is.Open() && !was.Open()) { // only the limit has a history
		return
	}
	event, text := g.o.Log.Info(), "gate: closed"
	if is.Open() {
		event, text = g.o.Log.Warn(), "gate: open"
	}
	event.Str("kind", string(is.Kind)).Str("code", is.Code).Str("reason", is.Reason).Str("held_by", is.HeldBy).
		Int("limit", is.limit()).Time("open_until", is.OpenUntil).Msg(text)
}

package breaker

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// Pause stops the flow until Resume, for all instances. SQL is not asked, and the audit log gets the entry when SQL takes
// it. Errors by kind: infrastructure (code "control": the control document cannot be had), throttled, contention.
func (b *Breaker) Pause(ctx context.Context, by, why string) error {
	now := b.o.Now()
	return b.shared.command(ctx, func(c *Control) bool { return c.take(input{event: paused, by: by, reason: why}, now) })
}

// Resume lets work pass again, whatever stopped it: the next request is a probe. A database that is not the one that was written
// to last needs Force: the error then is a refusal (see Refused) that says what is at risk. Other errors as Pause.
func (b *Breaker) Resume(ctx context.Context, by, why string) error {
	now := b.o.Now()
	var risk error
	err := b.shared.command(ctx, func(c *Control) bool {
		if risk = nil; c.Breaker.RefusesDatabase() {
			risk = fault.New(fault.Infrastructure, op, c.Breaker.Code, "%s. %s", c.Breaker.Reason, Risk)
			return false
		}
		return c.take(input{event: resumed, by: by, reason: why}, now)
	})
	if err != nil || risk != nil {
		return cmp.Or(err, risk)
	}
	b.forget()
	return nil
}

// Risk is what a forced resume does, for people.
const Risk = "A forced resume (`resume --force`) accepts this database as it is: what was written to the one before since this one was " +
	"copied is missing here and is not written again by itself, although its documents say committed; the one before is refused from then on"

// Force is Resume that also accepts a database that is not the one that was written to last: its heartbeat gets a new id and a
// number above all that is known, and the control document gets both. The database is asked first: one that is the one that is
// known is not taken over. It answers whether there was one to accept. Errors as Pause, and those of Sink.TakeOver; a takeover that
// the control document did not learn of, or that met somebody else's (contention), counts for nothing: force again.
func (b *Breaker) Force(ctx context.Context, by, why string) (taken bool, err error) {
	c, had := b.shared.anew(ctx)
	if !had {
		return false, errControl()
	}
	if !c.Breaker.RefusesDatabase() {
		return false, b.Resume(ctx, by, why)
	}
	was, known := c.Heartbeat, b.known()
	in := input{event: resumed, by: by, reason: why}
	row, err := asked(ctx, known, b.o.Heartbeat)
	if Refused(err) {
		in.forced = fault.As(err).Reason
		row, err = asked(ctx, known, b.o.TakeOver)
		in.forced += ". Accepted as " + row.said()
	}
	if err != nil {
		return false, err
	}
	now, meanwhile := b.o.Now(), false
	err = b.shared.command(ctx, func(c *Control) bool {
		switch {
		case in.forced == "":
			c.noteHeartbeat(row)
		case c.Heartbeat != was:
			meanwhile = true
			return false
		default:
			c.Heartbeat = row
		}
		c.take(in, now)
		return true
	})
	if err == nil && meanwhile {
		err = fault.New(fault.Contention, op, "412", "somebody else resumed meanwhile: look at the status, and force again if it says so")
	}
	if err != nil {
		return false, err
	}
	b.forget()
	return in.forced != "", nil
}

// asked asks the database by Heartbeat or TakeOver.
func asked(ctx context.Context, known Heartbeat, how func(context.Context, Heartbeat) (Heartbeat, error)) (row Heartbeat, err error) {
	err = within(ctx, heartbeatTimeout, func(ctx context.Context) (err error) {
		row, err = how(ctx, known)
		return err
	})
	return row, err
}

// forget lets go of what was counted before a person's word.
func (b *Breaker) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.ofDocuments, b.cutOff = 0, false, false
	clear(b.alone)
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

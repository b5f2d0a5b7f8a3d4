package breaker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// Pause stops the flow for all instances until Resume. It does not use SQL; the audit log gets the entry later. Errors
// by kind: infrastructure (code "control": the control document is not available), throttled, contention.
func (b *Breaker) Pause(ctx context.Context, by, why string) error {
	now := b.o.Now()
	return b.shared.command(ctx, func(c *Control) bool {
		return c.apply(input{event: paused, by: by, reason: why}, now)
	})
}

// Resume ends a stop for any reason: the next request is a probe. A database that is not the one last written to needs
// Force; the error is then one that Refused recognises and names the risk. Other errors as Pause.
func (b *Breaker) Resume(ctx context.Context, by, why string) error {
	now := b.o.Now()
	var risk error
	err := b.shared.command(ctx, func(c *Control) bool {
		if risk = nil; c.Breaker.RefusesDatabase() {
			risk = fault.New(fault.Infrastructure, op, c.Breaker.Code, "%s. %s", c.Breaker.Reason, Risk)
			return false
		}
		return c.apply(input{event: resumed, by: by, reason: why}, now)
	})
	if err != nil || risk != nil {
		return cmp.Or(err, risk)
	}
	b.resetCounters()
	return nil
}

// Risk tells operators what a forced resume does.
const Risk = "A forced resume (`flow resume --force`) accepts this database as it is: what was written to the one before since this one was " +
	"copied is missing here, although its documents say committed. `status` then names the run that writes it again. " +
	"The one before is refused from then on"

// Force is Resume that also accepts a database that is not the one last written to, in every state of the flow: while
// it runs or is paused, nobody has looked at the database since it was replaced. The database must answer. Its
// heartbeat gets a new id and a number above all known ones, and the control document gets both. A database that turns
// out to be the known one is not taken over.
//
// It reports whether a database was taken over. Errors: those of Pause and of Options.TakeOver; contention when another
// operator forced meanwhile. After an error the takeover does not count: force again.
func (b *Breaker) Force(ctx context.Context, by, why string) (taken bool, err error) {
	c, available := b.shared.reload(ctx)
	if !available {
		return false, errControl()
	}
	was, known := c.Heartbeat, b.known()
	in := input{event: resumed, by: by, reason: why}
	row, err := queryHeartbeat(ctx, known, b.o.Heartbeat)
	if Refused(err) {
		in.forced, in.copied = fault.As(err).Reason, copiedAt(err)
		row, err = queryHeartbeat(ctx, known, b.o.TakeOver)
		in.forced += ". Accepted as " + row.describe()
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
		c.apply(in, now)
		return true
	})
	if err == nil && meanwhile {
		err = fault.New(fault.Contention, op, "412",
			"another operator resumed meanwhile: check the status, and force again if the database is still refused")
	}
	if err != nil {
		return false, err
	}
	b.resetCounters()
	return in.forced != "", nil
}

// queryHeartbeat calls Heartbeat or TakeOver with the heartbeat's timeout.
func queryHeartbeat(
	ctx context.Context, known Heartbeat, how func(context.Context, Heartbeat) (Heartbeat, error),
) (row Heartbeat, err error) {
	err = withTimeout(ctx, heartbeatTimeout, func(ctx context.Context) (err error) {
		row, err = how(ctx, known)
		return err
	})
	return row, err
}

// resetCounters resets the counters after an operator's command.
func (b *Breaker) resetCounters() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.ofDocuments, b.cutOff = 0, false, false
	clear(b.loneFailures)
}

// View is what Health and operators see.
type View struct {
	// Control is the control document as last seen.
	Control Control
	// Instances are the statuses of the instances of the last day; nil before they were read. Status is all of them in
	// one, with what this instance has not told yet.
	Instances []Status
	Status    Status
	// Lost means that the control document is not available: Control is this instance's own copy.
	Lost bool
	// CutOff means that only this instance cannot reach SQL.
	CutOff bool
}

// View reads the control document and the statuses if its copies are older than controlAge. It never uses SQL.
func (b *Breaker) View(ctx context.Context) View {
	_, available := b.shared.get(ctx)
	b.mu.Lock()
	old := b.o.Now().Sub(b.heardAt) >= controlAge
	b.mu.Unlock()
	if available && old {
		b.hear(ctx)
	}
	return b.Seen()
}

// Seen is View without a request: what this instance saw last.
func (b *Breaker) Seen() View {
	c, available := b.shared.cached()
	own := b.own()
	b.mu.Lock()
	heard := b.heard
	b.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(heard), func(s Status) bool { return s.Instance == own.Instance })
	v := View{
		Control: c, Instances: heard, Status: merged(append(others, own), b.o.Now()),
		Lost: !available, CutOff: b.isCutOff(),
	}
	if lost, is := b.shared.whyLost(); is && v.Status.Dependencies[controlIn].State != DependencyFailing {
		lost.By = b.o.Instance
		v.Status.Dependencies[controlIn] = lost
	}
	return v
}

// ClosedSince is since when SQL has been usable, as far as this process knows; false while it is not.
func (b *Breaker) ClosedSince(ctx context.Context) (time.Time, bool) {
	state := b.state(ctx)
	if state.Stopped() {
		return time.Time{}, false
	}
	return state.ChangedAt, true
}

// Unaudited returns the transitions that are not yet in the audit log.
func (b *Breaker) Unaudited(ctx context.Context) []Transition {
	c, _ := b.shared.get(ctx)
	return c.Transitions
}

// Audited removes transitions that are now in the audit log.
func (b *Breaker) Audited(ctx context.Context, logged []Transition) {
	b.shared.change(ctx, func(c *Control) bool {
		n := len(c.Transitions)
		for _, t := range logged {
			if len(c.Transitions) > 0 && c.Transitions[0].At.Equal(t.At) && c.Transitions[0].To == t.To &&
				c.Transitions[0].By == t.By {
				c.Transitions = c.Transitions[1:]
			}
		}
		return len(c.Transitions) < n
	})
}

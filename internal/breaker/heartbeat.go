package breaker

import (
	"context"
	"fmt"
	"time"

	"sqlwriter/internal/fault"
)

// Heartbeat is what the control document says of the database's heartbeat row; without number and id it says nothing.
type Heartbeat struct {
	// SysName is the environment whose row it is.
	SysName string `json:"-"`
	// DatabaseID is the id that the row was made with or taken over with: lower-case text. Another id is another database.
	DatabaseID string `json:"database_id,omitempty"`
	// Number is raised by each heartbeat, never lowered: a lower one is a database that went back. It is about when the row was
	// raised, in milliseconds since 1970 by the database's clock.
	Number int64 `json:"number,omitempty"`
}

// Codes of the refusals (infrastructure) of a database that is not the one that was written to last. Nothing was written.
const (
	// CodeWentBack: the row's number is lower than the one that is known.
	CodeWentBack = "database_went_back"
	// CodeOtherDatabase: the row has another id, or is not there.
	CodeOtherDatabase = "other_database"
)

// Refuse compares a database's row with what is known: nil, or an infrastructure error with one of the two codes. A row without
// a number is none; a known without a number is not compared.
func (known Heartbeat) Refuse(op string, row Heartbeat) error {
	switch {
	case known.Number == 0:
		return nil
	case row.DatabaseID != known.DatabaseID:
		return fault.New(fault.Infrastructure, op, CodeOtherDatabase,
			"the database's heartbeat is %s; the control document knows %s", row.said(), known.said())
	case row.Number < known.Number:
		return fault.New(fault.Infrastructure, op, CodeWentBack,
			"the database's heartbeat is %s; the control document knows %s", row.said(), known.said())
	}
	return nil
}

// said is a row for people: its number, the time that it stands for, and the id.
func (h Heartbeat) said() string {
	if h.Number == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s) of %s", h.Number, time.UnixMilli(h.Number).UTC().Format(time.RFC3339), h.DatabaseID)
}

// Refused reports whether an error says that the database is not the one that was written to last.
func Refused(err error) bool { return fault.IsDependency(err) && refusedCode(fault.CodeOf(err)) }

func refusedCode(code string) bool { return code == CodeWentBack || code == CodeOtherDatabase }

// known is what requests compare the database's row with: the control document's.
func (b *Breaker) known() Heartbeat {
	c, _ := b.shared.seen()
	known := c.Heartbeat
	known.SysName = b.o.SysName
	return known
}

// Tick is the recovery timer's heartbeat. One that fails is repeated until the breaker is open or this instance is cut off,
// so an outage without traffic is known within a tick. It refuses as Permit does; other errors by kind: infrastructure,
// throttled, quota.
func (b *Breaker) Tick(ctx context.Context) error {
	state := b.state(ctx)
	if state.Stopped() {
		return b.probe(ctx, state)
	}
	err := b.heartbeat(ctx, false)
	switch {
	case err == nil:
		if state.Name == HalfOpen {
			b.update(ctx, input{event: committed, by: b.o.Instance})
		}
	case ctx.Err() != nil, Refused(err), IsRefusal(err):
	case fault.KindOf(err) != fault.Infrastructure:
		b.update(ctx, b.failure(err, false))
	default:
		return b.confirm(ctx, err)
	}
	return err
}

// CutOff reports whether this instance alone cannot reach SQL. It asks by one heartbeat a minute.
func (b *Breaker) CutOff(ctx context.Context) bool {
	b.mu.Lock()
	cut, asked := b.cutOff, b.beatErr != nil && b.o.Now().Sub(b.beatAt) < probeEvery
	b.mu.Unlock()
	switch {
	case !cut || b.state(ctx).Stopped():
		return false
	case asked || b.heartbeat(ctx, false) != nil:
		return true
	}
	b.works(ctx)
	return false
}

// probe claims the probe of an open breaker, if it is due, and answers by its heartbeat.
func (b *Breaker) probe(ctx context.Context, state State) error {
	if !b.claim(ctx, state) {
		return b.refusal()
	}
	if err := b.heartbeat(ctx, true); err != nil {
		if ctx.Err() == nil && !Refused(err) && !IsRefusal(err) {
			b.update(ctx, b.failure(err, true))
		}
		return err
	}
	b.update(ctx, input{event: committed, by: b.o.Instance, probe: true})
	if state = b.seenState(); state.Stopped() {
		return b.refusal()
	}
	return nil
}

// claim takes the probe if it is due and nobody else has it.
func (b *Breaker) claim(ctx context.Context, state State) bool {
	now := b.o.Now()
	if !state.due(now, b.o.Instance) {
		return false
	}
	in := input{event: claimed, by: b.o.Instance, jitter: b.jitter()}
	return b.shared.change(ctx, func(c *Control) bool {
		if c.Breaker.Name != state.Name || !c.Breaker.due(now, b.o.Instance) {
			return false
		}
		c.Breaker = c.Breaker.next(in, now)
		return true
	})
}

// heartbeat raises the row and writes its number into the control document.
func (b *Breaker) heartbeat(ctx context.Context, probe bool) error {
	row, err := b.raise(ctx, probe)
	if err != nil || row.Number == 0 {
		return err
	}
	b.mu.Lock()
	applied := b.appliedAt
	b.mu.Unlock()
	b.shared.change(context.WithoutCancel(ctx), func(c *Control) bool {
		c.noteHeartbeat(row)
		c.noteApplied(b.o.Build, applied)
		return true
	})
	return nil
}

// raise raises the row. Whatever keeps it from committing is the database's: nothing of a document is in it. The control document
// is read anew before: who compares with an old one might raise a database that went back above what the others know. Who cannot
// read it raises nothing: its heartbeat only commits.
func (b *Breaker) raise(ctx context.Context, probe bool) (row Heartbeat, err error) {
	b.shared.anew(ctx)
	if s := b.seenState(); s.Stopped() && (!probe || s.HeldBy != b.o.Instance || s.due(b.o.Now(), b.o.Instance)) {
		return row, b.refusal() // somebody opened it since, or our claim is not in what was read: only the holder of a claim asks
	}
	known := b.known()
	compared := known
	if b.shared.isUnread() {
		compared = Heartbeat{SysName: known.SysName}
	}
	row, err = asked(ctx, compared, b.o.Heartbeat)
	if err == nil && row.Number > 0 {
		err = known.Refuse(op, row)
	}
	locked := fault.KindOf(err) == fault.Contention
	if err != nil && !fault.IsDependency(err) {
		err = fault.Wrap(fault.Infrastructure, op, fault.CodeOf(err), "the heartbeat was not committed", err)
	}
	if err != nil && ctx.Err() != nil {
		return row, err
	}
	b.mu.Lock()
	b.beatAt, b.beatErr, b.lockedAt = b.o.Now(), err, time.Time{}
	if locked {
		b.lockedAt = b.beatAt
	}
	if err == nil {
		b.cutOff = false
		if !b.ofDocuments {
			b.failures = 0
		}
	}
	b.mu.Unlock()
	if Refused(err) {
		b.refused(ctx, known, err, probe)
	}
	return row, err
}

// lockedOut reports whether the last heartbeat, not long ago, found its row locked.
func (b *Breaker) lockedOut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Now().Sub(b.lockedAt) < probeEvery
}

// appliedSince reports whether anybody is known to have applied something after a moment.
func (b *Breaker) appliedSince(ctx context.Context, at time.Time) bool {
	c, _ := b.shared.anew(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.LastApplied().After(at) || b.appliedAt.After(at)
}

// refused takes in that the database is not the one that is known: that opens the breaker at the first time. If the control
// document speaks of another one by now, an operator has accepted the database meanwhile, and the request came too late to know.
func (b *Breaker) refused(ctx context.Context, known Heartbeat, err error, probe bool) {
	b.shared.anew(ctx)
	if is := b.known(); is.DatabaseID == known.DatabaseID {
		b.update(ctx, b.failure(err, probe))
	}
}

// heartbeatSince is the answer of a heartbeat that ended after a moment and not long ago; one is run if there is none.
func (b *Breaker) heartbeatSince(ctx context.Context, begin time.Time) error {
	b.mu.Lock()
	known := b.beatAt.After(begin) && b.o.Now().Sub(b.beatAt) < heartbeatAge
	err := b.beatErr
	b.mu.Unlock()
	if known {
		return err
	}
	return b.heartbeat(ctx, false)
}

package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sqlwriter/internal/fault"
)

// Heartbeat identifies a state of the database: its heartbeat row. The zero value is unknown.
type Heartbeat struct {
	// SysName is the environment of the row.
	SysName string `json:"-"`
	// DatabaseID is the id from the row's creation or last takeover, in lower case. Another id means another database.
	DatabaseID string `json:"database_id,omitempty"`
	// Number grows with each heartbeat. A lower number means that the database went back in time. It is about the time
	// of the heartbeat, in milliseconds since 1970 by the database's clock.
	Number int64 `json:"number,omitempty"`
}

// Codes of the infrastructure errors for a database that is not the one last written to. Nothing was written.
const (
	// CodeWentBack: the row's number is lower than the known one.
	CodeWentBack = "database_went_back"
	// CodeOtherDatabase: the row has another id or does not exist.
	CodeOtherDatabase = "other_database"
)

// Refuse compares a database's row with the known one. It returns nil or an infrastructure error with one of the two
// codes. A row with number 0 counts as missing. If known has number 0, nothing is compared.
func (known Heartbeat) Refuse(op string, row Heartbeat) error {
	switch {
	case known.Number == 0:
		return nil
	case row.DatabaseID != known.DatabaseID:
		return fault.New(fault.Infrastructure, op, CodeOtherDatabase,
			"the database's heartbeat is %s; the control document knows %s", row.describe(), known.describe())
	case row.Number < known.Number:
		reason := fmt.Sprintf("the database's heartbeat is %s; the control document knows %s",
			row.describe(), known.describe())
		return fault.Wrap(fault.Infrastructure, op, CodeWentBack, reason, olderCopy{row})
	}
	return nil
}

// olderCopy is the cause of CodeWentBack: the row of the database that went back.
type olderCopy struct{ Heartbeat }

func (c olderCopy) Error() string { return "a copy of " + c.at().Format(time.RFC3339) }

func (h Heartbeat) at() time.Time { return time.UnixMilli(h.Number).UTC() }

// copiedAt is when a refused database was copied; zero if it is another one, of which nobody knows what it has.
func copiedAt(err error) time.Time {
	var c olderCopy
	if errors.As(err, &c) {
		return c.at()
	}
	return time.Time{}
}

// describe formats a row for people: number, time and database id.
func (h Heartbeat) describe() string {
	if h.Number == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s) of %s", h.Number, h.at().Format(time.RFC3339), h.DatabaseID)
}

// Refused reports whether an error means that the database is not the one last written to.
func Refused(err error) bool { return fault.IsDependency(err) && refusedCode(fault.CodeOf(err)) }

func refusedCode(code string) bool { return code == CodeWentBack || code == CodeOtherDatabase }

// known is the control document's heartbeat, which requests compare with the database's row.
func (b *Breaker) known() Heartbeat {
	c, _ := b.shared.cached()
	known := c.Heartbeat
	known.SysName = b.o.SysName
	return known
}

// Tick makes the recovery timer's heartbeat. A failed heartbeat is repeated until the breaker is open or this instance
// is cut off, so one tick detects an outage without traffic. Errors: those of Permit; infrastructure, throttled, quota.
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

// CutOff reports whether only this instance cannot reach SQL. It makes at most one heartbeat a minute.
func (b *Breaker) CutOff(ctx context.Context) bool {
	b.mu.Lock()
	cut, asked := b.cutOff, b.heartbeatErr != nil && b.o.Now().Sub(b.heartbeatAt) < probeEvery
	b.mu.Unlock()
	switch {
	case !cut || b.state(ctx).Stopped():
		return false
	case asked || b.heartbeat(ctx, false) != nil:
		return true
	}
	b.recordSuccess(ctx, answered)
	return false
}

// probe claims the probe of an open breaker if it is due, and returns the heartbeat's error.
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
	if state = b.cachedState(); state.Stopped() {
		return b.refusal()
	}
	return nil
}

// claim takes the probe if it is due and no other instance has it.
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

// raise raises the row. Every failure to commit is the database's, because no document is involved.
//
// The control document is read again first: comparing with an old copy could raise a database that went back above the
// number that others know. An instance that cannot read it only commits and does not raise the number.
func (b *Breaker) raise(ctx context.Context, probe bool) (row Heartbeat, err error) {
	b.shared.reload(ctx)
	if s := b.cachedState(); s.Stopped() && (!probe || s.HeldBy != b.o.Instance || s.due(b.o.Now(), b.o.Instance)) {
		return row, b.refusal() // only the holder of a claim may ask
	}
	known := b.known()
	compared := known
	if b.shared.isUnread() {
		compared = Heartbeat{SysName: known.SysName}
	}
	row, err = queryHeartbeat(ctx, compared, b.o.Heartbeat)
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
	b.heartbeatAt, b.heartbeatErr, b.lockedAt = b.o.Now(), err, time.Time{}
	if locked {
		b.lockedAt = b.heartbeatAt
	}
	if err == nil {
		b.cutOff = false
		if !b.ofDocuments {
			b.failures = 0
		}
	}
	b.mu.Unlock()
	if Refused(err) {
		b.openForRefusal(ctx, known, err, probe)
	}
	return row, err
}

// lockedOut reports whether the last heartbeat found its row locked less than probeEvery ago.
func (b *Breaker) lockedOut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Now().Sub(b.lockedAt) < probeEvery
}

// appliedSince reports whether any instance is known to have applied content after a time.
func (b *Breaker) appliedSince(ctx context.Context, at time.Time) bool {
	c, _ := b.shared.reload(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.LastApplied().After(at) || b.appliedAt.After(at)
}

// openForRefusal opens the breaker because the database is not the known one. It does nothing if an operator has
// accepted the database since the request began.
func (b *Breaker) openForRefusal(ctx context.Context, known Heartbeat, err error, probe bool) {
	b.shared.reload(ctx)
	if is := b.known(); is.DatabaseID == known.DatabaseID {
		b.update(ctx, b.failure(err, probe))
	}
}

// heartbeatSince is the result of a recent heartbeat that ended after begin. Without one it makes a heartbeat.
func (b *Breaker) heartbeatSince(ctx context.Context, begin time.Time) error {
	b.mu.Lock()
	known := b.heartbeatAt.After(begin) && b.o.Now().Sub(b.heartbeatAt) < heartbeatAge
	err := b.heartbeatErr
	b.mu.Unlock()
	if known {
		return err
	}
	return b.heartbeat(ctx, false)
}

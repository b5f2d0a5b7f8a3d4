package run

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/events"
)

// Executor executes runs in this process, without any message: it is manager and worker of the run. It uses the same
// rows, leases and audit entries, so that managers and workers continue a run that it left, and it continues theirs. It
// does not share MaxOutstanding, because it works on one batch at a time. It is safe for concurrent use.
type Executor struct{ worker }

// NewExecutor makes an Executor. It needs no queue.
func NewExecutor(p Ports, o Options) *Executor { return &Executor{worker{base{p, o.withDefaults()}}} }

// Executed is how an execution ended.
type Executed struct {
	// Busy: another live process has the run.
	Busy bool
	// Left says why the run was left before its end; empty when nothing is left to do.
	Left string
}

// Execute executes a running run until it has ended, the context has ended or the invocation's time is nearly over.
// While a dependency is away it waits. What it holds then is released. Errors by kind: internal, when the run failed,
// which is recorded.
func (e *Executor) Execute(ctx context.Context, id string) (Executed, error) {
	x := newExecution(e.worker, id)
	ctx = events.With(ctx, events.Fields{Run: id})
	for {
		done, err := x.once(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return Executed{Left: stopped}, nil //nolint:nilerr // the run goes on
		case err == nil || !transient(err):
			return done, err
		}
		wait := e.delayFor(err)
		e.log(ctx).Write(events.ExecutionWaits, events.Fields{AgainMS: wait.Milliseconds()}.Of(err))
		if e.timeLeft(ctx) < wait || e.o.Wait(ctx, wait) != nil {
			return Executed{Left: errorText(err)}, nil //nolint:nilerr // the run goes on
		}
	}
}

// stopped is Executed.Left of an execution whose context or time ended.
const stopped = "it was stopped, or its time is over"

// none is an epoch that no run has.
const none = -1

// execution is one run in one process.
type execution struct {
	worker
	id string
	// hand is the hand-off; nil while the run has none to do.
	hand *handOff
	// shown is the epoch in which this execution had the run last, released has its batches: they were released, even
	// if that could not be written.
	shown    int
	released map[string]Ticket
	// nextAt is the time of the next chunk by the rate.
	nextAt time.Time
}

func newExecution(w worker, id string) *execution {
	return &execution{worker: w, id: id, released: map[string]Ticket{}, shown: none}
}

// once executes the run until it must be left or a dependency fails.
func (x *execution) once(ctx context.Context) (Executed, error) {
	row, there, err := x.row(ctx, x.id)
	switch {
	case err != nil:
		return Executed{}, err
	case !there || row.SysName != x.o.SysName:
		return Executed{Left: "this environment has no such run"}, nil
	case row.Status != RunRunning:
		return Executed{}, nil
	case row.Cancel:
		x.completeRun(ctx, x.id)
		return Executed{}, nil
	}
	x.hand = nil
	if row.HandedOffAt.IsZero() {
		shown := none
		if row.Owner == x.workerRow("manager", row.ID).ID {
			shown = x.shown
		}
		if x.hand, err = x.claimRun(ctx, row, shown); err != nil {
			x.shown = row.Epoch + 1 // it may have been claimed all the same
			return Executed{}, err
		}
		if x.hand == nil {
			return Executed{Busy: true, Left: cmp.Or(row.HeldBy(), "another process has it")}, nil
		}
		x.shown, x.nextAt = x.hand.lease.Epoch, x.o.Now().Add(x.hand.run.NextIn)
	}
	left, err := x.safely(ctx)
	if x.hand != nil {
		lost, failed := x.hand.release(ctx, err)
		switch {
		case failed != nil:
			return Executed{}, failed
		case lost: // the run has ended, or its row says who has it
			return x.once(ctx)
		case takenOver(err): // a cancelled run takes no rows
			err = nil
		}
	}
	if err == nil && left == "" {
		x.completeRun(ctx, x.id)
	}
	return Executed{Left: left}, err
}

// safely turns a panic into an error: the heartbeat must end with the work, and the run must fail.
func (x *execution) safely(ctx context.Context) (left string, err error) {
	beating, stop := ctx, func() {}
	if x.hand != nil {
		beating, stop = x.hand.beat(ctx)
	}
	defer func() { stop() }()
	defer func() {
		if r := recover(); r != nil {
			err = x.log(ctx).Panic("run: execute", events.Fields{}, r)
		}
	}()
	if x.hand != nil {
		if err := x.hand.suspect(); err != nil {
			return "", err
		}
		if x.hand.source, err = newSource(x.base, x.hand.run); err != nil {
			return "", err
		}
	}
	for {
		done, left, err := x.step(ctx, beating)
		if done || left != "" || err != nil {
			return left, leaseError(beating, err)
		}
		if x.hand == nil { // the run has no manager any more, and a heartbeat would look like a loss
			stop()
			beating, stop = ctx, func() {}
		}
	}
}

// step commits an open batch, adds the next ones, or ends the hand-off. beating ends when another process has the run;
// a batch in work is finished all the same. left says why the run must be left.
func (x *execution) step(ctx, beating context.Context) (done bool, left string, err error) {
	if x.nearDeadline(beating) {
		return false, stopped, nil
	}
	cancel, open, err := x.state(beating)
	h := x.hand
	switch {
	case err != nil:
	case cancel:
		done = true
	case len(x.released) > 0:
		for id, t := range x.released { // one of them
			done, _, err = x.try(ctx, id, t)
			break
		}
	case open[PendingQueue]+open[PendingRetry]+open[Queued] > 0:
		done, err = x.next(ctx, open)
	case h != nil && !h.exhausted():
		switch wait := x.nextAt.Sub(x.o.Now()); {
		case wait > x.timeLeft(ctx):
			left = "its rate"
		case wait > 0:
			_ = x.o.Wait(beating, wait) // an ended context ends the next step
		default:
			err = h.addRows(beating)
			x.nextAt = x.o.Now().Add(h.run.NextIn)
		}
	case h != nil:
		if err = h.finish(beating); err == nil {
			x.hand = nil
		}
	case open[Processing] > 0:
		done, err = x.takeOver(ctx)
	default:
		done = true
	}
	return done, left, err
}

// state asks whether the run is to end, and counts its batches.
func (x *execution) state(ctx context.Context) (cancel bool, open map[BatchStatus]int, err error) {
	err = x.withStore(ctx, func(ctx context.Context) (err error) {
		if x.hand != nil {
			if cancel, err = x.p.Store.BeatRun(ctx, x.hand.lease); err != nil {
				return err
			}
		}
		open, err = x.p.Store.BatchCounts(ctx, x.id)
		return err
	})
	return cancel, open, err
}

// next commits a batch that waits for its message.
func (x *execution) next(ctx context.Context, open map[BatchStatus]int) (ended bool, err error) {
	for _, status := range []BatchStatus{PendingQueue, PendingRetry, Queued} {
		if open[status] == 0 {
			continue
		}
		found, err := x.list(ctx, status, 1)
		if err != nil || len(found) == 0 { // another process was faster
			return false, err
		}
		ended, _, err = x.try(ctx, found[0].ID, Ticket{Attempt: found[0].Attempt})
		return ended, err
	}
	return false, nil
}

// takeOver commits a batch whose worker is dead or released it. While all have live workers it waits.
func (x *execution) takeOver(ctx context.Context) (ended bool, err error) {
	found, err := x.list(ctx, Processing, BatchSize)
	if err != nil {
		return false, err
	}
	for _, batch := range found {
		if ended, took, err := x.try(ctx, batch.ID, Ticket{Attempt: batch.Attempt}); ended || took || err != nil {
			return ended, err
		}
	}
	_ = x.o.Wait(ctx, retryEvery) // an ended context ends the next step
	return false, nil
}

func (x *execution) list(ctx context.Context, status BatchStatus, limit int) (found []Batch, err error) {
	err = x.withStore(ctx, func(ctx context.Context) (err error) {
		found, err = x.p.Store.ListBatches(ctx, x.id, status, "", limit)
		return err
	})
	return found, err
}

// try claims a batch and commits it. ended: the run has ended or is to end. took: the claim succeeded.
func (x *execution) try(ctx context.Context, batch string, t Ticket) (ended, took bool, err error) {
	ctx = events.With(ctx, events.Fields{Batch: batch})
	c, err := x.claim(ctx, x.id, batch, t, map[string]any{"attempt": t.Attempt})
	if err != nil {
		return false, false, err
	}
	delete(x.released, batch)
	if c.Answer != Taken {
		return c.Answer == Ended, false, nil
	}
	_, released, failed := x.process(ctx, c, t.Epoch == 0)
	if released != nil {
		x.released[batch] = Ticket{Attempt: c.Batch.Attempt, Epoch: c.Lease.Epoch}
	}
	if h := x.hand; released == nil && h != nil && h.run.LostManagers > 0 { // a batch that ended is progress
		h.run.LostManagers = 0
		err = x.withStore(ctx, func(ctx context.Context) error {
			_, err := x.p.Store.MarkQueued(ctx, h.lease, []Batch{c.Batch})
			return err
		})
	}
	if failed != nil { // it is recorded, and concerns this batch alone
		x.log(ctx).Write(events.BatchFailed, events.Fields{}.Of(failed))
	}
	return false, true, cmp.Or(released, err)
}

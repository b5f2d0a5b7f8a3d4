package run

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// The bounds of one tick of the timer.
const (
	// mostSent is how many batches one tick takes from dead workers, or finds silent.
	maxRescued = 1000
	// mostRuns is how many open runs it looks at.
	maxOpenRuns = 100
	// sentAtOnce is how many messages go in one call.
	maxSend = 100
	// releasedFor is for how long a batch that was let go of waits for the message that was put off.
	releasedFor = 30 * time.Minute
	// runSilent is after how long without a word nobody goes on with a run. An owner that lives and could not let go of it puts a
	// message off; that comes sooner: by its wait, its jitter and the last heartbeat before, and a minute more.
	runSilent = maxDeferral + minDeferral + beatEvery + time.Minute
)

// Recovery finds what was left behind between the tables and the queue: a pass of the timer RecoverRetries. It is safe beside
// other instances: every change is compare-and-set.
type Recovery struct{ base }

// NewRecovery makes it.
func NewRecovery(p Ports, o Options) *Recovery { return &Recovery{base{p, o.withDefaults()}} }

// Recovered is what one tick found and did.
type Recovered struct {
	// Sent, Unsent and Failed count batches: whose message the queue took, did not take, and refused for the last time.
	Sent, Unsent, Failed int
	// Rescued and Workers count batches and workers that were dead; Silent batches whose message seems to be lost.
	Rescued, Workers, Silent int
	// Resumed counts runs whose manager was gone, Ended those that had come to their end.
	Resumed, Ended int
	// Off says for people why nothing was looked at; empty after a tick.
	Off string
}

// Run does one tick; while the breaker permits nothing, none. Errors by kind: infrastructure, throttled, quota, contention; the
// next tick goes on.
func (r *Recovery) Run(ctx context.Context) (done Recovered, err error) {
	if err := r.p.Breaker.Permit(ctx); err != nil {
		done.Off = reasonOf(err)
		return done, nil
	}
	for _, pass := range []func(context.Context, *Recovered) error{r.rescue, r.openRuns, r.sendPending} {
		if r.nearDeadline(ctx) {
			break
		}
		if passErr := pass(ctx, &done); err == nil {
			err = passErr
		}
	}
	return done, err
}

// lost takes batches from dead workers, and those whose message seems to be lost.
func (r *Recovery) rescue(ctx context.Context, done *Recovered) error {
	err := r.withStore(ctx, func(ctx context.Context) (err error) {
		done.Rescued, done.Workers, err = r.p.Store.Rescue(ctx, r.o.SysName, r.staleAfter(ctx, workerStale), r.staleAfter(ctx, releasedFor), maxRescued)
		return err
	})
	if err == nil {
		err = r.withStore(ctx, func(ctx context.Context) (err error) {
			done.Silent, err = r.p.Store.RequeueSilent(ctx, r.o.SysName, r.staleAfter(ctx, silentAfter), maxRescued)
			return err
		})
	}
	if done.Rescued+done.Silent == 0 {
		return err
	}
	auditErr := r.withStoreAlways(ctx, func(ctx context.Context) error {
		return r.p.Store.Write(ctx, Audit{
			Code: CodeBatchRecovered, Level: LevelWarn, By: r.o.Instance, Why: "batches were left behind and are sent again",
			Detail: detail(map[string]int{"dead": done.Rescued, "silent": done.Silent, "workers": done.Workers}),
		})
	})
	if err == nil {
		err = auditErr
	}
	return err
}

// runs ends those that have come to their end, and goes on with those whose manager is gone. A queue that is away keeps nobody
// from the former, and what it has against one message nobody from the others.
func (r *Recovery) openRuns(ctx context.Context, done *Recovered) error {
	var open []Run
	err := r.withStore(ctx, func(ctx context.Context) (err error) {
		open, err = r.p.Store.OpenRuns(ctx, r.o.SysName, maxOpenRuns)
		return err
	})
	for _, row := range open {
		if r.nearDeadline(ctx) {
			break
		}
		switch {
		case row.Cancel || !row.HandedOffAt.IsZero():
			if r.completeRun(ctx, row.ID) {
				done.Ended++
			}
		case row.NextIn <= 0 && row.Silent >= r.staleAfter(ctx, runSilent) && !fault.IsDependency(err):
			sendErr := send(ctx, r.p.RunQueue, []Outgoing{r.resumeMessage(row)})[0]
			if sendErr == nil {
				done.Resumed++
			} else if err == nil || fault.IsDependency(sendErr) {
				err = sendErr
			}
		}
	}
	return err
}

// again is the message for a run that nobody goes on with: its owner counts as lost. Its deferral is the minute, so that the
// queue does not take it for the message before; a second one in the same minute is a duplicate.
func (r *Recovery) resumeMessage(row Run) Outgoing {
	p := RunPayload(row)
	p.FirstDeferredAt = r.o.Now().Unix()
	p.Deferral = int(r.o.Now().Unix() / int64(time.Minute/time.Second))
	return p.Outgoing(0)
}

// messages sends what is to be sent again, run by run, as far as there is room.
func (r *Recovery) sendPending(ctx context.Context, done *Recovered) error {
	var batches []Batch
	err := r.withStore(ctx, func(ctx context.Context) error {
		all, err := r.p.Store.OnTheWay(ctx, r.o.SysName)
		if room := r.o.MaxOutstanding - all.Busy; err == nil && room > 0 {
			batches, err = r.p.Store.ToSend(ctx, r.o.SysName, room)
		}
		return err
	})
	for chunk := range slices.Chunk(batches, maxSend) {
		if err != nil || r.nearDeadline(ctx) {
			return err
		}
		var d delivered
		d, err = r.deliver(ctx, RunLease{}, chunk, true)
		done.Sent, done.Unsent, done.Failed = done.Sent+d.sent, done.Unsent+d.unsent, done.Failed+d.failed
		if fault.IsDependency(err) {
			return err // the others wait as they are: nothing is counted
		}
	}
	return err
}

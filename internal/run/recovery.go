package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// The bounds of one tick of the timer.
const (
	// maxRescued bounds the batches that one tick takes from dead workers, and those it finds lost.
	maxRescued  = 1000
	maxOpenRuns = 100
	// maxSend is how many messages go in one call.
	maxSend = 100
	// releasedFor is how long a released batch may wait for its deferred message.
	releasedFor = 30 * time.Minute
	// RunSilent is the silence after which no manager continues a run. A live owner that could not release the run
	// defers a message, which arrives sooner: after its wait, its jitter and the last heartbeat interval. One minute is
	// spare.
	RunSilent = maxDeferral + minDeferral + beatEvery + time.Minute
)

// Recovery continues what crashes and lost messages left behind, on a tick of the timer RecoverRetries. Instances may
// run it at the same time: every change is compare-and-set.
type Recovery struct{ base }

// NewRecovery makes a Recovery.
func NewRecovery(p Ports, o Options) *Recovery { return &Recovery{base{p, o.withDefaults()}} }

// RecoveredRuns is the result of one tick.
type RecoveredRuns struct {
	// Sent, Unsent and Failed count batches whose message was accepted, not accepted, or refused for the last time.
	Sent, Unsent, Failed int
	// Rescued and Workers count batches and workers that were dead; Silent counts batches whose message counts as lost.
	Rescued, Workers, Silent int
	// Resumed counts runs without a manager that got a message; Ended counts runs that ended.
	Resumed, Ended int
	// QueueAway: no message can be sent now, because the queue does not answer.
	QueueAway bool
	// Off says why the tick did nothing; empty otherwise.
	Off string
}

// Run does one tick, if the breaker permits it. Errors by kind: infrastructure, throttled, quota, contention; the next
// tick continues.
func (r *Recovery) Run(ctx context.Context) (done RecoveredRuns, err error) {
	if err := r.p.Breaker.Permit(ctx); err != nil {
		done.Off = reasonOf(err)
		return done, nil
	}
	for _, pass := range []func(context.Context, *RecoveredRuns) error{r.rescue, r.goOn, r.sendPending} {
		if r.nearDeadline(ctx) {
			break
		}
		err = cmp.Or(err, pass(ctx, &done))
	}
	return done, err
}

// rescue takes batches from dead workers, and those whose message counts as lost.
func (r *Recovery) rescue(ctx context.Context, done *RecoveredRuns) error {
	err := r.withStore(ctx, func(ctx context.Context) (err error) {
		done.Rescued, done.Workers, err = r.p.Store.Rescue(ctx, r.o.SysName, r.staleAfter(ctx, workerStale),
			r.staleAfter(ctx, releasedFor), maxRescued)
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
	return cmp.Or(err, r.withStoreAlways(ctx, func(ctx context.Context) error {
		return r.p.Store.Write(ctx, Audit{
			Action: CodeBatchRecovered, Level: LevelWarn, By: r.o.Instance,
			Why:    "batches without a live worker or message are sent again",
			Detail: detail(map[string]int{"dead": done.Rescued, "silent": done.Silent, "workers": done.Workers}),
		})
	}))
}

// goOn ends runs that are done, and sends a message for runs without a manager. A queue that is away does not
// prevent the former. A refusal of one message does not prevent the others.
func (r *Recovery) goOn(ctx context.Context, done *RecoveredRuns) error {
	open, err := r.openRuns(ctx)
	for _, row := range open {
		if r.nearDeadline(ctx) {
			break
		}
		switch {
		case row.Cancel || !row.HandedOffAt.IsZero():
			if r.completeRun(ctx, row.ID) {
				done.Ended++
			}
		case row.NextIn <= 0 && row.Silent >= r.staleAfter(ctx, RunSilent) && !fault.IsDependency(err):
			sendErr := send(ctx, r.p.RunQueue, []Outgoing{r.resumeMessage(row)})[0]
			done.QueueAway = done.QueueAway || fault.IsDependency(sendErr)
			if sendErr == nil {
				done.Resumed++
			} else if err == nil || fault.IsDependency(sendErr) {
				err = sendErr
			}
		}
	}
	return err
}

// resumeMessage is the message for a run whose manager is lost. Its deferral is the current minute, so that duplicate
// detection does not drop it; only a second one in the same minute is a duplicate.
func (r *Recovery) resumeMessage(row Run) Outgoing {
	p := RunPayload(row)
	p.FirstDeferredAt = r.o.Now().Unix()
	p.Deferral = int(r.o.Now().Unix() / int64(time.Minute/time.Second))
	return p.Outgoing(0)
}

// sendPending sends the messages of pending_retry batches within the limit of outstanding batches.
func (r *Recovery) sendPending(ctx context.Context, done *RecoveredRuns) error {
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
		d, err = r.deliver(ctx, RunLease{}, chunk)
		done.Sent, done.Unsent, done.Failed = done.Sent+d.sent, done.Unsent+d.unsent, done.Failed+d.failed
		done.QueueAway = done.QueueAway || d.queueAway
		if fault.IsDependency(err) {
			return err // the other messages would fail, too
		}
	}
	return err
}

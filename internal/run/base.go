package run

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/timer"
)

// The times of a run.
const (
	// beatEvery is how often managers and workers say that they live.
	beatEvery = 30 * time.Second
	// workerStale is after how long without a word a worker is dead (docs/requirements.md R75).
	workerStale = 10 * time.Minute
	// managerStale is the same for a manager: what it does is short and repeatable.
	managerStale = 2 * time.Minute
	// silentAfter is after how long a queued batch's message may count as lost (Store.RequeueSilent).
	silentAfter = 30 * time.Minute
	// busyWait is when a batch is looked at again that somebody else has.
	busyWait = 2 * time.Minute
	// firstWait and lastWait bound how long a message is put off while SQL is away.
	minDeferral = 30 * time.Second
	maxDeferral = 5 * time.Minute
	// storeTimeout bounds one use of the books, and sendTimeout one of the queue.
	storeTimeout = 30 * time.Second
	sendTimeout  = 30 * time.Second
	// stopBefore is how long before its deadline an invocation begins nothing more; giveBackBefore is how long before it one that
	// can do nothing at all gives its message back.
	stopBefore     = 45 * time.Second
	giveBackBefore = 10 * time.Second
	// retryFor is how long a message is held when the invocation has no deadline.
	retryFor = 4 * time.Minute
	// retryEvery is how often one that holds its message tries again.
	retryEvery = 15 * time.Second
	// mostLost is how many owners may be lost with a batch, or one after another with a run, before it is taken for the reason: they
	// may end for reasons of their own (ADR 0026).
	maxLostOwners = 10
	// never is longer than anything waits.
	never = 10 * 365 * 24 * time.Hour
	// storeTries is how often a use of the books is tried that loses races.
	storeTries = 4
)

// Ports are what runs work on.
type Ports struct {
	Store     Store
	Selection Selection
	Documents Documents
	Commit    Committer
	// Breaker is the one that Commit goes through: the books are in the same database.
	Breaker Breaker
	// RunQueue and BatchQueue bring messages to managers and workers.
	RunQueue, BatchQueue Queue
	Evidence             commit.Evidence
}

// Options configure the use cases. Zero values mean the defaults that are named.
type Options struct {
	// SysName is the environment; what belongs to another is refused.
	SysName string
	// Instance names this process.
	Instance string
	Log      zerolog.Logger
	// MaxOutstanding is how many batches of all runs of the environment may be on their way at once: 16.
	MaxOutstanding int
	// BatchSize is how many documents a batch has at most: BatchSize, which is the most. ChunkSize is how many documents get their
	// rows in one transaction, together with the watermark: 1,000. Smaller ones are for tests that break every step.
	BatchSize, ChunkSize int
	// Now is the clock, Draw gives jitter in [0,1), Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
	// Every calls f again and again at an interval until the returned function is called, which waits for the last call to end:
	// heartbeats.
	Every func(d time.Duration, f func()) (stop func())
}

func (o Options) withDefaults() Options {
	if o.MaxOutstanding == 0 {
		o.MaxOutstanding = 16
	}
	if o.BatchSize == 0 {
		o.BatchSize = BatchSize
	}
	if o.ChunkSize == 0 {
		o.ChunkSize = checkpointSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Draw == nil {
		o.Draw = rand.Float64
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	if o.Every == nil {
		o.Every = every
	}
	return o
}

// base is what all use cases of a run have.
type base struct {
	p Ports
	o Options
}

// withStore uses the books when the breaker permits it. A race that is lost is run again, unless somebody else has what it was about.
func (b base) withStore(ctx context.Context, use func(ctx context.Context) error) error {
	if err := b.p.Breaker.Permit(ctx); err != nil {
		return err
	}
	return b.withStoreAlways(ctx, use)
}

// withStoreAlways uses the books to end something that was begun: it is tried whatever the breaker says, and the breaker is told nothing.
func (b base) withStoreAlways(ctx context.Context, use func(ctx context.Context) error) error {
	var err error
	for try := range storeTries {
		if try > 0 {
			pause := time.Duration(float64(20*time.Millisecond<<try) * (1 + b.o.Draw()))
			if b.o.Wait(ctx, pause) != nil {
				return err
			}
		}
		err = within(ctx, storeTimeout, use)
		if fault.KindOf(err) != fault.Contention || fault.Has(err, fault.Changed) {
			return err
		}
	}
	return err
}

// within bounds a use.
func within(ctx context.Context, bound time.Duration, use func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return use(ctx)
}

// staleAfter is the silence after which somebody is taken for dead. Nobody is before the breaker has been closed for that long: who
// could not say a word is not dead.
func (b base) staleAfter(ctx context.Context, silence time.Duration) time.Duration {
	if since, closed := b.p.Breaker.ClosedSince(ctx); closed && b.o.Now().Sub(since) >= silence {
		return silence
	}
	return never
}

// lost reports whether somebody else has what a change was about.
func takenOver(err error) bool { return fault.Has(err, fault.Changed) }

// passing reports whether a failure says nothing of what was asked: the same may be asked again later.
func transient(err error) bool {
	return fault.IsDependency(err) || fault.KindOf(err) == fault.Contention
}

// send sends messages and answers one error for each.
func send(ctx context.Context, q Queue, messages []Outgoing) []error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	errs := q.Send(ctx, messages)
	for len(errs) < len(messages) { // an answer that is missing is none
		errs = append(errs, fault.New(fault.Internal, "run: send", "answers", "expected %d answers, found %d", len(messages), len(errs)))
	}
	return errs
}

// later puts a message off: it is sent again, invisible for a while, and this delivery is done with. Nothing is counted. If
// even that fails, the message is held as long as its lock is renewed, and then given back by an error of dependency scope.
func (b base) deferMessage(ctx context.Context, q Queue, p Payload, delay time.Duration, why string) (Handled, error) {
	next := p.nextDeferral(b.o.Now())
	done := Handled{Did: "deferred", Run: p.RunID, Batch: p.BatchID, Reason: why, Counts: map[string]int{
		"deferral": next.Deferral, "delay_s": int(delay / time.Second), "deferred_for_s": int(b.o.Now().Unix() - next.FirstDeferredAt),
	}}
	err := b.retryUntil(ctx, func(ctx context.Context) error {
		ctx = context.WithoutCancel(ctx) // an invocation whose time is over still owes its message to the queue
		return send(ctx, q, []Outgoing{next.Outgoing(delay)})[0]
	})
	if err != nil {
		done.Did = "held"
		return done, fault.Wrap(fault.Infrastructure, "run: defer", fault.CodeOf(err), "the message could not be put off ("+why+")", err)
	}
	return done, nil
}

// retryUntil tries something again and again until it succeeds or the invocation's time is nearly over: giving a message back at
// once would have it delivered again in milliseconds, ten times, and then it is a dead letter (docs/facts.md F50).
func (b base) retryUntil(ctx context.Context, try func(ctx context.Context) error) error {
	until := b.o.Now().Add(retryFor)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline.Add(-giveBackBefore)
	}
	for {
		err := try(ctx)
		if err == nil || ctx.Err() != nil || b.o.Now().Add(retryEvery).After(until) {
			if err != nil {
				b.waitUntil(ctx, until)
			}
			return err
		}
		if b.o.Wait(ctx, retryEvery) != nil {
			return err
		}
	}
}

// rest waits for the end of a hold.
func (b base) waitUntil(ctx context.Context, until time.Time) {
	if left := until.Sub(b.o.Now()); left > 0 {
		_ = b.o.Wait(ctx, left) // the context's end is as good
	}
}

// delayFor is how long a message is put off after a failure: until the breaker's next probe and a little, so that the messages do
// not all come before it.
func (b base) delayFor(err error) time.Duration {
	d := minDeferral
	if e := fault.As(err); e != nil && e.RetryAfter > d {
		d = e.RetryAfter
	}
	return min(maxDeferral, d) + time.Duration(b.o.Draw()*float64(minDeferral))
}

// nearDeadline reports whether the invocation's time is so short that nothing more is to be begun.
func (b base) nearDeadline(ctx context.Context) bool { return b.timeLeft(ctx) < 0 }

// timeLeft is for how long the invocation may still begin something; negative when it may not.
func (b base) timeLeft(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return -1
	}
	if deadline, ok := ctx.Deadline(); ok {
		return deadline.Sub(b.o.Now()) - stopBefore
	}
	return never
}

// worker makes the row of whoever claims something in this process. It has one name for each thing: a batch that is let go of and
// comes again a thousand times leaves one row. Its epoch tells one claim from another.
func (b base) workerRow(what, of string) Worker {
	sum := sha256.Sum256([]byte(b.o.Instance + "\n" + of))
	return Worker{ID: fmt.Sprintf("%s-%x", what, sum[:4]), Instance: b.o.Instance}
}

// heartbeat says every half minute that somebody lives, until stop, which waits for the last time to end. A panic costs that one
// heartbeat: nothing else would stop it before it ended the process with all its invocations. Who cannot say anything for long
// is taken for dead.
func (b base) heartbeat(what, id string, beat func()) (stop func()) {
	return b.o.Every(beatEvery, func() {
		defer func() {
			if r := recover(); r != nil {
				k.o.Log.Error().Str(what, id).Str("reason", errorText(fault.Panic("run: heartbeat", r))).Msg("a heartbeat failed")
			}
		}()
		beat()
	})
}

// codeEnvironment is the code of what belongs to another environment.
const codeEnvironment = "environment"

// checkEnvironment is the error about what belongs to another environment.
func (b base) checkEnvironment(p Payload) error {
	if p.SysName == b.o.SysName {
		return nil
	}
	return refused(codeEnvironment, "sys_name: expected %q, found %q: the message is of another environment", k.o.SysName, fault.Truncate(n.SysName, fault.MaxForeign))
}

// every is Options.Every by the wall clock.
func every(d time.Duration, f func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

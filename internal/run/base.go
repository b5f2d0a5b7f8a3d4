package run

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

const (
	// beatEvery is the interval of heartbeats.
	beatEvery = 30 * time.Second
	// workerStale is the silence after which a worker counts as dead (docs/requirements.md R75).
	workerStale = 10 * time.Minute
	// ManagerStale is the same for a manager, whose work is short and repeatable.
	ManagerStale = 2 * time.Minute
	// silentAfter is the age at which a queued batch's message may count as lost (Store.RequeueSilent).
	silentAfter = 30 * time.Minute
	// busyWait defers the message of a batch or run that has another owner.
	busyWait = 2 * time.Minute
	// minDeferral and maxDeferral bound how long a message is deferred while SQL is away.
	minDeferral = 30 * time.Second
	maxDeferral = 5 * time.Minute
	// storeTimeout bounds one use of the store, sendTimeout one use of the queue.
	storeTimeout = 30 * time.Second
	sendTimeout  = 30 * time.Second
	// An invocation starts no new work stopBefore its deadline. giveBackBefore its deadline it abandons a message that
	// it holds.
	stopBefore     = 45 * time.Second
	giveBackBefore = 10 * time.Second
	// retryFor bounds retryUntil when the invocation has no deadline.
	retryFor = 4 * time.Minute
	// retryEvery is the pause between two tries of retryUntil.
	retryEvery = 15 * time.Second
	// maxLostOwners is the number of lost owners that fails a batch or, in a row, a run. Owners may also die for other
	// reasons (ADR 0025).
	maxLostOwners = 10
	// never is longer than any wait.
	never = 10 * 365 * 24 * time.Hour
	// storeTries bounds how often a lost race is tried again.
	storeTries = 4
)

// Ports are the dependencies of the use cases.
type Ports struct {
	Store     Store
	Finder    commit.Finder
	Documents Documents
	Commit    Committer
	// Breaker is the one that Commit uses: the store is in the same database.
	Breaker Breaker
	// RunQueue carries the managers' messages, BatchQueue the workers'.
	RunQueue, BatchQueue Queue
	Evidence             commit.Evidence
}

// Options configure the use cases. Zero values mean the defaults.
type Options struct {
	// SysName is the environment. Messages and runs of others are refused.
	SysName string
	// Instance names this process.
	Instance string
	// Reader reads the documents.
	Reader invoice.Reader
	Log    zerolog.Logger
	// Kinds are the known kinds; default Kinds().
	Kinds KindTable
	// MaxOutstanding bounds the batches of all runs of the environment that are queued or processing; default 16. Tests
	// use other numbers.
	MaxOutstanding int
	// BatchSize bounds the documents of a batch; default and maximum 100. ChunkSize bounds the documents that get their
	// rows in one transaction; default 1,000. Tests use smaller sizes.
	BatchSize, ChunkSize int
	// Now is the clock. Draw returns jitter in [0,1). Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
	// Every calls f at an interval until stop, which waits for the last call to end.
	Every func(d time.Duration, f func()) (stop func())
}

// maxOutstanding is what four instances work on at once, with the four concurrent calls of host.json. More batches
// would only wait in the queue, and each message that waits is sent again while SQL is away
// (docs/adr/0025-runs-in-rows-and-messages.md).
const maxOutstanding = 16

func (o Options) withDefaults() Options {
	if o.Kinds == nil {
		o.Kinds = Kinds()
	}
	if o.MaxOutstanding == 0 {
		o.MaxOutstanding = maxOutstanding
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

// base holds the dependencies of every use case.
type base struct {
	p Ports
	o Options
}

// withStore uses the store if the breaker permits it. It retries a lost race, unless another owner has the row.
func (b base) withStore(ctx context.Context, use func(ctx context.Context) error) error {
	if err := b.p.Breaker.Permit(ctx); err != nil {
		return err
	}
	return b.withStoreAlways(ctx, use)
}

// row reads a run.
func (b base) row(ctx context.Context, id string) (row Run, there bool, err error) {
	err = b.withStore(ctx, func(ctx context.Context) (err error) {
		row, there, err = b.p.Store.Run(ctx, id)
		return err
	})
	return row, there, err
}

// openRuns reads the environment's running runs, oldest first.
func (b base) openRuns(ctx context.Context) (open []Run, err error) {
	err = b.withStore(ctx, func(ctx context.Context) (err error) {
		open, err = b.p.Store.OpenRuns(ctx, b.o.SysName, maxOpenRuns)
		return err
	})
	return open, err
}

// withStoreAlways uses the store whatever the breaker says, to finish work that was started. It reports nothing to the
// breaker.
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

func within(ctx context.Context, bound time.Duration, use func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return use(ctx)
}

// staleAfter returns the silence after which an owner counts as dead. No owner does before the breaker has been closed
// for as long: heartbeats cannot be written while it is open.
func (b base) staleAfter(ctx context.Context, silence time.Duration) time.Duration {
	if since, closed := b.p.Breaker.ClosedSince(ctx); closed && b.o.Now().Sub(since) >= silence {
		return silence
	}
	return never
}

// takenOver reports whether another owner has the row that a change was for.
func takenOver(err error) bool { return fault.Has(err, fault.Changed) }

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	return fault.IsDependency(err) || fault.KindOf(err) == fault.Contention
}

// send sends messages and returns one error for each.
func send(ctx context.Context, q Queue, messages []Outgoing) []error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	errs := q.Send(ctx, messages)
	for len(errs) < len(messages) { // a missing answer is a failure
		errs = append(errs,
			fault.New(fault.Internal, "run: send", fault.CodeBug, "expected %d answers, found %d",
				len(messages), len(errs)))
	}
	return errs
}

// deferMessage sends a copy of the message that is invisible for delay, so that this delivery can be completed. It
// counts nothing. If the queue does not take the copy, the message is held as long as its lock is renewed. Then an
// error of dependency scope abandons it.
func (b base) deferMessage(ctx context.Context, q Queue, p Payload, delay time.Duration, why string) (Handled, error) {
	next := p.nextDeferral(b.o.Now())
	done := Handled{Did: "deferred", Run: p.RunID, Batch: p.BatchID, Reason: why, Counts: map[string]int{
		"deferral": next.Deferral, "delay_s": int(delay / time.Second),
		"deferred_for_s": int(b.o.Now().Unix() - next.FirstDeferredAt),
	}}
	err := b.retryUntil(ctx, func(ctx context.Context) error {
		ctx = context.WithoutCancel(ctx) // the message must be deferred even after the deadline
		return send(ctx, q, []Outgoing{next.Outgoing(delay)})[0]
	})
	if err != nil {
		done.Did = "held"
		return done,
			fault.Wrap(fault.Infrastructure, "run: defer", fault.CodeOf(err),
				"the message could not be deferred ("+why+")", err)
	}
	return done, nil
}

// deferOr defers the message after a transient failure. Another failure abandons it.
func (b base) deferOr(ctx context.Context, q Queue, p Payload, err error) (Handled, error) {
	if transient(err) {
		return b.deferMessage(ctx, q, p, b.delayFor(err), errorText(err))
	}
	return Handled{Did: "failed", Run: p.RunID, Batch: p.BatchID}, err
}

// retryUntil repeats try until it succeeds or the invocation's time is nearly over. An abandoned message would return
// within milliseconds and be a dead letter after ten deliveries (docs/facts.md F50).
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

func (b base) waitUntil(ctx context.Context, until time.Time) {
	if left := until.Sub(b.o.Now()); left > 0 {
		_ = b.o.Wait(ctx, left) // an ended context ends the wait, too
	}
}

// delayFor returns how long a message is deferred after a failure: until the breaker's next probe, plus jitter.
func (b base) delayFor(err error) time.Duration {
	d := minDeferral
	if e := fault.As(err); e != nil && e.RetryAfter > d {
		d = e.RetryAfter
	}
	return min(maxDeferral, d) + time.Duration(b.o.Draw()*float64(minDeferral))
}

// nearDeadline reports whether the invocation must start nothing more.
func (b base) nearDeadline(ctx context.Context) bool { return b.timeLeft(ctx) < 0 }

// timeLeft returns for how long the invocation may start work; negative when it may not.
func (b base) timeLeft(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return -1
	}
	if deadline, ok := ctx.Deadline(); ok {
		return deadline.Sub(b.o.Now()) - stopBefore
	}
	return never
}

// workerRow returns the worker row of a claim in this process. The row is the same for every claim of the same batch or
// run, so many releases leave one row. The epoch distinguishes the claims.
func (b base) workerRow(what, of string) Worker {
	sum := sha256.Sum256([]byte(b.o.Instance + "\n" + of))
	return Worker{ID: fmt.Sprintf("%s-%x", what, sum[:4]), Instance: b.o.Instance}
}

// heartbeat calls beat at an interval until stop, which waits for the last call. The context ends when another owner
// has the row. A panic costs one heartbeat; unrecovered it would end the process with all its invocations.
func (b base) heartbeat(
	ctx context.Context, beat func(ctx context.Context) error,
) (beating context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := b.o.Every(beatEvery, func() {
		defer func() {
			if r := recover(); r != nil {
				_ = b.log(ctx).Panic("run: heartbeat", events.Fields{}, r)
			}
		}()
		if err := b.withStore(ctx, beat); takenOver(err) {
			cancel(err)
		}
	})
	return ctx, func() { end(); cancel(nil) }
}

// log is the log of the work that ctx belongs to.
func (b base) log(ctx context.Context) events.Log { return events.For(ctx, b.o.Log) }

const codeEnvironment = "environment"

func (b base) checkEnvironment(p Payload) error {
	if p.SysName == b.o.SysName {
		return nil
	}
	return invalidMessage(codeEnvironment, "sys_name: expected %q, found %q: the message is of another environment",
		b.o.SysName, fault.Truncate(p.SysName, fault.MaxForeign))
}

// every implements Options.Every by the wall clock.
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

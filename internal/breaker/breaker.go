package breaker

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/timer"
)

// Codes of the breaker's own errors.
const (
	CodeOpen    = "breaker_open"
	CodePaused  = "paused"
	CodeControl = "control"
	op          = "breaker"
)

const (
	// requestTimeout bounds one request for documents.
	requestTimeout = 30 * time.Second
	// heartbeatTimeout bounds the heartbeat.
	heartbeatTimeout = 10 * time.Second
	// heartbeatAge is for how long the answer of a heartbeat is believed.
	heartbeatAge = 5 * time.Second
	// rowFor is how far two failures in a row may lie apart.
	rowFor = 15 * time.Minute
	// repeatEvery is how often a heartbeat is repeated that failed. Five take 40 s: in that time others write something, if it
	// is this instance alone that cannot reach SQL.
	repeatEvery = 10 * time.Second
)

// Options configure a Breaker. Zero values mean the defaults that are named.
type Options struct {
	// Instance names this process among the others of the app; random by default.
	Instance string
	// Build names what writes: the version and the settings file. Proof is per build.
	Build string
	// SysName is the environment, whose row of the table heartbeat is raised.
	SysName string
	// Heartbeat raises that row, commits nothing else and answers it; for a shadow it is an empty preview, which answers nothing.
	Heartbeat func(ctx context.Context, known Heartbeat) (Heartbeat, error)
	// TakeOver sets that row above what is known, on an operator's word.
	TakeOver func(ctx context.Context, known Heartbeat) (Heartbeat, error)
	// MaxPoisonPerHour is how many poison messages the app makes in an hour: 100; negative means none.
	MaxPoisonPerHour int
	// Log gets every change with its reason.
	Log zerolog.Logger
	// Now is the clock, Draw gives jitter in [0,1), Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
}

// lone is a document that failed like an outage by itself: how often, and when last.
type lone struct {
	times int
	at    time.Time
}

// Breaker stands between everything that uses SQL and SQL. It is safe for concurrent use.
type Breaker struct {
	shared *shared
	o      Options
	// serial is held by the one request that passes after throttling.
	serial chan struct{}

	mu sync.Mutex
	// failures counts those in a row since failingSince. ofDocuments says that some were of documents alone, which a
	// committed heartbeat does not end.
	failures     int
	failingSince time.Time
	ofDocuments  bool
	// lastFailure is the latest of them.
	lastFailure time.Time
	// alone are the documents that failed like an outage by themselves, since anything was applied.
	alone map[string]lone
	// cutOff says that this instance fails in a row while others apply.
	cutOff bool
	// beatAt and beatErr are the last heartbeat and its answer.
	beatAt  time.Time
	beatErr error
	// lockedAt is when the last heartbeat found its row locked; zero when it had another answer.
	lockedAt time.Time
	// appliedAt and failing wait to be written into the control document, which was done at notedAt; loggedMass are the codes
	// that were told.
	appliedAt, notedAt time.Time
	failing            []Failing
	loggedMass         map[string]time.Time
	// pills are the poison messages that were counted, with their hour.
	pills map[string]time.Time
}

// New makes the breaker of one instance. A nil store means that there is only this instance.
func New(store ControlStore, o Options) *Breaker {
	if o.Instance == "" {
		o.Instance = "instance-" + strconv.FormatUint(rand.Uint64(), 36)
	}
	if o.MaxPoisonPerHour == 0 {
		o.MaxPoisonPerHour = 100
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
	return &Breaker{
		shared: &shared{store: store, version: o.Build, log: o.Log, now: o.Now}, o: o,
		serial: make(chan struct{}, 1), loggedMass: map[string]time.Time{}, alone: map[string]lone{}, pills: map[string]time.Time{},
	}
}

// Permit answers nil when what concerns no document may use SQL now. While the breaker is open it refuses with an
// infrastructure error (code "breaker_open" or "paused", RetryAfter = the wait). When a probe is due it makes it and
// answers by it. What SQL then answers to the caller is reported to nobody.
func (b *Breaker) Permit(ctx context.Context) error {
	state := b.state(ctx)
	if !state.Stopped() {
		return nil
	}
	return b.probe(ctx, state)
}

// MaxDocuments is how many documents one request may have now. It refuses as Permit does.
func (b *Breaker) MaxDocuments(ctx context.Context) (int, error) {
	if err := b.Permit(ctx); err != nil {
		return 0, err
	}
	return b.seenState().MaxDocuments(), nil
}

// Do makes one request for n documents and takes in how it ended. use has at most the time that is given, half a minute
// by default. Errors: the refusal of Permit; the request's own. An infrastructure error carries condition
// fault.OthersAnswered when a heartbeat was committed after it: then the request itself may be what fails, and it should be
// divided. After any other infrastructure error the heartbeat is repeated until it is known whether this is an outage.
func (b *Breaker) Do(ctx context.Context, n int, most time.Duration, use func(ctx context.Context, known Heartbeat) error) error {
	if b.o.Now().Before(b.state(ctx).SerialUntil) {
		select {
		case b.serial <- struct{}{}:
			defer func() { <-b.serial }()
		case <-ctx.Done():
			return fault.Wrap(fault.Infrastructure, op, "cancelled", "stopped while another request was under way", ctx.Err())
		}
	}
	state := b.state(ctx) // after the wait: the request before may have opened it
	switch {
	case state.Stopped(), n > state.MaxDocuments():
		return b.refusal()
	case state.Name == HalfOpen && state.Limit == 1 && !b.claim(ctx, state):
		return b.refusal()
	}
	if most == 0 {
		most = requestTimeout
	}
	begin, known := b.o.Now(), b.known()
	err := within(ctx, most, func(ctx context.Context) error { return use(ctx, known) })
	if n == 1 {
		begin = b.o.Now() // what decides about a document alone must not be older than its failure
	}
	return b.took(ctx, begin, known, err)
}

// took takes in how a request for documents ended, and answers its error.
func (b *Breaker) took(ctx context.Context, begin time.Time, known Heartbeat, err error) error {
	switch {
	case !fault.IsDependency(err):
		b.works(ctx)
		return err
	case ctx.Err() != nil && fault.KindOf(err) == fault.Infrastructure:
		return err // we were told to stop: that is nobody's failure
	case Refused(err):
		b.refused(ctx, known, err, false)
		return err
	case fault.KindOf(err) != fault.Infrastructure:
		b.update(ctx, b.failure(err, false))
		return err
	case b.heartbeatSince(ctx, begin) == nil:
		return othersAnswered(err)
	}
	_ = b.confirm(ctx, err) // the request failed whatever is found out now
	return err
}

// othersAnswered marks an infrastructure error of a request after which a heartbeat was committed.
func othersAnswered(err error) error {
	e := fault.As(err)
	if e == nil {
		return err
	}
	marked := *e
	marked.Condition = fault.OthersAnswered
	return &marked
}

// confirm repeats a heartbeat that failed until one is committed, the breaker is open, or this instance is cut off. It answers
// the last error, nil when one was committed, or when only its row is locked: documents are applied beside it.
func (b *Breaker) confirm(ctx context.Context, err error) error {
	begin := b.o.Now()
	for ctx.Err() == nil && !b.seenState().Stopped() {
		if b.lockedOut() && b.appliedSince(ctx, begin) {
			return nil
		}
		b.fails(ctx, err, false)
		if b.seenState().Stopped() || b.isCutOff() || b.o.Wait(ctx, repeatEvery) != nil {
			return err
		}
		if beat := b.heartbeat(ctx, false); beat == nil {
			return nil
		}
	}
	return err
}

// mostProbes is how often one document may open a half-open breaker again: the documents behind it have their turn then.
const mostProbes = 3

// FailedAlone takes in that a document failed like an outage, by itself, while others were answered. One document is no
// outage; each further one counts as a failure of the database, until something is applied. It answers whether the document
// is to be put off. If not, the failure is the database's: it opened a half-open breaker again, and nothing is recorded.
func (b *Breaker) FailedAlone(ctx context.Context, document string, err error) (putOff bool) {
	c, _ := b.shared.get(ctx)
	now, applied := b.o.Now(), c.LastApplied()
	b.mu.Lock()
	maps.DeleteFunc(b.alone, func(_ string, l lone) bool { return l.at.Before(applied) })
	times := b.alone[document].times + 1
	b.alone[document] = lone{times, now}
	others := len(b.alone) > 1
	b.mu.Unlock()
	half := b.seenState().Name == HalfOpen
	switch {
	case half && others && times <= mostProbes:
		b.update(ctx, b.failure(err, false))
		return false
	case half: // it is not idle: a heartbeat alone must not close it
		b.shared.change(ctx, func(c *Control) bool {
			c.Breaker.ChangedAt = now
			return c.Breaker.Name == HalfOpen
		})
	case times == 1 && others:
		b.fails(ctx, err, true)
	}
	return true
}

// works takes in an answer of SQL to a request for documents.
func (b *Breaker) works(ctx context.Context) {
	b.mu.Lock()
	b.failures, b.ofDocuments = 0, false
	was := b.cutOff
	b.cutOff = false
	b.mu.Unlock()
	if was {
		b.o.Log.Info().Msg("breaker: this instance reaches SQL again")
	}
	if b.seenState().Name == HalfOpen {
		b.update(ctx, input{event: answered, by: b.o.Instance})
	}
}

// fails counts a failure, and opens the breaker when that is enough.
func (b *Breaker) fails(ctx context.Context, err error, ofDocument bool) {
	now := b.o.Now()
	b.mu.Lock()
	if now.Sub(b.lastFailure) > rowFor {
		b.failures = 0 // an instance that nobody asked for hours knows nothing of what was between
	}
	b.lastFailure = now
	if b.failures++; b.failures == 1 {
		b.failingSince = now
	}
	b.ofDocuments = b.ofDocuments || ofDocument
	enough, since := b.failures >= failuresToOpen && now.Sub(b.failingSince) >= failingFor, b.failingSince
	b.mu.Unlock()
	if !enough && b.seenState().Name != HalfOpen {
		return
	}
	if c, _ := b.shared.anew(ctx); c.othersReach(b.o.Instance).After(since) {
		b.mu.Lock()
		was := b.cutOff
		b.cutOff = true
		b.mu.Unlock()
		if !was {
			b.o.Log.Warn().Str("code", fault.CodeOf(err)).
				Msg("breaker: this instance cannot reach SQL while others write: it leaves its documents to them")
		}
		return
	}
	b.update(ctx, b.failure(err, false))
}

func (b *Breaker) isCutOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cutOff
}

// failure makes the event of an error.
func (b *Breaker) failure(err error, probe bool) input {
	in := input{
		event: failed, by: b.o.Instance, kind: fault.KindOf(err), code: fault.CodeOf(err), probe: probe, jitter: b.jitter(),
	}
	if e := fault.As(err); e != nil {
		in.reason, in.retryAfter = e.Reason, e.RetryAfter
	}
	return in
}

func (b *Breaker) jitter() time.Duration {
	return time.Duration(b.o.Draw() * float64(probeJitter))
}

// update passes an event to the shared state.
func (b *Breaker) update(ctx context.Context, in input) {
	now := b.o.Now()
	ctx = context.WithoutCancel(ctx) // what was seen is told, even when the invocation's time is over
	b.shared.change(ctx, func(c *Control) bool { return c.take(in, now) })
}

// state is the breaker's, at most a few seconds old.
func (b *Breaker) state(ctx context.Context) State {
	c, _ := b.shared.get(ctx)
	return c.Breaker
}

func (b *Breaker) seenState() State {
	c, _ := b.shared.seen()
	return c.Breaker
}

// refusal is the error for those who may not pass.
func (b *Breaker) refusal() error {
	state, now := b.seenState(), b.o.Now()
	err := fault.New(fault.Infrastructure, op, CodeOpen, "%s", state.Describe(now))
	err.RetryAfter = max(0, state.NextProbe().Sub(now))
	if state.Name == Paused {
		err.Code, err.RetryAfter = CodePaused, probeEvery
	}
	return err
}

// IsRefusal reports whether an error is the breaker's: SQL was not asked.
func IsRefusal(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Op == op && (e.Code == CodeOpen || e.Code == CodePaused)
}

// within gives a use of SQL its time.
func within(ctx context.Context, bound time.Duration, use func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return use(ctx)
}

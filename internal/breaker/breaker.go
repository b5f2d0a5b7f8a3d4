package breaker

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/events"
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
	// heartbeatAge is how long the result of a heartbeat is valid.
	heartbeatAge = 5 * time.Second
	// streakGap is the longest gap between two failures that count as consecutive.
	streakGap = 15 * time.Minute
	// repeatEvery is the wait before a failed heartbeat is repeated. Five take 40 s, enough for other instances to
	// write something if only this one cannot reach SQL.
	repeatEvery = 10 * time.Second
)

// Options configure a Breaker. Each zero value means the default that its comment names.
type Options struct {
	// Instance identifies this process among the instances of the app; random by default.
	Instance string
	// Build identifies the version and the settings file. Proof is per build.
	Build string
	// SysName is the environment; it selects the row of the table heartbeat.
	SysName string
	// Heartbeat raises that row, commits nothing else and returns the row. In shadow mode it is an empty preview and
	// returns a zero Heartbeat.
	Heartbeat func(ctx context.Context, known Heartbeat) (Heartbeat, error)
	// TakeOver sets that row above the known one, at an operator's request.
	TakeOver func(ctx context.Context, known Heartbeat) (Heartbeat, error)
	// Serial has this instance make one request for documents at a time (ONE_WRITER).
	Serial bool
	// MaxPoisonPerHour is the most poison messages of the app per hour. The default is 100; negative means zero.
	MaxPoisonPerHour int
	// Log gets every change of state with its reason.
	Log zerolog.Logger
	// Now is the clock. Draw gives jitter in [0,1). Wait sleeps until d has passed or the context ends.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
}

// loneFailure counts how often a document failed like an outage while others were answered, and when last.
type loneFailure struct {
	times int
	at    time.Time
}

// Breaker is the circuit breaker of one instance. It is safe for concurrent use.
type Breaker struct {
	shared *shared
	o      Options
	// serial admits one request at a time.
	serial chan struct{}

	mu sync.Mutex
	// failures counts consecutive failures since failingSince. A committed heartbeat resets them only if ofDocuments is
	// false, that is, if none came from FailedAlone.
	failures     int
	failingSince time.Time
	ofDocuments  bool
	lastFailure  time.Time
	// loneFailures has the documents that FailedAlone reported since content was last applied.
	loneFailures map[string]loneFailure
	// cutOff is true while this instance fails and others apply.
	cutOff bool
	// heartbeatAt and heartbeatErr are the time and the result of the last heartbeat.
	heartbeatAt  time.Time
	heartbeatErr error
	// lockedAt is when the last heartbeat found its row locked; zero after any other result.
	lockedAt time.Time
	// appliedAt is not yet in the control document. notedAt is its last update.
	appliedAt, notedAt time.Time
	// failing, committed and answers are this instance's status, told at toldAt. toldFailing has the dependencies that
	// it then named as failing.
	failing     []Failing
	committed   int64
	answers     map[string]Dependency
	toldAt      time.Time
	toldFailing map[string]bool
	// heard are the statuses of all instances, as of heardAt; nil before they were read.
	heard   []Status
	heardAt time.Time
	// poisonCounted maps each counted poison message to its hour.
	poisonCounted map[string]time.Time
	// skipped is not yet in the control document; skippedAt is its last update.
	skipped   []Skipped
	skippedAt time.Time
}

// New makes the breaker of one instance. A nil store means that this is the only instance.
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
		shared: &shared{store: store, version: o.Build, log: o.Log, now: o.Now}, o: o, answers: map[string]Dependency{},
		toldFailing: map[string]bool{},
		serial:      make(chan struct{}, 1), loneFailures: map[string]loneFailure{},
		poisonCounted: map[string]time.Time{},
	}
}

// Permit reports whether work that concerns no document may use SQL now. When a probe is due, Permit makes it and
// returns its result. The caller's own use of SQL is not reported to the breaker.
//
// Errors: infrastructure, code "breaker_open" or "paused", with RetryAfter, while the breaker is open; the heartbeat's
// error when the probe fails.
func (b *Breaker) Permit(ctx context.Context) error {
	state := b.state(ctx)
	if !state.Stopped() {
		return nil
	}
	return b.probe(ctx, state)
}

// MaxDocuments is the most documents that one request may have now. Errors as Permit.
func (b *Breaker) MaxDocuments(ctx context.Context) (int, error) {
	if err := b.Permit(ctx); err != nil {
		return 0, err
	}
	return b.cachedState().MaxDocuments(), nil
}

// Parallel reports whether one batch may have several requests under way: the breaker is closed, and this instance may
// make several at a time.
func (b *Breaker) Parallel() bool {
	state := b.cachedState()
	return state.name() == Closed && !b.serially(state)
}

// TakesTurns reports whether a request first waits for another writer (ONE_WRITER).
func (b *Breaker) TakesTurns() bool { return b.o.Serial }

// serially reports whether this instance makes one request for documents at a time: always, or soon after throttling.
func (b *Breaker) serially(s State) bool { return b.o.Serial || b.o.Now().Before(s.SerialUntil) }

// Do makes one request for n documents and records its result. After an infrastructure error it repeats the heartbeat
// until it is clear whether this is an outage. Errors as Ask.
func (b *Breaker) Do(
	ctx context.Context, n int, timeout time.Duration, request func(ctx context.Context, known Heartbeat) error,
) error {
	err := b.Ask(ctx, n, timeout, request)
	b.Confirm(ctx, err)
	return err
}

// Ask is Do that leaves it to the caller to Confirm the error: one who has other requests under way stops them first. A
// timeout of 0 means 30 s.
//
// Errors: those of Permit, and the request's own. An infrastructure error has condition fault.OthersAnswered when a
// heartbeat was committed after it: the request itself may be the cause and should be divided.
func (b *Breaker) Ask(
	ctx context.Context, n int, timeout time.Duration, request func(ctx context.Context, known Heartbeat) error,
) error {
	if b.serially(b.state(ctx)) {
		select {
		case b.serial <- struct{}{}:
			defer func() { <-b.serial }()
		case <-ctx.Done():
			return fault.Wrap(fault.Infrastructure, op, "cancelled",
				"stopped while another request was under way", ctx.Err())
		}
	}
	state := b.state(ctx) // the request before this one may have opened it
	switch {
	case state.Stopped(), n > state.MaxDocuments():
		return b.refusal()
	case state.Name == HalfOpen && state.Limit == 1 && !b.claim(ctx, state):
		return b.refusal()
	}
	if timeout == 0 {
		timeout = requestTimeout
	}
	begin, known := b.o.Now(), b.known()
	err := withTimeout(ctx, timeout, func(ctx context.Context) error { return request(ctx, known) })
	if n == 1 {
		begin = b.o.Now() // a heartbeat must begin after the failure to say anything about a single document
	}
	return b.handleResult(ctx, begin, known, err)
}

// handleResult records the result of a request for documents and returns its error.
func (b *Breaker) handleResult(ctx context.Context, begin time.Time, known Heartbeat, err error) error {
	switch {
	case !fault.IsDependency(err): // SQL answered
		b.recordSuccess(ctx, answered)
		return err
	case IsRefusal(err): // another writer's turn
		b.recordSuccess(ctx, waited)
		return err
	case ctx.Err() != nil && fault.KindOf(err) == fault.Infrastructure:
		return err // the caller stopped: not a failure
	case Refused(err):
		b.openForRefusal(ctx, known, err, false)
		return err
	case fault.KindOf(err) != fault.Infrastructure:
		b.update(ctx, b.failure(err, false))
		return err
	case b.heartbeatSince(ctx, begin) == nil:
		return othersAnswered(err)
	}
	return err
}

// Confirm repeats the heartbeat after an error of Ask that looks like an outage, until it is clear whether it is one.
// Other errors, and nil, need none.
func (b *Breaker) Confirm(ctx context.Context, err error) {
	if fault.KindOf(err) == fault.Infrastructure && !fault.Has(err, fault.OthersAnswered) && !IsRefusal(err) &&
		!Refused(err) {
		_ = b.confirm(ctx, err) // the request has failed, whatever the heartbeat says
	}
}

// othersAnswered adds the condition to an infrastructure error after which a heartbeat was committed.
func othersAnswered(err error) error {
	e := fault.As(err)
	if e == nil {
		return err
	}
	marked := *e
	marked.Condition = fault.OthersAnswered
	return &marked
}

// confirm repeats a failed heartbeat until one commits, the breaker opens, or this instance is cut off. It returns the
// last error, or nil once a heartbeat has committed. It also returns nil when only the row is locked and documents are
// applied meanwhile.
func (b *Breaker) confirm(ctx context.Context, err error) error {
	begin := b.o.Now()
	for ctx.Err() == nil && !b.cachedState().Stopped() {
		if b.lockedOut() && b.appliedSince(ctx, begin) {
			return nil
		}
		b.recordFailure(ctx, err, false)
		if b.cachedState().Stopped() || b.isCutOff() || b.o.Wait(ctx, repeatEvery) != nil {
			return err
		}
		if beat := b.heartbeat(ctx, false); beat == nil {
			return nil
		}
	}
	return err
}

// maxReopens is how often one document may reopen a half-open breaker, so that the documents behind it get a try.
const maxReopens = 3

// FailedAlone records that a single document failed like an outage while others were answered. One such document is not
// an outage. Each further one counts as a failure of the database until content is applied.
//
// It reports whether the document should be postponed. If not, the failure reopened a half-open breaker, and the
// document records nothing.
func (b *Breaker) FailedAlone(ctx context.Context, document string, err error) (putOff bool) {
	c, _ := b.shared.get(ctx)
	now, applied := b.o.Now(), c.LastApplied()
	b.mu.Lock()
	maps.DeleteFunc(b.loneFailures, func(_ string, l loneFailure) bool { return l.at.Before(applied) })
	times := b.loneFailures[document].times + 1
	b.loneFailures[document] = loneFailure{times, now}
	others := len(b.loneFailures) > 1
	b.mu.Unlock()
	half := b.cachedState().Name == HalfOpen
	switch {
	case half && others && times <= maxReopens:
		b.update(ctx, b.failure(err, false))
		return false
	case half: // not idle: a heartbeat alone must not close it
		b.shared.change(ctx, func(c *Control) bool {
			c.Breaker.ChangedAt = now
			return c.Breaker.Name == HalfOpen
		})
	case times == 1 && others:
		b.recordFailure(ctx, err, true)
	}
	return true
}

// recordSuccess records that SQL answered a request for documents: it is answered, or has waited in vain.
func (b *Breaker) recordSuccess(ctx context.Context, is event) {
	b.mu.Lock()
	b.failures, b.ofDocuments = 0, false
	was := b.cutOff
	b.cutOff = false
	b.mu.Unlock()
	if was {
		events.For(ctx, b.o.Log).Write(events.InstanceBack, events.Fields{})
	}
	if b.cachedState().Name == HalfOpen {
		b.update(ctx, input{event: is, by: b.o.Instance})
	}
}

// recordFailure counts a failure and opens the breaker at the threshold. Requests that fail together count once, so
// that many at once give other instances no less time than one.
func (b *Breaker) recordFailure(ctx context.Context, err error, ofDocument bool) {
	now := b.o.Now()
	b.mu.Lock()
	if now.Sub(b.lastFailure) > streakGap {
		b.failures = 0 // not consecutive: an idle instance knows nothing about the time between
	}
	if together := !ofDocument && b.failures > 0 && now.Sub(b.lastFailure) < repeatEvery; !together {
		b.lastFailure = now
		if b.failures++; b.failures == 1 {
			b.failingSince = now
		}
	}
	b.ofDocuments = b.ofDocuments || ofDocument
	enough, since := b.failures >= failuresToOpen && now.Sub(b.failingSince) >= minFailingSpan, b.failingSince
	b.mu.Unlock()
	if !enough && b.cachedState().Name != HalfOpen {
		return
	}
	if c, _ := b.shared.reload(ctx); c.lastReachedByOthers(b.o.Instance).After(since) {
		b.mu.Lock()
		was := b.cutOff
		b.cutOff = true
		b.mu.Unlock()
		if !was {
			events.For(ctx, b.o.Log).Write(events.InstanceCutOff, events.Fields{}.Of(err))
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
		event: failed, by: b.o.Instance, kind: fault.KindOf(err), code: fault.CodeOf(err),
		probe: probe, jitter: b.jitter(),
	}
	if e := fault.As(err); e != nil {
		in.reason, in.retryAfter = e.Reason, e.RetryAfter
	}
	return in
}

func (b *Breaker) jitter() time.Duration {
	return time.Duration(b.o.Draw() * float64(probeJitter))
}

// update applies an event to the shared state.
func (b *Breaker) update(ctx context.Context, in input) {
	now := b.o.Now()
	ctx = context.WithoutCancel(ctx) // the event counts even after the invocation has ended
	b.shared.change(ctx, func(c *Control) bool { return c.apply(in, now) })
}

// state is the shared state, at most controlAge old.
func (b *Breaker) state(ctx context.Context) State {
	c, _ := b.shared.get(ctx)
	return c.Breaker
}

func (b *Breaker) cachedState() State {
	c, _ := b.shared.cached()
	return c.Breaker
}

// refusal is the error of a caller that the breaker does not permit.
func (b *Breaker) refusal() error {
	state, now := b.cachedState(), b.o.Now()
	err := fault.New(fault.Infrastructure, op, CodeOpen, "%s", state.Describe(now.UTC()))
	err.Condition, err.RetryAfter = fault.Waits, max(0, state.OpenUntil.Sub(now))
	if state.Name == Paused {
		err.Code, err.RetryAfter = CodePaused, probeEvery
	}
	return err
}

// IsRefusal reports whether the breaker refused, or SQL did because it is another writer's turn: nothing was done.
func IsRefusal(err error) bool { return fault.Has(err, fault.Waits) }

// AnotherWrites reports whether SQL refused because it is another writer's turn (ONE_WRITER).
func AnotherWrites(err error) bool {
	return IsRefusal(err) && fault.CodeOf(err) != CodeOpen && fault.CodeOf(err) != CodePaused
}

func withTimeout(ctx context.Context, bound time.Duration, use func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return use(ctx)
}

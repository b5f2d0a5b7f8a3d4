package writer

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
)

// Codes of the gate's own errors.
const (
	codeGate   = "gate_open"
	codePaused = "paused"
	opGate     = "writer: gate"
)

const (
	// controlAge is how long a loaded control document is believed.
	controlAge = 5 * time.Second
	// ownerWait is how much longer than others the owner of a failed probe waits before it claims another: an instance
	// that alone cannot reach SQL does not keep the others shut.
	ownerWait = 10 * time.Second
	// twice is the time within which an instance that opened the gate again, while others succeeded, keeps its own.
	twice = 5 * time.Minute
	// storeTries bounds the writing of a control document that others write too.
	storeTries = 8
	// sqlTimeout bounds one request: a server that took the request and says nothing holds nobody for longer.
	sqlTimeout = 30 * time.Second
	// probeTimeout bounds the neutral statement.
	probeTimeout = 10 * time.Second
)

// GateOptions configure a Gate. Zero values mean the defaults that are named.
type GateOptions struct {
	// Instance names this process among the others of the app; random by default.
	Instance string
	// Version is the build's: another one closes a systemic gate.
	Version string
	// MaxPoisonPerHour is how many poison pills the app makes in an hour: 100; negative means none.
	MaxPoisonPerHour int
	// Log gets every transition with its reason.
	Log zerolog.Logger
	// Now is the clock.
	Now func() time.Time
	// Wait waits for a probe that is due within patience, so that it is made on time and not when the host offers a batch again.
	// Nil: nobody waits.
	Wait func(ctx context.Context, d time.Duration) error
}

// patience is the longest wait for a probe: the host's own pause between two offers.
const patience = hostPause

// Gate stands between everything that uses SQL and SQL. Its state is shared by all instances through the control document;
// an instance that cannot read that, or that alone cannot reach SQL, keeps a gate of its own and says so. It is safe for
// concurrent use.
type Gate struct {
	store ControlStore
	o     GateOptions

	mu sync.Mutex
	// control is the document as it was last seen at loaded; etag is empty when it is not there.
	control Control
	etag    string
	loaded  time.Time
	// lost says that the control document cannot be had; mute that it could be read and not be written.
	lost, mute bool
	// own is this instance's own gate while the shared one is closed by others that succeed.
	own GateState
	// failures counts infrastructure failures in a row since failingSince; answeredAt is when this instance was last
	// answered.
	failures                 int
	failingSince, answeredAt time.Time
	// openedAt is when this instance last opened the shared gate; failedUntil is what the gate waits for since its probe
	// failed, and it waits ownerWait longer than that.
	openedAt, failedUntil time.Time
	// appliedAt is when this instance last wrote a document; suspects wait to be noted.
	appliedAt time.Time
	suspects  []Suspects
	// pills are those that were counted, with the hour in which; failedProbes the documents whose request failed as a probe
	// although the neutral statement had been answered: the next probe tries others.
	pills        map[string]time.Time
	failedProbes map[string]bool
}

// NewGate makes the gate of one instance. A nil store means that there is only this instance.
func NewGate(store ControlStore, o GateOptions) *Gate {
	if o.Instance == "" {
		o.Instance = "instance-" + strconv.FormatUint(rand.Uint64(), 36)
	}
	if o.MaxPoisonPerHour == 0 {
		o.MaxPoisonPerHour = 100
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gate{store: store, o: o, pills: map[string]time.Time{}, failedProbes: map[string]bool{}}
}

// Admission is leave to use SQL. It is safe for concurrent use.
type Admission struct {
	gate *Gate
	// Limit is the most documents of one request.
	Limit int
	// Systemic says that this is the probe of a systemic gate: a document that was not tried before is worth more.
	Systemic bool

	// beside says that the gate was open and let this pass without the claim of its probe.
	beside bool

	mu    sync.Mutex
	probe bool // this is a claimed probe that has had no answer yet
}

// Admit asks for leave to use SQL. While the gate is open that is refused with an infrastructure error (code "gate_open",
// or "paused", with the wait in RetryAfter), but for the one that claims the probe when it is due: neutral, which concerns
// no document, is run first, and its failure is answered.
func (g *Gate) Admit(ctx context.Context, neutral func(context.Context) error) (*Admission, error) {
	state, mine := g.await(ctx)
	return g.admit(ctx, state, mine, neutral)
}

// admit is Admit at a gate that was looked at.
func (g *Gate) admit(ctx context.Context, state GateState, mine bool, neutral func(context.Context) error) (*Admission, error) {
	if !state.Open() {
		return &Admission{gate: g, Limit: state.limit()}, nil
	}
	if !g.claim(ctx, state, mine) {
		return nil, g.refusal()
	}
	a := &Admission{gate: g, Limit: probeLimit, probe: true}
	if state.Kind == fault.Systemic {
		a.Limit, a.Systemic = systemicLimit, true
	}
	if err := bounded(ctx, probeTimeout, neutral); err != nil {
		return nil, g.saw(ctx, a, err, false)
	}
	return a, nil
}

// await looks at the gate, and again when a probe is nearly due and the wait for it is over.
func (g *Gate) await(ctx context.Context) (state GateState, mine bool) {
	state, mine = g.look(ctx)
	rest := state.OpenUntil.Sub(g.o.Now())
	if g.o.Wait == nil || state.Paused || !state.Open() || rest <= 0 || rest > patience || g.o.Wait(ctx, rest) != nil {
		return state, mine
	}
	g.forget()
	return g.look(ctx)
}

// refuses answers the refusal that Admit would answer now; nil when that may let pass.
func (g *Gate) refuses(ctx context.Context) error {
	if state, _ := g.look(ctx); state.Open() && !g.nearly(state) {
		return g.refusal()
	}
	return nil
}

// nearly reports whether a probe is due, or so soon that Admit waits for it.
func (g *Gate) nearly(state GateState) bool {
	now := g.o.Now()
	return state.Due(now) || (g.o.Wait != nil && !state.Paused && state.OpenUntil.Sub(now) <= patience)
}

// Guard runs something that uses SQL and concerns no document, if the gate lets it. Its success closes a gate that an
// outage or throttling had opened; one that a full database had opened only if it writes.
//
// It never claims a probe that it cannot answer: whoever could would be refused for a minute, and so for ever where it comes first
// each time. When such a probe is due it passes without the claim (docs/adr/0028).
func (g *Gate) Guard(ctx context.Context, writes bool, use func(context.Context) error) error {
	state, mine := g.await(ctx)
	if state.Due(g.o.Now()) && !state.answeredBy(writes) {
		return g.beside(ctx, use)
	}
	used := false
	a, err := g.admit(ctx, state, mine, func(ctx context.Context) error {
		used = true
		return use(ctx)
	})
	if err != nil {
		return err
	}
	if !used {
		err = use(ctx)
	}
	return g.saw(ctx, a, err, writes)
}

// GuardEnd is Guard for a write that says how something ended: what the gate had let begin, or a message that is over whatever
// the gate says, as a dead letter is. A systemic gate lets it pass at any time: SQL answers, no document is written, and nothing
// is left behind for those who look for the dead.
func (g *Gate) GuardEnd(ctx context.Context, use func(context.Context) error) error {
	if state, _ := g.look(ctx); state.Reachable() && !state.Paused {
		return g.beside(ctx, use)
	}
	return g.Guard(ctx, true, use)
}

// beside runs something although the gate is open. It closes nothing; its failures count as at a closed gate.
func (g *Gate) beside(ctx context.Context, use func(context.Context) error) error {
	a := &Admission{gate: g, beside: true}
	return g.saw(ctx, a, use(ctx), false)
}

// Apply makes one request and tells the gate how it went.
func (a *Admission) Apply(ctx context.Context, sink Sink, items []Item, mode Mode) ([]Outcome, error) {
	if err := a.still(ctx); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	err := bounded(ctx, sqlTimeout, func(ctx context.Context) (err error) {
		outcomes, err = sink.Apply(ctx, items, mode)
		return err
	})
	switch {
	case err == nil && mode != Preview:
		a.gate.wrote(ctx, a, items, outcomes)
	case fault.IsDependency(err) && a.pending():
		a.gate.probedWith(items)
	}
	return outcomes, a.gate.saw(ctx, a, err, mode != Preview)
}

// mostFailedProbes bounds what is remembered of failed probes.
const mostFailedProbes = 1000

// probedWith remembers the documents of a failed probe.
func (g *Gate) probedWith(items []Item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.failedProbes) > mostFailedProbes {
		clear(g.failedProbes)
	}
	for _, it := range items {
		g.failedProbes[it.DocumentID] = true
	}
}

// Neutral makes a statement that concerns no document.
func (a *Admission) Neutral(ctx context.Context, heartbeat func(context.Context) error) error {
	if err := a.still(ctx); err != nil {
		return err
	}
	err := bounded(ctx, probeTimeout, heartbeat)
	if err == nil {
		a.gate.works()
		return nil
	}
	return a.gate.saw(ctx, a, err, false)
}

// bounded gives a use of SQL its time.
func bounded(ctx context.Context, bound time.Duration, use func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return use(ctx)
}

// still refuses when the gate has opened since, for all but the probe.
func (a *Admission) still(ctx context.Context) error {
	if a.pending() {
		return nil
	}
	if state, _ := a.gate.look(ctx); state.Open() {
		return a.gate.refusal()
	}
	return nil
}

// pending reports whether this is a claimed probe that has had no answer yet.
func (a *Admission) pending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.probe
}

// passed ends the probe: it was answered.
func (a *Admission) passed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probe = false
}

// look answers the gate that counts for this instance: the shared one while that is open, else its own. mine tells which.
func (g *Gate) look(ctx context.Context) (state GateState, mine bool) {
	g.refresh(ctx)
	g.mu.Lock()
	shared, own := g.control.Gate, g.own
	g.mu.Unlock()
	if shared.Kind == fault.Systemic && shared.Open() && shared.OpenedBy != g.o.Version {
		g.update(ctx, gateInput{event: gateDeployed, by: g.o.Instance, version: g.o.Version})
		g.mu.Lock()
		shared = g.control.Gate
		g.mu.Unlock()
	}
	if !shared.Open() && own.Open() {
		return own, true
	}
	return shared, false
}

// refusal is the error for those who may not pass.
func (g *Gate) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, now := g.control.Gate, g.o.Now()
	if !state.Open() {
		state = g.own
	}
	refusal := fault.New(fault.Infrastructure, opGate, codeGate, "the gate is %s", state.Describe(now))
	refusal.RetryAfter = max(0, state.OpenUntil.Sub(now))
	if state.Paused {
		refusal.Code, refusal.RetryAfter = codePaused, probeEvery
	}
	return refusal
}

// claim takes the probe if it is due and nobody else has it.
func (g *Gate) claim(ctx context.Context, state GateState, mine bool) bool {
	now := g.o.Now()
	in := gateInput{event: gateClaimed, by: g.o.Instance}
	g.mu.Lock()
	if mine {
		defer g.mu.Unlock()
		if !g.own.Due(now) {
			return false
		}
		g.own = next(g.own, in, now)
		return true
	}
	early := state.OpenUntil.Equal(g.failedUntil) && now.Before(g.failedUntil.Add(ownerWait))
	g.mu.Unlock()
	if early || !state.Due(now) {
		return false
	}
	return g.change(ctx, 1, func(c *Control) bool {
		if !c.Gate.Due(now) {
			return false
		}
		c.Gate = next(c.Gate, in, now)
		return true
	})
}

// works notes that the dependency answered.
func (g *Gate) works() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures, g.answeredAt = 0, g.o.Now()
}

// saw tells the gate how a use of SQL ended, and hands the error on. wrote says that an answer proves that writing works.
func (g *Gate) saw(ctx context.Context, a *Admission, err error, wrote bool) error {
	if err != nil && ctx.Err() != nil && fault.KindOf(err) == fault.Infrastructure {
		return err // we were told to stop: that is nobody's failure
	}
	if !fault.IsDependency(err) {
		g.works()
		g.answered(ctx, a, err == nil && wrote)
		return err
	}
	in := gateInput{
		event: gateFails, kind: fault.KindOf(err), code: fault.CodeOf(err), by: g.o.Instance, version: g.o.Version, probe: a.pending(), beside: a.beside,
	}
	if e := fault.As(err); e != nil {
		in.reason, in.retryAfter = e.Reason, e.RetryAfter
	}
	if !IsGate(err) && g.counts(in) {
		g.fails(ctx, in)
	}
	return err
}

// counts reports whether a failure is one that opens the gate, or keeps it open.
func (g *Gate) counts(in gateInput) bool {
	if in.kind != fault.Infrastructure || in.probe {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures++; g.failures == 1 {
		g.failingSince = g.o.Now()
	}
	return g.failures >= breakerFailures
}

// fails opens the gate, or this instance's own.
func (g *Gate) fails(ctx context.Context, in gateInput) {
	now := g.o.Now()
	g.mu.Lock()
	g.failures = 0
	closed := !g.control.Gate.Open()
	if closed && (g.own.Open() || (in.kind == fault.Infrastructure && !in.probe && g.alone(now))) {
		first := !g.own.Open()
		g.own = next(g.own, in, now)
		g.mu.Unlock()
		if first {
			g.o.Log.Warn().Str("kind", string(in.kind)).Str("code", in.code).Str("reason", in.reason).
				Msg("gate: opened twice in 5 minutes while others succeed: this instance keeps its own gate")
		}
		return
	}
	if closed && !in.probe {
		g.openedAt = now
	}
	g.mu.Unlock()
	g.update(ctx, in)
	if in.probe {
		g.mu.Lock()
		g.failedUntil = g.control.Gate.OpenUntil
		g.mu.Unlock()
	}
}

// alone reports whether this instance opened the shared gate a moment ago, fails again, and others succeed: while it failed,
// or since then without it. An outage that comes and goes for all is not that. g.mu is held.
func (g *Gate) alone(now time.Time) bool {
	success := g.control.AppliedAt
	return !g.openedAt.IsZero() && now.Sub(g.openedAt) < twice && success.After(g.openedAt) &&
		(success.After(g.failingSince) || !g.answeredAt.After(g.openedAt))
}

// answered closes the gate, or lets its limit grow. A gate that is full wants more than an answer: that something was
// written; a systemic one wants a document: see Gate.wrote.
func (g *Gate) answered(ctx context.Context, a *Admission, wrote bool) {
	probe := a.pending()
	g.mu.Lock()
	state := g.control.Gate
	own := g.own.Open() && !state.Open()
	if own && probe {
		g.own = GateState{}
	}
	g.mu.Unlock()
	switch {
	case own && probe:
		a.passed()
		g.o.Log.Info().Msg("gate: this instance reaches SQL again and uses the shared gate")
		return
	case own,
		state.Open() && !probe,
		state.Open() && state.Kind == fault.Systemic,
		state.Open() && state.Kind == fault.Quota && !wrote,
		!state.Open() && state.Limit == 0:
		return
	}
	a.passed()
	g.update(ctx, gateInput{event: gateAnswers, by: g.o.Instance})
}

// IsGate reports whether an error is the gate's refusal: SQL was not asked.
func IsGate(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Op == opGate && (e.Code == codeGate || e.Code == codePaused)
}

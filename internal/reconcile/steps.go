package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

const (
	// settled is the time between the two looks: longer than any write waits for its record. The host ends an
	// invocation after ten minutes, and starts what was lost again.
	settled = 10*time.Minute + invoice.ClockSkew
	// overlap is how far a comparison goes back before the last one began: for what a database lost in a short time.
	overlap = time.Hour
	// findingsAStep, documentsAStep bound a step of a pass over findings and documents. documentsAStep is what
	// commit.Query.IDs takes.
	findingsAStep  = 100
	documentsAStep = 100
	// restarts bounds how often a pass begins again because its continuation was lost.
	restarts = 10
	// linesPerSecond is the default of Options.Lines: a drain beside a comparison keeps most of SQL.
	linesPerSecond = 1000
	// carryOnFor bounds the time of one tick, and stopBefore is kept of the invocation's.
	carryOnFor = 2 * time.Minute
	stopBefore = 45 * time.Second
)

// Ports are the dependencies of a comparison.
type Ports struct {
	Rows     Rows
	Findings Findings
	Finder   commit.Finder
	// Mend starts the run that writes again what a night found and nobody edited. It may be repeated: a run that exists
	// is success. Errors by kind: infrastructure, throttled, quota, contention; nothing was started then.
	Mend func(ctx context.Context, comparison string) error
	// Breaker guards the database of Rows and Findings.
	Breaker interface {
		Permit(ctx context.Context) error
	}
}

// Options configure a comparison. A zero field means its default.
type Options struct {
	// SysName is the environment.
	SysName string
	// Reader reads the documents.
	Reader invoice.Reader
	// At is the time of day at which the night's comparison begins, as a duration since midnight, in Location; UTC by
	// default.
	At       time.Duration
	Location *time.Location
	// RequestUnits is the most request units a second; 0 means no bound.
	RequestUnits int
	// Lines is the most lines and documents a second; 1,000 by default.
	Lines int
	Log   zerolog.Logger
	// Now is the clock. Wait sleeps unless the context ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// Reconcile compares an environment. It keeps nothing between two ticks.
type Reconcile struct {
	p    Ports
	o    Options
	pace Pace
	// changes are those of the comparison that goes on, kept from tick to tick.
	changes atomic.Pointer[changes]
}

// New makes a Reconcile.
func New(p Ports, o Options) *Reconcile {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Lines <= 0 {
		o.Lines = linesPerSecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	return &Reconcile{p: p, o: o, pace: Pace{PerSecond: o.RequestUnits, Wait: o.Wait}}
}

// ByTimer is who began a night's comparison.
const ByTimer = "RecoverRetries"

// Tick begins the night's comparison when its time has passed, and carries on the oldest comparison, for two minutes at
// most and until the invocation's time is nearly over. It counts the steps that it did. Errors by kind: infrastructure,
// throttled, quota, contention; the next tick goes on. While the breaker refuses, it does nothing.
func (r *Reconcile) Tick(ctx context.Context) (steps int, err error) {
	if r.p.Breaker.Permit(ctx) != nil {
		return 0, nil //nolint:nilerr // the breaker tells itself why
	}
	if err := r.beginNight(ctx); err != nil {
		return 0, err
	}
	end := r.o.Now().Add(carryOnFor)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-stopBefore).Before(end) {
		end = deadline.Add(-stopBefore)
	}
	remembered := changes{}
	if kept := r.changes.Load(); kept != nil {
		remembered = *kept
	}
	defer func() { r.changes.Store(&remembered) }()
	for r.o.Now().Before(end) {
		c, there, err := r.p.Findings.Next(ctx)
		if err == nil && !there {
			remembered = changes{}
		}
		if err != nil || !there {
			return steps, err
		}
		wait, err := r.step(ctx, c, &remembered)
		switch {
		case fault.Has(err, fault.Changed): // another tick did this step
			return steps, nil
		case err != nil:
			return steps, err
		}
		if steps++; r.o.Now().Add(wait).After(end) {
			return steps, nil
		}
		if err := r.o.Wait(ctx, wait); err != nil {
			return steps, nil //nolint:nilerr // the next tick goes on
		}
	}
	return steps, nil
}

// beginNight begins the comparison of the last night whose time has passed, unless it was begun before. A night that
// nobody began in its time begins late; of several the last alone, because it compares what changed since the last
// comparison.
func (r *Reconcile) beginNight(ctx context.Context) error {
	c := Comparison{
		ID: night(r.o.Now().In(r.o.Location), r.o.At), Night: true, By: ByTimer, Why: "the nightly comparison",
	}
	open, there, err := r.p.Findings.Next(ctx)
	if err != nil || (there && open.Night) { // the nights wait for one that is late
		return err
	}
	began, err := r.p.Findings.Begin(ctx, c)
	if began {
		events.For(ctx, r.o.Log).Write(events.ComparisonBegan, events.Fields{Comparison: c.ID})
	}
	return err
}

// night is the date of the last night whose time of day at has passed. A time that the clock skips comes an hour later
// or earlier, and one that it has twice comes once: the date counts.
func night(now time.Time, at time.Duration) string {
	for day := now; ; day = day.AddDate(0, 0, -1) {
		begins := time.Date(day.Year(), day.Month(), day.Day(), 0, int(at.Minutes()), 0, 0, day.Location())
		if !now.Before(begins) {
			return day.Format(time.DateOnly)
		}
	}
}

// step does the next step of a comparison, and stores its progress with what it found. wait is a pause before the next
// one. A failure that is no dependency's ends the comparison, which then says why: another one must not wait for a
// mistake.
func (r *Reconcile) step(ctx context.Context, c Comparison, remembered *changes) (wait time.Duration, err error) {
	done, err := r.next(ctx, c, remembered)
	switch {
	case fault.IsDependency(err) || fault.KindOf(err) == fault.Contention:
		return 0, err
	case err != nil && ctx.Err() != nil:
		return 0, fault.Wrap(fault.Infrastructure, "reconcile: step", "cancelled", "stopped in a step", err)
	case err != nil:
		c.Ended, c.Error = true, fault.Truncate(err.Error(), MaxDetail)
	}
	compared := 0
	counts := maps.Clone(c.Counts)
	if counts == nil {
		counts = map[Class]int{}
	}
	for class, n := range done.counts {
		if counts[class] += n; !class.again() {
			compared += n
		}
	}
	c.Counts = counts
	if err == nil {
		c.Position = done.next.String()
		c.Ended = done.next.Pass == over
	}
	// what the next one compares begins where this one did
	if n := c.Counts[Unlisted]; c.Ended && n > 0 && c.Error == "" {
		c.Error = fmt.Sprintf("%d findings are not listed: a class has %d", n, MaxFindings)
	}
	err = r.p.Findings.Save(ctx, c, done.put, done.drop)
	if err != nil && !fault.IsDependency(err) && fault.KindOf(err) != fault.Contention && ctx.Err() == nil {
		c.Ended, c.Error = true, fault.Truncate(err.Error(), MaxDetail)
		err = r.p.Findings.Save(ctx, c, nil, nil)
	}
	if err != nil {
		return 0, err
	}
	if c.Ended {
		r.tell(ctx, c)
	}
	return max(done.wait, time.Duration(max(0, compared))*time.Second/time.Duration(r.o.Lines)), nil
}

// tell tells that a comparison has ended.
func (r *Reconcile) tell(ctx context.Context, c Comparison) {
	f := events.Fields{Comparison: c.ID, Counts: map[string]int{}, Reason: c.Error}
	for class, n := range c.Counts {
		f.Counts[string(class)] = n
	}
	is := events.ComparisonEnded
	if c.Error != "" {
		is = events.ComparisonFailed
	}
	events.For(ctx, r.o.Log).Write(is, f)
}

// over is the position.Pass of a comparison that has ended.
const over = "over"

// passOf is a pass with its next step.
type passOf struct {
	name string
	step func(w *oneStep, ctx context.Context) (stepped, error)
}

// passes are the passes, in their order.
func passes() []passOf {
	return []passOf{
		{"documents", (*oneStep).documents},
		{"rows", (*oneStep).rows},
		{"suspects", (*oneStep).suspects},
		{"mend", (*oneStep).mend},
		{over, nil},
	}
}

// oneStep is a step that runs.
type oneStep struct {
	*look

	Comparison
	at position
}

// stepped is the result of a step. Without a next position the pass is over.
type stepped struct {
	next   *position
	counts map[Class]int
	put    []Seen
	drop   []Key
	wait   time.Duration
}

// next does the next step of the comparison's pass. Its next position is that of the comparison.
func (r *Reconcile) next(ctx context.Context, c Comparison, remembered *changes) (stepped, error) {
	at, err := readPosition(c.Position)
	if err != nil {
		return stepped{}, err
	}
	l, err := r.look(ctx, remembered)
	if err != nil {
		return stepped{}, err
	}
	if at.Pass == "" {
		at.Pass = passes()[0].name
	}
	i := slices.IndexFunc(passes(), func(p passOf) bool { return p.name == at.Pass })
	if i < 0 || at.Pass == over {
		return stepped{},
			fault.New(fault.Internal, "reconcile: step", "pass", "there is no pass %q",
				fault.Truncate(at.Pass, fault.MaxForeign))
	}
	w := oneStep{look: l, Comparison: c, at: at}
	done, err := passes()[i].step(&w, ctx)
	if err != nil {
		return stepped{}, err
	}
	if done.next == nil {
		done.next = &position{Pass: passes()[i+1].name}
	} else {
		done.next.Pass = at.Pass
	}
	return done, nil
}

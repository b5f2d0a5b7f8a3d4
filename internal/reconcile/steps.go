package reconcile

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/timer"
)

const (
	// waitFor is the pause of a run that waits for another one.
	waitFor = 5 * time.Minute
	// overlap is how far a comparison goes back before the last one began. An hour is for what a database lost in a short time. The other
	// two are for a document that waits: the last one did not call it PendingTooLong when it changed less than its longest wait for a retry
	// (commit: an hour and a fifth) and TooLong before.
	overlap = 3 * time.Hour
	// findingsAStep, documentsAStep bound a step of a pass over findings and documents. documentsAStep is what Documents.ReadMany takes.
	findingsAStep  = 100
	documentsAStep = 100
	// savedAtOnce bounds the findings of one Findings.Save.
	savedAtOnce = 1000
	// restarts bounds how often a pass begins again because its continuation was lost.
	restarts = 10
	// leftBehindAfter is the age of a lock that no start of a host still needs.
	leftBehindAfter = 10 * time.Minute
	// mendedAtOnce bounds the findings for which one run starts others.
	mendedAtOnce = 1000
	// linesOfOne bounds the lines of one Documents.OfLines.
	linesOfOne = 100
	// headsOfOne bounds the documents of one Documents.Heads.
	headsOfOne = 1000
)

// Ports are the dependencies of a comparison.
type Ports struct {
	Rows      Rows
	Findings  Findings
	Documents Documents
	Evidence  Evidence
	Leases    Leases
	Mender    Mender
	// Breaker guards the database of Rows and Findings.
	Breaker run.Breaker
}

// Options configure a comparison. A zero field means its default.
type Options struct {
	// SysName is the environment.
	SysName string
	// Location is the time zone of the reports' dates; UTC by default.
	Location *time.Location
	// RequestUnits is the most request units a second; 0 means no bound.
	RequestUnits int
	Log          zerolog.Logger
	// Now is the clock. Wait sleeps unless the context ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// Reconcile compares an environment. Its Step is the run.Step of a kind that compares. It keeps nothing between two steps.
type Reconcile struct {
	p    Ports
	o    Options
	pace Pace
}

// New makes a Reconcile.
func New(p Ports, o Options) *Reconcile {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	return &Reconcile{p: p, o: o, pace: Pace{PerSecond: o.RequestUnits, Wait: o.Wait}}
}

// Step does the next part of a pass: run.Step. A repeated step saves the same findings. What it counts is stored with its position, so it
// counts once; only GoneNow may lack what a step counted that was repeated.
//
// While a run is to wait (Findings.Waits), its step does nothing and asks for a pause. Errors by kind: infrastructure, throttled, quota,
// contention; internal for an unknown pass.
func (r *Reconcile) Step(ctx context.Context, row run.Run, pass, at string) (run.Stepped, error) {
	if err := r.p.Breaker.Permit(ctx); err != nil {
		return run.Stepped{}, err
	}
	w := work{Reconcile: r, run: row}
	var err error
	if w.at, err = readPosition(at); err != nil {
		return run.Stepped{}, err
	}
	if len(row.Filter) > 0 {
		if err := json.Unmarshal(row.Filter, &w.filter); err != nil {
			return run.Stepped{}, fault.Wrap(fault.Internal, "reconcile: step", "filter", "the run's filter is not valid JSON", err)
		}
	}
	waits, err := r.p.Findings.Waits(ctx, row, w.filter.Run)
	switch {
	case err != nil:
		return run.Stepped{}, err
	case waits:
		return run.Stepped{Next: at, Wait: waitFor}, nil
	}
	i := slices.IndexFunc(passes(), func(p passOf) bool { return p.name == pass })
	if i < 0 {
		return run.Stepped{}, fault.New(fault.Internal, "reconcile: step", "pass", "there is no pass %q", fault.Truncate(pass, fault.MaxForeign))
	}
	done, err := passes()[i].step(&w, ctx)
	if err != nil {
		return run.Stepped{}, err
	}
	stepped := run.Stepped{Done: done.next == nil, Counts: map[run.Outcome]int{}}
	for class, n := range done.counts {
		stepped.Counts[class.Outcome()] = n
	}
	if done.next != nil {
		stepped.Next = done.next.String()
	}
	return stepped, nil
}

// passOf is a pass with its next step.
type passOf struct {
	name string
	step func(w *work, ctx context.Context) (stepped, error)
}

// passes are the passes, in the order of their run.
func passes() []passOf {
	return []passOf{
		{"findings", (*work).findings},
		{"rows", (*work).rows},
		{"documents", (*work).documents},
		{"evidence", (*work).evidence},
		{"leases", (*work).leases},
		{"ledger", (*work).ledger},
		{"mend", (*work).mend},
		{"report", (*work).report},
	}
}

// work is one step.
type work struct {
	*Reconcile

	run    run.Run
	filter run.Filter
	at     position
}

// stepped is the result of a step; without a next position the pass is over.
type stepped struct {
	next   *position
	counts map[Class]int
}

// names reports whether the run compares the documents that it names, and nothing else.
func (w *work) names() bool { return len(w.filter.IDs) > 0 }

// save stores what looks found.
func (w *work) save(ctx context.Context, seen map[Key]Seen) error {
	for page := range slices.Chunk(slices.SortedFunc(maps.Values(seen), func(a, b Seen) int { return a.compare(b.Key) }), savedAtOnce) {
		if _, _, err := w.p.Findings.Save(ctx, w.run.ID, page, nil); err != nil {
			return err
		}
	}
	return nil
}

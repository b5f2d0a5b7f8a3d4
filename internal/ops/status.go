package ops

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Status is what an operator must know: what asks for attention, the flow, the dependencies, the runs and the counts.
type Status struct {
	SysName string `json:"sys_name"`
	// At is when this was true, in the deployment's time zone, as all times are.
	At time.Time `json:"at"`
	// Version is the build that answers; AppVersion is the build that last wrote the control document.
	Version    string `json:"version,omitempty"`
	AppVersion string `json:"app_version,omitempty"`
	// PartitionKey has the paths of the results' partition key, as the container's definition has them; empty while
	// that is unknown.
	PartitionKey string `json:"partition_key,omitempty"`
	// Mapping is the mapping in use: the name of its file, or that it is the default, and its version.
	Mapping string `json:"mapping"`
	// Attention is what a person must look at, most urgent first; empty when all is well.
	Attention    []Attention      `json:"attention"`
	Flow         FlowView         `json:"flow"`
	Dependencies []DependencyView `json:"dependencies"`
	// Skipped are documents of other environments that the change feed brought, newest first.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Feed is the change feed's last reported lag; nil when it never reported.
	Feed *Feed `json:"feed,omitempty"`
	// Behind says what brings a database up to date that an operator accepted although it lacks writes; empty when none
	// does.
	Behind string `json:"behind,omitempty"`
	// Runs are the running ones, read from SQL, oldest first. RunsUnknown says why they could not be read.
	Runs        []RunState `json:"runs"`
	RunsUnknown string     `json:"runs_unknown,omitempty"`
	// Counts are those of the recovery timer's last tick. CountsUnknown says why there are none, or why they are old.
	Counts        *Counts `json:"counts,omitempty"`
	CountsUnknown string  `json:"counts_unknown,omitempty"`
	// Day is what the timer sampled in the last 24 hours; nil if it was not asked for, or its counts could not be read.
	Day *Day `json:"day,omitempty"`
}

// StatusQuery asks for the status.
type StatusQuery struct {
	// Day asks for the last 24 hours, too.
	Day bool `json:"day,omitempty"`
}

// Attention is one thing that a person must look at.
type Attention struct {
	// Code is one of package condition. Severity says who is told.
	Code     string             `json:"code"`
	Severity condition.Severity `json:"severity"`
	// Says describes it in one line. Since is its beginning; of poison messages the time of the latest, because each is
	// told anew.
	Says  string    `json:"says"`
	Since time.Time `json:"since,omitzero"`
	// Page is the heading of docs/runbook.md.
	Page string `json:"page"`
}

// The names of the dependencies in DependencyView.
const (
	DepCosmos     = "cosmos"
	DepSQL        = "sql"
	DepServiceBus = "servicebus"
	DepBlob       = "blob"
	// DepTimer is the recovery timer.
	DepTimer = "timer"
)

// The states of a dependency.
const (
	DepOK      = "ok"
	DepFailing = "failing"
	DepUnknown = "unknown"
	// DepSilent: the recovery timer has not written its counts for two ticks.
	DepSilent = "silent"
)

// DependencyView is the state of an external service, or of the recovery timer.
type DependencyView struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Kind, Code and Reason are those of the failure.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Since is when the state began, SeenAt when it was last confirmed, By the instance that saw it.
	Since  time.Time `json:"since,omitzero"`
	SeenAt time.Time `json:"seen_at,omitzero"`
	By     string    `json:"by,omitempty"`
}

// Skipped counts documents of another environment that the change feed brought.
type Skipped struct {
	// SysName is what they name; empty when they name no environment.
	SysName   string    `json:"sys_name"`
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
	LastAt    time.Time `json:"last_at"`
	// Sample is the id of one.
	Sample string `json:"sample"`
}

// RunState is a running run, in words.
type RunState struct {
	ID     string        `json:"id"`
	Kind   run.Kind      `json:"kind"`
	Status run.RunStatus `json:"status"`
	// State is one of the RunStates; Says describes it.
	State string `json:"state"`
	Says  string `json:"says"`
	// Since is when it last got on: its silent manager was heard, the batch that waits longest was sent, or its
	// comparison moved; zero when it does not wait, or waits for the flow.
	Since time.Time `json:"since,omitzero"`
	// Done counts documents with an outcome, of Known as far as known.
	Done  int `json:"done"`
	Known int `json:"known"`
}

// Feed is the lag of the change feed.
type Feed struct {
	LagSeconds int64     `json:"lag_seconds"`
	At         time.Time `json:"at"`
}

const (
	// statusWithin bounds each read of Status: of the runs and of the counts. The control document has its own bound of
	// the same length.
	statusWithin = 5 * time.Second
	// wholeStatus bounds Status where Cosmos DB and SQL are both silent: it leaves a second for the runs.
	wholeStatus = statusWithin + time.Second
)

// Status describes the flow, the dependencies, the runs and the counts. What cannot be read is said so in its place:
// Status itself fails never, and takes a few seconds at most.
func (o *Ops) Status(ctx context.Context, q StatusQuery) (Status, error) {
	now := o.o.Now()
	within, cancel := context.WithTimeout(ctx, wholeStatus)
	defer cancel()
	counted := o.loadCounts(within)
	view := o.p.Breaker.View(ctx)
	s := Status{
		SysName: o.o.SysName, At: o.in(now), Version: o.o.AppVersion, AppVersion: view.Control.AppVersion,
		Flow: o.flowView(view), PartitionKey: o.o.PartitionKey(), Mapping: o.o.Mapping,
	}
	s.Runs, s.RunsUnknown = o.openRuns(within, view)
	var accepted time.Time
	other := ""
	if s.RunsUnknown == "" {
		s.Behind, accepted = o.behind(within, view)
		other = o.otherMapping(within, s.Mapping)
	}
	counts, countsErr := counted(view)
	timer := o.timerView(counts.Counts, countsErr, view, now)
	if countsErr == nil && !counts.At.IsZero() {
		shown := o.countsView(counts.Counts, now)
		s.Counts = &shown
	}
	if q.Day && countsErr == nil {
		s.Day = o.day(counts, view, now)
	}
	if timer.State != DepOK {
		s.CountsUnknown = "unknown: " + timer.Reason
	}
	s.Dependencies = append(o.dependencies(view, countsErr), timer)
	for _, k := range view.Control.Skipped {
		s.Skipped = append(s.Skipped,
			Skipped{
				SysName: k.SysName, Documents: k.Documents, Since: o.in(k.Since),
				LastAt: o.in(k.LastAt), Sample: k.Sample,
			})
	}
	if feed := view.Control.Feed; !feed.At.IsZero() {
		s.Feed = &Feed{LagSeconds: feed.Seconds, At: o.in(feed.At)}
	}
	s.Attention = o.attention(s, view, accepted, other)
	return s, nil
}

// loadCounts begins to read the stored counts. The returned function waits for them, but not while the control document
// is not available: both are in one container.
func (o *Ops) loadCounts(ctx context.Context) (wait func(breaker.View) (Saved, error)) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	var counts Saved
	var err error
	var reading sync.WaitGroup
	reading.Go(func() { counts, err = o.p.Counts.LoadCounts(ctx) })
	return func(view breaker.View) (Saved, error) {
		defer cancel()
		if view.Lost {
			cancel()
			reading.Wait()
			return Saved{},
				fault.New(fault.Infrastructure, "ops: counts", breaker.CodeControl, "Cosmos DB does not answer")
		}
		reading.Wait()
		return counts, err
	}
}

// timerView is the state of the recovery timer, as its counts show it. One that never counted is silent when it had two
// ticks of the documented schedule to do so: an answer of a dependency is noted that is older.
func (o *Ops) timerView(c Counts, err error, view breaker.View, now time.Time) DependencyView {
	every := time.Duration(c.EverySeconds) * time.Second
	since, reason := c.At, "the timer is silent since "+o.clock(c.At)
	if c.At.IsZero() {
		every, reason = minTick, "the timer has never counted"
		for _, d := range view.Status.Dependencies {
			if since.IsZero() || d.Since.Before(since) {
				since = d.Since
			}
		}
	}
	switch v := (DependencyView{Name: DepTimer, SeenAt: o.in(c.At)}); {
	case err != nil:
		return DependencyView{
			Name: DepTimer, State: DepUnknown, Kind: fault.KindOf(err), Code: fault.CodeOf(err), Reason: errorText(err),
		}
	case !since.IsZero() && now.Sub(since) > 2*every:
		v.State, v.Reason, v.Since = DepSilent, reason, o.in(since)
		return v
	case c.At.IsZero():
		v.State, v.Reason = DepUnknown, "the timer has not counted yet"
		return v
	default:
		v.State = DepOK
		return v
	}
}

// countsView converts the times of counts to the deployment's zone, and computes ages as of now.
func (o *Ops) countsView(c Counts, now time.Time) Counts {
	c.At = o.in(c.At)
	if c.Oldest != nil {
		oldest := *c.Oldest
		oldest.AgeSeconds, oldest.Since = int64(max(0, now.Sub(oldest.Since))/time.Second), o.in(oldest.Since)
		c.Oldest = &oldest
	}
	if c.Findings != nil {
		found := o.localFound(*c.Findings)
		if c.FindingsUnknown != "" {
			found.Says += fmt.Sprintf("; counted at %s: %s", o.clock(found.At), c.FindingsUnknown)
		}
		c.Findings = &found
	}
	c.Groups = append([]Group{}, c.Groups...)
	for i, g := range c.Groups {
		c.Groups[i].First, c.Groups[i].Last = o.in(g.First), o.in(g.Last)
	}
	return c
}

// dependencies describes the external services. Two more things count: the breaker stopped because SQL failed, and the
// counts, which are in Cosmos DB, could not be read just now.
func (o *Ops) dependencies(view breaker.View, countsErr error) []DependencyView {
	var all []DependencyView
	for _, name := range []string{DepCosmos, DepSQL, DepServiceBus, DepBlob} {
		v := DependencyView{Name: name, State: DepUnknown}
		if d, asked := view.Status.Dependencies[name]; asked {
			v = DependencyView{
				Name: name, State: d.State, Kind: d.Kind, Code: d.Code, Reason: d.Reason, Since: o.in(d.Since),
				SeenAt: o.in(d.SeenAt), By: d.By,
			}
		}
		flow := view.Control.Breaker
		switch {
		case v.State == DepFailing:
		case name == DepCosmos && fault.IsDependency(countsErr) && fault.CodeOf(countsErr) != "unreadable":
			e, at := fault.As(countsErr), o.in(o.o.Now())
			v = DependencyView{
				Name: name, State: DepFailing, Kind: e.Kind, Code: e.Code, Reason: e.Reason, Since: at, SeenAt: at,
			}
		case name == DepSQL && flow.Name == breaker.Open:
			v.State, v.Kind, v.Code, v.Reason, v.By = DepFailing, flow.Kind, flow.Code, flow.Reason, flow.HeldBy
			v.Since, v.SeenAt = o.in(flow.Since), o.in(flow.ChangedAt)
		}
		all = append(all, v)
	}
	return all
}

// in converts to the deployment's zone, in whole seconds; zero stays zero.
func (o *Ops) in(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(o.o.Location).Truncate(time.Second)
}

package ops

import (
	"context"
	"time"

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
	// Attention is what a person must look at, most urgent first; empty when all is well.
	Attention    []Attention      `json:"attention"`
	Flow         FlowView         `json:"flow"`
	Dependencies []DependencyView `json:"dependencies"`
	// MassFailures are codes with which many documents recently began to fail.
	MassFailures []MassFailure `json:"mass_failures,omitempty"`
	// Skipped are documents of other environments that the change feed brought, newest first.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Feed is the change feed's last reported lag; nil when it never reported.
	Feed *Feed `json:"feed,omitempty"`
	// FeedMissed are documents that the change feed did not bring; nil when the recovery timer's last tick found none.
	FeedMissed *FeedMissed `json:"feed_missed,omitempty"`
	// Runs are the running ones, read from SQL, oldest first. RunsUnknown says why they could not be read.
	Runs        []RunState `json:"runs"`
	RunsUnknown string     `json:"runs_unknown,omitempty"`
	// Counts are those of the recovery timer's last tick. CountsUnknown says why there are none, or why they are old.
	Counts        *Counts `json:"counts,omitempty"`
	CountsUnknown string  `json:"counts_unknown,omitempty"`
}

// Attention is one thing that a person must look at.
type Attention struct {
	Code string `json:"code"`
	// Says describes it in one line. Page is the heading of docs/runbook.md.
	Says string `json:"says"`
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
	// Done counts documents with an outcome, of Known as far as known.
	Done  int `json:"done"`
	Known int `json:"known"`
}

// Feed is the lag of the change feed.
type Feed struct {
	LagSeconds int64     `json:"lag_seconds"`
	At         time.Time `json:"at"`
}

// FeedMissed are documents that waited although nothing kept the change feed from bringing them.
type FeedMissed struct {
	Documents int `json:"documents"`
	// Oldest is when the first of them was written, At when the recovery timer took them up.
	Oldest time.Time `json:"oldest"`
	At     time.Time `json:"at"`
	// Sample is the id of one. Code is document.too_deep when the feed stops at it.
	Sample string `json:"sample"`
	Code   string `json:"code,omitempty"`
}

// MassFailure is a code with which many documents began to fail within a short time, while others succeed.
type MassFailure struct {
	Code      string    `json:"code"`
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
}

// Status describes the flow, the dependencies, the runs and the counts. Errors by kind: infrastructure, throttled.
func (o *Ops) Status(ctx context.Context) (Status, error) {
	now := o.o.Now()
	view := o.p.Breaker.View(ctx)
	s := Status{
		SysName: o.o.SysName, At: o.in(now), Flow: o.flowView(view), Version: o.o.AppVersion, AppVersion: view.Control.AppVersion,
		Attention: []Attention{}, Dependencies: []DependencyView{}, Runs: []RunState{}, RunsUnknown: "not read",
	}
	if feed := view.Control.Feed; !feed.At.IsZero() {
		s.Feed = &Feed{LagSeconds: feed.Seconds, At: o.in(feed.At)}
	}
	if m := view.Control.Missed; m.Documents > 0 {
		s.FeedMissed = &FeedMissed{Documents: m.Documents, Oldest: o.in(m.Oldest), At: o.in(m.At), Sample: m.Sample, Code: m.Code}
	}
	for _, m := range view.Control.MassFailures(now) {
		s.MassFailures = append(s.MassFailures, MassFailure{Code: m.Code, Documents: m.Documents, Since: o.in(m.Since)})
	}
	counts, err := o.count(ctx, now)
	if err != nil {
		return Status{}, err
	}
	s.Counts = &counts
	return s, nil
}

// in converts to the deployment's zone, in whole seconds; zero stays zero.
func (o *Ops) in(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(o.o.Location).Truncate(time.Second)
}

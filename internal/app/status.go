package app

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
)

// The dependencies and their states, as Health names them.
const (
	depCosmos = "cosmos"
	depSQL    = "sql"
	depBlob   = "blob"
	// depLeases has problems only, and no state: this process does not use it.
	depLeases = "leases"
	// depServiceBus gets its state from sent messages, and from the recovery timer's look into the queues.
	depServiceBus = "servicebus"

	// stateUnknown is that of a dependency that no instance has asked.
	stateUnknown = "unknown"

	statusLive = "live"
)

// status holds the state of this process, and the flow and dependencies as the breaker knows them. The use cases report
// to it.
type status struct {
	now     func() time.Time
	version string
	// mode, mapping, flow, note and partitionKey are set before the first report; all but mode are empty when the
	// settings are invalid.
	mode, mapping string
	flow          func() breaker.View
	note          func(ctx context.Context, dependency string, err error)
	// partitionKey is that of the results.
	partitionKey func() string

	mu       sync.Mutex
	ready    bool
	since    time.Time
	problems map[string][]string
	// foreigners counts messages that are not for this process.
	foreigners int
}

func newStatus(version string, now func() time.Time) *status {
	return &status{now: now, version: version, since: now().UTC(), problems: map[string][]string{}}
}

// seen records how a dependency answered; see breaker.NoteDependency.
func (s *status) seen(ctx context.Context, dependency string, err error) {
	if s.note != nil {
		s.note(ctx, dependency, err)
	}
}

// foreign counts a message that is not for this process.
func (s *status) foreign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreigners++
}

// lacks replaces the problems of a part ("settings", "cosmos", "sql"). No lines mean no problems.
func (s *status) lacks(part string, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, part)
	if len(lines) > 0 {
		s.problems[part] = lines
	}
}

// becomeReady records that batches can be processed.
func (s *status) becomeReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.since = true, s.now().UTC()
}

// report makes the reply of Health.
func (s *status) report() handlers.HealthReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := handlers.HealthReport{
		Status: statusLive, Version: s.version, Mode: s.mode, Mapping: s.mapping, Since: s.since, Problems: []string{},
		Dependencies:    dependencyHealth(nil),
		ForeignMessages: s.foreigners,
	}
	if s.ready {
		r.Status = handlers.StatusReady
	}
	for _, part := range slices.Sorted(maps.Keys(s.problems)) {
		r.Problems = append(r.Problems, s.problems[part]...)
	}
	if s.partitionKey != nil {
		r.PartitionKey = s.partitionKey()
	}
	if s.flow != nil {
		view := s.flow()
		r.Dependencies = dependencyHealth(view.Status.Dependencies)
		r.Flow = flowHealth(view)
		if view.Control.Missed.Holds() {
			r.Problems = append(r.Problems, says(condition.FeedMissed))
		}
		if len(view.Status.MassFailures(s.now())) > 0 {
			r.Problems = append(r.Problems, says(condition.MassFailure))
		}
		if view.Control.Breaker.RefusesDatabase() { // a new instance would not help: an operator must decide
			r.Status = statusLive
			r.Problems = append(r.Problems, says(condition.DatabaseRefused))
		}
	}
	return r
}

// says is a condition in one line.
func says(code string) string {
	c, _ := condition.Of(code)
	return c.Says()
}

// dependencyHealth describes the dependencies. Health is anonymous, so the instance and the reason are left out.
func dependencyHealth(seen map[string]breaker.Dependency) map[string]handlers.DependencyHealth {
	all := map[string]handlers.DependencyHealth{}
	for _, name := range []string{depCosmos, depSQL, depBlob, depServiceBus} {
		all[name] = handlers.DependencyHealth{State: stateUnknown}
		if d, asked := seen[name]; asked {
			all[name] = handlers.DependencyHealth{State: d.State, Since: d.Since, Kind: string(d.Kind), Code: d.Code}
		}
	}
	return all
}

// flowHealth describes the breaker as it was last seen. Health makes no requests.
func flowHealth(v breaker.View) handlers.FlowHealth {
	s := v.Control.Breaker
	h := handlers.FlowHealth{
		State: string(s.Flow()), Since: s.Since.UTC(), Limit: s.Limit, CutOff: v.CutOff, Lost: v.Lost,
	}
	if s.Kind != "" { // Health is anonymous, so an operator's name and reason are left out
		h.Kind, h.Code, h.Reason = string(s.Kind), s.Code, s.Reason
	}
	if s.Name == breaker.Open {
		h.NextProbe = s.OpenUntil.UTC()
	}
	return h
}

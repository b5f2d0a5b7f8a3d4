package app

import (
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// The dependencies as Health names them, and their states.
const (
	depCosmos = "cosmos"
	depSQL    = "sql"
	depBlob   = "blob"
	// depServiceBus is seen when something is sent.
	depServiceBus = "servicebus"

	stateUnknown = "unknown"
	stateOK      = "ok"
	stateFailing = "failing"

	statusLive = "live"
)

// status is what this process knows of itself. It asks nobody: the work tells it.
type status struct {
	now     func() time.Time
	version string
	// mode and flow are set before anybody asks; flow is nil when the settings cannot be used.
	mode string
	flow func() breaker.View

	mu       sync.Mutex
	ready    bool
	since    time.Time
	problems map[string][]string
	deps     map[string]handlers.DependencyHealth
	// foreigners counts messages that are not for this process.
	foreigners int
}

func newStatus(version string, now func() time.Time) *status {
	return &status{
		now: now, version: version, since: now().UTC(), problems: map[string][]string{},
		deps: map[string]handlers.DependencyHealth{depCosmos: {State: stateUnknown}, depSQL: {State: stateUnknown}, depBlob: {State: stateUnknown}, depServiceBus: {State: stateUnknown}},
	}
}

// seen notes how a dependency answered. An error that is not of dependency scope was an answer.
func (s *status) seen(dependency string, err error) {
	next := handlers.DependencyHealth{State: stateOK}
	if fault.IsDependency(err) {
		next = handlers.DependencyHealth{State: stateFailing, Kind: string(fault.KindOf(err)), Code: fault.CodeOf(err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.deps[dependency]
	next.Since = last.Since
	if next != last {
		next.Since = s.now().UTC()
		if next.State == last.State { // failing otherwise than before is still failing since then
			next.Since = last.Since
		}
		s.deps[dependency] = next
	}
}

// foreign notes a message that is not for this process.
func (s *status) foreign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreigners++
}

// lacks sets what a part ("settings", "cosmos", "sql") lacks; no lines mean nothing.
func (s *status) lacks(part string, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, part)
	if len(lines) > 0 {
		s.problems[part] = lines
	}
}

// becomeReady says that batches can be taken.
func (s *status) becomeReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.since = true, s.now().UTC()
}

// report is what Health answers.
func (s *status) report() handlers.HealthReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := handlers.HealthReport{
		Status: statusLive, Version: s.version, Mode: s.mode, Since: s.since, Problems: []string{}, Dependencies: maps.Clone(s.deps),
		ForeignMessages: s.foreigners,
	}
	if s.ready {
		r.Status = handlers.StatusReady
	}
	for _, part := range slices.Sorted(maps.Keys(s.problems)) {
		r.Problems = append(r.Problems, s.problems[part]...)
	}
	if s.flow != nil {
		view := s.flow()
		r.Flow, r.MassFailures = flowHealth(view), len(view.Control.MassFailures(s.now()))
		if view.Control.Breaker.RefusesDatabase() { // an instance that is put in this one's place would not heal it, but a person must look
			r.Status = statusLive
			r.Problems = append(r.Problems, depSQL+": "+view.Control.Breaker.Reason+" (docs/runbook.md)")
		}
	}
	return r
}

// flowHealth says what the breaker does. It is what was seen last: Health asks nobody.
func flowHealth(v breaker.View) handlers.FlowHealth {
	s := v.Control.Breaker
	h := handlers.FlowHealth{State: string(s.Flow()), Since: s.Since.UTC(), Limit: s.Limit, CutOff: v.CutOff, Lost: v.Lost}
	if s.Kind != "" { // who paused and why is for those who have a key: Health is anonymous
		h.Kind, h.Code, h.Reason = string(s.Kind), s.Code, s.Reason
	}
	if s.Name == breaker.Open {
		h.NextProbe = s.NextProbe().UTC()
	}
	return h
}

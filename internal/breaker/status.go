package breaker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/events"
)

// Status is what one instance tells operators. Nothing is decided by it: each instance writes its own once a minute,
// without a condition, and readers add and merge them (docs/adr/0034-what-every-instance-sees.md).
type Status struct {
	// Instance wrote it, At the time.
	Instance string    `json:"instance"`
	At       time.Time `json:"at"`
	// Failing counts documents that began to fail, by code.
	Failing []Failing `json:"failing,omitempty"`
	// Dependencies has the last answer of each dependency, by name: cosmos, sql, servicebus, blob. One without an entry
	// was not asked.
	Dependencies map[string]Dependency `json:"dependencies,omitempty"`
	// Stops are the latest stops that have ended, oldest first.
	Stops []Stop `json:"stops,omitempty"`
	// Committed counts the documents that became committed since the instance began. What one that is killed had not
	// told is missing: about a minute of its work at most.
	Committed int64 `json:"committed,omitempty"`
}

// Failing counts documents that failed for the first time, by code.
type Failing struct {
	Code string `json:"code"`
	// Documents is their number since Since; LastAt is the latest.
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
	LastAt    time.Time `json:"last_at"`
}

const (
	// statusKept is how long the status of an instance that is gone is read.
	statusKept = 24 * time.Hour
	// maxCodes bounds the codes of a status, maxStops its stops.
	maxCodes = 8
	maxStops = 20
	// failingExpiry is when a code without new failures is dropped; massFailureSize is the number of documents that
	// alerts the operators.
	failingExpiry   = time.Hour
	massFailureSize = 20
)

// Tell writes this instance's status and reads those of the others, for Seen. An instance calls it once a minute and
// before it ends. What cannot be written is told a minute later.
func (b *Breaker) Tell(ctx context.Context) {
	b.tell(ctx)
	b.hear(ctx)
}

// tell writes this instance's status.
func (b *Breaker) tell(ctx context.Context) {
	if b.shared.store == nil {
		return
	}
	is := b.own()
	b.mu.Lock()
	b.toldAt = is.At
	for name, d := range is.Dependencies {
		b.toldFailing[name] = d.State == DependencyFailing
	}
	b.mu.Unlock()
	_ = withTimeout(context.WithoutCancel(ctx), tellTimeout, func(ctx context.Context) error {
		return b.shared.store.StoreStatus(ctx, is)
	})
}

// hear reads the statuses of the others. Without an answer the last ones count.
func (b *Breaker) hear(ctx context.Context) {
	if b.shared.store == nil {
		return
	}
	all, err := b.shared.store.LoadStatuses(ctx, b.o.Now().Add(-statusKept))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heardAt = b.o.Now(); err == nil {
		b.heard = append([]Status{}, all...)
	}
}

// own is this instance's status.
func (b *Breaker) own() Status {
	stops := b.shared.stopped()
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{
		Instance: b.o.Instance, At: b.o.Now().UTC().Round(0), Failing: slices.Clone(b.failing),
		Dependencies: maps.Clone(b.answers), Stops: stops,
		Committed: b.committed,
	}
}

// merged are the statuses of all instances in one. What a clock that is ahead has noted is not there.
func merged(all []Status, now time.Time) Status {
	m := Status{Dependencies: map[string]Dependency{}}
	for _, s := range all {
		for name, d := range s.Dependencies {
			if d.isBelieved(now) {
				m.Dependencies[name] = m.Dependencies[name].with(d)
			}
		}
		for _, f := range s.Failing {
			if !f.LastAt.After(now.Add(mostAhead)) {
				m.Failing = addFailing(m.Failing, f, now)
			}
		}
		m.Stops = append(m.Stops, s.Stops...)
	}
	// Several instances may have seen one stop. The one that saw its end first saw it right.
	slices.SortFunc(m.Stops, func(a, b Stop) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	m.Stops = slices.CompactFunc(m.Stops, func(a, b Stop) bool { return a.From.Equal(b.From) })
	m.Stops = m.Stops[max(0, len(m.Stops)-maxStops):]
	return m
}

// Committed counts documents that became committed.
func (b *Breaker) Committed(documents int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committed += int64(documents)
}

// BeganToFail records that a document failed for the first time, with a code. The document that makes a mass failure of
// this instance's is told at once; that of all instances is in their statuses.
func (b *Breaker) BeganToFail(ctx context.Context, code string) {
	now := b.o.Now()
	b.mu.Lock()
	b.failing = addFailing(b.failing, Failing{Code: code, Documents: 1, Since: now, LastAt: now}, now)
	f := b.failing[slices.IndexFunc(b.failing, func(f Failing) bool { return f.Code == code })]
	b.mu.Unlock()
	if f.Documents == massFailureSize {
		b.tell(ctx)
		events.For(ctx, b.o.Log).Write(events.MassFailure,
			events.Fields{Code: f.Code, Documents: f.Documents, Since: f.Since})
	}
}

// addFailing adds documents that failed for the first time, and drops codes without failures for an hour. The code that
// failed last is first.
func addFailing(all []Failing, found Failing, now time.Time) []Failing {
	all = slices.DeleteFunc(slices.Clone(all), func(f Failing) bool {
		// so few in an hour are none
		return now.Sub(f.LastAt) > failingExpiry || f.Documents < massFailureSize && now.Sub(f.Since) > failingExpiry
	})
	if at := slices.IndexFunc(all, func(f Failing) bool { return f.Code == found.Code }); at >= 0 {
		was := all[at]
		all = slices.Delete(all, at, at+1)
		found.Documents += was.Documents
		if was.Since.Before(found.Since) {
			found.Since = was.Since
		}
		if was.LastAt.After(found.LastAt) {
			found.LastAt = was.LastAt
		}
	}
	all = append(all, found)
	slices.SortStableFunc(all, func(a, b Failing) int { return b.LastAt.Compare(a.LastAt) })
	return all[:min(len(all), maxCodes)]
}

// MassFailures are the codes with enough new failures that an operator should act.
func (s Status) MassFailures(now time.Time) []Failing {
	return slices.DeleteFunc(slices.Clone(s.Failing), func(f Failing) bool {
		return f.Documents < massFailureSize || now.Sub(f.LastAt) > failingExpiry
	})
}

// Stop is a time in which the flow did not run as always: stopped, paused or ramping up after that.
type Stop struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Code is that of the failure, CodePaused for a pause.
	Code string `json:"code,omitempty"`
}

// withStop adds the stop that a change of the breaker has ended. A pause ends the stop before it: both have a beginning
// of their own.
func withStop(all []Stop, was, is State) []Stop {
	if was.name() == Closed || !is.Since.After(was.Since) {
		return all
	}
	all = append(slices.Clone(all), Stop{From: was.Since, To: is.Since.UTC().Round(0), Code: was.Code})
	return all[max(0, len(all)-maxStops):]
}

// StopsUntil are the latest stops, oldest first. One that goes on ends now.
func (v View) StopsUntil(now time.Time) []Stop {
	if s := v.Control.Breaker; s.name() != Closed && s.Since.Before(now) {
		return append(slices.Clone(v.Status.Stops), Stop{From: s.Since, To: now, Code: s.Code})
	}
	return v.Status.Stops
}

// StoppedIn is how long the flow did not run as always between two times, as far as the latest stops say it.
func (v View) StoppedIn(from, to time.Time) (d time.Duration) {
	for _, s := range v.StopsUntil(to) {
		if s.From.Before(from) {
			s.From = from
		}
		if s.To.After(to) {
			s.To = to
		}
		d += max(0, s.To.Sub(s.From))
	}
	return d
}

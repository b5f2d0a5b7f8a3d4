package breaker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// What one instance sees, all learn from the control document (docs/adr/0034-what-every-instance-sees.md).

const (
	// controlIn is the dependency that keeps the control document.
	controlIn = "cosmos"
	// seenEvery is how often the instance that noted a failure notes that it goes on.
	seenEvery = time.Minute
	// silentAfter is when a failure that nobody notes again is no longer believed: its instance may be gone.
	silentAfter = 2 * time.Minute
	// flapping is how long a failure stays noted that comes back within this time after its end. It bounds the writes.
	flapping = time.Minute
	// noteTimeout bounds the writing of a note. The adapter's own bound for one request is shorter.
	noteTimeout = 10 * time.Second
	// skippedEvery is the shortest time between two updates of known names in Control.Skipped, and skippedExpiry when one
	// without new documents is dropped.
	skippedEvery  = time.Minute
	skippedExpiry = 7 * 24 * time.Hour
)

// answer is the latest answer of a dependency to this instance.
type answer struct {
	Dependency
	// keptUntil is until when a failure of this instance that came back stays noted.
	keptUntil time.Time
}

// NoteDependency records how a dependency answered this instance. It writes the control document at the first failure, once
// a minute while that lasts, and at its end. An answer that others have noted costs no request.
//
// A failure of another instance ends by this instance's success only when nobody noted it again for two minutes. Each
// instance measures them by its own clock, from when it saw the note.
//
// An error without dependency scope is a good answer. A refusal of the breaker, and the end of a caller who stopped, are none.
func (b *Breaker) NoteDependency(ctx context.Context, name string, err error) {
	if IsRefusal(err) || (fault.IsDependency(err) && errors.Is(ctx.Err(), context.Canceled)) {
		return
	}
	failing := b.answered(name, err)
	if c, _ := b.shared.cached(); !failing && !c.anyFailing() {
		return
	}
	b.noting.Lock() // of many answers at once the first one writes
	defer b.noting.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	c, available := b.shared.get(ctx)
	if c = c.clone(); available && b.noteAnswers(&c, name) {
		b.shared.change(ctx, func(c *Control) bool { return b.noteAnswers(c, name) })
	}
}

// answered remembers an answer and reports whether it is a failure.
func (b *Breaker) answered(name string, err error) (failing bool) {
	now := b.o.Now().UTC().Round(0)
	is := Dependency{State: DependencyOK, Since: now, SeenAt: now}
	if failing = fault.IsDependency(err); failing {
		is = failure(err, now, now)
	}
	is.By = b.o.Instance
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.answers[name]
	if last.State == is.State {
		is.Since = last.Since
	}
	b.answers[name] = answer{is, last.keptUntil}
	return failing
}

// failure is a dependency that fails with an error.
func failure(err error, since, now time.Time) Dependency {
	d := Dependency{State: DependencyFailing, Kind: fault.KindOf(err), Code: fault.CodeOf(err), Since: since, SeenAt: now}
	if e := fault.As(err); e != nil {
		d.Reason = fault.TruncateLine(e.Reason, fault.MaxForeign)
	}
	return d
}

// noteAnswers enters this instance's answers into c and reports whether that is worth a write. latest is the dependency that
// has just answered: only a new answer starts a failure, or ends that of another instance.
func (b *Breaker) noteAnswers(c *Control, latest string) (worth bool) {
	now := b.o.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Dependencies == nil {
		c.Dependencies = map[string]Dependency{}
	}
	for name, is := range b.answers {
		noted, known := c.Dependencies[name]
		next := is.Dependency
		if next.State == noted.State {
			next.Since = noted.Since
		}
		fails, failed, mine := next.State == DependencyFailing, noted.State == DependencyFailing, noted.By == b.o.Instance
		if !fails && !failed { // a good answer goes with the next write
			if next.SeenAt.After(noted.SeenAt) {
				c.Dependencies[name] = next
			}
			continue
		}
		unchanged := now.Sub(b.shared.notedAt(name))
		due := false
		switch {
		case !fails && mine:
			due = !now.Before(is.keptUntil)
		case name != latest:
		case failed && mine:
			due = now.Sub(noted.SeenAt) >= seenEvery
		case failed:
			due = unchanged >= silentAfter
		default: // the first failure
			due = true
			if known && unchanged < flapping {
				is.keptUntil = now.Add(flapping)
				b.answers[name] = is
			}
		}
		if due {
			c.Dependencies[name], worth = next, true
		}
	}
	return worth
}

// anyFailing reports whether a dependency is noted as failing.
func (c Control) anyFailing() bool {
	for _, d := range c.Dependencies {
		if d.State == DependencyFailing {
			return true
		}
	}
	return false
}

// sameNote reports whether d is still the note other: that a good answer was repeated makes no difference.
func (d Dependency) sameNote(other Dependency) bool {
	if d.State != other.State || !d.Since.Equal(other.Since) {
		return false
	}
	return d.State != DependencyFailing || (d.By == other.By && d.SeenAt.Equal(other.SeenAt))
}

// merged is what all instances noted, with this instance's own failures of the last two minutes. Without the control document
// it is what this instance saw, and what keeps the document fails.
func (b *Breaker) merged(noted map[string]Dependency, available bool) map[string]Dependency {
	now := b.o.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(noted)
	for name, is := range b.answers {
		shared, known := all[name]
		if fresh := is.State == DependencyFailing && now.Sub(is.SeenAt) < silentAfter; known && available && !fresh {
			continue
		}
		if known && shared.State == is.State {
			is.Since = shared.Since
		}
		if all == nil {
			all = map[string]Dependency{}
		}
		all[name] = is.Dependency
	}
	if lost, is := b.shared.whyLost(); is && all[controlIn].State != DependencyFailing {
		if all == nil {
			all = map[string]Dependency{}
		}
		lost.By = b.o.Instance
		all[controlIn] = lost
	}
	return all
}

// NoteSkipped counts documents of other environments, by SysName; it sets the times. It writes a new name at once, and the counts
// of known ones at most once a minute. A call without documents writes what waits.
func (b *Breaker) NoteSkipped(ctx context.Context, found []Skipped) {
	c, _ := b.shared.cached()
	now := b.o.Now()
	for i := range found {
		found[i].SysName = fault.TruncateLine(found[i].SysName, fault.MaxForeign)
		found[i].Since, found[i].LastAt = now, now
	}
	b.mu.Lock()
	b.skipped = addSkipped(b.skipped, found, now)
	isNew := slices.ContainsFunc(b.skipped, func(s Skipped) bool {
		return !slices.ContainsFunc(c.Skipped, func(k Skipped) bool { return k.SysName == s.SysName })
	})
	wait := skippedEvery
	if isNew {
		wait = noteEvery
	}
	var waiting []Skipped
	if now.Sub(b.skippedAt) >= wait {
		waiting, b.skipped = b.skipped, nil
	}
	if len(waiting) > 0 {
		b.skippedAt = now
	}
	b.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	b.shared.change(context.WithoutCancel(ctx), func(c *Control) bool {
		c.Skipped = addSkipped(c.Skipped, waiting, now)
		return true
	})
}

// addSkipped adds counts, and drops names without documents for a week and the oldest ones beyond eight.
func addSkipped(all, found []Skipped, now time.Time) []Skipped {
	all = slices.DeleteFunc(slices.Clone(all), func(s Skipped) bool { return now.Sub(s.LastAt) > skippedExpiry })
	for _, f := range found {
		at := slices.IndexFunc(all, func(s Skipped) bool { return s.SysName == f.SysName })
		if at < 0 {
			all = append(all, f)
			continue
		}
		all[at].Documents += f.Documents
		if !f.LastAt.Before(all[at].LastAt) {
			all[at].LastAt, all[at].Sample = f.LastAt, f.Sample
		}
	}
	slices.SortStableFunc(all, func(a, b Skipped) int { return b.LastAt.Compare(a.LastAt) })
	return all[:min(len(all), maxNames)]
}

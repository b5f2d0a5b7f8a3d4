package breaker

import (
	"context"
	"errors"
	"time"

	"sqlwriter/internal/fault"
)

const (
	// controlIn is the dependency that keeps the control document.
	controlIn = "cosmos"
	// tellEvery is how often an instance writes its status, and that a dependency still fails.
	tellEvery = time.Minute
	// silentAfter is when a failure that nobody met again is no longer believed.
	silentAfter = 2 * time.Minute
	// tellTimeout bounds the writing of a status. The adapter's own bound for one request is shorter.
	tellTimeout = 10 * time.Second
)

// The states of a Dependency.
const (
	DependencyOK      = "ok"
	DependencyFailing = "failing"
)

// Dependency is how a dependency last answered an instance.
type Dependency struct {
	// State is DependencyOK or DependencyFailing.
	State string `json:"state"`
	// Kind, Code and Reason are those of the failure. Reason has no address and no secret.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Since is the first answer of this State, SeenAt the last one.
	Since  time.Time `json:"since"`
	SeenAt time.Time `json:"seen_at"`
	// By is the instance that was answered.
	By string `json:"by"`
}

// NoteDependency records how a dependency answered this instance. The first failure is written into the instance's
// status, and once a minute that it lasts. Nobody writes its end: a failure is believed for two minutes.
//
// An error without dependency scope is a good answer, and so is another writer's turn. A refusal of the breaker, and
// the end of a caller who stopped, are none.
func (b *Breaker) NoteDependency(ctx context.Context, name string, err error) {
	if AnotherWrites(err) {
		err = nil
	}
	if IsRefusal(err) || (fault.IsDependency(err) && errors.Is(ctx.Err(), context.Canceled)) {
		return
	}
	now := b.o.Now().UTC().Round(0)
	is, wait := Dependency{State: DependencyOK, Since: now, SeenAt: now}, noteEvery
	if fault.IsDependency(err) {
		is = failure(err, now, now)
	}
	is.By = b.o.Instance
	b.mu.Lock()
	if last := b.answers[name]; last.State == is.State {
		is.Since = last.Since
	}
	if is.State == DependencyOK {
		delete(b.toldFailing, name)
	} else if b.toldFailing[name] {
		wait = tellEvery
	}
	b.answers[name] = is
	due := is.State == DependencyFailing && now.Sub(b.toldAt) >= wait
	b.mu.Unlock()
	if due {
		b.tell(ctx)
	}
}

// failure is a dependency that fails with an error.
func failure(err error, since, now time.Time) Dependency {
	d := Dependency{
		State: DependencyFailing, Kind: fault.KindOf(err), Code: fault.CodeOf(err), Since: since, SeenAt: now,
	}
	if e := fault.As(err); e != nil {
		d.Reason = fault.TruncateLine(e.Reason, fault.MaxForeign)
	}
	return d
}

// with is the answer of a dependency that counts of two instances: a failure before a good answer, then the later one,
// since the earlier began.
func (d Dependency) with(other Dependency) Dependency {
	if d.State == "" || (d.State == other.State && other.SeenAt.After(d.SeenAt)) ||
		(d.State == DependencyOK && other.State == DependencyFailing) {
		d, other = other, d
	}
	if d.State == other.State && other.Since.Before(d.Since) {
		d.Since = other.Since
	}
	return d
}

// isBelieved reports whether an answer counts: not one of the future, and not a failure that nobody met again.
func (d Dependency) isBelieved(now time.Time) bool {
	return !d.SeenAt.After(now.Add(mostAhead)) && (d.State != DependencyFailing || now.Sub(d.SeenAt) < silentAfter)
}

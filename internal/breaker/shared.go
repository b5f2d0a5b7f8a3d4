package breaker

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
)

const (
	// controlAge is how long a loaded control document is valid.
	controlAge = 5 * time.Second
	// storeTries bounds the attempts to write a control document that others also write.
	storeTries = 8
)

// shared is this instance's copy of the control document. While the document is not available, the copy alone counts.
// It is safe for concurrent use.
type shared struct {
	store   ControlStore
	version string
	log     zerolog.Logger
	now     func() time.Time

	mu sync.Mutex
	// control is the document as last seen, at loaded. An empty etag means that it does not exist.
	control Control
	etag    string
	loaded  time.Time
	// stops are the stops whose end this instance saw.
	stops []Stop
	// unavailable: it could not be read or written. readOnly: it could be read but not written. unread: the last read
	// failed.
	unavailable, readOnly, unread bool
	// lost is why it is unavailable.
	lost Dependency
}

// cached returns the document as last seen and whether it is available.
func (s *shared) cached() (Control, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control, !s.unavailable
}

// whyLost is the failure that made the document unavailable; false while it is available.
func (s *shared) whyLost() (Dependency, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost, s.unavailable
}

func (s *shared) isUnread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unread
}

func (s *shared) stopped() []Stop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stops
}

// get returns the document, at most controlAge old if it is available.
func (s *shared) get(ctx context.Context) (Control, bool) {
	s.refresh(ctx)
	return s.cached()
}

// reload reads the document again.
func (s *shared) reload(ctx context.Context) (Control, bool) {
	s.mu.Lock()
	s.loaded = time.Time{}
	s.mu.Unlock()
	return s.get(ctx)
}

// change changes the control document, and tries again if another instance changed it. If it cannot be stored, the
// change counts for this instance only. It reports whether fn wanted a change and the change was made.
func (s *shared) change(ctx context.Context, fn func(*Control) bool) bool {
	for range storeTries {
		c, etag := s.copied()
		if !fn(&c) {
			return false
		}
		written, err := s.write(ctx, c, etag)
		switch {
		case err == nil:
			s.replace(ctx, c, written)
			return true
		case ctx.Err() != nil:
			return false // the caller stopped: not a failure of the control document
		case fault.Has(err, fault.Changed):
			if _, available := s.reload(ctx); available {
				continue
			}
		}
		s.markUnavailable(ctx, err)
		s.mu.Lock()
		s.readOnly = true
		s.mu.Unlock()
		s.replace(ctx, c, etag)
		return true
	}
	return false
}

// command makes a change for all instances or not at all. Errors by kind: infrastructure (code "control"),
// throttled, contention.
func (s *shared) command(ctx context.Context, fn func(*Control) bool) error {
	for range storeTries {
		if _, available := s.reload(ctx); !available {
			return errControl()
		}
		c, etag := s.copied()
		if !fn(&c) {
			return nil
		}
		written, err := s.write(ctx, c, etag)
		if err == nil {
			s.replace(ctx, c, written)
			return nil
		}
		if !fault.Has(err, fault.Changed) {
			return err
		}
	}
	return fault.New(fault.Contention, op, "412",
		"the control document changed %d times meanwhile: try again", storeTries)
}

// copied is a copy to change, with the ETag of what was copied: with a later one it would undo another's change.
func (s *shared) copied() (Control, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control.clone(), s.etag
}

// write stores a control document. It does nothing without a store.
func (s *shared) write(ctx context.Context, c Control, etag string) (string, error) {
	if s.store == nil {
		return "", nil
	}
	if s.version != "" { // tools have no version and keep the app's
		c.AppVersion = s.version
	}
	return s.store.Store(ctx, c, etag)
}

// refresh loads the control document if the copy is too old.
func (s *shared) refresh(ctx context.Context) {
	s.mu.Lock()
	fresh := s.store == nil || (!s.loaded.IsZero() && s.now().Sub(s.loaded) < controlAge)
	mute, wasPaused := s.readOnly, s.control.Breaker.Name == Paused
	s.mu.Unlock()
	if fresh {
		return
	}
	c, etag, err := s.store.Load(ctx)
	c = c.until(s.now())
	s.mu.Lock()
	if s.unread = err != nil; !s.unread && mute { // a database that went back is refused all the same
		s.control.Heartbeat = c.Heartbeat
	}
	s.mu.Unlock()
	if err == nil && mute { // this copy counts until it can be written again
		written, werr := s.write(ctx, c, etag)
		if werr != nil && (c.Breaker.Name == Paused) != wasPaused {
			s.replace(ctx, c, etag) // an operator's command counts all the same
		}
		etag, err = written, werr
	}
	if err != nil {
		if ctx.Err() == nil {
			s.markUnavailable(ctx, err)
		}
		return
	}
	s.mu.Lock()
	found := s.unavailable
	s.unavailable, s.readOnly = false, false
	s.mu.Unlock()
	if found {
		events.For(ctx, s.log).Write(events.ControlBack, events.Fields{})
	}
	s.replace(ctx, c, etag)
}

// markUnavailable marks the control document as not available and logs it once.
func (s *shared) markUnavailable(ctx context.Context, err error) {
	s.mu.Lock()
	was, now := s.unavailable, s.now()
	s.unavailable, s.loaded = true, now
	if !was {
		s.lost.Since = now
	}
	s.lost = failure(err, s.lost.Since, now)
	s.mu.Unlock()
	if !was {
		events.For(ctx, s.log).Write(events.ControlUnavailable, events.Fields{}.Of(err))
	}
}

// replace stores a control document as the copy and logs a change of the breaker's state.
func (s *shared) replace(ctx context.Context, c Control, etag string) {
	s.mu.Lock()
	was, first := s.control.Breaker, s.loaded.IsZero()
	s.control, s.etag, s.loaded = c, etag, s.now()
	s.stops = withStop(s.stops, was, c.Breaker)
	s.mu.Unlock()
	is := c.Breaker
	if is.name() == was.name() && is.Code == was.Code && is.Kind == was.Kind || (first && is.name() == Closed) {
		return
	}
	changed := events.FlowChanged
	if is.Stopped() {
		changed = events.FlowStopped
	}
	log := events.For(ctx, s.log)
	log.Write(changed, events.Fields{
		State: string(is.name()), Kind: is.Kind, Code: is.Code, Reason: is.Reason, HeldBy: is.HeldBy,
		Limit: is.MaxDocuments(), NextProbe: is.OpenUntil,
	})
	if is.name() == Open { // the next tick may be minutes away
		log.Write(events.Attention,
			events.Fields{
				Condition: is.Condition(), Since: is.Since, Reason: "the flow is " + is.Describe(s.now().UTC()),
			})
	}
}

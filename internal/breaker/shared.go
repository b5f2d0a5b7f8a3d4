package breaker

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
)

const (
	// controlAge is how long a loaded control document is believed.
	controlAge = 5 * time.Second
	// storeTries bounds the writing of a control document that others write too.
	storeTries = 8
)

// shared is the control document as this instance knows it. When it cannot be had the instance goes on with its own copy
// until it can. It is safe for concurrent use.
type shared struct {
	store   ControlStore
	version string
	log     zerolog.Logger
	now     func() time.Time

	mu sync.Mutex
	// control is the document as it was last seen at loaded; etag is empty when it is not there.
	control Control
	etag    string
	loaded  time.Time
	// lost says that it cannot be had; mute that it could be read and not be written; unread that the last try to read it failed.
	lost, mute, unread bool
}

// seen is the document as it was last seen, and whether it can be had.
func (s *shared) seen() (Control, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control, !s.lost
}

// isUnread reports whether the last try to read it failed.
func (s *shared) isUnread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unread
}

// get is the document, at most a few seconds old if it can be had.
func (s *shared) get(ctx context.Context) (Control, bool) {
	s.refresh(ctx)
	return s.seen()
}

// anew is the document as it is now, if it can be had.
func (s *shared) anew(ctx context.Context) (Control, bool) {
	s.mu.Lock()
	s.loaded = time.Time{}
	s.mu.Unlock()
	return s.get(ctx)
}

// change changes the control document, again when somebody else did. When it cannot be stored the change is this
// instance's alone. It reports whether fn wanted a change and it was made.
func (s *shared) change(ctx context.Context, fn func(*Control) bool) bool {
	for range storeTries {
		s.mu.Lock()
		c, etag := s.control.clone(), s.etag
		s.mu.Unlock()
		if !fn(&c) {
			return false
		}
		written, err := s.write(ctx, c, etag)
		switch {
		case err == nil:
			s.see(c, written)
			return true
		case ctx.Err() != nil:
			return false // we were told to stop: that is not the control document's failure
		case fault.Has(err, fault.Changed):
			if _, had := s.anew(ctx); had {
				continue
			}
		}
		s.lose(err)
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		s.see(c, etag)
		return true
	}
	return false
}

// command is an operator's change: it counts for all instances or not at all. Errors by kind: infrastructure (code
// "control"), throttled, contention.
func (s *shared) command(ctx context.Context, fn func(*Control) bool) error {
	for range storeTries {
		c, had := s.anew(ctx)
		if !had {
			return errControl()
		}
		s.mu.Lock()
		etag := s.etag
		s.mu.Unlock()
		c = c.clone()
		if !fn(&c) {
			return nil
		}
		written, err := s.write(ctx, c, etag)
		if err == nil {
			s.see(c, written)
			return nil
		}
		if !fault.Has(err, fault.Changed) {
			return err
		}
	}
	return fault.New(fault.Contention, op, "412", "the control document changed %d times meanwhile: try again", storeTries)
}

// write stores a control document. Without a store there is only this instance.
func (s *shared) write(ctx context.Context, c Control, etag string) (string, error) {
	if s.store == nil {
		return "", nil
	}
	if s.version != "" { // a tool says nothing of the app
		c.AppVersion = s.version
	}
	return s.store.Store(ctx, c, etag)
}

// refresh loads the control document when the one at hand is too old.
func (s *shared) refresh(ctx context.Context) {
	s.mu.Lock()
	fresh := s.store == nil || (!s.loaded.IsZero() && s.now().Sub(s.loaded) < controlAge)
	mute, wasPaused := s.mute, s.control.Breaker.Name == Paused
	s.mu.Unlock()
	if fresh {
		return
	}
	c, etag, err := s.store.Load(ctx)
	s.mu.Lock()
	if s.unread = err != nil; !s.unread && mute { // a database that went back is refused all the same
		s.control.Heartbeat = c.Heartbeat
	}
	s.mu.Unlock()
	if err == nil && mute { // our own copy counts until it can be written again
		written, werr := s.write(ctx, c, etag)
		if werr != nil && (c.Breaker.Name == Paused) != wasPaused {
			s.see(c, etag) // an operator's word is heard all the same
		}
		etag, err = written, werr
	}
	if err != nil {
		if ctx.Err() == nil {
			s.lose(err)
		}
		return
	}
	s.mu.Lock()
	found := s.lost
	s.lost, s.mute = false, false
	s.mu.Unlock()
	if found {
		s.log.Info().Msg("breaker: the control document can be had again")
	}
	s.see(c, etag)
}

// lose says once that the control document cannot be had.
func (s *shared) lose(err error) {
	s.mu.Lock()
	was := s.lost
	s.lost, s.loaded = true, s.now()
	s.mu.Unlock()
	if !was {
		s.log.Warn().Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).
			Msg("breaker: the control document cannot be had: this instance goes on with its own copy")
	}
}

// see takes over a control document and logs what changed of the breaker, whoever changed it.
func (s *shared) see(c Control, etag string) {
	s.mu.Lock()
	was, first := s.control.Breaker, s.loaded.IsZero()
	s.control, s.etag, s.loaded = c, etag, s.now()
	s.mu.Unlock()
	is := c.Breaker
	if is.name() == was.name() && is.Code == was.Code && is.Kind == was.Kind || (first && is.name() == Closed) {
		return
	}
	event := s.log.Info()
	if is.Stopped() {
		event = s.log.Warn()
	}
	event.Str("state", string(is.name())).Str("kind", string(is.Kind)).Str("code", is.Code).Str("reason", is.Reason).
		Str("held_by", is.HeldBy).Int("limit", is.MaxDocuments()).Time("open_until", is.NextProbe()).Msg("breaker: changed")
}

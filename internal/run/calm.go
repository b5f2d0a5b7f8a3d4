package run

import (
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/writer"
)

const (
	// longestCalm is the longest threshold that anybody's silence is measured by.
	longestCalm = max(workerStale, releasedFor, silentAfter, runSilent, managerSilent)
	// longestAge is the longest age that a store is asked for: adapters count milliseconds in 32 bits.
	longestAge = 20 * 24 * time.Hour
	// mostSpans bounds what is remembered of a gate that opens again and again.
	mostSpans = 1000
)

// span is a time without a break. Its start is the zero time when nobody knows of one.
type span struct{ start, end time.Time }

// gateLog remembers when the gate was seen closed, tick by tick. It is of one process: another one begins with what the gate
// says of itself. It is safe for concurrent use.
type gateLog struct {
	mu sync.Mutex
	// closed is oldest first, and no time is in it twice.
	closed []span
	// last is the last look; open says that it found the gate open.
	last time.Time
	open bool
}

// look notes the gate as it is now and answers for how long it was closed. Of the time since the last look only what the gate
// has certainly been closed counts: since it closed, if that was later. What lies before is lost, so that silence is found
// later and never sooner.
func (l *gateLog) look(state writer.GateState, now time.Time) calm {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.last
	switch {
	case !state.Since.Before(start):
		start = state.Since
	case l.open:
		start = now // it does not say when it closed: an instance's own gate
	}
	if !state.Open() && start.Before(now) {
		l.add(span{start, now})
	}
	l.open = state.Open()
	if now.After(l.last) {
		l.last = now
	}
	return calm{slices.Clone(l.closed), now}
}

// add appends a span, and forgets what is older than any question.
func (l *gateLog) add(s span) {
	if n := len(l.closed); n > 0 && l.closed[n-1].end.Equal(s.start) {
		l.closed[n-1].end = s.end
	} else {
		l.closed = append(l.closed, s)
	}
	first, left := len(l.closed)-1, longestCalm
	for ; first > 0 && len(l.closed)-first < mostSpans; first-- {
		if left -= l.closed[first].end.Sub(l.closed[first].start); left <= 0 {
			break
		}
	}
	l.closed = slices.Delete(l.closed, 0, first)
}

// calm says when the gate was closed, as one tick saw it.
type calm struct {
	closed []span
	now    time.Time
}

// age is how long ago somebody must have said something last, to have been silent for d of the time with the gate closed. False
// when nobody can have been.
func (c calm) age(d time.Duration) (time.Duration, bool) {
	for _, s := range slices.Backward(c.closed) {
		if s.end.After(c.now) { // a later tick's
			s.end = c.now
		}
		length := max(0, s.end.Sub(s.start))
		if length >= d {
			age := c.now.Sub(s.end.Add(-d))
			return age, age <= longestAge
		}
		d -= length
	}
	return 0, false
}

package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// figures are what a person would notice of a scenario.
type figures struct {
	good, goodLeft   int
	median, longest  time.Duration
	bad, failed      int
	retries          int
	tries            [2]int
	perHour, beats   int
	poisonPerHour    int
	opened           time.Duration
	whole            time.Duration
	whys             []string
	feedErrs, ticked int
	errs             int
}

// figures gathers them, and logs them in one line for the closing note. bad are all documents but the good ones.
func (w *world) figures() figures {
	w.t.Helper()
	f := figures{whole: time.Since(w.began)}
	var waits []time.Duration
	f.tries[0] = -1
	for _, d := range w.of("") {
		w.mu.Lock()
		if d.kind == "good" {
			f.good++
			waits = append(waits, d.waited())
			if d.committed.IsZero() {
				f.goodLeft++
			}
		} else {
			f.bad++
			if n := len(d.tries); f.tries[0] < 0 || n < f.tries[0] {
				f.tries[0] = n
			}
			f.tries[1] = max(f.tries[1], len(d.tries))
		}
		if !d.failed.IsZero() {
			f.failed++
		}
		f.retries = max(f.retries, d.maxRetries)
		w.mu.Unlock()
	}
	slices.Sort(waits)
	if len(waits) > 0 {
		f.median, f.longest = waits[len(waits)/2], waits[len(waits)-1]
	}
	w.mu.Lock()
	// By the hour that counted them: a document counted at 2:59:59 is marked after three.
	counted := 0
	for _, n := range w.poison {
		f.poisonPerHour = max(f.poisonPerHour, n)
		counted += n
	}
	f.perHour, f.beats = mostInAnHour(times(w.requests)), mostInAnHour(times(w.heartbeats))
	for _, in := range w.invocations {
		if in.err != nil {
			f.feedErrs++
		}
	}
	f.ticked = len(w.ticks)
	f.errs = w.logs.count(errorLine)
	w.mu.Unlock()
	assert.LessOrEqual(w.t, f.failed, counted, "each poison message is counted in its hour")
	f.opened, f.whys = w.openFor(w.began, time.Now())
	w.t.Logf("%s", f)
	return f
}

func (f figures) String() string {
	return fmt.Sprintf(
		"good %d (not committed %d) wait median %s longest %s | bad %d failed %d retries<=%d tries %d-%d | requests/h<=%d heartbeats/h<=%d poison/h<=%d | not closed %.1f%% of %s %s | feed errors %d ticks %d error lines %d",
		f.good, f.goodLeft, round(f.median), round(f.longest), f.bad, f.failed, f.retries, max(0, f.tries[0]),
		f.tries[1], f.perHour, f.beats, f.poisonPerHour,
		100*f.openShare(), f.whole.Round(time.Minute), strings.Join(f.whys, ", "), f.feedErrs, f.ticked, f.errs)
}

func (f figures) openShare() float64 { return float64(f.opened) / float64(max(1, f.whole)) }

func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// waited is how long a document has waited, until it was committed or until now. The world's lock is held.
func (d *doc) waited() time.Duration {
	if d.committed.IsZero() {
		return time.Since(d.arrived)
	}
	return d.committed.Sub(d.arrived)
}

func times(all []asked) []time.Time {
	found := make([]time.Time, len(all))
	for i, a := range all {
		found[i] = a.at
	}
	return found
}

// mostInAnHour is how many moments lie in one hour of the clock at most.
func mostInAnHour(all []time.Time) int {
	per, most := map[time.Time]int{}, 0
	for _, at := range all {
		per[at.Truncate(time.Hour)]++
		most = max(most, per[at.Truncate(time.Hour)])
	}
	return most
}

// openFor is how long the breaker was not closed between two moments, as the control document had it, and the reasons.
func (w *world) openFor(from, to time.Time) (total time.Duration, whys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.flow {
		end := to
		if i+1 < len(w.flow) && w.flow[i+1].at.Before(to) {
			end = w.flow[i+1].at
		}
		begin := c.at
		if begin.Before(from) {
			begin = from
		}
		if c.is != closed && end.After(begin) {
			total += end.Sub(begin)
			if !slices.Contains(whys, c.why) {
				whys = append(whys, c.why)
			}
		}
	}
	return total, whys
}

// isOpen reports whether the breaker is open or half-open now.
func (w *world) isOpen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flowNow() != closed
}

// flowNow is the breaker's state in the control document. w.mu is held.
func (w *world) flowNow() flow {
	if len(w.flow) == 0 {
		return closed
	}
	return w.flow[len(w.flow)-1].is
}

// promptly asserts that every document was committed within a time of its arrival, and within more where an invocation
// of the feed that took long was under way on its range: dividing may take two minutes.
func (w *world) promptly(docs []*doc, within, beside time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	late := 0
	for _, d := range docs {
		most := within
		if w.dividedAt(d, within) {
			most = max(within, beside)
		}
		if d.waited() <= most {
			continue
		}
		if late++; late <= 3 {
			w.t.Errorf("%s arrived at %s and waited %s (committed: %t), at most %s were allowed", d.id,
				d.arrived.Sub(w.began), d.waited(), !d.committed.IsZero(), most)
		}
	}
	assert.Zero(w.t, late, "documents that were late, of %d", len(docs))
}

// dividedAt reports whether a long invocation was under way on a document's range when it arrived or soon after. w.mu
// is held.
func (w *world) dividedAt(d *doc, within time.Duration) bool {
	const long = 10 * time.Second
	return slices.ContainsFunc(w.invocations, func(in invocation) bool {
		return in.rng == d.rng && in.end.Sub(in.begin) >= long && in.begin.Before(d.arrived.Add(within)) &&
			in.end.After(d.arrived)
	})
}

// feedWaitsAtMost asserts that no invocation of the feed took longer, and that none was refused: what is wrong with
// documents is no reason to keep the feed.
func (w *world) feedWaitsAtMost(most time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, refused := time.Duration(0), 0
	for _, in := range w.invocations {
		longest = max(longest, in.end.Sub(in.begin))
		if in.err != nil {
			refused++
		}
	}
	assert.LessOrEqual(w.t, longest, most, "the longest invocation of the feed")
	assert.Zero(w.t, refused, "invocations that were answered 5xx, of %d", len(w.invocations))
}

// provenOnly asserts of every poison message that it failed at least six times before, and that something was applied a
// minute or more after the latest of these failures.
func (w *world) provenOnly() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	const minute = 55 * time.Second // less what it takes to record a failure
	for _, d := range w.all {
		if d.failed.IsZero() {
			continue
		}
		var at []time.Time
		for _, f := range d.failures { // several patches of one failure count once
			if f.at.Before(d.failed) && (len(at) == 0 || f.at.Sub(at[len(at)-1]) >= time.Minute) {
				at = append(at, f.at)
			}
		}
		if !assert.GreaterOrEqual(w.t, len(at), 6, "%s became poison at %s after failures at %s", d.id,
			d.failed.Sub(w.began), since(w.began, at)) {
			return
		}
		from, _ := slices.BinarySearchFunc(w.applied, at[len(at)-1].Add(minute), time.Time.Compare)
		if proven := from < len(w.applied) && w.applied[from].Before(d.failed); !assert.True(w.t, proven,
			"%s became poison at %s after failures at %s, and nothing was applied since", d.id,
			d.failed.Sub(w.began), since(w.began, at)) {
			return
		}
	}
}

func since(begin time.Time, all []time.Time) (found []time.Duration) {
	for _, t := range all {
		found = append(found, t.Sub(begin).Round(time.Second))
	}
	return found
}

// requestsIn counts the requests for documents in a span.
func (w *world) requestsIn(s span) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, q := range w.requests {
		if d := q.at.Sub(w.began); d >= s.from && d < s.to {
			n++
		}
	}
	return n
}

// atMostOneAMinuteWhileOpen asserts that while the breaker was open all instances together asked SQL at most once in a
// minute, heartbeats included. The first 30 s are not looked at: instances that have not read the control document yet
// may still ask.
func (w *world) atMostOneAMinuteWhileOpen() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.flow {
		if c.is != opened {
			continue
		}
		end := time.Now()
		if i+1 < len(w.flow) {
			end = w.flow[i+1].at
		}
		n := 0
		for _, q := range slices.Concat(w.requests, w.heartbeats) {
			if q.at.After(c.at.Add(30*time.Second)) && q.at.Before(end) {
				n++
			}
		}
		if most := 1 + int(end.Sub(c.at)/time.Minute); n > most {
			assert.LessOrEqual(w.t, n, most, "requests and heartbeats while open %s from %s", c.why, c.at.Sub(w.began))
		}
	}
}

// noneFailed asserts that nothing is poison, and that no document was counted more failures than allowed.
func (w *world) noneFailed(docs []*doc, retries int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	failed, most := 0, 0
	for _, d := range docs {
		if !d.failed.IsZero() {
			failed++
		}
		most = max(most, d.maxRetries)
	}
	assert.Zero(w.t, failed, "poison messages of %d documents", len(docs))
	assert.LessOrEqual(w.t, most, retries, "the highest retry_count of %d documents", len(docs))
}

// allCommitted asserts that of documents none is left.
func (w *world) allCommitted(docs []*doc) {
	w.t.Helper()
	left := w.uncommitted(docs)
	if len(left) == 0 {
		return
	}
	require.Empty(w.t, len(left), "of %d documents not committed, the first is %+v", len(docs), w.state(left[0]))
}

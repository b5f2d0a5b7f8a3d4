package commit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The bounds of the recovery timer.
const (
	// lagIsOld is the age at which a measured lag of the feed is ignored, because the feed may have stopped.
	lagIsOld = 15 * time.Minute
	// stopBefore is the time before its deadline in which the timer starts no more work. tickFor is its working time
	// without a deadline.
	stopBefore = 30 * time.Second
	tickFor    = 4 * time.Minute
	// mostFailing bounds the failed documents of one tick. With twelve ticks an hour and the requests that find them, this
	// is less than 6,000 requests an hour. Successful documents have no bound.
	mostFailing = 460
)

// Recover finds the documents that no trigger finished, and commits them. Each window has a share of the tick's time and
// failures, and continues where the last tick stopped, so that no window blocks another. Documents are read again before
// any decision, and every change is a compare-and-set, so a trigger's concurrent write stays.
type Recover struct {
	commit  *Commit
	backlog Backlog

	mu sync.Mutex
	// stopped is each window's position at the end of the last tick.
	stopped map[Window]place
	// well is the present succession of ticks without an error.
	well succession
}

// place is a position in a window: a page, and the documents of it that were taken.
type place struct {
	page string
	done map[string]bool
}

// NewRecover makes a Recover over a Commit and a Backlog.
func NewRecover(commit *Commit, backlog Backlog) *Recover {
	return &Recover{commit: commit, backlog: backlog, stopped: map[Window]place{}}
}

// Recovered is the result of one tick.
type Recovered struct {
	// Report sums the reports of Commit.
	Report
	// Found counts the documents of each window that were taken.
	Found map[Window]int
	// Missed counts the orphans that the feed should have brought (ADR 0022).
	Missed int
	// More names the windows that the tick did not finish.
	More []Window
	// Oldest is the age, by _ts, of the oldest document found.
	Oldest time.Duration
	// Flow describes the breaker when it stopped the tick; empty otherwise. State is its state after the tick.
	Flow  string
	State breaker.Name
	// Off is the reason why the tick did not run; the counts are then meaningless. It is empty after a tick.
	Off string
}

// Run is RunAs with an empty batchID.
func (r *Recover) Run(ctx context.Context) (Recovered, error) { return r.RunAs(ctx, "") }

// RunAs does one tick: the heartbeat first, then the windows. batchID becomes Batch.BatchID, which the evidence of poison
// pills names. RunAs ends early and without an error when the breaker is open. A window that cannot be read does not stop the
// others. Errors by kind: infrastructure, throttled, quota; the next tick continues.
func (r *Recover) RunAs(ctx context.Context, batchID string) (Recovered, error) {
	t := &tick{r: r, batchID: batchID, now: r.commit.o.Now(), seen: map[string]bool{}}
	wellSince := r.tickBegins(t.now)
	t.found = Recovered{Report: Report{Outcomes: map[string]int{}, Kinds: map[string]int{}}, Found: map[Window]int{}}
	err := r.commit.breaker.Tick(ctx)
	if err == nil {
		t.missing = r.missingSince(ctx, wellSince, t.now)
		err = t.windows(ctx)
		t.tellMissing(ctx, err)
	}
	r.tickEnds(err)
	r.commit.breaker.Note(ctx, breaker.FeedLag{})
	state := r.commit.breaker.Seen().Control.Breaker
	t.found.State = cmp.Or(state.Name, breaker.Closed)
	if breaker.IsRefusal(err) {
		t.found.Flow = state.Describe(r.commit.o.Now().UTC())
		err = nil
	}
	return t.found, err
}

// tick is the state of one RunAs.
type tick struct {
	r       *Recover
	batchID string
	now     time.Time
	found   Recovered
	// seen has the documents taken in this tick: one that cannot be patched stays due.
	seen map[string]bool
	// failing counts the documents that failed in this tick.
	failing int
	missing missing
}

// windows works on each window in turn. A window may use the time and failures that earlier ones left.
func (t *tick) windows(ctx context.Context) error {
	end := t.now.Add(tickFor)
	if deadline, ok := ctx.Deadline(); ok {
		end = deadline
	}
	left := end.Add(-stopBefore).Sub(t.now)
	all := Windows()
	var first error
	for i, w := range all {
		share := time.Duration(i + 1)
		err := t.window(ctx, w, t.now.Add(left*share/time.Duration(len(all))), mostFailing*(i+1)/len(all))
		if breaker.IsRefusal(err) || ctx.Err() != nil {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// window takes the documents of one window, until it has no more, its time is over, or too many failed.
func (t *tick) window(ctx context.Context, w Window, end time.Time, mostFailing int) error {
	at := t.r.goOn(w)
	wrapped, begunAgain := at.page == "", false
	failed := 0
	var first error
	over := func() bool { return !t.r.commit.o.Now().Before(end) || t.failing >= mostFailing }
	for {
		if over() {
			t.found.More = append(t.found.More, w)
			t.r.stop(w, at)
			return first
		}
		page, next, err := t.r.backlog.Page(ctx, t.query(ctx, w), at.page)
		refused := fault.KindOf(err) == fault.Document && at.page != "" // the continuation is not valid any more
		switch {
		case refused && !begunAgain:
			at, wrapped, begunAgain = place{}, true, true
			continue
		case refused:
			t.r.stop(w, place{})
			return asDependency(err)
		case err != nil:
			t.r.stop(w, at)
			return asDependency(err)
		}
		ids := t.fresh(page, at.done)
		at.done = map[string]bool{}
		for _, d := range page {
			at.done[d.ID] = !slices.Contains(ids, d.ID)
		}
		for len(ids) > 0 && !over() {
			n := min(len(ids), mostFailing-t.failing)
			err := t.take(ctx, w, ids[:n], end, at.done)
			if ids = ids[n:]; err == nil {
				failed = 0
				continue
			}
			if first == nil {
				first = err
			}
			if failed++; failed > 1 || breaker.IsRefusal(err) { // two in a row: not the error of a single document
				t.r.stop(w, at)
				return err
			}
		}
		switch {
		case over() && slices.Contains(slices.Collect(maps.Values(at.done)), false): // the next tick takes the rest of the page
		case next != "":
			at = place{page: next}
		case wrapped:
			t.r.stop(w, place{})
			return first
		default:
			at, wrapped = place{}, true
		}
	}
}

// query asks for a window as of now: a document applied during the tick makes postponed ones due.
func (t *tick) query(ctx context.Context, w Window) WindowQuery {
	now := t.r.commit.o.Now()
	q := WindowQuery{
		SysName: t.r.commit.o.SysName, Window: w, Now: now.Unix(), OldWriterBefore: now.Add(-invoice.OrphanAge).Unix(),
		AppliedBefore: t.r.commit.dueBefore(ctx),
	}
	age := invoice.OrphanAge
	if feed := t.r.commit.breaker.View(ctx).Control.Feed; now.Sub(feed.At) < lagIsOld {
		age = max(age, 2*time.Duration(feed.Seconds)*time.Second)
	}
	q.LeftBefore = now.Add(-age).Unix()
	return q
}

// fresh gives the ids of a page that were not taken yet. Undecided documents come first, because most of them are good.
func (t *tick) fresh(page []PendingDoc, done map[string]bool) []string {
	var ids, later []string
	for _, d := range page {
		switch {
		case t.seen[d.ID] || done[d.ID]:
			continue
		case d.Code == codeUndecided:
			ids = append(ids, d.ID)
		default:
			later = append(later, d.ID)
		}
		t.found.Oldest = max(t.found.Oldest, t.now.Sub(time.Unix(d.TS, 0)))
	}
	return append(ids, later...)
}

// take reads documents again and commits them. done gets those with a result.
func (t *tick) take(ctx context.Context, w Window, ids []string, end time.Time, done map[string]bool) error {
	for _, id := range ids {
		t.seen[id] = true
	}
	t.found.Found[w] += len(ids)
	t.found.Documents += len(ids)
	raws, err := t.r.commit.docs.ReadMany(ctx, ids)
	if err != nil {
		t.found.Outcomes["waiting"] += len(ids)
		return asDependency(err)
	}
	var mu sync.Mutex
	late := map[string]bool{}
	finished := func(d DocumentResult) {
		mu.Lock()
		defer mu.Unlock()
		done[d.ID], late[d.ID] = true, broughtLate(d.Outcome)
	}
	report, err := t.r.commit.Run(ctx, Batch{
		Documents: raws, Received: t.r.commit.o.Now(), Purpose: FromTimer, BatchID: t.batchID, DivideUntil: end,
		OneByOne: w == PutOff, OnResult: finished,
	})
	if w == Orphans {
		t.missing.look(raws, late, t.now)
	}
	t.found.add(report)
	t.found.Reads++
	if gone := len(ids) - len(raws); gone > 0 {
		t.found.Outcomes["gone"] += gone
	}
	for _, outcome := range []string{string(invoice.RetryScheduled), string(invoice.Failed), "left"} {
		t.failing += report.Outcomes[outcome]
	}
	return err
}

func (r *Recover) goOn(w Window) place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped[w]
}

func (r *Recover) stop(w Window, at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped[w] = at
}

func (r *Report) add(o Report) {
	for outcome, n := range o.Outcomes {
		r.Outcomes[outcome] += n
	}
	for kind, n := range o.Kinds {
		r.Kinds[kind] += n
	}
	r.SQLRequests += o.SQLRequests
	r.SQL += o.SQL
	r.Reads += o.Reads
	r.Writes += o.Writes
	r.Cosmos += o.Cosmos
}

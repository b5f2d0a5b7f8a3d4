package commit

import (
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
	// lagIsOld is from when a note of the feed's lag says nothing any more: the feed may stand still.
	lagIsOld = 15 * time.Minute
	// stopBefore is how long before its deadline the timer starts no more work, and tickFor how long it works without one.
	stopBefore = 30 * time.Second
	tickFor    = 4 * time.Minute
	// mostFailing is how many documents of one tick may fail: with twelve ticks and the requests that find them, less than
	// 6,000 requests an hour. Those that succeed are not bounded.
	mostFailing = 460
)

// Recover finds the documents that no trigger finished and passes them to the same Commit. Each window has a share of the
// tick's time and of the failures that it may have, and goes on where the last tick stopped, so that no part of what waits
// holds up another. It reads documents again before it decides, and every change is compare-and-set, so what a trigger wrote
// meanwhile stays.
type Recover struct {
	commit  *Commit
	backlog Backlog

	mu sync.Mutex
	// stopped is where each window stopped.
	stopped map[Window]place
}

// place is where a window goes on: a page, and the documents of it that had their turn.
type place struct {
	page string
	done map[string]bool
}

// NewRecover makes a Recover that hands on to commit.
func NewRecover(commit *Commit, backlog Backlog) *Recover {
	return &Recover{commit: commit, backlog: backlog, stopped: map[Window]place{}}
}

// Recovered is what one tick found and did.
type Recovered struct {
	// Report adds up what Commit said.
	Report
	// Found counts the documents of each window that were taken up.
	Found map[Window]int
	// More names the windows that have more than the tick came to.
	More []Window
	// Oldest is the age of the document that has waited longest of those found, by its _ts.
	Oldest time.Duration
	// Flow says for people what the breaker does, when it kept the tick from working.
	Flow string
	// Off says for people why the queue was not looked at: the counts then say nothing. It is empty after a tick.
	Off string
}

// Run does one tick that has no name: RunAs with an empty job.
func (r *Recover) Run(ctx context.Context) (Recovered, error) { return r.RunAs(ctx, "") }

// RunAs does one tick: the heartbeat first, then the windows. job is named in the evidence of the poison messages it makes
// (Batch.Job). It ends early, and without an error, when the breaker is open. A window that cannot be read keeps nobody from the
// others. Errors by kind: infrastructure, throttled, quota; the next tick goes on.
func (r *Recover) RunAs(ctx context.Context, job string) (Recovered, error) {
	t := &tick{r: r, batchID: job, now: r.commit.o.Now(), seen: map[string]bool{}}
	t.found = Recovered{Report: Report{Outcomes: map[string]int{}, Kinds: map[string]int{}}, Found: map[Window]int{}}
	err := r.commit.breaker.Tick(ctx)
	if err == nil {
		err = t.windows(ctx)
	}
	r.commit.breaker.Note(ctx, breaker.FeedLag{})
	if breaker.IsRefusal(err) {
		t.found.Flow = r.commit.breaker.Seen().Control.Breaker.Describe(r.commit.o.Now())
		err = nil
	}
	return t.found, err
}

// tick is one RunAs under way.
type tick struct {
	r       *Recover
	batchID string
	now     time.Time
	found   Recovered
	// seen are the documents that were taken up: one that cannot be patched stays due.
	seen map[string]bool
	// failing counts the documents that were not committed.
	failing int
}

// windows looks at one window after the other. What one leaves of its share of time and failures the next may use.
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

// window takes up documents of one window until there are none, the time is over, or as many failed as may.
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
		refused := fault.KindOf(err) == fault.Document && at.page != "" // the place is none any more
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
			if failed++; failed > 1 || breaker.IsRefusal(err) { // two in a row: it is not one document's trouble
				t.r.stop(w, at)
				return err
			}
		}
		switch {
		case over() && slices.Contains(slices.Collect(maps.Values(at.done)), false): // the rest of the page goes on in the next tick
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

// query asks for a window as it is now: what is applied during the tick makes postponed documents due.
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

// fresh are the ids of a page that had no turn yet. Those that were put off with others go first: most of them are good.
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

// take reads documents again and commits them. done gets those that had their turn.
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
	told := func(d DocumentResult) {
		mu.Lock()
		defer mu.Unlock()
		done[d.ID] = true
	}
	report, err := t.r.commit.Run(ctx, Batch{
		Documents: raws, Received: t.r.commit.o.Now(), Purpose: FromTimer, BatchID: t.batchID, DivideUntil: end,
		OneByOne: w == PutOff, OnResult: told,
	})
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

// goOn is where a window goes on.
func (r *Recover) goOn(w Window) place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped[w]
}

// stop keeps where a window goes on.
func (r *Recover) stop(w Window, at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped[w] = at
}

// add adds up reports.
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

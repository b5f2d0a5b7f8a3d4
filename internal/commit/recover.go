package commit

import (
	"cmp"
	"context"
	"encoding/json"
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
	// mostFailing bounds the failed documents of one tick. With twelve ticks an hour and the requests that find them,
	// this is less than 6,000 requests an hour. Successful documents have no bound.
	mostFailing = 460
)

// Recover finds the documents that no trigger finished, and commits them. Each window has a share of the tick's time
// and failures, and continues where the last tick stopped, so that no window blocks another. Documents are read again
// before any decision, and every change is a compare-and-set, so a trigger's concurrent write stays.
type Recover struct {
	commit *Commit
	finder Finder

	mu sync.Mutex
	// stopped is the place at which each window stopped in the last tick.
	stopped map[Window]place
}

// place is a page of a search. An empty continuation is the begin of a new one. The query keeps the times of its first
// page, because a continuation is for that query only; documents that become due later are found by the next search.
type place struct {
	query        Query
	continuation string
}

// NewRecover makes a Recover over a Commit and a Finder.
func NewRecover(commit *Commit, finder Finder) *Recover {
	return &Recover{commit: commit, finder: finder, stopped: map[Window]place{}}
}

// RecoveredDocuments is the result of one tick.
type RecoveredDocuments struct {
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

// Run is RunAs with an empty id.
func (r *Recover) Run(ctx context.Context) (RecoveredDocuments, error) { return r.RunAs(ctx, "") }

// RunAs does one tick: the heartbeat first, then the windows. The invocation's id is in the evidence of poison
// messages. RunAs ends early and without an error when the breaker is open. A window that cannot be read does not stop
// the others. Errors by kind: infrastructure, throttled, quota; the next tick continues.
func (r *Recover) RunAs(ctx context.Context, invocationID string) (RecoveredDocuments, error) {
	t := &tick{r: r, invocationID: invocationID, now: r.commit.o.Now(), seen: map[string]bool{}}
	t.missed.At = t.now.UTC()
	t.found = RecoveredDocuments{
		Report: Report{Outcomes: map[invoice.Outcome]int{}, Kinds: map[string]int{}}, Found: map[Window]int{},
	}
	err := r.commit.breaker.Tick(ctx)
	if err == nil {
		err = t.windows(ctx)
		t.tellMissed(ctx, err)
	}
	r.commit.breaker.Note(ctx, breaker.FeedLag{})
	state := r.commit.breaker.Seen().Control.Breaker
	t.found.State = cmp.Or(state.Name, breaker.Closed)
	if breaker.IsRefusal(err) {
		t.found.Flow, err = fault.As(err).Reason, nil
	}
	return t.found, err
}

// tick is the state of one RunAs.
type tick struct {
	r            *Recover
	invocationID string
	now          time.Time
	found        RecoveredDocuments
	// seen has the documents taken in this tick: one that cannot be patched stays due.
	seen map[string]bool
	// failing counts the documents that failed in this tick.
	failing int
	// missed are the orphans that the feed should have brought.
	missed breaker.Missed
}

// quarters says how much of a tick is over when a window ends: half is for documents that nobody blames. What a window
// leaves, the next ones may use.
func (w Window) quarters() int {
	return map[Window]int{PutOff: 1, Orphans: 2, Blamed: 4}[w]
}

// windows works on each window in turn.
func (t *tick) windows(ctx context.Context) error {
	end := t.now.Add(tickFor)
	if deadline, ok := ctx.Deadline(); ok {
		end = deadline
	}
	left := end.Add(-stopBefore).Sub(t.now)
	var first error
	for _, w := range Windows() {
		err := t.window(ctx, w, t.now.Add(left*time.Duration(w.quarters())/4), mostFailing*w.quarters()/4)
		if breaker.IsRefusal(err) && !breaker.AnotherWrites(err) || ctx.Err() != nil {
			return err
		}
		if err != nil && (first == nil || breaker.AnotherWrites(first)) {
			first = err
		}
	}
	return first
}

// window takes the documents of one window, until it has no more, its time is over, or too many failed. The next tick
// begins with the page at which this one stopped.
func (t *tick) window(ctx context.Context, w Window, end time.Time, mostFailing int) (first error) {
	at := t.r.goOn(w)
	defer func() { t.r.stop(w, at) }()
	wrapped, failed := at.continuation == "", 0
	over := func() bool { return !t.r.commit.o.Now().Before(end) || t.failing >= mostFailing }
	for {
		if over() {
			t.found.More = append(t.found.More, w)
			return first
		}
		if at.continuation == "" {
			at.query = t.query(ctx, w)
		}
		page, err := t.r.finder.Find(ctx, at.query, at.continuation)
		switch {
		case err == nil:
		case fault.KindOf(err) == fault.Document && at.continuation != "": // it is not valid any more
			if at = (place{}); wrapped {
				return asDependency(err)
			}
			wrapped = true
			continue
		default:
			return asDependency(err)
		}
		found, err := PendingDocs(page.Documents)
		if err != nil {
			return asDependency(err)
		}
		ids := t.fresh(found)
		for len(ids) > 0 && !over() {
			n := min(len(ids), mostFailing-t.failing)
			err := t.take(ctx, w, ids[:n], end, over)
			if ids = ids[n:]; err == nil {
				failed = 0
				continue
			}
			first = cmp.Or(first, err)
			if failed++; failed > 1 || breaker.IsRefusal(err) { // two in a row: not the error of a single document
				return err
			}
		}
		switch {
		case len(ids) > 0: // the next tick takes the rest of the page
		case page.Next != "":
			at.continuation = page.Next
		case wrapped:
			at = place{}
			return first
		default:
			at, wrapped = place{}, true
		}
	}
}

// windowPage is the largest number of documents in a page of a window: as many as one request to SQL takes.
const windowPage = 100

// query asks for a window as of now: a document that is written during the tick makes postponed ones due.
func (t *tick) query(ctx context.Context, w Window) Query {
	now := t.r.commit.o.Now()
	age := invoice.OrphanAge
	if feed := t.r.commit.breaker.Seen().Control.Feed; now.Sub(feed.At) < lagIsOld {
		age = max(age, 2*time.Duration(feed.Seconds)*time.Second)
	}
	return Query{
		SysName: t.r.commit.o.SysName, Window: w, Members: PendingMembers(), Size: windowPage,
		Times: WindowTimes{
			Now: now.Unix(), AppliedBefore: t.r.commit.appliedBefore(ctx), LeftBefore: now.Add(-age).Unix(),
			OldWriterBefore: now.Add(-invoice.OrphanAge).Unix(),
		},
	}
}

// fresh gives the ids of a page that were not taken yet in this tick, those first that were tried longest ago.
// Undecided documents come before them, because most are good.
func (t *tick) fresh(page []PendingDoc) []string {
	page = slices.DeleteFunc(slices.Clone(page), func(d PendingDoc) bool { return t.seen[d.ID] })
	rank := func(d PendingDoc) int64 {
		if d.Code == codeUndecided {
			return 0
		}
		return d.TS
	}
	slices.SortStableFunc(page, func(a, b PendingDoc) int { return cmp.Compare(rank(a), rank(b)) })
	ids := make([]string, len(page))
	for i, d := range page {
		ids[i] = d.ID
		t.found.Oldest = max(t.found.Oldest, t.now.Sub(time.Unix(d.TS, 0)))
	}
	return ids
}

// take reads documents again and commits them. Those that wait for another writer's turn it takes again until the
// window's time is over: the next tick is minutes away.
func (t *tick) take(ctx context.Context, w Window, ids []string, end time.Time, over func() bool) error {
	for _, id := range ids {
		t.seen[id] = true
	}
	t.found.Found[w] += len(ids)
	t.found.Documents += len(ids)
	var read []json.RawMessage
	var mu sync.Mutex
	late := map[string]bool{}
	finished := func(d DocumentResult) {
		mu.Lock()
		defer mu.Unlock()
		late[d.ID] = broughtLate(d.Outcome)
	}
	if w == Orphans {
		defer func() { t.look(read, late) }()
	}
	for {
		raws, err := t.r.commit.docs.ReadMany(ctx, ids)
		if err != nil {
			t.found.Outcomes[invoice.OutcomeWaiting] += len(ids)
			return asDependency(err)
		}
		if read == nil {
			read = raws
		}
		report, err := t.r.commit.Run(ctx, Delivery{
			Documents: raws, Received: t.r.commit.o.Now(), Purpose: FromTimer,
			InvocationID: t.invocationID, DivideUntil: end,
			OneByOne: w == PutOff, OnResult: finished,
		})
		for _, outcome := range []invoice.Outcome{
			invoice.OutcomeRetryScheduled, invoice.OutcomeFailed, invoice.OutcomeLeft,
		} {
			t.failing += report.Outcomes[outcome]
		}
		again := breaker.AnotherWrites(err) && !over()
		if gone := len(ids) - len(raws); again {
			delete(report.Outcomes, invoice.OutcomeWaiting) // they are counted when they wait no more
			ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, is := late[id]; return is })
		} else if gone > 0 {
			t.found.Outcomes[invoice.OutcomeGone] += gone
		}
		t.found.add(report)
		t.found.Reads++
		if !again {
			return err
		}
	}
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

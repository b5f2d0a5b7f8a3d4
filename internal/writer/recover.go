package writer

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The bounds of the recovery timer.
const (
	// orphanAge is the least age of a pending document that no trigger will bring any more.
	orphanAge = 10 * time.Minute
	// lagIsOld is from when a note of the feed's lag says nothing any more: the feed may stand still.
	lagIsOld = 15 * time.Minute
	// stopBefore is how long before its deadline the timer starts no more work.
	stopBefore = 30 * time.Second
	// defaultPerTick is how many documents one tick takes up.
	defaultPerTick = 5000
)

// Recover finds the documents that no trigger finished and passes them to the same Commit: retries that are due, pending ones
// that were left behind, and those that the old writer left processing. It reads them again before it decides, and every
// change is compare-and-set, so what a trigger wrote meanwhile stays.
type Recover struct {
	commit  *Commit
	backlog Backlog
	// PerTick bounds how many documents one Run takes up: 5,000. More are left to the next.
	PerTick int
}

// NewRecover makes a Recover that hands on to commit.
func NewRecover(commit *Commit, backlog Backlog) *Recover {
	return &Recover{commit: commit, backlog: backlog, PerTick: defaultPerTick}
}

// Recovered is what one tick found and did.
type Recovered struct {
	// Report adds up what Commit said.
	Report
	// Due, Orphans and Processing count the documents that were found waiting: retries that are due, pending ones that were
	// left behind, and those of the old writer. More says that there are more than one tick takes up.
	Due, Orphans, Processing int
	More                     bool
	// Pending and Scheduled are the depth of the queue: documents that are pending, and that wait for a retry. With More
	// they are lower bounds.
	Pending, Scheduled int
	// Oldest is the age of the document that has waited longest, by its _ts.
	Oldest time.Duration
	// Gate says for people what the gate does, when it kept the tick from working.
	Gate string
	// Off says for people why the queue was not looked at: the counts then say nothing. It is empty after a tick.
	Off string
}

// Run does one tick that has no name: RunAs with an empty job.
func (r *Recover) Run(ctx context.Context) (Recovered, error) { return r.RunAs(ctx, "") }

// RunAs does one tick. job is named in the evidence of the poison pills it makes (Batch.Job). It ends early, and without an error, when the gate is open, and starts no batch when less than half a
// minute of the deadline is left. Errors by kind: infrastructure, throttled, quota, systemic; the next tick goes on.
func (r *Recover) RunAs(ctx context.Context, job string) (Recovered, error) {
	now := r.commit.o.Now()
	found := Recovered{Report: Report{Outcomes: map[string]int{}, Kinds: map[string]int{}}}
	waiting, err := r.find(ctx, now, &found)
	if err != nil {
		return found, err
	}
	found.Documents = len(waiting)
	var failed, first error // one batch that fails does not keep the others waiting
	for batch := range slices.Chunk(waiting, r.commit.o.MaxDocuments) {
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(r.commit.o.Now()) < stopBefore {
			break
		}
		if state := r.commit.gate.View(ctx).State(); state.Open() && !state.Due(r.commit.o.Now()) {
			found.Gate = state.Describe(r.commit.o.Now())
			break
		}
		last := failed
		if failed = r.take(ctx, job, batch, &found); IsGate(failed) {
			found.Gate = r.commit.gate.Seen().State().Describe(r.commit.o.Now())
			break
		}
		if first == nil {
			first = failed
		}
		if failed != nil && last != nil {
			break // two in a row: it is not one document's trouble
		}
	}
	return found.left(), first
}

// left counts what the tick did not come to.
func (r Recovered) left() Recovered {
	n := 0
	for _, count := range r.Outcomes {
		n += count
	}
	if rest := r.Documents - n; rest > 0 {
		r.Outcomes["waiting"] += rest
	}
	return r
}

// windowEdges divide the time before now, oldest first: the windows grow with their age, so that the many documents of the
// last hours come in small answers and the few old ones in one.
func windowEdges(now time.Time) []int64 {
	edges := []int64{0}
	for _, ago := range []time.Duration{720 * time.Hour, 168 * time.Hour, 48 * time.Hour, 12 * time.Hour, 3 * time.Hour, time.Hour, 0} {
		edges = append(edges, max(1, now.Add(-ago).Unix()+1))
	}
	return edges
}

// find gathers what waits, and counts the queue on the way.
func (r *Recover) find(ctx context.Context, now time.Time, found *Recovered) ([]Waiting, error) {
	before := r.orphanBefore(ctx, now)
	var all []Waiting
	oldest := int64(0)
	edges := windowEdges(now)
	for i := range len(edges) - 1 {
		err := r.backlog.Waiting(ctx, r.commit.o.SysName, []invoice.Status{invoice.Pending, invoice.RetryScheduled, invoice.Processing},
			edges[i], edges[i+1], func(page []Waiting) (bool, error) {
				for _, w := range page {
					if oldest == 0 || w.TS < oldest {
						oldest = w.TS
					}
					if found.due(w, now, before) {
						all = append(all, w)
					}
				}
				found.More = len(all) > r.PerTick
				return !found.More, nil
			})
		if err != nil {
			return nil, err
		}
		if found.More {
			break
		}
	}
	if oldest > 0 {
		found.Oldest = max(0, now.Sub(time.Unix(oldest, 0)))
	}
	slices.SortStableFunc(all, func(a, b Waiting) int { return int(a.since() - b.since()) })
	return all[:min(len(all), r.PerTick)], nil
}

// since is when a document's waiting for us began.
func (w Waiting) since() int64 {
	if w.Status == invoice.RetryScheduled && w.RetryAfter > 0 {
		return w.RetryAfter
	}
	return w.TS
}

// orphanBefore is the _ts before which a pending document was left behind: older than ten minutes, and twice as old as what
// the feed has yet to bring.
func (r *Recover) orphanBefore(ctx context.Context, now time.Time) int64 {
	age := orphanAge
	if feed := r.commit.gate.View(ctx).Control.Feed; now.Sub(feed.At) < lagIsOld {
		age = max(age, 2*time.Duration(feed.Seconds)*time.Second)
	}
	return now.Add(-age).Unix()
}

// due counts a document and reports whether it is to be taken up now.
func (r *Recovered) due(w Waiting, now time.Time, orphanBefore int64) bool {
	switch w.Status {
	case invoice.RetryScheduled:
		r.Scheduled++
		if w.RetryAfter > now.Unix() {
			return false
		}
		r.Due++
	case invoice.Pending:
		r.Pending++
		if w.TS >= orphanBefore {
			return false
		}
		r.Orphans++
	case invoice.Processing:
		if now.Sub(time.Unix(w.TS, 0)) <= orphanAge {
			return false
		}
		r.Processing++
	default:
		return false
	}
	return true
}

// take reads documents again and commits them as part of job.
func (r *Recover) take(ctx context.Context, job string, batch []Waiting, found *Recovered) error {
	ids := make([]string, len(batch))
	for i, w := range batch {
		ids[i] = w.ID
	}
	raws, err := r.commit.docs.ReadMany(ctx, ids)
	if err != nil {
		return asDependency(err)
	}
	report, err := r.commit.Run(ctx, Batch{Documents: raws, Received: r.commit.o.Now(), Purpose: FromTimer, Job: job})
	found.add(report)
	found.Reads++
	if gone := len(ids) - len(raws); gone > 0 {
		found.Outcomes["gone"] += gone
	}
	if err != nil && !fault.IsDependency(err) {
		err = asDependency(err)
	}
	return err
}

// add adds up reports; what waits is counted at the end.
func (r *Report) add(o Report) {
	for outcome, n := range o.Outcomes {
		if outcome != "waiting" {
			r.Outcomes[outcome] += n
		}
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

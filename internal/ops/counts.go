package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The bounds of the counting: Cosmos has no counter that it serves over partitions, so documents are listed.
const (
	// maxCounted bounds the documents that one count lists, maxMessages the messages of a queue.
	maxCounted  = 5000
	maxMessages = 500
	// countWithin bounds the time of counting documents, queueWithin that of looking into one queue.
	countWithin = 20 * time.Second
	queueWithin = 5 * time.Second
	// minTick and maxTick bound the interval of the recovery timer, as two successive counts show it. The lower one is
	// the documented schedule's, so that a tick by hand does not make the next one look late.
	minTick = 5 * time.Minute
	maxTick = time.Hour
)

// CountsStore keeps what the last tick saved of an environment, where all instances read it.
type CountsStore interface {
	// LoadCounts returns what is stored; the zero Saved when nothing is. Errors by kind: infrastructure (code
	// "unreadable" when they are not what was stored), throttled.
	LoadCounts(ctx context.Context) (Saved, error)
	// StoreCounts replaces what is stored. Errors by kind: infrastructure (they may have been stored), throttled.
	StoreCounts(ctx context.Context, c Saved) error
}

// Messages looks at the messages of one queue. It takes none.
type Messages interface {
	// Count counts active and dead-lettered messages among the first most of each, with the time of the oldest; AtLeast
	// says that there may be more. Locked messages are active; scheduled and deferred ones are not. Errors by kind:
	// infrastructure (code "unauthorized" without the right to look), throttled.
	Count(ctx context.Context, most int) (active, deadLettered Count, err error)
}

// NamedQueue is a queue that Counts describes.
type NamedQueue struct {
	Name string
	Messages
}

// Counts are the waiting and failed documents at a time, and the messages of the queues.
type Counts struct {
	At time.Time `json:"at"`
	// EverySeconds is the interval of the recovery timer, which counts.
	EverySeconds int64 `json:"every_s"`
	// Depth counts pending, retry_scheduled, processing and failed documents. Committed ones are not counted: that
	// would read the whole container.
	Depth map[invoice.Status]Count `json:"depth"`
	// Due counts scheduled retries whose time has come. PutOff counts retries whose last try was not judged. Postponed
	// counts those whose retries are spent: the next failure may be the last.
	Due       int `json:"due"`
	PutOff    int `json:"put_off"`
	Postponed int `json:"postponed"`
	// Oldest is the document that has waited longest since it was first seen; nil when none waits.
	Oldest *Oldest `json:"oldest,omitempty"`
	// Groups are waiting and failed documents that have an error, by status, kind and code, most first.
	Groups []Group `json:"groups"`
	// PoisonLastHour counts the documents that failed in the last 60 minutes.
	PoisonLastHour int `json:"poison_last_60_min"`
	// Queues are the queues of the runs.
	Queues []QueueCount `json:"queues"`
	// Findings are those of comparisons; nil when they were never counted. FindingsUnknown says why this tick could not
	// count them, and Findings are then older.
	Findings        *Found `json:"findings,omitempty"`
	FindingsUnknown string `json:"findings_unknown,omitempty"`
}

// Count is a number of documents or messages.
type Count struct {
	Documents int `json:"documents"`
	// AtLeast says that the count ended early: there may be more.
	AtLeast bool `json:"at_least,omitempty"`
	// Since is when the oldest of these messages was sent; zero of documents, and when there is none.
	Since time.Time `json:"since,omitzero"`
}

// Add counts a message that was sent at a time.
func (c *Count) Add(sent time.Time) {
	if c.Documents++; c.Since.IsZero() || sent.Before(c.Since) {
		c.Since = sent.UTC()
	}
}

// String is the number; "at least" comes before it when there may be more.
func (c Count) String() string {
	if c.AtLeast {
		return "at least " + strconv.Itoa(c.Documents)
	}
	return strconv.Itoa(c.Documents)
}

// Oldest is the document that has waited longest.
type Oldest struct {
	ID     string         `json:"id"`
	Status invoice.Status `json:"status"`
	// Since is when it was first seen (docs/rules.md).
	Since      time.Time `json:"since"`
	AgeSeconds int64     `json:"age_seconds"`
}

// Group is documents with the same status, kind and code.
type Group struct {
	Status    invoice.Status `json:"status"`
	Kind      string         `json:"kind"`
	Code      string         `json:"code"`
	Documents Count          `json:"documents"`
	// First and Last are the times of the earliest and the latest last error.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Sample is the id of the latest, Line its main line; 0 when it names none.
	Sample string `json:"sample"`
	Line   int64  `json:"line,omitempty"`
	// Retry is the command that retries the group; empty when nothing is to retry, or when no filter selects the group
	// alone.
	Retry string `json:"retry,omitempty"`
}

// QueueCount counts the messages of a queue.
type QueueCount struct {
	Queue        string `json:"queue"`
	Active       Count  `json:"active"`
	DeadLettered Count  `json:"dead_lettered"`
	// Unknown says why they could not be counted.
	Unknown string `json:"unknown,omitempty"`
}

// SaveCounts counts documents, messages and findings, and stores the result with a sample, for Status and Day. It
// changes no document. Errors by kind: infrastructure, throttled; nothing is stored then.
func (o *Ops) SaveCounts(ctx context.Context) error {
	now := o.o.Now()
	c, oldest, err := o.count(ctx, now)
	if err != nil {
		return err
	}
	c.Findings, c.FindingsUnknown = o.countedFindings(ctx)
	c.EverySeconds = int64(minTick / time.Second)
	last, err := o.p.Counts.LoadCounts(ctx)
	if err != nil && fault.CodeOf(err) != "unreadable" {
		return err // to store without the samples up to now would lose them
	}
	if !last.At.IsZero() {
		c.EverySeconds = int64(min(max(now.Sub(last.At), minTick), maxTick) / time.Second)
		if c.FindingsUnknown != "" {
			c.Findings = last.Findings
		}
	}
	s, committed := sample(c, oldest, last, o.p.Breaker.View(ctx))
	return o.p.Counts.StoreCounts(ctx, Saved{Counts: c, Samples: last.Samples.with(s), Committed: committed})
}

// count counts as of now. untried is since when the oldest pending document waits; zero when none does.
func (o *Ops) count(ctx context.Context, now time.Time) (c Counts, untried time.Time, err error) {
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	c = Counts{At: now.UTC(), Depth: map[invoice.Status]Count{}, Groups: []Group{}, Queues: []QueueCount{}}
	groups := map[groupKey]*Group{}
	for _, part := range []struct {
		statuses []invoice.Status
		newest   bool
	}{
		// a flood of failed ones must not hide these
		{[]invoice.Status{invoice.Pending, invoice.RetryScheduled, invoice.Processing}, false},
		// nor old failures the latest
		{[]invoice.Status{invoice.Failed}, true},
	} {
		atLeast, err := o.scan(counting, part.statuses, part.newest, now, func(doc commit.PendingDoc) {
			o.add(&c, doc, now, groups)
			if since := o.firstSeen(doc); doc.Status == invoice.Pending && (untried.IsZero() || since.Before(untried)) {
				untried = since
			}
		})
		if err != nil && (counting.Err() == nil || ctx.Err() != nil) {
			return Counts{}, time.Time{}, err
		}
		for _, status := range part.statuses {
			n := c.Depth[status]
			n.AtLeast = atLeast || err != nil
			c.Depth[status] = n
		}
	}
	for _, g := range groups {
		g.Documents.AtLeast, g.Retry = c.Depth[g.Status].AtLeast, o.retry(g)
		c.Groups = append(c.Groups, *g)
	}
	slices.SortFunc(c.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Documents.Documents, a.Documents.Documents), cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
	})
	for _, q := range o.p.Queues {
		c.Queues = append(c.Queues, countQueue(ctx, q))
	}
	return c, untried, nil
}

// countQueue looks into one queue.
func countQueue(ctx context.Context, q NamedQueue) QueueCount {
	ctx, cancel := context.WithTimeout(ctx, queueWithin)
	defer cancel()
	active, dead, err := q.Count(ctx, maxMessages)
	switch {
	case err == nil:
		return QueueCount{Queue: q.Name, Active: active, DeadLettered: dead}
	case fault.CodeOf(err) == "unauthorized":
		return QueueCount{Queue: q.Name, Unknown: "no right to ask"}
	}
	return QueueCount{Queue: q.Name, Unknown: errorText(err)}
}

type groupKey struct {
	status     invoice.Status
	kind, code string
}

// add counts one document.
func (o *Ops) add(c *Counts, doc commit.PendingDoc, now time.Time, groups map[groupKey]*Group) {
	n := c.Depth[doc.Status]
	n.Documents++
	c.Depth[doc.Status] = n
	if doc.Status == invoice.RetryScheduled && invoice.Due(doc.RetryAfter, now) {
		c.Due++
	}
	switch {
	case doc.Status != invoice.RetryScheduled:
	case isPutOff(doc.Kind):
		c.PutOff++
	case doc.Postponed:
		c.Postponed++
	}
	if at := o.stamp(doc.FailedAt); doc.Status == invoice.Failed && now.Sub(at) < time.Hour {
		c.PoisonLastHour++
	}
	if doc.Kind != "" || doc.Code != "" || doc.Status == invoice.Failed {
		key := groupKey{doc.Status, doc.Kind, doc.Code}
		if groups[key] == nil {
			groups[key] = &Group{Status: doc.Status, Kind: doc.Kind, Code: doc.Code}
		}
		groups[key].add(doc, o.lastError(doc))
	}
	since := o.firstSeen(doc)
	if doc.Status != invoice.Failed && (c.Oldest == nil || since.Before(c.Oldest.Since)) {
		c.Oldest = &Oldest{ID: doc.ID, Status: doc.Status, Since: since}
	}
}

// firstSeen is when a waiting document was first seen: its oldest remembered attempt, or its last change if that is
// earlier (docs/rules.md).
func (o *Ops) firstSeen(doc commit.PendingDoc) time.Time {
	changed := time.Unix(doc.TS, 0).UTC()
	if first := o.stamp(doc.FirstAt); !first.IsZero() && first.Before(changed) {
		return first.UTC()
	}
	return changed
}

// lastError is the time of a document's last error; its last change if it does not say.
func (o *Ops) lastError(doc commit.PendingDoc) time.Time {
	if at := o.stamp(doc.ErrorAt); !at.IsZero() {
		return at.UTC()
	}
	return time.Unix(doc.TS, 0).UTC()
}

// add adds a document whose last error was at a time.
func (g *Group) add(doc commit.PendingDoc, at time.Time) {
	g.Documents.Documents++
	if g.First.IsZero() || at.Before(g.First) {
		g.First = at
	}
	if g.Last.IsZero() || at.After(g.Last) {
		g.Last, g.Sample, g.Line = at, doc.ID, doc.Line
	}
}

// retry is the command that retries the group and no other, now. Failed documents need one. Those that wait for a retry
// after a failure of their own come again by themselves, but whoever mended the cause need not wait. Documents that
// were put off wait for a dependency.
func (o *Ops) retry(g *Group) string {
	s, err := o.search(DocumentFilter{Status: g.Status, Kind: g.Kind, ErrorCode: g.Code})
	retried := g.Status == invoice.Failed || (g.Status == invoice.RetryScheduled && !isPutOff(g.Kind))
	if !retried || g.Kind == "" || g.Code == "" || err != nil || s.Code != g.Code {
		return "" // a filter cannot ask for no code, and refuses one that another program wrote
	}
	return fmt.Sprintf(`sqlwriterctl document retry --status %s --kind %s --error-code %s --why "..."`,
		g.Status, g.Kind, g.Code)
}

// isPutOff reports whether a document's last error, by its kind, did not count as a try.
func isPutOff(kind string) bool { return slices.Contains(commit.PutOffKinds(), fault.Kind(kind)) }

// scan lists documents by status, window by window from the oldest or from the newest, at most maxCounted. atLeast says
// that there may be more.
func (o *Ops) scan(
	ctx context.Context, statuses []invoice.Status, newest bool, now time.Time, take func(commit.PendingDoc),
) (atLeast bool, err error) {
	taken := 0
	edges := windowEdges(now)
	for i := range len(edges) - 1 {
		if newest {
			i = len(edges) - 2 - i
		}
		q := commit.Query{
			SysName: o.o.SysName, Statuses: statuses, From: edges[i], To: edges[i+1],
			Members: commit.PendingMembers(), Size: commit.MaxPage,
		}
		err := commit.Each(ctx, o.p.Finder, q, func(page commit.Page) (more bool, err error) {
			docs, err := commit.PendingDocs(page.Documents)
			if err != nil {
				return false, err
			}
			for _, doc := range docs {
				if atLeast = taken == maxCounted; atLeast {
					return false, nil
				}
				take(doc)
				taken++
			}
			return true, nil
		})
		if err != nil || atLeast {
			return atLeast, err
		}
	}
	return false, nil
}

// windowEdges are the bounds of the windows of _ts. Old documents are rare, so older windows are longer.
func windowEdges(now time.Time) []int64 {
	edges := []int64{0}
	for _, ago := range []time.Duration{
		720 * time.Hour, 168 * time.Hour, 48 * time.Hour, 12 * time.Hour, 3 * time.Hour, time.Hour, -invoice.ClockSkew,
	} {
		if edge := now.Add(-ago).Unix() + 1; edge > edges[len(edges)-1] {
			edges = append(edges, edge)
		}
	}
	return edges
}

package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The bounds of the counting: Cosmos has no counter that it serves over partitions, so documents are listed.
const (
	// maxCounted bounds the documents that one count lists.
	maxCounted = 5000
	// countWithin bounds the time of counting.
	countWithin = 20 * time.Second
)

// Counts are the waiting and failed documents at a time, and the messages of the queues.
type Counts struct {
	At time.Time `json:"at"`
	// Depth counts pending, retry_scheduled, processing and failed documents. Committed ones are not counted: that would read the whole
	// container.
	Depth map[invoice.Status]Count `json:"depth"`
	// Due counts scheduled retries whose time has come. PutOff counts retries whose last try was not judged. Postponed counts those that
	// wait until other documents succeed.
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
}

// Count is a number of documents or messages.
type Count struct {
	Documents int `json:"documents"`
	// AtLeast says that the count ended early: there may be more.
	AtLeast bool `json:"at_least,omitempty"`
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
	// Retry is the command that retries the group; empty when nothing is to retry.
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

// count lists waiting and failed documents and counts them. Errors by kind: infrastructure, throttled.
func (o *Ops) count(ctx context.Context, now time.Time) (Counts, error) {
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	c := Counts{At: o.in(now), Depth: map[invoice.Status]Count{}, Groups: []Group{}, Queues: []QueueCount{}}
	groups := map[groupKey]*Group{}
	for _, statuses := range [][]invoice.Status{
		{invoice.Pending, invoice.RetryScheduled, invoice.Processing}, // a flood of failed ones must not hide these
		{invoice.Failed},
	} {
		atLeast, err := o.scan(counting, statuses, 0, now, maxCounted, func(doc commit.PendingDoc) bool {
			c.add(doc, now, groups)
			return true
		})
		if err != nil && (counting.Err() == nil || ctx.Err() != nil) {
			return Counts{}, err
		}
		for _, status := range statuses {
			n := c.Depth[status]
			n.AtLeast = atLeast || err != nil
			c.Depth[status] = n
		}
	}
	for _, g := range groups {
		g.Documents.AtLeast = c.Depth[g.Status].AtLeast
		c.Groups = append(c.Groups, *g)
	}
	slices.SortFunc(c.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Documents.Documents, a.Documents.Documents), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
	})
	return c, nil
}

type groupKey struct {
	status     invoice.Status
	kind, code string
}

// add counts one document.
func (c *Counts) add(doc commit.PendingDoc, now time.Time, groups map[groupKey]*Group) {
	n := c.Depth[doc.Status]
	n.Documents++
	c.Depth[doc.Status] = n
	if doc.Status == invoice.RetryScheduled && invoice.Due(doc.RetryAfter, now) {
		c.Due++
	}
	switch {
	case doc.Status != invoice.RetryScheduled:
	case deferred(doc.Kind):
		c.PutOff++
	case doc.Postponed:
		c.Postponed++
	}
	if doc.Kind != "" || doc.Code != "" || doc.Status == invoice.Failed {
		key := groupKey{doc.Status, doc.Kind, doc.Code}
		if groups[key] == nil {
			groups[key] = &Group{Status: doc.Status, Kind: doc.Kind, Code: doc.Code, Sample: doc.ID}
		}
		groups[key].Documents.Documents++
	}
	since := time.Unix(doc.TS, 0)
	if doc.Status != invoice.Failed && (c.Oldest == nil || since.Before(c.Oldest.Since)) {
		c.Oldest = &Oldest{ID: doc.ID, Status: doc.Status, Since: since, AgeSeconds: max(0, int64(now.Sub(since)/time.Second))}
	}
}

// deferred reports whether a document's last error, by its kind, did not count as a try.
func deferred(kind string) bool { return slices.Contains(commit.PutOffKinds(), fault.Kind(kind)) }

// scan lists documents by status from a _ts on, oldest windows first, until take has accepted most of them. atLeast says that there may
// be more.
func (o *Ops) scan(ctx context.Context, statuses []invoice.Status, from int64, now time.Time, most int, take func(commit.PendingDoc) bool) (atLeast bool, err error) {
	taken := 0
	edges := windowEdges(from, now)
	for i := range len(edges) - 1 {
		err := o.p.Backlog.PendingDocs(ctx, o.o.SysName, statuses, edges[i], edges[i+1], func(page []commit.PendingDoc) (bool, error) {
			for _, doc := range page {
				if atLeast = taken == most; atLeast {
					return false, nil
				}
				if take(doc) {
					taken++
				}
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
func windowEdges(from int64, now time.Time) []int64 {
	edges := []int64{from}
	for _, ago := range []time.Duration{720 * time.Hour, 168 * time.Hour, 48 * time.Hour, 12 * time.Hour, 3 * time.Hour, time.Hour, -invoice.ClockSkew} {
		if edge := now.Add(-ago).Unix() + 1; edge > edges[len(edges)-1] {
			edges = append(edges, edge)
		}
	}
	return edges
}

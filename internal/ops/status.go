package ops

import (
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

// Status is a summary of documents and flow.
type Status struct {
	SysName string `json:"sys_name"`
	// At is when this was true, in the deployment's time zone, as all times are.
	At time.Time `json:"at"`
	// Depth counts pending, retry_scheduled, processing and failed documents. Committed ones are not counted: that would read the whole
	// container.
	Depth map[invoice.Status]Count `json:"depth"`
	// Due counts scheduled retries whose time has come. PutOff counts retries whose last try was not judged. Postponed counts those that
	// wait until other documents succeed.
	Due       int `json:"due"`
	PutOff    int `json:"put_off"`
	Postponed int `json:"postponed"`
	// Oldest is the document that has waited longest since its last change; nil when none waits.
	Oldest *Oldest `json:"oldest,omitempty"`
	// Failures counts waiting and failed documents that have an error, by status, kind and code, most first.
	Failures []Failures `json:"failures"`
	Flow     FlowView   `json:"flow"`
	// MassFailures are codes with which many documents recently began to fail.
	MassFailures []MassFailure `json:"mass_failures,omitempty"`
	// Feed is the change feed's last reported lag; nil when it never reported.
	Feed *Feed `json:"feed,omitempty"`
	// FeedMissed are documents that the change feed did not bring; nil when the recovery timer's last tick found none.
	FeedMissed *FeedMissed `json:"feed_missed,omitempty"`
	// PoisonThisHour counts the poison messages of the current hour.
	PoisonThisHour int `json:"poison_this_hour"`
	// AppVersion is the build that last wrote the control document; Version is the build that answers.
	AppVersion string `json:"app_version,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Count is a number of documents.
type Count struct {
	Documents int `json:"documents"`
	// AtLeast says that the count ended early: there may be more.
	AtLeast bool `json:"at_least,omitempty"`
}

// Oldest is the document that has waited longest.
type Oldest struct {
	ID     string         `json:"id"`
	Status invoice.Status `json:"status"`
	// Since is its _ts, the time of its last change.
	Since      time.Time `json:"since"`
	AgeSeconds int64     `json:"age_seconds"`
}

// Failures counts documents with the same status, kind and code.
type Failures struct {
	Status    invoice.Status `json:"status"`
	Kind      string         `json:"kind"`
	Code      string         `json:"code"`
	Documents int            `json:"documents"`
}

// Feed is the lag of the change feed.
type Feed struct {
	LagSeconds int64     `json:"lag_seconds"`
	At         time.Time `json:"at"`
}

// FeedMissed are documents that waited although nothing kept the change feed from bringing them.
type FeedMissed struct {
	Documents int `json:"documents"`
	// Oldest is when the first of them was written, At when the recovery timer took them up.
	Oldest time.Time `json:"oldest"`
	At     time.Time `json:"at"`
	// Sample is the id of one. Code is document.too_deep when the feed stops at it.
	Sample string `json:"sample"`
	Code   string `json:"code,omitempty"`
}

// MassFailure is a code with which many documents began to fail within a short time, while others succeed.
type MassFailure struct {
	Code      string    `json:"code"`
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
}

// Status counts waiting and failed documents and describes the flow, without SQL. Errors by kind: infrastructure, throttled.
func (o *Ops) Status(ctx context.Context) (Status, error) {
	now := o.o.Now()
	view := o.p.Breaker.View(ctx)
	s := Status{
		SysName: o.o.SysName, At: o.in(now), Flow: o.flowView(view), Depth: map[invoice.Status]Count{}, Failures: []Failures{},
		PoisonThisHour: view.Control.PoisonSince(now), AppVersion: view.Control.AppVersion, Version: o.o.AppVersion,
	}
	if feed := view.Control.Feed; !feed.At.IsZero() {
		s.Feed = &Feed{LagSeconds: feed.Seconds, At: o.in(feed.At)}
	}
	if m := view.Control.Missed; m.Documents > 0 {
		s.FeedMissed = &FeedMissed{Documents: m.Documents, Oldest: o.in(m.Oldest), At: o.in(m.At), Sample: m.Sample, Code: m.Code}
	}
	for _, m := range view.Control.MassFailures(now) {
		s.MassFailures = append(s.MassFailures, MassFailure{Code: m.Code, Documents: m.Documents, Since: o.in(m.Since)})
	}
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	failures := map[Failures]int{}
	for _, statuses := range [][]invoice.Status{
		{invoice.Pending, invoice.RetryScheduled, invoice.Processing}, // a flood of failed ones must not hide these
		{invoice.Failed},
	} {
		atLeast, err := o.scan(counting, statuses, 0, now, maxCounted, func(doc commit.PendingDoc) bool {
			s.count(doc, now, failures)
			return true
		})
		if err != nil && (counting.Err() == nil || ctx.Err() != nil) {
			return Status{}, err
		}
		for _, status := range statuses {
			c := s.Depth[status]
			c.AtLeast = atLeast || err != nil
			s.Depth[status] = c
		}
	}
	for f, n := range failures {
		f.Documents = n
		s.Failures = append(s.Failures, f)
	}
	sortFailures(s.Failures)
	if s.Oldest != nil {
		s.Oldest.Since = o.in(s.Oldest.Since)
	}
	return s, nil
}

func (s *Status) count(doc commit.PendingDoc, now time.Time, failures map[Failures]int) {
	c := s.Depth[doc.Status]
	c.Documents++
	s.Depth[doc.Status] = c
	if doc.Status == invoice.RetryScheduled && invoice.Due(doc.RetryAfter, now) {
		s.Due++
	}
	switch {
	case doc.Status != invoice.RetryScheduled:
	case deferred(doc.Kind):
		s.PutOff++
	case doc.Postponed:
		s.Postponed++
	}
	if doc.Kind != "" || doc.Code != "" || doc.Status == invoice.Failed {
		failures[Failures{Status: doc.Status, Kind: doc.Kind, Code: doc.Code}]++
	}
	since := time.Unix(doc.TS, 0)
	if doc.Status != invoice.Failed && (s.Oldest == nil || since.Before(s.Oldest.Since)) {
		s.Oldest = &Oldest{ID: doc.ID, Status: doc.Status, Since: since, AgeSeconds: max(0, int64(now.Sub(since)/time.Second))}
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

// in converts to the deployment's zone, in whole seconds; zero stays zero.
func (o *Ops) in(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(o.o.Location).Truncate(time.Second)
}

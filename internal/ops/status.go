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
	// mostCounted is how many documents one count lists at most.
	maxCounted = 5000
	// countWithin is how long the counting may take.
	countWithin = 20 * time.Second
)

// Status is how things stand.
type Status struct {
	SysName string `json:"sys_name"`
	// At is when this was true, in the deployment's time zone, as all times are.
	At time.Time `json:"at"`
	// Depth is how many documents are pending, retry_scheduled, processing or failed. Committed ones are not counted: that
	// would read the container.
	Depth map[invoice.Status]Count `json:"depth"`
	// Due counts the scheduled retries whose time has come, PutOff those that were tried and not judged, Postponed those that
	// wait until others get through.
	Due       int `json:"due"`
	PutOff    int `json:"put_off"`
	Postponed int `json:"postponed"`
	// Oldest is the document that has been waiting longest since it was last changed; nil when none waits.
	Oldest *Oldest `json:"oldest,omitempty"`
	// Failures are the documents that wait or failed after an error, by status, kind and code, most first.
	Failures []Failures `json:"failures"`
	Flow     FlowView   `json:"flow"`
	// MassFailures are the codes with which so many documents began to fail that somebody should look.
	MassFailures []MassFailure `json:"mass_failures,omitempty"`
	// Feed is how far the change feed was behind when it last said so; nil when it never did.
	Feed *Feed `json:"feed,omitempty"`
	// PoisonThisHour is how many poison pills the app has made in the running hour.
	PoisonThisHour int `json:"poison_this_hour"`
	// AppVersion is the build that last wrote the control document; Version is the one that answers.
	AppVersion string `json:"app_version,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Count is a number of documents.
type Count struct {
	Documents int `json:"documents"`
	// AtLeast says that the counting was broken off: there may be more.
	AtLeast bool `json:"at_least,omitempty"`
}

// Oldest is the document that waits longest.
type Oldest struct {
	ID     string         `json:"id"`
	Status invoice.Status `json:"status"`
	// Since is its _ts: when it was last changed.
	Since      time.Time `json:"since"`
	AgeSeconds int64     `json:"age_seconds"`
}

// Failures counts documents with one kind and code of error.
type Failures struct {
	Status    invoice.Status `json:"status"`
	Kind      string         `json:"kind"`
	Code      string         `json:"code"`
	Documents int            `json:"documents"`
}

// Feed is how far the change feed is behind.
type Feed struct {
	LagSeconds int64     `json:"lag_seconds"`
	At         time.Time `json:"at"`
}

// MassFailure is a code with which many documents began to fail within a short time. Others go on.
type MassFailure struct {
	Code      string    `json:"code"`
	Documents int       `json:"documents"`
	Since     time.Time `json:"since"`
}

// Status counts what waits and what failed, and says what the flow does. SQL is not asked. Errors by kind: infrastructure,
// throttled.
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

// count takes in one document.
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

// putOff reports whether a document whose last error is of the kind was tried and not judged.
func deferred(kind string) bool { return slices.Contains(commit.PutOffKinds(), fault.Kind(kind)) }

// scan lists the documents in statuses whose _ts is from on, the oldest windows first, until take has said yes to most of
// them; atLeast says that there may be more.
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

// windowEdges are the bounds of the windows of _ts that are searched one after the other: what is old is rare.
func windowEdges(from int64, now time.Time) []int64 {
	edges := []int64{from}
	for _, ago := range []time.Duration{720 * time.Hour, 168 * time.Hour, 48 * time.Hour, 12 * time.Hour, 3 * time.Hour, time.Hour, -invoice.ClockSkew} {
		if edge := now.Add(-ago).Unix() + 1; edge > edges[len(edges)-1] {
			edges = append(edges, edge)
		}
	}
	return edges
}

// in is a time in the deployment's zone, whole seconds; zero stays zero.
func (o *Ops) in(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(o.o.Location).Truncate(time.Second)
}

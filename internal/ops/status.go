package ops

import (
	"context"
	"fmt"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// The bounds of the counting: Cosmos has no counter that it serves over partitions, so documents are listed.
const (
	// mostCounted is how many documents one count lists at most.
	mostCounted = 5000
	// countWithin is how long the counting may take.
	countWithin = 20 * time.Second
	// clockAhead is how far the container's clock may be ahead of ours.
	clockAhead = time.Hour
)

// Status is how things stand.
type Status struct {
	SysName string `json:"sys_name"`
	// At is when this was true, in the deployment's time zone, as all times are.
	At time.Time `json:"at"`
	// Depth is how many documents are pending, retry_scheduled, processing or failed. Committed ones are not counted: that
	// would read the container.
	Depth map[invoice.Status]Count `json:"depth"`
	// Due counts the scheduled retries whose time has come.
	Due int `json:"due"`
	// Oldest is the document that has been waiting longest since it was last changed; nil when none waits.
	Oldest *Oldest `json:"oldest,omitempty"`
	// Failures are the documents that wait or failed after an error, by status, kind and code, most first.
	Failures []Failures `json:"failures"`
	Gate     GateView   `json:"gate"`
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

// GateView is the gate in front of SQL.
type GateView struct {
	// State is closed (work flows), open (nothing passes) or paused (an operator holds it open).
	State string `json:"state"`
	// Says is the same in words.
	Says   string     `json:"says"`
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Since  time.Time  `json:"since,omitzero"`
	// NextProbe is when the next probe may be made; zero unless the gate is open.
	NextProbe time.Time `json:"next_probe,omitzero"`
	// HeldBy is the instance that opened the gate or has the probe, or the operator who paused it.
	HeldBy string `json:"held_by,omitempty"`
	// Limit is the most documents of one request; 0 means that there is no limit but the writer's own.
	Limit int `json:"limit,omitempty"`
	// Own says that it is the gate of the answering instance alone; Lost that the control document cannot be had.
	Own  bool `json:"own,omitempty"`
	Lost bool `json:"lost,omitempty"`
}

// The states of a GateView.
const (
	GateClosed = "closed"
	GateOpen   = "open"
	GatePaused = "paused"
)

// Status counts what waits and what failed, and says what the gate does. SQL is not asked. Errors by kind: infrastructure,
// throttled.
func (o *Ops) Status(ctx context.Context) (Status, error) {
	now := o.o.Now()
	view := o.p.Gate.View(ctx)
	s := Status{
		SysName: o.o.SysName, At: o.in(now), Gate: o.gateView(view), Depth: map[invoice.Status]Count{}, Failures: []Failures{},
		AppVersion: view.Control.AppVersion, Version: o.o.AppVersion,
	}
	if feed := view.Control.Feed; !feed.At.IsZero() {
		s.Feed = &Feed{LagSeconds: feed.Seconds, At: o.in(feed.At)}
	}
	if poison := view.Control.Poison; poison.Hour.Equal(now.Truncate(time.Hour)) {
		s.PoisonThisHour = poison.Count
	}
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	failures := map[Failures]int{}
	for _, statuses := range [][]invoice.Status{
		{invoice.Pending, invoice.RetryScheduled, invoice.Processing}, // a flood of failed ones must not hide these
		{invoice.Failed},
	} {
		atLeast, err := o.scan(counting, statuses, 0, now, mostCounted, func(w writer.Waiting) bool {
			s.count(w, now, failures)
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
func (s *Status) count(w writer.Waiting, now time.Time, failures map[Failures]int) {
	c := s.Depth[w.Status]
	c.Documents++
	s.Depth[w.Status] = c
	if w.Status == invoice.RetryScheduled && invoice.Due(w.RetryAfter, now) {
		s.Due++
	}
	if w.Kind != "" || w.Code != "" || w.Status == invoice.Failed {
		failures[Failures{Status: w.Status, Kind: w.Kind, Code: w.Code}]++
	}
	since := time.Unix(w.TS, 0)
	if w.Status != invoice.Failed && (s.Oldest == nil || since.Before(s.Oldest.Since)) {
		s.Oldest = &Oldest{ID: w.ID, Status: w.Status, Since: since, AgeSeconds: max(0, int64(now.Sub(since)/time.Second))}
	}
}

// scan lists the documents in statuses whose _ts is from on, the oldest windows first, until take has said yes to most of
// them; atLeast says that there may be more.
func (o *Ops) scan(ctx context.Context, statuses []invoice.Status, from int64, now time.Time, most int, take func(writer.Waiting) bool) (atLeast bool, err error) {
	taken := 0
	edges := windowEdges(from, now)
	for i := range len(edges) - 1 {
		err := o.p.Backlog.Waiting(ctx, o.o.SysName, statuses, edges[i], edges[i+1], func(page []writer.Waiting) (bool, error) {
			for _, w := range page {
				if atLeast = taken == most; atLeast {
					return false, nil
				}
				if take(w) {
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
	for _, ago := range []time.Duration{720 * time.Hour, 168 * time.Hour, 48 * time.Hour, 12 * time.Hour, 3 * time.Hour, time.Hour, -clockAhead} {
		if edge := now.Add(-ago).Unix() + 1; edge > edges[len(edges)-1] {
			edges = append(edges, edge)
		}
	}
	return edges
}

// gateView is the gate for people.
func (o *Ops) gateView(v writer.View) GateView {
	state := v.State()
	g := GateView{
		State: GateClosed, Says: o.says(state), Since: o.in(state.Since), HeldBy: state.HeldBy, Limit: state.Limit,
		Own: v.Own.Open() && !v.Control.Gate.Open(), Lost: v.Lost,
	}
	switch {
	case state.Paused:
		g.State, g.Reason = GatePaused, state.Reason
	case state.Open():
		g.State, g.Kind, g.Code, g.Reason, g.NextProbe = GateOpen, state.Kind, state.Code, state.Reason, o.in(state.OpenUntil)
	}
	return g
}

// says is what the gate does, in words and in the deployment's time zone.
func (o *Ops) says(s writer.GateState) string {
	now := o.o.Now()
	switch {
	case s.Paused:
		return fmt.Sprintf("paused since %s by %s: %s", o.clock(s.Since, now), s.HeldBy, s.Reason)
	case s.Open():
		return fmt.Sprintf("open since %s (%s %s: %s), next probe %s, held by %s", o.clock(s.Since, now), s.Kind, s.Code, s.Reason,
			o.clock(s.OpenUntil, now), s.HeldBy)
	}
	return s.Describe(now)
}

// in is a time in the deployment's zone, whole seconds; zero stays zero.
func (o *Ops) in(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(o.o.Location).Truncate(time.Second)
}

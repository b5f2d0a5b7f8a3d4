package ui

import (
	"fmt"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// overview is what the page of the same name shows.
type overview struct {
	Status ops.Status
	Flow   flowSays
	// Needs are the dependencies.
	Needs []need
	Tiles []tile
	// Groups are waiting and failed documents by cause, the largest; MoreGroups counts the others.
	Groups     []group
	MoreGroups int
	// Runs are open ones, the oldest; MoreRuns counts the others.
	Runs     []ops.RunState
	MoreRuns int
	// Day is the graph of the last 24 hours; nil while there are too few samples, or the counts are not known.
	Day *dayGraph
	// Audits are the last actions, and AuditsUnknown says why they are not known.
	Audits        []run.Audit
	AuditsUnknown string
}

// flowSays is the flow in the words of the first sentence.
type flowSays struct {
	// Kind is that of a state: good, wait, bad.
	Kind, Word, Text string
	// Action is the page of the action that fits, and Name its name; both empty without one.
	Action, Name string
}

// need is a dependency in words.
type need struct {
	Kind, Name, Text string
	// Code is that of its failure.
	Code string
}

// tile is a number with a link to what it counts.
type tile struct {
	Name, Number, Text string
	// To is the page; empty when there is none.
	To string
}

// group is documents with one cause.
type group struct {
	ops.Group

	// List is the page of its documents, Retry that of the action; empty when the person may not, or the action does
	// not select the group.
	List, Retry string
	// ByItself says that the timer retries them.
	ByItself bool
}

// The page bounds what it shows: entries of the audit log, groups, runs.
const (
	lastActions = 5
	groupsShown = 10
	runsShown   = 5
)

// overview shows the state of everything. What cannot be read is said in its place.
func (v *visit) overview() (content, error) {
	var p overview
	var reading sync.WaitGroup
	reading.Go(func() {
		page, err := do(v, opsapi.AuditList, ops.AuditQuery{Limit: lastActions})
		p.Audits = page.Audits
		if err != nil {
			p.AuditsUnknown = reasonOf(err)
		}
	})
	status, err := do(v, opsapi.StatusGet, ops.StatusQuery{Day: true})
	reading.Wait()
	if err != nil {
		return content{}, err
	}
	p.Status = status
	p.Flow = v.flow(status)
	for _, d := range status.Dependencies {
		p.Needs = append(p.Needs, v.need(d, status))
	}
	var lastHour *ops.Committed
	if status.Day != nil {
		lastHour, p.Day = status.Day.LastHour, v.graph(*status.Day)
	}
	p.Tiles = v.tiles(status, lastHour)
	p.MoreRuns = max(0, len(status.Runs)-runsShown)
	p.Runs = status.Runs[:len(status.Runs)-p.MoreRuns]
	if c := status.Counts; c != nil {
		p.MoreGroups = max(0, len(c.Groups)-groupsShown)
		for _, g := range c.Groups[:len(c.Groups)-p.MoreGroups] {
			one := group{
				Group: g, List: string(link("documents", "status", g.Status, "kind", g.Kind, "error_code", g.Code)),
				ByItself: g.Status != invoice.Failed,
			}
			if v.Who.May() && g.Retry != "" { // else it waits for a dependency, or no filter selects it alone
				one.Retry = string(link("retry", "status", g.Status, "kind", g.Kind, "error_code", g.Code))
			}
			p.Groups = append(p.Groups, one)
		}
	}
	c := content{Title: "Overview", Command: "sqlwriterctl status", Main: p, Live: true}
	if v.site.o.Mode == "shadow" {
		c.Notices = append(c.Notices,
			Notice{"wait", "This is a shadow: it compares, and writes nothing to SQL or to documents."})
	}
	if status.CountsUnknown != "" {
		c.Notices = append(c.Notices,
			Notice{"wait", "The counts below are old or missing. They are " + v.site.says(status.CountsUnknown) + "."})
	}
	return c, nil
}

// flow says the flow in the words of `sqlwriterctl status`, for somebody who was just woken: since when, why, what is
// lost, what happens next.
func (v *visit) flow(s ops.Status) flowSays {
	f := s.Flow
	says := map[breaker.Flow]flowSays{
		breaker.Running:    {Kind: "good", Word: "Flowing", Action: "pause", Name: "Pause..."},
		breaker.RampingUp:  {Kind: "wait", Word: "Ramping up", Action: "pause", Name: "Pause..."},
		breaker.PausedFlow: {Kind: "wait", Word: "Paused by " + f.HeldBy, Action: "resume", Name: "Resume..."},
		breaker.StoppedFlow: {
			Kind: "bad", Word: "Stopped: nothing is written to SQL", Action: "resume", Name: "Probe now...",
		},
	}[f.State]
	switch {
	case f.Lost:
		says.Kind, says.Word, says.Action = "bad", "Cosmos DB does not answer", ""
	case f.State == breaker.StoppedFlow && (f.Code == breaker.CodeWentBack || f.Code == breaker.CodeOtherDatabase):
		// a probe would change nothing
		says.Word, says.Action = "Stopped: SQL is not the database that was written to last", ""
	}
	says.Text = "The flow is " + v.site.says(f.Says) + "."
	switch {
	case says.Kind != "good":
		says.Text += " Documents wait; none is lost, and no retry is spent."
	case s.Feed != nil:
		says.Text += fmt.Sprintf(" The change feed was %s behind at %s.",
			span(time.Duration(s.Feed.LagSeconds)*time.Second), v.site.clock(s.Feed.At))
	}
	if !v.Who.May() {
		says.Action = ""
	}
	return says
}

// need describes a dependency.
func (v *visit) need(d ops.DependencyView, s ops.Status) need {
	n := need{
		Kind: "good", Text: "answers", Code: d.Code,
		Name: map[string]string{
			ops.DepCosmos: "Cosmos DB", ops.DepSQL: "SQL Server", ops.DepServiceBus: "Service Bus",
			ops.DepBlob: "Blob storage", ops.DepTimer: "Timer",
		}[d.Name],
	}
	if n.Name == "" {
		n.Name = d.Name
	}
	switch d.State {
	case ops.DepFailing:
		n.Kind, n.Text = "bad", d.Reason
		if !d.Since.IsZero() {
			n.Text += " since " + v.site.clock(d.Since)
		}
	case ops.DepSilent:
		n.Kind, n.Text = "bad", v.site.says(d.Reason)
	case ops.DepUnknown:
		n.Kind, n.Text = "off", "not known yet"
		if d.Reason != "" {
			n.Text = v.site.says(d.Reason)
		}
	case ops.DepOK:
		if d.Name == ops.DepTimer && s.Counts != nil {
			n.Text = "counted at " + v.site.clock(s.Counts.At)
		}
	}
	return n
}

// tiles are the numbers of the last tick. What was committed is nil before there are two ticks.
func (v *visit) tiles(s ops.Status, committed *ops.Committed) []tile {
	unknown := func(name, to string) tile { return tile{Name: name, Number: "?", Text: "not known", To: to} }
	failed, waiting, retries := string(link("documents", "status", invoice.Failed)),
		string(link("documents", "status", invoice.Pending)),
		string(link("documents", "status", invoice.RetryScheduled))
	tiles := []tile{unknown("Waiting", waiting), unknown("Retry scheduled", retries), unknown("Failed", failed)}
	if c := s.Counts; c != nil {
		pending := c.Depth[invoice.Pending]
		pending.Documents += c.Depth[invoice.Processing].Documents
		waits, due := "none waited at "+v.site.clock(c.At), number(c.Due)+" due"
		if c.Oldest != nil {
			age := "oldest " + span(time.Duration(c.Oldest.AgeSeconds)*time.Second)
			switch {
			case c.Oldest.Status != invoice.RetryScheduled:
				waits = age
			case pending.Documents > 0:
				waits, due = "none older", due+", "+age
			default:
				due += ", " + age
			}
		}
		tiles = []tile{
			{"Waiting", counted(pending), waits, waiting},
			{"Retry scheduled", counted(c.Depth[invoice.RetryScheduled]), due, retries},
			{
				"Failed", counted(c.Depth[invoice.Failed]),
				fmt.Sprintf("%s in the last hour", number(c.PoisonLastHour)), failed,
			},
		}
	}
	written := tile{
		Name: "Committed", Number: "?", Text: "not known yet",
		To: string(link("documents", "status", invoice.Committed)),
	}
	if committed != nil {
		written.Number, written.Text = number(committed.Documents),
			"about, in the "+span(committed.To.Sub(committed.From))+" up to "+v.site.clock(committed.To)
	}
	tiles = append(tiles, written)
	others := 0
	for _, k := range s.Skipped {
		others += k.Documents
	}
	return append(tiles, tile{Name: "Not ours", Number: number(others), Text: "name another environment"})
}

// counted is a count; one that ended early says so.
func counted(c ops.Count) string {
	if c.AtLeast {
		return number(c.Documents) + "+"
	}
	return number(c.Documents)
}

package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/events"
	"sqlwriter/internal/invoice"
)

// The limits of what asks for attention.
const (
	// lagging is the lag from which the feed asks for attention; a lag reported longer ago than lagOld says nothing.
	lagging = 5 * time.Minute
	lagOld  = 15 * time.Minute
	// waitsTooLong is the age of a waiting document: all its retries take about two hours. workWaitsTooLong is that of
	// a message, or of a batch that no worker has.
	waitsTooLong     = 4 * time.Hour
	workWaitsTooLong = time.Hour
	// standsTooLong is how long a comparison may stay where it is.
	standsTooLong = 26 * time.Hour
	// skippedNew is how long another environment's name is new.
	skippedNew = 24 * time.Hour
)

// holding is one thing for which a condition holds.
type holding struct {
	says  string
	since time.Time
}

// when returns a thing if a condition holds.
func when(holds bool, says string, since time.Time) []holding {
	if !holds {
		return nil
	}
	return []holding{{says, since}}
}

// attention returns what a person must look at, most urgent first. accepted is when a database was accepted that is
// behind, other what otherMapping says.
func (o *Ops) attention(s Status, v breaker.View, accepted time.Time, other string) []Attention {
	all, holds := []Attention{}, o.conditions(s, v)
	holds[condition.DatabaseBehind] = when(s.Behind != "", s.Behind, accepted)
	holds[condition.OtherMapping] = when(other != "", other, time.Time{})
	for _, c := range condition.Table() {
		for _, h := range holds[c.Code] {
			all = append(all,
				Attention{Code: c.Code, Severity: c.Severity, Says: h.says, Since: o.in(h.since), Page: c.Page})
		}
	}
	return all
}

// otherMapping says that the mapping in use is not the one that the last migration chose; empty if it is, if none was
// chosen, and if SQL cannot be asked.
func (o *Ops) otherMapping(ctx context.Context, inUse string) (says string) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	_ = o.withStores(ctx, func(ctx context.Context, s Stores) error {
		if s.Mappings == nil {
			return nil
		}
		all, err := s.Mappings(ctx)
		if len(all) > 0 && all[0].Version != s.Mapping.Version() {
			says = fmt.Sprintf("the app's mapping is %s, and the last `sqlwriterctl migrate up` chose version %d: lines of the other one are not_comparable, unless all its columns stand unchanged in the app's; if the app's is meant, `sqlwriterctl migrate up --new-mapping` says so", inUse, all[0].Version)
		}
		return err
	})
	return says
}

// TellAttention writes an event for each line of the status's attention that has lasted as long as its condition says.
func (o *Ops) TellAttention(ctx context.Context, log events.Log) error {
	s, err := o.Status(ctx, StatusQuery{})
	for _, a := range s.Attention {
		if c, _ := condition.Of(a.Code); s.At.Sub(a.Since) >= c.After {
			log.Write(events.Attention, events.Fields{Condition: a.Code, Since: a.Since, Reason: a.Says})
		}
	}
	return err
}

// conditions returns what holds, by condition.
func (o *Ops) conditions(s Status, v breaker.View) map[string][]holding {
	all := map[string][]holding{}
	add := func(code string, h []holding) { all[code] = append(all[code], h...) }
	flow := v.Control.Breaker.Condition()
	add(flow, when(flow != "", "the flow is "+s.Flow.Says, s.Flow.Since))
	for _, d := range s.Dependencies {
		sql := d.Name == DepSQL
		add(condition.CutOff,
			when(sql && s.Flow.CutOff,
				"only this instance cannot reach SQL: it leaves its documents to the others", d.Since))
		since := ""
		if !d.Since.IsZero() {
			since = " since " + o.clock(d.Since)
		}
		add(condition.DependencyFailing, when(d.State == DepFailing && (!sql || s.Flow.State != breaker.StoppedFlow),
			fmt.Sprintf("%s fails%s (%s %s): %s", d.Name, since, d.Kind, d.Code, d.Reason), d.Since))
		add(condition.TimerSilent,
			when(d.State == DepSilent,
				d.Reason+": retries, postponed documents and what the feed missed wait for it", d.Since))
	}
	if m := v.Control.Missed; m.Holds() {
		sample := m.Sample
		if m.Code != "" {
			sample += " (" + m.Code + ")"
		}
		add(condition.FeedMissed,
			[]holding{
				{
					fmt.Sprintf(
						"the feed did not bring %s that %s due, the oldest of %s, such as %s; a lease may be stuck",
						documents(m.Documents), Plural(m.Documents, "was", "were"),
						o.clock(m.Oldest), sample), m.Oldest,
				},
			})
	}
	for _, m := range v.Status.MassFailures(s.At) {
		add(condition.MassFailure,
			[]holding{
				{
					fmt.Sprintf("%s began to fail with %s since %s; others go on", documents(m.Documents), m.Code,
						o.clock(m.Since)), m.Since,
				},
			})
	}
	for _, r := range s.Runs {
		add(o.runCondition(r, s.At))
	}
	if f := s.Feed; f != nil && s.At.Sub(f.At) <= lagOld {
		lag := time.Duration(f.LagSeconds) * time.Second
		add(condition.FeedLag,
			when(lag >= lagging, fmt.Sprintf("the feed was %s behind at %s", ago(lag), o.clock(f.At)), f.At.Add(-lag)))
	}
	for _, k := range s.Skipped { // the log has no value of a document, so the name is in the status alone
		add(condition.Skipped,
			when(s.At.Sub(k.Since) < skippedNew,
				fmt.Sprintf("%s %s another environment than %q: it leaves them alone since %s, such as %s",
					documents(k.Documents), Plural(k.Documents, "names", "name"), s.SysName,
					o.clock(k.Since), k.Sample), k.Since))
	}
	if s.Counts != nil && s.CountsUnknown == "" { // old counts say nothing of now
		o.counted(*s.Counts, s.At, add)
	}
	return all
}

// counted adds what the timer's last counts show.
func (o *Ops) counted(c Counts, now time.Time, add func(string, []holding)) {
	var latest time.Time
	for _, g := range c.Groups {
		if g.Status == invoice.Failed && g.Last.After(latest) {
			latest = g.Last
		}
	}
	add(condition.Poison,
		when(c.PoisonLastHour > 0,
			fmt.Sprintf("%s failed for good in the last 60 minutes", documents(c.PoisonLastHour)), latest))
	if f := c.Findings; f != nil {
		open, classes, since := f.forPeople(now)
		add(condition.FindingsOpen, when(open > 0, fmt.Sprintf("SQL does not equal Cosmos: %d open %s (%s), as of %s",
			open, Plural(open, "finding", "findings"), strings.Join(classes, ", "), o.clock(f.ComparedAt)), since))
	}
	if f := c.Findings; f != nil && f.Comparing != "" {
		add(condition.ComparisonStands,
			when(now.Sub(f.MovedAt) >= standsTooLong,
				fmt.Sprintf("comparison %s has not moved since %s", f.Comparing, o.clock(f.MovedAt)), f.MovedAt))
	}
	for _, q := range c.Queues {
		dead, waits := q.DeadLettered, q.Active.Since
		add(condition.DeadLetters,
			when(dead.Documents > 0,
				fmt.Sprintf("queue %s has %s %s", q.Queue, dead, Plural(dead.Documents, "dead letter", "dead letters")),
				dead.Since))
		add(condition.WorkWaits,
			when(!waits.IsZero() && now.Sub(waits) >= workWaitsTooLong,
				fmt.Sprintf("a message waits in queue %s since %s", q.Queue, o.clock(waits)), waits))
	}
	if d := c.Oldest; d != nil {
		age := time.Duration(d.AgeSeconds) * time.Second
		add(condition.WaitsLong,
			when(age >= waitsTooLong, fmt.Sprintf("a document waits for %s: %s", ago(age), d.ID), d.Since))
	}
}

// runCondition is what holds for a run.
func (o *Ops) runCondition(r RunState, now time.Time) (string, []holding) {
	stands := now.Sub(r.Since)
	switch {
	case r.State == RunSilent:
		return condition.RunWithoutManager, []holding{{fmt.Sprintf("run %s: %s", r.ID, r.Says), r.Since}}
	case r.Since.IsZero():
		return "", nil
	}
	return condition.WorkWaits,
		when(stands >= workWaitsTooLong,
			fmt.Sprintf("run %s: a batch waits since %s, and no worker has it", r.ID, o.clock(r.Since)), r.Since)
}

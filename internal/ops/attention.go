package ops

import (
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
)

// The limits of what asks for attention.
const (
	// lagging is the lag from which the feed asks for attention; a lag reported longer ago than lagOld says nothing.
	lagging = 5 * time.Minute
	lagOld  = 15 * time.Minute
	// waitsTooLong is the age of a waiting document: all its retries take about two hours.
	waitsTooLong = 4 * time.Hour
	// skippedNew is how long another environment's name is new.
	skippedNew = 24 * time.Hour
)

// Alarms are the codes of Attention with their pages, most urgent first.
func Alarms() []Attention {
	var all []Attention
	for _, a := range alarms() {
		all = append(all, Attention{Code: a.code, Page: a.page})
	}
	return all
}

// alarm is a row of the table of what asks for attention.
type alarm struct {
	code string
	// page is the heading of docs/runbook.md.
	page string
	// says returns one line for each thing found; none when all is well.
	says func(o *Ops, s Status, v breaker.View) []string
}

// alarms is the table, most urgent first.
func alarms() []alarm {
	return []alarm{
		{"database_refused", "The database went back", func(_ *Ops, s Status, v breaker.View) []string {
			return when(v.Control.Breaker.RefusesDatabase(), "the flow is "+s.Flow.Says)
		}},
		{"database_behind", "Restored from a backup", func(_ *Ops, s Status, _ breaker.View) []string {
			return when(s.Behind != "", s.Behind)
		}},
		{"flow_stopped", "The flow", func(_ *Ops, s Status, v breaker.View) []string {
			return when(s.Flow.State == breaker.StoppedFlow && !v.Control.Breaker.RefusesDatabase(), "the flow is "+s.Flow.Says)
		}},
		{"dependency_failing", "A dependency fails", func(o *Ops, s Status, _ breaker.View) (all []string) {
			for _, d := range s.Dependencies {
				if d.State != DepFailing || (d.Name == DepSQL && s.Flow.State == breaker.StoppedFlow) {
					continue
				}
				since := ""
				if !d.Since.IsZero() {
					since = " since " + o.clock(d.Since)
				}
				all = append(all, fmt.Sprintf("%s fails%s (%s %s): %s", d.Name, since, d.Kind, d.Code, d.Reason))
			}
			return all
		}},
		{"cut_off", "The flow", func(_ *Ops, s Status, _ breaker.View) []string {
			return when(s.Flow.CutOff, "only this instance cannot reach SQL: it leaves its documents to the others")
		}},
		{"timer_silent", "The timer is silent", func(_ *Ops, s Status, _ breaker.View) (all []string) {
			for _, d := range s.Dependencies {
				all = append(all, when(d.State == DepSilent, d.Reason+": retries, postponed documents and what the feed missed wait for it")...)
			}
			return all
		}},
		{"feed_missed", "The feed stands still", func(o *Ops, s Status, _ breaker.View) []string {
			if s.FeedMissed == nil {
				return nil
			}
			sample := s.FeedMissed.Sample
			if s.FeedMissed.Code != "" {
				sample += " (" + s.FeedMissed.Code + ")"
			}
			return []string{fmt.Sprintf("the feed did not bring %s that %s due, the oldest of %s, such as %s; a lease may be stuck",
				documents(s.FeedMissed.Documents), Plural(s.FeedMissed.Documents, "was", "were"), o.clock(s.FeedMissed.Oldest), sample)}
		}},
		{"mass_failure", "The flow", func(o *Ops, s Status, _ breaker.View) (all []string) {
			for _, m := range s.MassFailures {
				all = append(all, fmt.Sprintf("%s began to fail with %s since %s; others go on", documents(m.Documents), m.Code, o.clock(m.Since)))
			}
			return all
		}},
		{"flow_paused", "Hold everything", func(_ *Ops, s Status, _ breaker.View) []string {
			return when(s.Flow.State == breaker.PausedFlow, "the flow is "+s.Flow.Says)
		}},
		{"poison", "Try failed documents again", func(_ *Ops, s Status, _ breaker.View) []string {
			if !s.counted() {
				return nil
			}
			return when(s.Counts.PoisonLastHour > 0, documents(s.Counts.PoisonLastHour)+" failed for good in the last 60 minutes")
		}},
		{"findings_open", "Numbers do not match", func(o *Ops, s Status, _ breaker.View) []string {
			if !s.counted() || s.Counts.Findings == nil {
				return nil
			}
			open, classes := s.Counts.Findings.forPeople(s.At)
			return when(open > 0, fmt.Sprintf("SQL does not equal Cosmos: %d open %s (%s), as of %s",
				open, Plural(open, "finding", "findings"), strings.Join(classes, ", "), o.clock(s.Counts.Findings.ComparedAt)))
		}},
		{"dead_letters", "Runs", func(_ *Ops, s Status, _ breaker.View) (all []string) {
			if !s.counted() {
				return nil
			}
			for _, q := range s.Counts.Queues {
				all = append(all, when(q.DeadLettered.Documents > 0, fmt.Sprintf("queue %s has %s %s", q.Queue, q.DeadLettered, Plural(q.DeadLettered.Documents, "dead letter", "dead letters")))...)
			}
			return all
		}},
		{"run_without_manager", "Runs", func(_ *Ops, s Status, _ breaker.View) (all []string) {
			for _, r := range s.Runs {
				all = append(all, when(r.State == RunSilent, fmt.Sprintf("run %s: %s", r.ID, r.Says))...)
			}
			return all
		}},
		{"waits_long", "Why is this document where it is", func(_ *Ops, s Status, _ breaker.View) []string {
			if !s.counted() || s.Counts.Oldest == nil {
				return nil
			}
			age := time.Duration(s.Counts.Oldest.AgeSeconds) * time.Second
			return when(age >= waitsTooLong, fmt.Sprintf("a document waits for %s: %s", ago(age), s.Counts.Oldest.ID))
		}},
		{"feed_lag", "The feed is behind", func(o *Ops, s Status, _ breaker.View) []string {
			if s.Feed == nil || s.At.Sub(s.Feed.At) > lagOld {
				return nil
			}
			lag := time.Duration(s.Feed.LagSeconds) * time.Second
			return when(lag >= lagging, fmt.Sprintf("the feed was %s behind at %s", ago(lag), o.clock(s.Feed.At)))
		}},
		{"skipped", "Documents of another environment", func(o *Ops, s Status, _ breaker.View) (all []string) {
			for _, k := range s.Skipped {
				all = append(all, when(s.At.Sub(k.Since) < skippedNew, fmt.Sprintf("%s %s the environment %q, and this app is %q: it leaves them alone since %s, such as %s",
					documents(k.Documents), Plural(k.Documents, "names", "name"), k.SysName, s.SysName, o.clock(k.Since), k.Sample))...)
			}
			return all
		}},
	}
}

// counted reports whether there are counts that are not old: old ones say nothing of now.
func (s Status) counted() bool { return s.Counts != nil && s.CountsUnknown == "" }

// when returns a line if a condition holds.
func when(holds bool, line string) []string {
	if !holds {
		return nil
	}
	return []string{line}
}

// attention returns what a person must look at, most urgent first.
func (o *Ops) attention(s Status, v breaker.View) []Attention {
	all := []Attention{}
	for _, a := range alarms() {
		for _, line := range a.says(o, s, v) {
			all = append(all, Attention{Code: a.code, Says: line, Page: a.page})
		}
	}
	return all
}

package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// beforeCopy is how long before the time of a copy documents are written again: clocks differ, and a copy takes a
	// while. What the database has stays untouched.
	beforeCopy = 10 * time.Minute
	// mostForced is how many forced resumes are looked at. One is rare; each costs a look at the runs since.
	mostForced = 20
	// behindFor is how long an accepted database is looked after. Runs that ended are kept at least as long.
	behindFor = 30 * 24 * time.Hour
)

// behind says what brings a database up to date that an operator accepted although it lacks writes: the command of a
// run that writes again all that it may lack, until such a run has ended. It is empty when there is nothing to do, and
// when SQL cannot be asked: then something else asks for attention. It is derived from the audit log and from the rows
// of runs. since is when the database was accepted.
func (o *Ops) behind(ctx context.Context, view breaker.View) (says string, since time.Time) {
	if view.Control.Breaker.Name == breaker.Open {
		return "", time.Time{}
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	_ = o.withStores(ctx, func(ctx context.Context, s Stores) error {
		all, err := forcedResumes(ctx, s, view)
		if err != nil {
			return err
		}
		// A database that was accepted later may be a copy of one that still lacked writes: the widest need is said
		// first.
		kind := o.o.Kinds.Reapplying().Kind
		var forced breaker.Transition
		var copied time.Time
		running := ""
		for _, f := range all {
			if o.o.Now().Sub(f.At) > behindFor {
				continue
			}
			from := f.Copied
			if !from.IsZero() {
				from = from.Add(-beforeCopy).Truncate(time.Minute)
			}
			if forced.Forced != "" && !from.Before(copied) {
				continue
			}
			id, ended, err := broughtUpToDate(ctx, s, kind, f.At, from)
			if err != nil {
				return err
			}
			if !ended {
				forced, copied, running = f, from, id
			}
		}
		if forced.Forced == "" {
			return nil
		}
		filter, lacks := "--all", "may lack everything that was written to the one before"
		if !copied.IsZero() {
			filter, lacks = "--since "+copied.UTC().Format("2006-01-02T15:04Z07:00"),
				"lacks what was written since "+o.clock(forced.Copied)
		}
		since = forced.At
		says = fmt.Sprintf("the database that %s accepted at %s %s: ", forced.By, o.clock(forced.At), lacks)
		if running != "" {
			says += fmt.Sprintf("run %s writes it again, `sqlwriterctl run show %s`", running, running)
		} else {
			says += fmt.Sprintf(`write it again by `+"`"+`sqlwriterctl run start %s %s --why "..."`+"`", kind, filter)
		}
		return nil
	})
	return says, since
}

// forcedResumes are the latest forced resumes that accepted a database, newest first: those that wait for the audit
// log, then those in it.
func forcedResumes(ctx context.Context, s Stores, view breaker.View) (all []breaker.Transition, err error) {
	for _, t := range slices.Backward(view.Control.Transitions) {
		if t.Forced != "" {
			all = append(all, t)
		}
	}
	entries, err := s.Audit.Audits(ctx, AuditQuery{Action: FlowForced, Limit: mostForced})
	for _, e := range entries {
		var t breaker.Transition
		if json.Unmarshal(e.Detail, &t) == nil && t.Forced != "" { // TellTransitions wrote it
			all = append(all, t)
		}
	}
	return all, err
}

// broughtUpToDate looks for runs of a kind that began after a time and take every document that changed since another
// one. running is the id of one that is under way, ended says that one has come to its end.
func broughtUpToDate(
	ctx context.Context, s Stores, kind run.Kind, after, since time.Time,
) (running string, ended bool, err error) {
	for before := ""; ; {
		rows, err := s.Runs.ListRuns(ctx, before, maxRunsCounted)
		if err != nil {
			return "", false, err
		}
		for _, row := range rows {
			if row.StartedAt.Before(after.Add(-invoice.ClockSkew)) {
				return running, false, nil
			}
			from, all := row.TakesAllSince()
			if row.Kind != kind || !all || from.After(since) {
				continue
			}
			switch row.Status {
			case run.RunCompleted, run.RunCompletedWithFailures:
				return "", true, nil
			case run.RunRunning:
				running = row.ID
			case run.RunCancelled, run.RunFailed, run.RunPurged: // not all of its documents were tried
			}
		}
		if len(rows) < maxRunsCounted {
			return running, false, nil
		}
		before = rows[len(rows)-1].ID
	}
}

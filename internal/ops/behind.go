package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// beforeCopy is how long before the time of a copy documents are written again: clocks differ, and a copy takes a while. What the database
	// has stays untouched.
	beforeCopy = 10 * time.Minute
	// behindFor is how long an accepted database is looked after. Runs that ended are kept at least as long.
	behindFor = 30 * 24 * time.Hour
)

// behind says what brings a database up to date that an operator accepted although it lacks writes: the command of a run that writes again all
// that it may lack, until such a run has ended. It is empty when there is nothing to do, and when SQL cannot be asked: then something
// else asks for attention. It is derived from the audit log and from the rows of runs. since is when
// the database was accepted.
func (o *Ops) behind(ctx context.Context, view breaker.View) (says string, since time.Time) {
	if view.Control.Breaker.Name == breaker.Open {
		return "", time.Time{}
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	_ = o.withStores(ctx, func(ctx context.Context, s Stores) error {
		forced, err := lastForced(ctx, s, view)
		if err != nil || forced.Forced == "" || o.o.Now().Sub(forced.At) > behindFor {
			return err
		}
		kind, copied := o.o.Kinds.Reapplying().Kind, forced.Copied
		filter, lacks := "--all", "may lack everything that was written to the one before"
		if !copied.IsZero() {
			copied = copied.Add(-beforeCopy).Truncate(time.Minute)
			filter, lacks = "--since "+copied.UTC().Format("2006-01-02T15:04Z07:00"), "lacks what was written since "+o.clock(forced.Copied)
		}
		running, ended, err := broughtUpToDate(ctx, s, kind, forced.At, copied)
		if err != nil || ended {
			return err
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

// lastForced is the latest forced resume that accepted a database: one that waits for the audit log, else one in it. The zero Transition
// means none.
func lastForced(ctx context.Context, s Stores, view breaker.View) (last breaker.Transition, err error) {
	for _, t := range view.Control.Transitions {
		if t.Forced != "" {
			last = t
		}
	}
	if last.Forced != "" {
		return last, nil
	}
	entries, err := s.Audit.Audits(ctx, AuditQuery{Action: FlowForced, Limit: 1})
	if err == nil && len(entries) > 0 {
		_ = json.Unmarshal(entries[0].Detail, &last) // TellTransitions wrote it
	}
	return last, err
}

// broughtUpToDate looks for runs of a kind that began after a time and take every document that changed since another one. running is the id
// of one that is under way, ended says that one has come to its end.
func broughtUpToDate(ctx context.Context, s Stores, kind run.Kind, after, since time.Time) (running string, ended bool, err error) {
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

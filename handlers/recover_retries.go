package handlers

import (
	"context"
	"fmt"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/run"
)

// Recoverer does one tick of the recovery timer. Errors have scope dependency; the next tick tries again.
type Recoverer interface {
	// Recover takes up the documents that are due. invocationID is the invocation's ID, for the evidence of poison
	// messages.
	Recover(ctx context.Context, invocationID string) (commit.RecoveredDocuments, error)
	// RecoverRuns repairs differences between the tables of runs and the queues.
	RecoverRuns(ctx context.Context) (run.RecoveredRuns, error)
	// PurgeRows deletes old rows for half a second, and counts them.
	PurgeRows(ctx context.Context) (int, error)
	// CarryOnRuns executes runs while the queue is away, for at most two minutes.
	CarryOnRuns(ctx context.Context) (run.Carried, error)
	// Compare begins the night's comparison in its time and carries comparisons on, for at most two minutes. It counts
	// their steps.
	Compare(ctx context.Context) (steps int, err error)
	// SaveCounts counts documents and messages for the operators' status, and tells what asks for a person.
	SaveCounts(ctx context.Context) error
	// TellTransitions writes the breaker's transitions into the audit log.
	TellTransitions(ctx context.Context) error
}

// RecoverRetries mounts functions/RecoverRetries, the recovery timer. A late tick is handled like any other.
func RecoverRetries(r Recoverer) Mounted {
	return Mounted{
		Name: "RecoverRetries", Binding: "timer", Payload: Object, Event: events.TickDone,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			// first, so that nothing that follows can keep it from telling that the timer lives
			counted := r.SaveCounts(ctx)
			// then this, because it is short and the documents may take all the time
			runs, runsErr := r.RecoverRuns(ctx)
			found, err := r.Recover(ctx, in.ID)
			told := r.TellTransitions(ctx)
			purged, purgeErr := r.PurgeRows(ctx)
			var carried run.Carried
			var carriedErr error
			if runs.QueueAway {
				carried, carriedErr = r.CarryOnRuns(ctx)
			}
			compared, compareErr := r.Compare(ctx) // last, because nobody waits for it
			for _, other := range []error{runsErr, told, purgeErr, carriedErr, compareErr, counted} {
				if err == nil {
					err = other
				}
			}
			return Reply{
				Logs:   []string{tickSummary(found), runsSummary(runs)},
				Fields: tickFields(found, runs, carried, purged, compared),
			}, err
		},
	}
}

// tickSummary is a tick in one line, for the invocation's log.
func tickSummary(r commit.RecoveredDocuments) string {
	if r.Off != "" {
		return r.Off
	}
	s := "took up " + summary(r.Report)
	if len(r.More) > 0 {
		s += fmt.Sprintf("; there are more in %v", r.More)
	}
	if r.Missed > 0 {
		s += fmt.Sprintf("; the feed did not bring %d of them", r.Missed)
	}
	if r.Flow != "" {
		s += "; the flow is " + r.Flow
	}
	return s
}

// runsSummary is the recovery of runs in one line, for the invocation's log.
func runsSummary(r run.RecoveredRuns) string {
	if r.Off != "" {
		return "runs: " + r.Off
	}
	return fmt.Sprintf(
		"runs: %d batches sent, %d not sent, %d failed, %d from dead workers, %d silent; %d runs resumed, %d ended",
		r.Sent, r.Unsent, r.Failed, r.Rescued, r.Silent, r.Resumed, r.Ended)
}

// tickFields are a tick as fields of an event.
func tickFields(
	r commit.RecoveredDocuments, runs run.RecoveredRuns, carried run.Carried, purged, compared int,
) events.Fields {
	f := batchFields(r.Report, 0)
	f.Found, f.Missed, f.OldestS = byName(r.Found), r.Missed, int64(r.Oldest.Seconds())
	f.Purged, f.Compared = purged, compared
	f.Off, f.Flow, f.State, f.RunsOff = r.Off, r.Flow, string(r.State), runs.Off
	for _, w := range r.More {
		f.More = append(f.More, string(w))
	}
	f.Runs = map[string]int{
		"sent": runs.Sent, "unsent": runs.Unsent, "failed": runs.Failed, "dead": runs.Rescued,
		"workers": runs.Workers, "silent": runs.Silent,
		"resumed": runs.Resumed, "ended": runs.Ended, "carried": carried.Runs, "carried_ended": carried.Ended,
		"carried_failed": carried.Failed,
	}
	return f
}

package handlers

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/run"
)

// Recoverer does one tick of the recovery timer. Errors have scope dependency; the next tick tries again.
type Recoverer interface {
	// Recover takes up the documents that are due. batchID is the invocation's ID, for the evidence of poison messages.
	Recover(ctx context.Context, batchID string) (commit.Recovered, error)
	// RecoverRuns repairs differences between the tables of runs and the queues.
	RecoverRuns(ctx context.Context) (run.Recovered, error)
	// CarryOnRuns executes runs without documents, for at most two minutes.
	CarryOnRuns(ctx context.Context) (run.Carried, error)
	// SaveCounts counts documents and messages for the operators' status.
	SaveCounts(ctx context.Context) error
	// TellTransitions writes the breaker's transitions into the audit log.
	TellTransitions(ctx context.Context) error
}

// RecoverRetries mounts functions/RecoverRetries, the recovery timer. A late tick is handled like any other.
func RecoverRetries(r Recoverer) Mounted {
	return Mounted{
		Name: "RecoverRetries", Binding: "timer", Payload: Object,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			counted := r.SaveCounts(ctx)        // first, so that nothing that follows can keep it from telling that the timer lives
			runs, runsErr := r.RecoverRuns(ctx) // then this, because it is short and the documents may take all the time
			found, err := r.Recover(ctx, in.ID)
			told := r.TellTransitions(ctx)
			carried, carriedErr := r.CarryOnRuns(ctx) // last, because nobody waits for them
			for _, other := range []error{runsErr, told, carriedErr, counted} {
				if err == nil {
					err = other
				}
			}
			return Reply{Logs: []string{tickSummary(found), runsSummary(runs)}, Note: tickNote{found, runs, carried}}, err
		},
	}
}

// tickSummary is a tick in one line, for the invocation's log.
func tickSummary(r commit.Recovered) string {
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
func runsSummary(r run.Recovered) string {
	if r.Off != "" {
		return "runs: " + r.Off
	}
	return fmt.Sprintf("runs: %d batches sent, %d not sent, %d failed, %d from dead workers, %d silent; %d runs resumed, %d ended",
		r.Sent, r.Unsent, r.Failed, r.Rescued, r.Silent, r.Resumed, r.Ended)
}

// tickNote is a tick as fields of the log line.
type tickNote struct {
	commit.Recovered
	runs    run.Recovered
	carried run.Carried
}

// MarshalZerologObject writes counts and durations, or why nothing was done.
func (n tickNote) MarshalZerologObject(e *zerolog.Event) {
	if n.runs.Off == "" {
		e.Dict("runs", zerolog.Dict().Int("sent", n.runs.Sent).Int("unsent", n.runs.Unsent).Int("failed", n.runs.Failed).
			Int("dead", n.runs.Rescued).Int("workers", n.runs.Workers).Int("silent", n.runs.Silent).
			Int("resumed", n.runs.Resumed).Int("ended", n.runs.Ended).
			Int("carried", n.carried.Runs).Int("carried_ended", n.carried.Ended).Int("carried_failed", n.carried.Failed))
	} else {
		e.Str("runs_off", n.runs.Off)
	}
	if n.Off != "" {
		e.Str("off", n.Off)
		return
	}
	found, more := map[string]int{}, []string{}
	for w, count := range n.Found {
		found[string(w)] = count
	}
	for _, w := range n.More {
		more = append(more, string(w))
	}
	e.Dict("found", counts(found)).Strs("more", more).Int("missed", n.Missed).Int64("oldest_s", int64(n.Oldest.Seconds())).
		Int("documents", n.Documents).Dict("outcomes", counts(n.Outcomes)).Dict("kinds", counts(n.Kinds)).
		Int("sql_requests", n.SQLRequests).Int64("sql_ms", n.SQL.Milliseconds()).
		Int("cosmos_reads", n.Reads).Int("cosmos_writes", n.Writes).Int64("cosmos_ms", n.Cosmos.Milliseconds())
	if n.Flow != "" {
		e.Str("flow", n.Flow)
	}
}

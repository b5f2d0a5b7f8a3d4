package handlers

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// Recoverer does one tick of the recovery timer. job names the tick in the evidence of poison pills. Errors are of dependency
// scope: the next tick goes on.
type Recoverer interface {
	Recover(ctx context.Context, job string) (writer.Recovered, error)
	// RecoverRuns finds what was left behind between the tables of runs and the queues.
	RecoverRuns(ctx context.Context) (run.Recovered, error)
}

// RecoverRetries hangs the recovery on its timer: functions/RecoverRetries. A tick that comes late is a tick like any other.
func RecoverRetries(r Recoverer) Mounted {
	return Mounted{
		Name: "RecoverRetries", Binding: "timer", Payload: Object,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			runs, runsErr := r.RecoverRuns(ctx) // first: it is short, and a queue of documents may take all the time there is
			found, err := r.Recover(ctx, in.ID)
			if err == nil {
				err = runsErr
			}
			return Reply{Logs: []string{tickSummary(found), runsSummary(runs)}, Note: tickNote{found, runs}}, err
		},
	}
}

// tickSummary is a tick in one line for the invocation's own log.
func tickSummary(r writer.Recovered) string {
	if r.Off != "" {
		return r.Off
	}
	s := fmt.Sprintf("%d pending, %d retry_scheduled; took up %s", r.Pending, r.Scheduled, summary(r.Report))
	if r.Gate != "" {
		s += "; the gate is " + r.Gate
	}
	return s
}

// runsSummary is the pass over runs in one line for the invocation's own log.
func runsSummary(r run.Recovered) string {
	if r.Off != "" {
		return "runs: " + r.Off
	}
	return fmt.Sprintf("runs: %d batches sent, %d not sent, %d failed, %d from dead workers, %d silent; %d runs resumed, %d ended",
		r.Sent, r.Unsent, r.Failed, r.Buried, r.Silent, r.Resumed, r.Ended)
}

// tickNote is a tick as fields of the invocation's log line: the depth of the queue, what was found waiting, what became of it.
type tickNote struct {
	writer.Recovered
	runs run.Recovered
}

// MarshalZerologObject writes counts and durations, or why nothing was looked at: the depth of the queue is then not known.
func (n tickNote) MarshalZerologObject(e *zerolog.Event) {
	if n.runs.Off == "" {
		e.Dict("runs", zerolog.Dict().Int("sent", n.runs.Sent).Int("unsent", n.runs.Unsent).Int("failed", n.runs.Failed).
			Int("dead", n.runs.Buried).Int("workers", n.runs.Workers).Int("silent", n.runs.Silent).
			Int("resumed", n.runs.Resumed).Int("ended", n.runs.Ended))
	} else {
		e.Str("runs_off", n.runs.Off)
	}
	if n.Off != "" {
		e.Str("off", n.Off)
		return
	}
	e.Int("pending", n.Pending).Int("retry_scheduled", n.Scheduled).Bool("more", n.More).Int64("oldest_s", int64(n.Oldest.Seconds())).
		Int("due", n.Due).Int("orphans", n.Orphans).Int("processing", n.Processing).
		Int("documents", n.Documents).Dict("outcomes", counts(n.Outcomes)).Dict("kinds", counts(n.Kinds)).
		Int("sql_requests", n.SQLRequests).Int64("sql_ms", n.SQL.Milliseconds()).
		Int("cosmos_reads", n.Reads).Int("cosmos_writes", n.Writes).Int64("cosmos_ms", n.Cosmos.Milliseconds())
	if n.Gate != "" {
		e.Str("gate", n.Gate)
	}
}

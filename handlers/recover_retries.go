package handlers

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"sqlwriter/internal/writer"
)

// Recoverer does one tick of the recovery timer. job names the tick in the evidence of poison pills. Errors are of dependency
// scope: the next tick goes on.
type Recoverer interface {
	Recover(ctx context.Context, job string) (writer.Recovered, error)
}

// RecoverRetries hangs the recovery on its timer: functions/RecoverRetries. A tick that comes late is a tick like any other.
func RecoverRetries(r Recoverer) Mounted {
	return Mounted{
		Name: "RecoverRetries", Binding: "timer", Payload: Object,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			found, err := r.Recover(ctx, in.ID)
			return Reply{Logs: []string{tickSummary(found)}, Note: tickNote{found}}, err
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

// tickNote is a tick as fields of the invocation's log line: the depth of the queue, what was found waiting, what became of it.
type tickNote struct{ writer.Recovered }

// MarshalZerologObject writes counts and durations, or why nothing was looked at: the depth of the queue is then not known.
func (n tickNote) MarshalZerologObject(e *zerolog.Event) {
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

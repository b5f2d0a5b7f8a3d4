package handlers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
)

// Committer writes one batch of changed documents to SQL. An error has scope dependency: the batch must come again.
type Committer interface {
	Run(ctx context.Context, b commit.Batch) (commit.Report, error)
}

// CommitResults mounts functions/CommitResults, the commit of the change feed.
func CommitResults(c Committer) Mounted {
	return Mounted{
		Name: "CommitResults", Binding: "documents", Payload: Array, LeaveToTimer: true,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			report, err := c.Run(ctx, commit.Batch{Documents: in.Elements, Received: in.Received, RetryCount: in.RetryCount, BatchID: in.ID})
			return Reply{Logs: []string{summary(report)}, Note: batchNote{report, in.RetryCount}}, err
		},
	}
}

// summary is a report in one line, for the invocation's log.
func summary(r commit.Report) string {
	parts := make([]string, 0, len(r.Outcomes))
	for _, outcome := range slices.Sorted(maps.Keys(r.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Outcomes[outcome], outcome))
	}
	if len(parts) == 0 {
		parts = []string{"nothing to do"}
	}
	return fmt.Sprintf("%d documents: %s", r.Documents, strings.Join(parts, ", "))
}

// batchNote is a report as fields of the log line.
type batchNote struct {
	commit.Report
	retryCount int
}

// MarshalZerologObject writes counts and durations.
func (n batchNote) MarshalZerologObject(e *zerolog.Event) {
	e.Int("documents", n.Documents).Dict("outcomes", counts(n.Outcomes)).Dict("kinds", counts(n.Kinds)).
		Int("retry_count", n.retryCount).Int64("lag_ms", n.Lag.Milliseconds()).
		Int("sql_requests", n.SQLRequests).Int64("sql_ms", n.SQL.Milliseconds()).
		Int("cosmos_reads", n.Reads).Int("cosmos_writes", n.Writes).Int64("cosmos_ms", n.Cosmos.Milliseconds())
	if n.Shadow {
		e.Str("mode", "shadow").Dict("columns", counts(n.Columns))
	}
}

func counts(m map[string]int) *zerolog.Event {
	d := zerolog.Dict()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		d.Int(name, m[name])
	}
	return d
}

package handlers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
)

// Committer writes one batch of changed documents to SQL. An error has scope dependency: the batch must come again.
type Committer interface {
	Run(ctx context.Context, b commit.Delivery) (commit.Report, error)
}

// CommitResults mounts functions/CommitResults, the commit of the change feed.
func CommitResults(c Committer) Mounted {
	return Mounted{
		Name: "CommitResults", Binding: "documents", Payload: Array, LeaveToTimer: true, Event: events.BatchCommitted,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			report, err := c.Run(ctx,
				commit.Delivery{
					Documents: in.Elements, Received: in.Received, RetryCount: in.RetryCount, InvocationID: in.ID,
				})
			return Reply{Logs: []string{summary(report)}, Fields: batchFields(report, in.RetryCount)}, err
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

// batchFields are a report as fields of an event.
func batchFields(r commit.Report, retryCount int) events.Fields {
	f := events.Fields{
		Documents: r.Documents, Outcomes: byName(r.Outcomes), Kinds: r.Kinds, RetryCount: retryCount,
		LagMS:       r.Lag.Milliseconds(),
		SQLRequests: r.SQLRequests, SQLMS: r.SQL.Milliseconds(),
		CosmosReads: r.Reads, CosmosWrites: r.Writes, CosmosMS: r.Cosmos.Milliseconds(), Columns: r.Columns,
	}
	if r.Shadow {
		f.Mode = "shadow"
	}
	return f
}

// byName gives counts by words as counts by texts.
func byName[K ~string](counts map[K]int) map[string]int {
	texts := make(map[string]int, len(counts))
	for word, n := range counts {
		texts[string(word)] = n
	}
	return texts
}

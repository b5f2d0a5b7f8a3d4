package storybook

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Hostile is a text that must be shown as text.
const Hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// SQLAway is how a call fails while SQL does not answer, CosmosAway while Cosmos DB does not.
func SQLAway() error {
	return fault.New(fault.Infrastructure, "sqlserver: read", "breaker_open",
		"SQL is not asked: the flow is stopped since 03:12:05")
}

// CosmosAway is how a call fails while Cosmos DB does not answer.
func CosmosAway() error {
	return fault.New(fault.Infrastructure, "cosmos: read", "refused", "Cosmos DB does not answer: connection refused")
}

// audits are the last actions.
func audits() ops.AuditPage {
	return ops.AuditPage{Next: "118", Audits: []run.Audit{
		{
			ID: 130, At: Ago(62 * time.Second), Level: run.LevelError, Action: "FLOW_STOPPED", By: "instance 7f3a",
			Why: "5 requests refused: connection refused",
		},
		{
			ID: 128, At: Ago(15 * time.Minute), Level: run.LevelInfo, Action: run.CodeRunStart,
			By: "a.lopez@example.com (1-2-3)", Why: "vendor fixed the part numbers",
			Run: "replay-20261122-085840-4049a34e",
		},
		{
			ID: 125, At: Ago(40 * time.Minute), Action: "FLOW_RESUMED", By: "a.lopez@example.com (1-2-3)",
			Why: "maintenance is over", Subject: "flow:web",
		},
		{
			ID: 121, At: Ago(73 * time.Minute), Level: run.LevelWarn, Action: run.CodeBatchRecovered,
			By: "RecoverRetries", Why: "batches without a live worker or message are sent again",
		},
		{
			ID: 119, At: Ago(52 * time.Hour), Action: "mark-committed", By: "function key ann",
			Why: "repaired by hand, INC-4711", Subject: "2026-11-19 22:10:04.118000-06:00-0007-1421702",
		},
	}}
}

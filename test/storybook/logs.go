package storybook

import (
	"encoding/json"
	"net/url"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Hostile is a text that must be shown as text.
const Hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// SQLAway is how a call fails while SQL does not answer, CosmosAway while Cosmos DB does not.
func SQLAway() error {
	return fault.New(fault.Infrastructure, "sqlserver: read", "breaker_open", "SQL is not asked: the flow is stopped since 03:12:05")
}

// CosmosAway is how a call fails while Cosmos DB does not answer.
func CosmosAway() error {
	return fault.New(fault.Infrastructure, "cosmos: read", "refused", "Cosmos DB does not answer: connection refused")
}

func audits() ops.AuditPage {
	return ops.AuditPage{Next: "118", Audits: []ops.Audit{
		{ID: 130, At: Ago(62 * time.Second), Level: run.LevelError, Action: "FLOW_STOPPED", By: "instance 7f3a", Why: "5 requests refused: connection refused", Detail: json.RawMessage(`{"code":"refused","kind":"infrastructure"}`)},
		{ID: 128, At: Ago(15 * time.Minute), Level: run.LevelInfo, Action: run.CodeRunStart, By: "a.lopez@example.com (1-2-3)", Why: "vendor fixed the part numbers", Run: "replay-20261122-085840-4049a34e"},
		{ID: 125, At: Ago(40 * time.Minute), Action: "FLOW_RESUMED", By: "a.lopez@example.com (1-2-3)", Why: "maintenance is over", Subject: "flow:web"},
		{ID: 121, At: Ago(73 * time.Minute), Level: run.LevelWarn, Action: run.CodeBatchRecovered, By: "RecoverRetries", Why: "batches without a live worker or message are sent again"},
		{ID: 119, At: Ago(52 * time.Hour), Action: "mark-committed", By: "function key ann", Why: "repaired by hand, INC-4711", Subject: "2026-11-19 22:10:04.118000-06:00-0007-1421702"},
	}}
}

func logStories() []Story {
	hostile := ops.AuditPage{Audits: []ops.Audit{{ID: 1, At: Now(), Action: Hostile, By: Hostile, Why: Hostile, Run: Hostile, Detail: json.RawMessage(`{"a":"<script>"}`)}, {ID: 2, At: Now(), Action: Hostile, Subject: Hostile}}}
	return []Story{
		{Name: "audit-entries", Says: "Who did what.", Path: "audit", Answers: map[string]any{"audit.list": audits()}},
		{Name: "audit-empty", Says: "Nobody did anything.", Path: "audit", Query: url.Values{"action": {"FLOW_PAUSED"}}, Answers: map[string]any{"audit.list": ops.AuditPage{Audits: []ops.Audit{}}}},
		{Name: "audit-sql-away", Says: "SQL has the audit log.", Path: "audit", Answers: map[string]any{"audit.list": SQLAway()}},
		{Name: "audit-hostile", Says: "Texts are texts.", Path: "audit", Query: url.Values{"run": {Hostile}, "action": {Hostile}}, Answers: map[string]any{"audit.list": hostile}},
		{Name: "codes-all", Says: "All codes.", Path: "codes"},
		{Name: "codes-one", Says: "A number of SQL Server.", Path: "codes", Query: url.Values{"of": {"2628"}}},
		{Name: "codes-attention", Says: "What asks for attention.", Path: "codes", Query: url.Values{"of": {"timer_silent"}}},
		{Name: "codes-unknown", Says: "A code that no table has.", Path: "codes", Query: url.Values{"of": {"timer_silnet"}}},
		{Name: "codes-hostile", Says: "Texts are texts.", Path: "codes", Query: url.Values{"of": {Hostile}}},
		{Name: "problem-not-found", Says: "A page that is not there.", Path: "nothing"},
	}
}

package storybook

import (
	"encoding/json"
	"net/url"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

const (
	replayRun = "replay-20261122-085840-4049a34e"
)

// replaying is a replay under way.
func replaying() run.Run {
	return run.Run{
		ID: replayRun, SysName: "web", Kind: run.Replay, Status: run.RunRunning, Documents: 31,
		Matched: 31, Batches: 1, Rate: 600,
		Filter: json.RawMessage(`{"code":"2628"}`), RequestedBy: "a.lopez@example.com (1-2-3)",
		Why: "vendor fixed the part numbers", StartedAt: Ago(5 * time.Minute),
	}
}

func runStories() []Story {
	working := ops.RunProgress{
		Run: replaying(), State: ops.RunWorks, Says: "batch 1 is with a worker", Done: 12,
		PerSecond: 2.4, LeftSeconds: 8,
		Stats: run.Stats{
			Outcomes: map[invoice.Outcome]int{invoice.OutcomeApplied: 11, invoice.OutcomeSuperseded: 1, "": 19},
			Batches:  map[run.BatchStatus]int{run.Processing: 1},
		},
	}
	waiting := working
	waiting.State, waiting.Says = ops.RunWaits, "it goes on when SQL answers again"
	ended := working
	ended.Status, ended.State, ended.Says, ended.Done, ended.LeftSeconds, ended.HandedOffAt, ended.EndedAt =
		run.RunCompletedWithFailures, ops.RunEnded, "it has ended", 31, 0, Ago(4*time.Minute), Ago(time.Minute)
	ended.Stats = run.Stats{
		Outcomes: map[invoice.Outcome]int{
			invoice.OutcomeApplied: 27, invoice.OutcomeFailed: 3, invoice.OutcomeRetryScheduled: 1,
		}, Batches: map[run.BatchStatus]int{run.Completed: 1, run.Failed: 1},
	}
	items := ops.ItemPage{Next: "x", Items: []run.ItemOutcome{
		{
			Document: "2026-11-22 02:40:01.553120-06:00-0004-1421549", Outcome: invoice.OutcomeFailed,
			Code: "2628", Number: 1,
		},
		{
			Document: "2026-11-22 02:41:01.553120-06:00-0004-1421560", Outcome: invoice.OutcomeRetryScheduled,
			Code: "1205", Number: 1,
		},
	}}
	batches := ops.BatchPage{
		Batches: []run.Batch{
			{
				ID: "b", Run: replayRun, Number: 2, Status: run.Failed, Error: run.MaxQueueError, Total: 31,
				EndedAt: Ago(time.Minute),
			},
		},
	}
	failed := working
	failed.Status, failed.State, failed.Says, failed.Error, failed.EndedAt = run.RunFailed, ops.RunEnded, "it failed",
		"5 managers were lost with this run, which may be the cause", Ago(time.Minute)
	hostile := ended
	hostile.ID, hostile.Why, hostile.RequestedBy, hostile.Error, hostile.Says, hostile.Note, hostile.Filter = Hostile,
		Hostile, Hostile, Hostile, Hostile, Hostile, json.RawMessage(`{"code":"<script>alert(1)</script>"}`)
	summary := func(p ops.RunProgress) ops.RunSummary {
		return ops.RunSummary{Run: p.Run, State: p.State, Says: p.Says}
	}
	about := url.Values{"run": {replayRun}}
	return []Story{
		{
			Name: "runs-some", Says: "Runs of a week.", Path: "runs",
			Answers: map[string]any{
				"run.list": ops.RunPage{
					Runs: []ops.RunSummary{summary(working), summary(ended), summary(failed)}, Next: replayRun,
				},
			},
		},
		{Name: "runs-empty", Says: "None.", Path: "runs", Answers: map[string]any{"run.list": ops.RunPage{}}},
		{
			Name: "runs-sql-away", Says: "SQL has the runs.", Path: "runs",
			Answers: map[string]any{"run.list": SQLAway()},
		},
		{
			Name: "runs-hostile", Says: "Texts are texts.", Path: "runs",
			Answers: map[string]any{"run.list": ops.RunPage{Runs: []ops.RunSummary{summary(hostile)}}},
		},
		{
			Name: "run-works", Says: "A replay under way.", Path: "run", Query: about,
			Answers: map[string]any{"run.show": working},
		},
		{
			Name: "run-waits", Says: "It waits for SQL.", Path: "run", Query: about, Role: opsapi.Reader,
			Answers: map[string]any{"run.show": waiting},
		},
		{
			Name: "run-failures", Says: "It completed, and documents failed.", Path: "run", Query: about,
			Answers: map[string]any{"run.show": ended, "run.items": items, "batch.list": batches},
		},
		{
			Name: "run-items-away", Says: "SQL goes away while the page is made.", Path: "run", Query: about,
			Answers: map[string]any{"run.show": ended, "run.items": SQLAway(), "batch.list": SQLAway()},
		},
		{
			Name: "run-failed", Says: "It failed.", Path: "run", Query: about,
			Answers: map[string]any{"run.show": failed},
		},
		{
			Name: "run-hostile", Says: "Texts are texts.", Path: "run", Query: url.Values{"run": {Hostile}},
			Answers: map[string]any{
				"run.show": hostile,
				"run.items": ops.ItemPage{
					Items: []run.ItemOutcome{{Document: Hostile, Outcome: invoice.OutcomeFailed, Code: Hostile}},
				}, "batch.list": ops.BatchPage{},
			},
		},
		{
			Name: "run-unknown", Says: "A wrong id.", Path: "run", Query: url.Values{"run": {"x"}},
			Answers: map[string]any{"run.show": &ops.RequestError{Refusal: ops.NotFound, Message: `no run "x"`}},
		},
	}
}

package storybook

import (
	"net/url"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

const waitingDocument = "2026-11-22 02:40:01.553120-06:00-0004-1421549"

func tooLong() ops.Explanation {
	problem := "process_output.part_number: expected at most 50 characters, found 61"
	return ops.Explanation{
		ID: waitingDocument, SysName: "web", Status: "retry_scheduled", RetriesUsed: 3, Retries: 5,
		NextTry: Now().Add(6 * time.Minute),
		Summary: "3 of 5 retries used; next try 2026-11-22T03:19:20-06:00",
		Next:    "the recovery timer takes it up at its first tick after 2026-11-22T03:19:20-06:00",
		Problem: problem, Flow: "running",
		Attempts: []ops.Tried{
			{At: Ago(33 * time.Minute), Kind: "document", Code: "validation.too_long", Error: problem},
			{At: Ago(31 * time.Minute), Kind: "document", Code: "validation.too_long", Error: problem},
			{At: Ago(2 * time.Minute), Kind: "document", Code: "validation.too_long", Error: problem},
		},
		LastError: &ops.Tried{At: Ago(2 * time.Minute), Kind: "document", Code: "validation.too_long", Error: problem},
	}
}

func documentRows(n int) []ops.DocumentRow {
	rows := make([]ops.DocumentRow, n)
	for i := range rows {
		at := Ago(time.Duration(i) * time.Minute)
		rows[i] = ops.DocumentRow{
			ID: at.Format("2006-01-02 15:04:05.000000-07:00") + "-0004-1421549", SysName: "web",
			Line: 1421549 + int64(i)*7, Status: "retry_scheduled", Kind: "document",
			Code: "validation.too_long", Retries: i % 6, ChangedAt: at,
			RetryAt: Now().Add(time.Duration(i) * time.Minute),
		}
	}
	return rows
}

func documentStories() []Story {
	mixed := documentRows(4)
	mixed[1].Status, mixed[1].RetryAt, mixed[1].Code, mixed[1].Kind = "committed", time.Time{}, "", ""
	mixed[2].Status, mixed[2].RetryAt, mixed[2].FailedAt = "failed", time.Time{}, Ago(time.Hour)
	mixed[3].Status, mixed[3].Foreign, mixed[3].SysName, mixed[3].Line = "not offered", true, "", 0
	failed := tooLong()
	failed.Status, failed.NextTry, failed.RetriesUsed = "failed", time.Time{}, 5
	failed.Summary, failed.Next = "failed 2026-11-22T02:11:20-06:00 after 5 of 5 retries: document validation.too_long",
		"nothing by itself: fix the cause and `document retry`, or repair by hand and `document mark-committed`"
	failed.Evidence = "web/failed/1421549/2026-11-22%2002%3A40%3A01.553120-06%3A00-0004-1421549/20251122T081120Z-ab12"
	committed := ops.Explanation{
		ID: waitingDocument, SysName: "web", Status: "committed", Outcome: "superseded",
		SupersededBy: "2026-11-22 02:50:01.553120-06:00-0005-1421549", Retries: 5,
		Summary: "committed 2026-11-22T02:40:09-06:00: a newer result holds its lines: 2026-11-22 02:50:01.553120-06:00-0005-1421549", Next: "nothing: it is done", Flow: "running",
	}
	stopped := tooLong()
	stopped.Flow, stopped.StoppedSeconds =
		"stopped since 2026-11-22T03:12:05-06:00 (infrastructure refused: nobody listens); next probe 2026-11-22T03:13:45-06:00", 62
	stopped.Next = "the flow is " + stopped.Flow + ": when a probe succeeds, it is taken up"
	byLine := failed
	byLine.Line = &ops.AboutLine{Line: 1421549, Says: "the ledger has its failure mark", Others: mixed[:2]}
	hostile := ops.Explanation{
		ID: Hostile, SysName: Hostile, Status: Hostile, Outcome: Hostile, SupersededBy: Hostile, Summary: Hostile,
		Next: Hostile, Problem: Hostile, Warning: Hostile, Error: Hostile, FinalError: Hostile,
		Evidence: Hostile, Flow: Hostile,
		Attempts:  []ops.Tried{{Kind: Hostile, Code: Hostile, Error: Hostile}},
		LastError: &ops.Tried{Code: Hostile, Error: Hostile},
		Marked:    &ops.Mark{By: Hostile, Why: Hostile, At: Ago(time.Hour)},
		Line: &ops.AboutLine{
			Line: 1, Says: Hostile,
			Others: []ops.DocumentRow{
				{ID: Hostile, Status: Hostile, Code: Hostile, Kind: Hostile, SysName: Hostile, Foreign: true},
			},
		},
	}
	filter := url.Values{"status": {"retry_scheduled"}, "error_code": {"validation.too_long"}}
	dry := ops.Started{
		DryRun: true, Kind: run.Replay, Matched: 31,
		Failures: []ops.Failures{
			{Status: invoice.RetryScheduled, Kind: "document", Code: "validation.too_long", Documents: 31},
		},
	}
	for _, row := range documentRows(20) {
		dry.First = append(dry.First,
			ops.Match{
				ID: row.ID, Status: invoice.RetryScheduled, Kind: "document", Code: "validation.too_long",
				FailedAt: row.ChangedAt,
			})
	}
	few := dry
	few.Matched, few.First = 6, dry.First[:6]
	few.Failures = []ops.Failures{
		{Status: invoice.RetryScheduled, Kind: "document", Code: "validation.too_long", Documents: 6},
	}
	none := ops.Started{
		DryRun: true, Kind: run.Replay, Note: "no document of this environment matches whose status is failed",
	}
	many := dry
	many.Matched, many.AtLeast = 10_000, true
	form := url.Values{
		"status": {"retry_scheduled"}, "error_code": {"validation.too_long"}, "count": {"31"},
		"why": {"vendor fixed the part numbers"},
	}
	about := url.Values{"id": {waitingDocument}}
	hostileQuery := url.Values{"error_code": {Hostile}, "request": {Hostile}}
	text := func(s string) *string { return &s }
	long := "6ES7214-1AG40-0XB0 / 6ES7 214-1AG40-0XB0 / 6ES72141AG400XB0"
	diff := func(d ops.DocumentDiff) ops.Diff {
		return ops.Diff{Documents: []ops.DocumentDiff{d}, Flow: "running", At: Now()}
	}
	refused := diff(
		ops.DocumentDiff{
			ID: waitingDocument, Status: "retry_scheduled",
			Problem: "process_output.part_number: expected at most 50 characters, found 61",
		})
	would := diff(
		ops.DocumentDiff{ID: waitingDocument, Status: "failed", Outcome: invoice.OutcomeApplied, Lines: []ops.LineDiff{
			{
				Line: 1421549, Outcome: invoice.OutcomeApplied, Writes: true, Says: "3 columns would be written",
				Columns: []ops.ColumnDiff{
					{
						Table: invoice.Detail, Column: "CLN_MFR_AI_NM", Before: text("SIEMENS"),
						After: text("SIEMENS AG"),
					},
					{Table: invoice.Detail, Column: "CLN_MFR_PRT_NUM", After: &long},
					{Table: invoice.Tracking, Column: "NOTES", Before: text("")},
				},
			},
			{Line: 1421550, Outcome: invoice.OutcomeUnchanged, Says: "it has this content already"},
		}})
	bad := diff(
		ops.DocumentDiff{
			ID: Hostile, Problem: Hostile, Warning: Hostile,
			Lines: []ops.LineDiff{
				{
					Line: 1, Says: Hostile,
					Columns: []ops.ColumnDiff{
						{Table: invoice.Table(Hostile), Column: Hostile, Before: text(Hostile), After: text(Hostile)},
					},
				}, {Line: 2, Says: Hostile},
			},
		})
	return []Story{
		{
			Name: "documents-waiting", Says: "A list by status and code.", Path: "documents", Query: filter,
			Answers: map[string]any{
				"document.list": ops.DocumentList{
					Documents: documentRows(50), Matched: ops.Count{Documents: 1240, AtLeast: true},
					LookedSince: Ago(7 * 24 * time.Hour), NarrowBy: []string{"since", "request"},
					Says: "the newest 50 of at least 1240 that match since " +
						Ago(7*24*time.Hour).Format(time.RFC3339) + ". Narrow by since, request",
				},
			},
		},
		{
			Name: "documents-mixed", Says: "All sorts.", Path: "documents", Role: opsapi.Reader,
			Answers: map[string]any{"document.list": ops.DocumentList{Documents: mixed}},
		},
		{
			Name: "documents-request", Says: "Those of a request.", Path: "documents",
			Query: url.Values{"request": {"4711"}},
			Answers: map[string]any{
				"document.list": ops.DocumentList{
					Documents: mixed,
					Request: &ops.RequestCount{
						ID: "4711", Expected: 40, Present: 38, Documents: 12, AtLeast: true, Foreign: 1,
					},
				},
			},
		},
		{
			Name: "documents-empty", Says: "None match.", Path: "documents", Query: filter,
			Answers: map[string]any{"document.list": ops.DocumentList{}},
		},
		{
			Name: "documents-cut", Says: "The time was over before one was found.", Path: "documents", Query: filter,
			Answers: map[string]any{
				"document.list": ops.DocumentList{
					Cut: true, Matched: ops.Count{AtLeast: true}, NarrowBy: []string{"since"},
					Says: "the time was over: the newest 0 of the 0 that were read, and newer ones may be left out. Narrow by since",
				},
			},
		},
		{
			Name: "documents-bad-time", Says: "A time that is none.", Path: "documents",
			Query: url.Values{"since": {"yesterday"}},
		},
		{
			Name: "documents-cosmos-away", Says: "Cosmos DB has them.", Path: "documents",
			Answers: map[string]any{"document.list": CosmosAway()},
		},
		{
			Name: "documents-hostile", Says: "Texts are texts.", Path: "documents", Query: hostileQuery,
			Answers: map[string]any{
				"document.list": ops.DocumentList{
					Documents: []ops.DocumentRow{
						{ID: Hostile, Status: Hostile, Kind: Hostile, Code: Hostile, SysName: Hostile, Foreign: true},
					}, Request: &ops.RequestCount{ID: Hostile},
				},
			},
		},
		{
			Name: "document-waits", Says: "A value is too long.", Path: "document", Query: about,
			Answers: map[string]any{"document.why": tooLong(), "document.diff": refused},
		},
		{
			Name: "document-stopped", Says: "The flow is stopped.", Path: "document", Query: about,
			Answers: map[string]any{"document.why": stopped, "document.diff": SQLAway(), "status.get": stoppedStatus()},
		},
		{
			Name: "document-failed", Says: "It failed, found by its line.", Path: "document",
			Query:   url.Values{"line": {"1421549"}},
			Answers: map[string]any{"document.why": byLine, "document.diff": would},
		},
		{
			Name: "document-reader", Says: "It failed, and the values that say why are not for a reader.",
			Path: "document", Query: about, Role: opsapi.Reader, Answers: map[string]any{"document.why": failed},
		},
		{
			Name: "document-committed", Says: "A newer result has its lines.", Path: "document", Query: about,
			Role: opsapi.Reader,
			Answers: map[string]any{
				"document.why": committed,
				"document.diff": diff(
					ops.DocumentDiff{
						ID: waitingDocument,
						Lines: []ops.LineDiff{
							{Line: 1421549, Outcome: invoice.OutcomeSuperseded, Says: "a newer result has the line"},
						},
					}),
			},
		},
		{
			Name: "document-unknown", Says: "No such document.", Path: "document", Query: url.Values{"find": {"9"}},
			Answers: map[string]any{
				"document.why": &ops.RequestError{
					Refusal: ops.NotFound,
					Message: "no document names line 9; the ledger does not know it: no document was written to it",
				},
			},
		},
		{
			Name: "document-cosmos-away", Says: "Cosmos DB has it.", Path: "document", Query: about,
			Answers: map[string]any{"document.why": CosmosAway()},
		},
		{
			Name: "document-hostile", Says: "Texts are texts.", Path: "document", Query: url.Values{"id": {Hostile}},
			Answers: map[string]any{"document.why": hostile, "document.diff": bad},
		},
		{
			Name: "retry-asked", Says: "Before 31 documents are retried.", Path: "retry", Query: filter,
			Answers: map[string]any{"document.retry": dry},
		},
		{
			Name: "retry-few", Says: "Before 6 documents are retried.", Path: "retry", Query: filter,
			Answers: map[string]any{"document.retry": few},
		},
		{
			Name: "retry-many", Says: "More than the dry run counts.", Path: "retry", Query: filter,
			Answers: map[string]any{"document.retry": many},
		},
		{
			Name: "retry-paused", Says: "Nothing is written.", Path: "retry", Query: filter,
			Answers: map[string]any{"document.retry": dry, "status.get": pausedStatus()},
		},
		{
			Name: "retry-none", Says: "Nothing to retry.", Path: "retry", Query: url.Values{"ids": {waitingDocument}},
			Answers: map[string]any{"document.retry": none},
		},
		{
			Name: "retry-done", Says: "The browser goes to the run.", Path: "retry", Form: form,
			Answers: map[string]any{"document.retry": ops.Started{Run: replayRun, Matched: 31}},
		},
		{
			Name: "retry-shadow", Says: "A shadow writes nothing.", Path: "retry", Form: form, Mode: "shadow",
			Answers: map[string]any{"document.retry": func(request any) (any, error) {
				if r, ok := request.(ops.RetryRequest); ok && r.DryRun {
					return dry, nil
				}
				return nil, &ops.RequestError{Refusal: ops.Conflict, Message: "this app is a shadow: it writes nothing"}
			}},
		},
		{Name: "retry-reader", Says: "A reader may not.", Path: "retry", Query: filter, Role: opsapi.Reader},
		{
			Name: "retry-hostile", Says: "Texts are texts.", Path: "retry", Query: hostileQuery,
			Answers: map[string]any{
				"document.retry": ops.Started{
					Matched: 1,
					Failures: []ops.Failures{
						{Status: invoice.Status(Hostile), Kind: Hostile, Code: Hostile, Documents: 1},
					}, First: []ops.Match{{ID: Hostile, Kind: Hostile, Code: Hostile}},
					NotTaken: []ops.NotTaken{{ID: Hostile, Why: Hostile}},
				},
			},
		},
	}
}

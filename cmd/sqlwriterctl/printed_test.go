package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/storybook"
)

// answered is a bench whose app answers each call by a function.
func answered(t *testing.T, answer func(row opsapi.Row, request any) (any, error)) *bench {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(opsapi.Table(), func(row opsapi.Row) bool {
			return row.Method == r.Method && strings.HasSuffix(r.URL.Path, "/v1/"+row.Path)
		})
		row, query := opsapi.Table()[i], map[string]string{}
		for name := range r.URL.Query() {
			query[name] = r.URL.Query().Get(name)
		}
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		var reply any
		request, err := row.Read(query, body)
		if err == nil {
			reply, err = answer(row, request)
		}
		var refused *ops.RequestError
		switch {
		case errors.As(err, &refused):
			w.WriteHeader(http.StatusBadRequest)
			reply = opsapi.Problem{Detail: refused.Message, Kind: opsapi.KindRequest, Code: string(refused.Refusal)}
		case err != nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			reply = opsapi.Problem{
				Detail: fault.As(err).Reason, Kind: string(fault.KindOf(err)), Code: fault.CodeOf(err),
			}
		}
		require.NoError(t, json.NewEncoder(w).Encode(reply))
	}))
	t.Cleanup(server.Close)
	b := newBench(t)
	b.env["SQLWRITER_APP"], b.env["SQLWRITER_KEY"] = server.URL, "k"
	return b
}

// acts are commands that no page gives to be copied, or that it does without the answer, and their answers.
func acts() map[string]map[string]any {
	at := storybook.Ago
	row := func(id int64, retry time.Duration) ops.DocumentRow {
		return ops.DocumentRow{
			ID: "a b", Line: id, Status: "failed", Retries: 5, ChangedAt: at(retry), FailedAt: at(retry),
		}
	}
	progress := ops.RunProgress{
		Run: run.Run{ID: "r", Kind: run.Reapply, StartedAt: at(time.Hour), Status: run.RunRunning},
	}
	stopped, ended, failing := progress, progress, progress
	failing.Stats.Batches = map[run.BatchStatus]int{run.Failed: 1, run.Completed: 29}
	failing.Stats.Outcomes = map[invoice.Outcome]int{"": 2, invoice.OutcomeRetryScheduled: 29}
	stopped.Cancel, stopped.LostManagers, stopped.Note = true, 2, "its message could not be sent"
	ended.Status, ended.Stats.Outcomes = run.RunCompleted, map[invoice.Outcome]int{invoice.OutcomeApplied: 2}
	tried := ops.Tried{At: at(time.Hour), Kind: "document", Code: "2628", Error: "too\nlong"}
	before, after := "", "a"
	diffs := []ops.DocumentDiff{
		{
			ID: "a", Status: "failed", Why: "failed 2026-11-22T03:12:05-06:00", Next: "nothing",
			Outcome: invoice.OutcomeApplied, Warning: "SQL refused its last write", Lines: []ops.LineDiff{
				{Line: 7, Outcome: invoice.OutcomeApplied, Says: "2 columns", Columns: []ops.ColumnDiff{
					{Table: invoice.Detail, Column: "A", Before: &before, After: &after},
					{Table: invoice.Tracking, Column: "B", After: &before},
				}}, {Line: 8, Duplicate: true, Says: "another line keeps it back"},
			},
		}, {ID: "b", Status: "gone", Problem: "no document has this id"},
	}
	stale := reconcile.Key{Class: reconcile.Stale, Line: 8, Document: "c"}
	edited := reconcile.Key{Class: reconcile.Edited, Line: 7}
	return map[string]map[string]any{
		"flow pause --why x": {"flow.pause": ops.FlowChange{
			Was: ops.FlowView{State: breaker.Running, Says: "running"},
			Is:  ops.FlowView{State: breaker.PausedFlow, Says: "paused by kim since 2026-11-22T03:12:05-06:00: x"},
		}},
		"flow resume --force -y --why x": {"flow.resume": ops.FlowChange{
			Was:  ops.FlowView{State: breaker.StoppedFlow, Says: "stopped since 2026-11-22T03:12:05-06:00"},
			Is:   ops.FlowView{State: breaker.RampingUp, Says: "ramping up, at most 1 in one request"},
			Risk: breaker.Risk, Behind: "the database that kim accepted lacks what was written since", Audited: true,
		}},
		"flow resume --force -y --why again": {"flow.resume": ops.FlowChange{
			Was: ops.FlowView{Says: "running"}, Is: ops.FlowView{Says: "running"}, Audited: true,
		}},
		"document list": {"document.list": ops.DocumentList{}},
		"document list --request 4711": {"document.list": ops.DocumentList{
			Documents: []ops.DocumentRow{row(1, time.Hour), {ID: "c", SysName: "wbe", Foreign: true}},
			Request:   &ops.RequestCount{ID: "4711", Present: 1, Documents: 1, Foreign: 1},
		}},
		"document list --request 1": {"document.list": ops.DocumentList{Request: &ops.RequestCount{ID: "1"}}},
		"document diff a b":         {"document.diff": ops.Diff{Flow: "running", Note: "a shadow", Documents: diffs}},
		"document retry a nobody -y --why x": {"document.retry": ops.Started{Run: "r", Progress: &ops.RunProgress{
			Run: ended.Run, Stats: run.Stats{Outcomes: map[invoice.Outcome]int{"applied": 1, "gone": 1, "skipped": 2}},
		}}},
		"document mark-committed a --why x": {"document.mark-committed": ops.Marked{ID: "a", From: invoice.Failed}},
		"run start drain -y --why x":        {"run.start": ops.Started{Kind: run.Drain}},
		"run start reindex --all -y --why x": {"run.start": ops.Started{
			Kind: run.Reindex, Run: "r", Matched: 7, AtLeast: true, Note: "its message could not be sent",
		}},
		"run start reindex --findings edited --dry-run": {"run.start": ops.Started{
			Kind: run.Reindex, DryRun: true, Matched: 1, First: []ops.Match{{ID: "a", FailedAt: at(time.Hour)}},
			NotTaken: []ops.NotTaken{{ID: "b", Why: "it is committed"}},
			Diffs:    diffs,
		}},
		"run start replay --all -y --why x": {"run.start": ops.Started{Run: "r", Progress: &failing}},
		"run show r":                        {"run.show": stopped},
		"run show f":                        {"run.show": failing},
		"run cancel r --why x":              {"run.cancel": stopped},
		"run resume r --why x":              {"run.resume": progress},
		"run resume s --why x":              {"run.resume": ended},
		"run items r --limit 1": {"run.items": ops.ItemPage{Next: "x", Items: []run.ItemOutcome{
			{Document: "a b", Number: 2},
		}}},
		"batch list r/2": {"batch.list": ops.BatchPage{
			Batches: []run.Batch{
				{Run: "r", Number: 2, Status: run.Failed, Error: "its worker cannot", Total: 2, Success: 1, Failure: 1},
				{Run: "r", Number: 3, Status: run.PendingQueue, LastQueueError: "busy", QueuedAt: at(time.Hour)},
			}, Errors: []run.ErrorDetail{{
				At: at(time.Hour), Type: run.TypeMigration, Code: "2628", RetryCount: 1, Retryable: true, EntityID: 7,
				Document: "a", Message: "too long",
			}},
		}},
		"batch requeue r/2 --why x": {"batch.requeue": ops.Requeued{Batches: 1, Note: "there may be more"}},
		"finding list": {"finding.list": ops.FindingPage{
			Findings: []ops.FindingRow{
				{Finding: reconcile.Finding{Seen: reconcile.Seen{Key: stale}, FirstSeen: at(time.Hour)}},
			}, Found: ops.Found{Open: 1, Says: "1 open", Classes: []reconcile.Count{{Class: stale.Class, Findings: 1}}},
		}},
		"finding list --class edited": {"finding.list": ops.FindingPage{Findings: []ops.FindingRow{
			{Finding: reconcile.Finding{Seen: reconcile.Seen{Key: edited, Detail: "differs in X"}}},
		}}},
		"finding compare a --why x": {"finding.compare": ops.Comparing{Comparison: "compare-1"}},
		"line release 7 --dry-run":  {"line.release": ops.Started{Kind: run.Reindex, Matched: 1, DryRun: true}},
		"line release 7 --why x":    {"line.release": ops.Started{Run: "r", Progress: &ended}},
		"evidence show a": {"evidence.show": ops.DocumentEvidence{
			Document: "a", Place: ops.EvidencePlace{Account: "https://x/", Container: "c"}, Searched: "any folder",
			More: true, Found: 201, Episodes: []ops.EvidenceEpisode{
				{Path: "web/failed/7/a/2", At: at(time.Hour), Incomplete: true, Problems: []string{"no error.json"}},
				{
					Path: "web/failed/7/a/1", At: at(2 * time.Hour), Line: 7, Failed: &tried, Retries: 5, RunID: "r",
					InvocationID: "i", Attempts: []ops.Tried{tried},
					Files: []ops.EvidenceFile{{Name: "error.json", Size: 9, ETag: "e", At: at(time.Hour)}},
					Metadata: &commit.PoisonMetadata{
						ETag: "e", TS: 1, Container: "C", SysName: "web", ContentHash: "h", AppVersion: "v7",
					},
				},
			},
		}},
		"evidence get a": {"evidence.get": ops.EvidenceContent{Folder: "f", File: "g", Content: []byte("{}\r\n")}},
		"evidence restore a --dry-run": {"evidence.restore": ops.Restored{
			DryRun: true, Document: "a", Status: invoice.Failed, Kind: "document", Code: "2628", Folder: "f",
		}},
		"evidence restore a --why x": {"evidence.restore": ops.Restored{Document: "a", At: at(time.Hour)}},
		"audit list --action X":      {"audit.list": ops.AuditPage{}},
		"audit list":                 {"audit.list": ops.AuditPage{}},
		"audit list --limit 1": {"audit.list": ops.AuditPage{Next: "1", Audits: []run.Audit{
			{At: at(time.Hour), Action: "FLOW_PAUSED", By: "kim", Subject: "flow:web", Why: "index\nrebuild"},
		}}},
		"report show workers": {"report.show": run.Table{
			Columns: []string{"kind", "active", "per_second", "since"}, Rows: [][]any{{"manager", 1_000_000, 2.5, nil}},
		}},
		"report show runs": {"report.show": run.Table{Columns: []string{"run"}}},
	}
}

// TestGoldenEachCommandPrints has what the tool prints. Of the storybook's pages it runs the commands that they give to
// be copied, against an app that answers as theirs.
func TestGoldenEachCommandPrints(t *testing.T) {
	copied := regexp.MustCompile(`<code class="command">sqlwriterctl ([^<]*)</code>`)
	type planted struct {
		storybook.Story
		line string
	}
	var all []planted
	for _, s := range storybook.Stories() {
		for _, m := range copied.FindAllStringSubmatch(s.Render(t.Context()).Body, -1) {
			all = append(all, planted{s, html.UnescapeString(m[1])})
		}
	}
	own := acts()
	for _, line := range slices.Sorted(maps.Keys(own)) {
		all = append(all, planted{storybook.Story{Name: "act", Answers: own[line]}, line})
	}
	var printed strings.Builder
	seen := map[string]bool{}
	for _, p := range all {
		first := ""
		b := answered(t, func(row opsapi.Row, request any) (any, error) {
			_, there := p.Answers[row.Name]
			again := first == row.Name // the next page is the last one
			if first == "" && there {
				first = row.Name
			}
			switch {
			case !there:
				return nil, fault.New(fault.Infrastructure, "test", "refused", "no answer is planted")
			case again:
				return reflect.Zero(row.Answer).Interface(), nil
			}
			return p.Answer(t.Context(), row.Name, request)
		})
		args := append(shellWords(p.line), "--utc")
		if args[0] == "document" && args[1] == "retry" && p.Name != "act" {
			args = append(args, "--dry-run")
		}
		code := b.run(t, args...)
		if first != "" { // else the page does without what the command asks
			seen[first] = true
			b.errors = regexp.MustCompile(`http://127.0.0.1:\d+`).ReplaceAllString(b.errors, "http://app")
			what := fmt.Sprintf("sqlwriterctl %s\n%s--- exit code %d\n%s\n", p.line, b.out, code, b.errors)
			if !strings.Contains(printed.String(), what) {
				printed.WriteString("=== " + p.Name + ": " + what)
			}
		}
	}
	for _, row := range opsapi.Table() {
		// doctor's rows come from Azure, too
		elsewhere := row.Name == opsapi.OpenAPI.Name || row.Name == opsapi.Doctor.Name
		require.True(t, seen[row.Name] || elsewhere, "%s: nothing is printed of it", row.Name)
	}
	const golden = "testdata/printed.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(printed.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), printed.String(), "make update rewrites it")
}

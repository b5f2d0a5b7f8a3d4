package main

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// What changes many documents asks on a terminal, and is refused elsewhere unless --yes says so.
func TestManyDocumentsAreConfirmed(t *testing.T) {
	r := operated(t)
	first, second := r.failed(t, 1, "2628"), r.failed(t, 2, "2628")
	retry := []string{"document", "retry", "--error-code", "2628", "--why", "x"}
	require.Equal(t, exitUsage, r.run(t, retry...))
	require.Contains(t, r.errors, "add --yes")
	require.NotContains(t, r.errors, "app:", "nothing is asked before")
	for _, args := range [][]string{
		{"run", "start", "drain", "--why", "x"},
		{"batch", "requeue", "--run", "r", "--why", "x"},
		{"flow", "resume", "--force", "--why", "x"},
		{"ledger", "reopen"},
	} {
		require.Equal(t, exitUsage, r.run(t, args...), args)
		require.Contains(t, r.errors, "add --yes", args)
	}

	r.asks = true
	for _, answer := range []string{"n\n", "\n", "", "yep\n"} {
		r.stdin = answer
		require.Equal(t, exitFailed, r.run(t, retry...), answer)
		require.Contains(t, r.errors, "2 failed document 2628", "it counts first")
		require.Contains(t, r.errors, "A replay takes 2 documents. Continue? [y/N] ")
		require.Equal(t, invoice.Failed, r.writerState(t, first).Status)
	}
	r.stdin = "y\n"
	require.Equal(t, exitOK, r.run(t, retry...), r.errors)
	require.Regexp(t, `outcomes\s+2 applied\n`, r.out)
	require.Equal(t, invoice.Committed, r.writerState(t, second).Status)
	require.Equal(t, exitOK, r.run(t, retry...), "there is nothing to ask about")
	require.Contains(t, r.out, "0 documents match")

	r.asks = false
	third := r.failed(t, 3, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "retry", third, "--why", "one is not many"), r.errors)
	require.Equal(t, invoice.Committed, r.writerState(t, third).Status)
	require.Equal(t, exitFailed, r.run(t, "document", "retry", third, "nobody", "--yes", "--why", "x"))
	require.Contains(t, r.errors,
		"error: not every document was tried again: 1 does not exist (gone), 1 neither failed nor waits for a retry (skipped)\nhint: `sqlwriterctl run items replay-")
}

func TestTheSameResultInEachFormat(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 1, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "why", id, "-o", "json"), r.errors)
	require.True(t, strings.HasPrefix(r.out, "{\n  \"id\": "), "members are in their order: %s", r.out)
	var e ops.Explanation
	require.NoError(t, json.Unmarshal([]byte(r.out), &e), "stdout is JSON and nothing else")
	require.Equal(t, id, e.ID)
	require.Equal(t, exitOK, r.run(t, "document", "why", id, "-q"), r.errors)
	require.Equal(t, id+"\n", r.out)
	require.Empty(t, r.errors, "-q prints no notes")
}

func TestErrorsSayWhatHappenedAndWhatToDo(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		args       []string
		what, hint string
	}{
		{[]string{"run", "stat"}, `unexpected argument stat, did you mean "start"?`, "see `sqlwriterctl run --help`"},
		{[]string{"run", "start"}, `expected "<kind>"`, "see `sqlwriterctl run start --help`"},
		{[]string{"status", "--wat"}, "unknown flag --wat", "see `sqlwriterctl status --help`"},
		{[]string{"status"}, "no app is named", "make run"},
		{
			[]string{"batch", "requeue"},
			"which batches? expected a batch (RUN/NUMBER), or --run RUN",
			"see `sqlwriterctl batch requeue --help`",
		},
		{
			[]string{"completion", "tcsh"},
			`<shell> must be one of "bash","zsh","fish" but got "tcsh"`, "completion --help",
		},
	} {
		require.Equal(t, exitUsage, b.run(t, c.args...), c.args)
		lines := strings.Split(strings.TrimSpace(b.errors), "\n")
		require.Len(t, lines, 2, b.errors)
		require.Contains(t, lines[0], "error: ")
		require.Contains(t, lines[0], c.what)
		require.Contains(t, lines[1], "hint: ")
		require.Contains(t, lines[1], c.hint)
	}
}

// A wrong name is answered with the command that finds the right one.
func TestWhatIsNotFoundNamesTheCommandThatFindsIt(t *testing.T) {
	w := newWorking(t, 1)
	for hint, commands := range map[string][][]string{
		"`sqlwriterctl document list --line LINE` finds": {
			{"document", "why", "nobody"}, {"document", "mark-committed", "nobody", "--why", "x"},
		},
		"`sqlwriterctl run list` lists the latest runs\n": {
			{"run", "show", "nobody"}, {"run", "items", "nobody"}, {"run", "cancel", "nobody", "--why", "x"},
		},
		"`sqlwriterctl run list` lists the latest runs, `sqlwriterctl batch list RUN`": {
			{"batch", "list", "nobody"}, {"batch", "requeue", "nobody/1", "--why", "x"},
		},
		"`sqlwriterctl document list --status failed` lists": {
			{"evidence", "show", "nobody"}, {"evidence", "get", "nobody"},
		},
	} {
		for _, args := range commands {
			require.Equal(t, exitFailed, w.run(t, args...), "%v: %s", args, w.errors)
			require.Regexp(t, `(?m)^error: .*\nhint: `+regexp.QuoteMeta(hint), w.errors, "%v", args)
		}
	}
	require.Equal(t, exitOK, w.run(t, "document", "list", "--error-code", "547"), w.errors)
	require.Contains(t, w.errors, "no document matches: `sqlwriterctl status` counts")
}

// A failing dependency is one sentence and one hint; the driver's words come with --verbose.
func TestTheTextsOfDriversAreDetails(t *testing.T) {
	r := newReal(t)
	r.env["COSMOS_CONNECTION"] = "AccountEndpoint=http://127.0.0.1:1/;AccountKey=c2VjcmV0;"
	require.Equal(t, exitFailed, r.run(t, "ledger", "adopt", "--empty"))
	require.Regexp(t,
		`(?m)^error: Cosmos DB: [^:]+ \(infrastructure, code \w+\)\nhint: .sqlwriterctl explain `, r.errors)
	require.NotContains(t, r.errors, "127.0.0.1")
	require.NotContains(t, r.errors, `"level"`)
	require.Equal(t, exitFailed, r.run(t, "ledger", "adopt", "--empty", "--verbose"))
	require.Contains(t, r.errors, "\ndetails: ")
}

func TestCtrlCIs130(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	ctx, cancel := context.WithCancel(t.Context())
	w.wait = func(context.Context, time.Duration) error { cancel(); return context.Canceled }
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitInterrupted,
		execute(ctx, []string{"run", "show", w.onlyRun(t), "--watch"}, w.environment(&stdout, &stderr)))
}

func TestStatusCheckIsForMonitors(t *testing.T) {
	var s ops.Status
	b := answered(t, func(opsapi.Row, any) (any, error) { return s, nil })
	require.Equal(t, exitOK, b.run(t, "status", "--check"), b.errors)
	require.Equal(t, "attention  nothing\n", b.out)
	s.Attention = []ops.Attention{
		{Code: "timer_silent", Says: "the timer is silent", Page: "The timer"}, {Code: "poison"},
	}
	require.Equal(t, exitAttention, b.run(t, "status", "--check"))
	require.Contains(t, b.out, "ATTENTION  the timer is silent (runbook: The timer)\n")
	require.Contains(t, b.errors,
		"error: needs attention: timer_silent, poison\nhint: `sqlwriterctl explain timer_silent` says what it means")
	require.Equal(t, exitAttention, b.run(t, "status", "--check", "-q"))
	require.Equal(t, "timer_silent\npoison\n", b.out)
	require.Equal(t, exitOK, b.run(t, "status"), "without --check it is an answer like others")
}

// What the flags of a command say reaches the request.
func TestFlagsReachTheRequest(t *testing.T) {
	at := time.Date(2026, 1, 31, 0, 0, 0, 0, chicago)
	filter := ops.DocumentFilter{
		Status: "failed", Kind: "document", ErrorCode: "1", Request: "r", Line: 7,
		Since: at, Until: at.AddDate(0, 0, 1),
	}
	of := ops.EvidenceOfDocument{ID: "a", Line: 7}
	const filters = " --status failed --kind document --error-code 1 --request r --line 7 --since 2026-01-31 --until 2026-02-01 "
	for line, want := range map[string]any{
		"document list --limit 9" + filters: ops.DocumentQuery{DocumentFilter: filter, Limit: 9},
		"document retry --limit 9 --rate 5 -y --why x" + filters: ops.RetryRequest{
			DocumentFilter: filter, Limit: 9, Rate: 5, Why: "x",
		},
		"document why --line 7": ops.WhyQuery{Line: 7},
		"run start reindex --id a --id b,c --overwrite-edits 7,8 --overwrite-edits 9 --not-comparable --rate 5 --limit 9 -y --why x": ops.StartRequest{
			Kind: run.Reindex, IDs: []string{"a", "b,c"}, OverwriteEdits: []int64{7, 8, 9}, NotComparable: true,
			Rate: 5, Limit: 9, Why: "x",
		},
		"run start replay --run r --since 2026-01-31 --all --findings edited,stale --dry-run": ops.StartRequest{
			Kind: run.Replay, Run: "r", Since: at, All: true, DryRun: true,
			Findings: []reconcile.Class{reconcile.Edited, reconcile.Stale},
		},
		"run list --limit 9": ops.RunQuery{Limit: 9},
		"run items r --outcome failed,left --limit 9": ops.ItemQuery{
			Run: "r", Outcomes: []invoice.Outcome{invoice.OutcomeFailed, invoice.OutcomeLeft}, Limit: 9,
		},
		"run cancel r --why x":             ops.RunRequest{Run: "r", Why: "x"},
		"batch list r --status failed":     ops.BatchQuery{Run: "r", Status: run.Failed, Limit: 20},
		"batch list r/2":                   ops.BatchQuery{Batch: "r/2", Limit: 20},
		"batch requeue --run r -y --why x": ops.RequeueRequest{Run: "r", Why: "x"},
		"finding list --class edited,stale --line 7": ops.FindingQuery{
			Classes: []reconcile.Class{"edited", "stale"}, Line: 7, Limit: 20,
		},
		"finding compare a b --all --why x": ops.CompareRequest{
			IDs: []string{"a", "b"}, All: true, Why: "x",
		},
		"line release 7 --overwrite-edits --why x": ops.LineReleaseRequest{
			Line: 7, OverwriteEdits: true, Why: "x",
		},
		"evidence show a --line 7": of,
		"evidence get a --line 7 --file f --folder g": ops.EvidenceFileQuery{
			EvidenceOfDocument: of, File: "f", Folder: "g",
		},
		"evidence restore a --line 7 --dry-run": ops.RestoreRequest{EvidenceOfDocument: of, DryRun: true},
		"audit list --run r --action A --all --limit 9": ops.AuditQuery{
			Run: "r", Action: "A", All: true, Limit: 9,
		},
		"document mark-committed a --why x": ops.MarkRequest{ID: "a", Why: "x"},
		"flow resume --force -y --why x":    ops.ResumeFlow{Force: true, Why: "x"},
		"report show workers":               opsapi.Report{Name: "workers"},
	} {
		var asked []any
		b := answered(t, func(row opsapi.Row, request any) (any, error) {
			asked = append(asked, request)
			return reflect.Zero(row.Answer).Interface(), nil
		})
		b.run(t, shellWords(line)...)
		require.NotEmpty(t, asked, "%s: %s", line, b.errors)
		text, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(asked[0])
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(got), line)
	}
}

func TestVersion(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "version"))
	require.Regexp(t, `version\s+\S+\ncommit\s+\S.*\ngo\s+go1\.\S+\nplatform\s+\w+/\w+\n`, b.out)
}

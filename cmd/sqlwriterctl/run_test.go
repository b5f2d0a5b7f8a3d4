package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/inmem"
)

// tables is a run.Reports with one fixed table.
type tables struct{}

func (tables) Names() []run.ReportName { return shared.ReportNames() }

func (tables) Report(context.Context, string) (run.Table, error) {
	return run.Table{
		Columns: []string{"kind", "active", "per_second", "since"},
		Rows:    [][]any{{"manager", int64(1_000_000), 2.5, nil}},
	}, nil
}

// working is an app over in-memory adapters, with failed documents and a run store.
type working struct {
	*bench
	docs     *inmem.Documents
	evidence *inmem.Evidence
	store    *inmem.RunStore
	queue    *inmem.Queue
	ops      *ops.Ops
}

func newWorking(t *testing.T, documents int) *working {
	t.Helper()
	docs := inmem.NewDocuments(time.Now)
	for i := range documents {
		require.NoError(t,
			docs.Put(
				json.RawMessage(
					fmt.Sprintf(`{"id":"2025-12-17 10:00:00.000000-06:00-0001-%d","request_details":{"sys_name":"web"},
			"sql_writer":{"status":"failed","last_error_kind":"document","last_error_code":"2628"}}`, i))))
	}
	w := &working{
		bench: newBench(t), docs: docs, evidence: inmem.NewEvidence(), store: inmem.NewRunStore(time.Now, "web"),
		queue: inmem.NewQueue(nil),
	}
	sink := inmem.NewSink()
	flow := breakerOver(sink)
	executor := run.NewExecutor(run.Ports{
		Store: w.store, Finder: docs, Documents: docs, Breaker: flow,
		Commit: commit.NewCommit(docs, sink, commit.Options{SysName: "web", Breaker: flow}),
	}, run.Options{SysName: "web", Instance: "here"})
	w.ops = ops.New(ops.Ports{
		Documents: docs, Finder: docs, Breaker: flow, Counts: &inmem.Counts{},
		Stores: storesOf(w.store, executor, sink), ReportNames: shared.ReportNames(),
		RunQueue: w.queue, Evidence: w.evidence, Creator: docs,
	}, ops.Options{SysName: "web"})
	w.env["SQLWRITER_KEY"] = "key-marker"
	w.env["SQLWRITER_APP"] = host(t, w.ops, "key-marker").URL
	return w
}

// onlyRun returns the id of the only run.
func (w *working) onlyRun(t *testing.T) string {
	t.Helper()
	all, err := w.store.ListRuns(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].ID
}

// handOff creates batches of each documents, as a manager does.
func handOff(t *testing.T, store run.Store, id string, batches, each int) {
	t.Helper()
	row, ok, err := store.ClaimRun(t.Context(), id, 0, -1,
		run.Worker{ID: "manager-00000001", Instance: "test"}, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	lease := run.RunLease{Run: id, Owner: "manager-00000001", Epoch: row.Epoch}
	chunk := run.Chunk{First: 1}
	for b := range batches {
		var ids []string
		for d := range each {
			ids = append(ids, fmt.Sprintf("doc-%d-%d", b+1, d))
		}
		chunk.Batches = append(chunk.Batches, ids)
	}
	require.NoError(t, store.AddChunk(t.Context(), lease, chunk))
	unsent, err := store.Unsent(t.Context(), id, batches)
	require.NoError(t, err)
	_, err = store.MarkQueued(t.Context(), lease, unsent)
	require.NoError(t, err)
	require.NoError(t,
		store.EndHandOff(t.Context(), lease,
			run.Audit{Action: run.CodeRunHandedOff, Level: run.LevelInfo, By: "test", Why: "x"}))
}

// work processes a batch as a worker does: it defers the first document and commits the others.
func work(t *testing.T, store run.Store, id string, number int, fails bool) {
	t.Helper()
	audit := run.Audit{Action: run.CodeBatchDone, Level: run.LevelInfo, By: "test", Why: "x", Run: id}
	claimed, err := store.ClaimBatch(t.Context(), run.BatchID("web", id, number), run.Ticket{},
		run.Worker{ID: fmt.Sprintf("worker-%08d", number), Instance: "test"}, time.Minute, audit)
	require.NoError(t, err)
	require.Equal(t, run.Taken, claimed.Answer)
	if fails {
		require.NoError(t, store.FailBatch(t.Context(), claimed.Lease, "its worker cannot", audit))
		return
	}
	var outcomes []run.ItemOutcome
	for i, document := range claimed.Open {
		o := run.ItemOutcome{Document: document, Outcome: invoice.OutcomeApplied}
		if i == 0 {
			o.Outcome, o.Code = invoice.OutcomeRetryScheduled, "2628"
		}
		outcomes = append(outcomes, o)
	}
	require.NoError(t, store.SaveOutcomes(t.Context(), claimed.Lease, outcomes, []run.ErrorDetail{{
		Document: claimed.Open[0], Code: "2628", Message: "too long", Type: run.TypeMigration,
		RetryCount: 1, Retryable: true,
	}}))
	_, err = store.FinishBatch(t.Context(), claimed.Lease, func(run.BatchStats) run.Audit { return audit })
	require.NoError(t, err)
}

func complete(t *testing.T, store run.Store, id string) {
	t.Helper()
	ok, err := store.CompleteRun(t.Context(), id, time.Minute, func(run.RunStatus, run.Stats) run.Audit {
		return run.Audit{Action: run.CodeRunDone, Level: run.LevelInfo, By: "test", Why: "x", Run: id}
	})
	require.NoError(t, err)
	require.True(t, ok)
}

// receipt returns the outcomes of a run as `run items` gives them, and their sums.
func (b *bench) receipt(t *testing.T, id string) (counts map[invoice.Outcome]int, all map[string]run.ItemOutcome) {
	t.Helper()
	require.Equal(t, exitOK, b.run(t, "run", "items", id, "-o", "json"), b.errors)
	var page ops.ItemPage
	require.NoError(t, json.Unmarshal([]byte(b.out), &page))
	require.Empty(t, page.Next)
	counts, all = map[invoice.Outcome]int{}, map[string]run.ItemOutcome{}
	for _, i := range page.Items {
		counts[i.Outcome]++
		all[i.Document] = i
	}
	require.Len(t, all, len(page.Items), "each document once")
	return counts, all
}

func TestARunFromItsPreviewToItsReceipt(t *testing.T) {
	w := newWorking(t, 30)
	require.Equal(t, exitOK, w.run(t, "run", "start", "replay", "--all", "--dry-run"), w.errors)
	require.Contains(t, w.out, "30 documents match a replay\nin batches of 100\n")
	require.Contains(t, w.out, "and 10 more")
	require.Equal(t, exitOK, w.run(t, "run", "list", "-o", "json"), w.errors)
	require.JSONEq(t, `{"runs":[]}`, w.out)

	steps := 0
	w.wait = func(context.Context, time.Duration) error { // the workers run during the wait
		id := w.onlyRun(t)
		switch steps++; steps {
		case 1:
			handOff(t, w.store, id, 3, 10)
		case 2, 3, 4:
			work(t, w.store, id, steps-1, false)
		case 5:
			complete(t, w.store, id)
		default:
			require.Fail(t, "it is over")
		}
		return nil
	}
	require.Equal(t, exitOK,
		w.run(t, "run", "start", "--yes", "replay", "--all", "--rate", "600", "--why", "column widened"), w.errors)
	id := w.onlyRun(t)
	require.Equal(t,
		fmt.Sprintf("run %s: 30 documents, in batches of 100\n`sqlwriterctl run show %s --watch` watches it\n", id, id),
		w.out)
	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "--watch"), w.errors)
	require.Regexp(t,
		`\S+ \S+  running, 10 of 30 \(33%\), \d+ a second on average.*; batches: 2 queued, 1 completed\n`, w.errors)
	require.Contains(t, w.errors,
		"run "+id+" completed with failures: documents: 3 retry_scheduled\nhint: `sqlwriterctl run items "+id)
	require.Regexp(t, `status\s+completed with failures\n`, w.out)
	require.Regexp(t, `hand-off\s+done .*, 600 documents a minute\n`, w.out)
	require.Regexp(t, `documents\s+30 of 30 \(100%\)`, w.out)
	require.Regexp(t, `batches\s+3 completed\n`, w.out)
	require.Regexp(t, `outcomes\s+27 applied, 3 retry_scheduled\n`, w.out)
	require.Regexp(t, `requested by\s+function key operator at \S+ \S+: column widened\n`, w.out)
	counts, all := w.receipt(t, id)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 27, invoice.OutcomeRetryScheduled: 3}, counts)
	require.Equal(t,
		run.ItemOutcome{
			Document: "doc-2-0", Outcome: invoice.OutcomeRetryScheduled, Code: "2628", Number: 2,
		}, all["doc-2-0"])
	require.Equal(t, run.ItemOutcome{Document: "doc-3-9", Outcome: invoice.OutcomeApplied, Number: 3}, all["doc-3-9"])

	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "-o", "json"), w.errors)
	var p ops.RunProgress
	require.NoError(t, json.Unmarshal([]byte(w.out), &p))
	require.Equal(t, []any{id, 30, run.RunCompletedWithFailures}, []any{p.ID, p.Done, p.Status})
	require.Equal(t, exitOK, w.run(t, "run", "list"), w.errors)
	require.Regexp(t, id+`\s+completed with failures\s+\S+\s+30 handed off\s+3 completed\s`, w.out)
	require.Equal(t, exitOK, w.run(t, "batch", "list", id+"/2"), w.errors)
	require.Regexp(t, `MIGRATION\s+2628\s+1\s+yes\s+-\s+doc-2-0\s+too long`, w.out)
}

// The receipt of a run is complete, however many documents it has.
func TestAReceiptHasMorePages(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	handOff(t, w.store, id, 25, 100)
	for n := range 25 {
		work(t, w.store, id, n+1, false)
	}
	counts, _ := w.receipt(t, id)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 2475, invoice.OutcomeRetryScheduled: 25}, counts)
	require.Equal(t, exitOK, w.run(t, "run", "items", id, "--limit", "1001", "-q"), w.errors)
	require.Equal(t, 1001, strings.Count(w.out, "\n"))
}

func TestIDsOfAFile(t *testing.T) {
	w := newWorking(t, 3)
	id := func(n int) string { return fmt.Sprintf("2025-12-17 10:00:00.000000-06:00-0001-%d", n) }
	text := "\ufeff" + id(0) + "\r\n\r\n  " + id(1) + "  \n" + id(0) + "\n\n" + id(2)
	file := filepath.Join(w.dir, "ids.txt")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	w.stdin = text
	for _, from := range []string{file, "-"} {
		require.Equal(t, exitOK,
			w.run(t, "run", "start", "replay", "--ids-file", from, "--id", id(2), "--dry-run", "-o", "json"), w.errors)
		var started ops.Started
		require.NoError(t, json.Unmarshal([]byte(w.out), &started))
		require.Equal(t, 3, started.Matched)
	}
	var many strings.Builder
	for n := range 10_001 {
		many.WriteString(id(n) + "\n")
	}
	require.NoError(t, os.WriteFile(file, []byte(many.String()), 0o600))
	require.Equal(t, exitUsage, w.run(t, "run", "start", "--yes", "replay", "--ids-file", file, "--why", "x"))
	require.Contains(t, w.errors, "--id, --ids-file: expected at most 10000, found 10001")
}

// After a lost reply it is unknown whether an action was done, so the operator must look before doing it again.
func TestAnActionWithoutAnAnswer(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	b.env["SQLWRITER_APP"], b.env["SQLWRITER_KEY"] = server.URL, "k"
	for _, args := range [][]string{
		{"run", "start", "--yes", "drain", "--why", "x"},
		{"finding", "compare", "--why", "x"},
		{"document", "retry", "a", "--why", "x"},
		{"flow", "pause", "--why", "x"},
	} {
		require.Equal(t, exitFailed, b.run(t, args...))
		require.Contains(t, b.errors,
			"error: no answer came, and it may have been done anyway: the app answers 502 without a reason: its host did not complete the request ("+server.URL+", SQLWRITER_APP)\nhint: `sqlwriterctl audit list` shows what was done", args)
	}
	for _, args := range [][]string{{"run", "start", "drain", "--dry-run"}, {"run", "list"}} {
		require.Equal(t, exitFailed, b.run(t, args...))
		require.NotContains(t, b.errors, "may have been done")
	}
}

// An app that meets a failing dependency amid an action says so, and the operator looks before doing it again.
func TestAnActionThatFailedOnItsWay(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"detail":"no answer","kind":"infrastructure","code":"timeout"}`))
	}))
	t.Cleanup(server.Close)
	b.env["SQLWRITER_APP"], b.env["SQLWRITER_KEY"] = server.URL, "k"
	for told, args := range map[bool][]string{
		true: {"document", "retry", "a", "--why", "x"}, false: {"document", "retry", "a", "--dry-run"},
	} {
		require.Equal(t, exitFailed, b.run(t, args...))
		require.Equal(t, told,
			strings.Contains(b.errors,
				"the app answers 503, and an entry in `audit list` would say that the action was begun: no answer"),
			b.errors)
	}
}

// A person agreed to a number of documents.
func TestARetryTakesNoMoreThanWasShown(t *testing.T) {
	b := newBench(t)
	var asked []ops.RetryRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request ops.RetryRequest
		require.NoError(t, json.NewDecoder(r.Body).Decode(&request))
		asked = append(asked, request)
		_, _ = w.Write([]byte(`{"kind":"replay","matched":3}`))
	}))
	t.Cleanup(server.Close)
	b.env["SQLWRITER_APP"], b.env["SQLWRITER_KEY"] = server.URL, "k"
	b.shows, b.asks, b.stdin = true, true, "y\n"
	require.Equal(t, exitOK, b.run(t, "document", "retry", "--status", "failed", "--why", "x"), b.errors)
	require.Len(t, asked, 2)
	require.Equal(t, []int{0, 3}, []int{asked[0].Limit, asked[1].Limit})
	require.True(t, asked[0].DryRun)
	require.False(t, asked[1].DryRun)
}

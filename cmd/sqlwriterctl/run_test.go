package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
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

// A run needs no Service Bus: the app executes it in the request, and the receipt is the usual one.
func TestARunIsExecutedInTheApp(t *testing.T) {
	w := newWorking(t, 130)
	w.queue.Always(inmem.QueueDown())
	require.Equal(t, exitFailed,
		w.run(t, "run", "start", "--yes", "replay", "--all", "--limit", "120", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	require.Contains(t, w.errors, "its message could not be sent")
	require.Contains(t, w.errors, "run "+id+" completed with failures: documents: 120 retry_scheduled")
	counts, _ := w.receipt(t, id)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeRetryScheduled: 120}, counts)

	require.Equal(t, exitFailed, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	require.Regexp(t, `status\s+completed with failures\n`, w.out)
	require.Regexp(t, `documents\s+10 of 10 \(100%\)`, w.out)
	require.Equal(t, exitFailed, w.run(t, "run", "resume", id, "--why", "x"))
	require.Contains(t, w.errors, "is running, has failed or was cancelled: it is completed_with_failures")
}

func TestARunningRunIsResumed(t *testing.T) {
	w := newWorking(t, 3)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	_, claimed, err := w.store.ClaimRun(t.Context(), id, 0, -1, run.Worker{ID: "manager-00000001"}, time.Minute)
	require.NoError(t, err)
	require.True(t, claimed)
	require.Equal(t, exitFailed, w.run(t, "run", "resume", id, "--why", "x"))
	require.Contains(t, w.errors, "manager-00000001 has it, last heard 0s ago")
	require.NoError(t, w.store.ReleaseRun(t.Context(), run.RunLease{Run: id, Owner: "manager-00000001", Epoch: 1}))
	w.queue.Always(inmem.QueueDown())
	require.Equal(t, exitFailed, w.run(t, "run", "resume", id, "--why", "x"), w.errors)
	require.Regexp(t, `outcomes\s+3 retry_scheduled\n`, w.out)
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

func TestTheDocumentsThatARunLeftAreListedAndReplayed(t *testing.T) {
	w := newWorking(t, 30)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	handOff(t, w.store, id, 3, 10)
	for n := range 3 {
		work(t, w.store, id, n+1, false)
	}
	complete(t, w.store, id)
	require.Equal(t, exitOK, w.run(t, "run", "items", id, "--outcome", "failed,retry_scheduled"), w.errors)
	for _, line := range []string{
		`doc-1-0\s+retry_scheduled\s+2628\s+1\n`, `doc-2-0\s+retry_scheduled\s+2628\s+2\n`,
		`doc-3-0\s+retry_scheduled\s+2628\s+3\n`,
	} {
		require.Regexp(t, line, w.out)
	}
	require.Equal(t, 4, strings.Count(w.out, "\n"), w.out)
	require.Equal(t, exitOK, w.run(t, "run", "items", id, "--limit", "2", "-o", "json"), w.errors)
	require.Contains(t, w.errors, "there are more: --limit shows more")
	var page ops.ItemPage
	require.NoError(t, json.Unmarshal([]byte(w.out), &page))
	require.Len(t, page.Items, 2)
	require.Equal(t, exitUsage, w.run(t, "run", "items", id, "--outcome", "bogus"))
	require.Contains(t, w.errors,
		`--outcome: expected some of applied, unchanged, superseded, edited, not_comparable, manual, retry_scheduled, left, waiting, failed, missing, gone, skipped, not_offered, unreadable, found "bogus"`)

	require.Equal(t, exitOK, w.run(t, "run", "start", "replay", "--run", id, "--dry-run"), w.errors)
	require.Contains(t, w.out, "3 documents match a replay")
	require.Equal(t, exitOK,
		w.run(t, "run", "start", "--yes", "replay", "--run", id, "--why", "column widened", "-o", "json"), w.errors)
	var started ops.Started
	require.NoError(t, json.Unmarshal([]byte(w.out), &started))
	row, there, err := w.store.Run(t.Context(), started.Run)
	require.NoError(t, err)
	require.True(t, there)
	require.JSONEq(t, `{"run":"`+id+`"}`, string(row.Filter))
	require.Equal(t, exitUsage, w.run(t, "run", "start", "reindex", "--run", id, "--dry-run"))
	require.Equal(t, exitFailed, w.run(t, "run", "start", "replay", "--run", "nobody", "--dry-run"))
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

func TestAFailedBatchIsSeenAtOnce(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	require.Contains(t, w.out, "1 document, in batches of 100\n`sqlwriterctl run show replay-")
	id := w.onlyRun(t)
	handOff(t, w.store, id, 30, 2)
	for n := range 30 {
		work(t, w.store, id, n+1, n == 28)
	}
	require.Equal(t, exitOK, w.run(t, "run", "show", id), "a question is answered")
	require.Regexp(t, `status\s+1 BATCH FAILED, running\n`, w.out)
	require.Regexp(t, `batches\s+1 failed, 29 completed\n`, w.out)
	require.Regexp(t, `outcomes\s+2 none, 29 applied, 29 retry_scheduled\n`, w.out)
	require.Contains(t, w.errors,
		"run "+id+" is running with failures: documents: 29 retry_scheduled; 1 batch failed\nhint: ")
	require.Contains(t, w.errors, "`sqlwriterctl batch list "+id)
	complete(t, w.store, id)
	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "--watch"))
	require.Equal(t, exitOK, w.run(t, "run", "list"), w.errors)
	require.Contains(t, w.out, "1 BATCH FAILED, completed with failures")

	require.Equal(t, exitOK, w.run(t, "batch", "list", id), w.errors)
	lines := strings.Split(w.out, "\n")
	require.Regexp(t, regexp.QuoteMeta(id+"/29")+`\s+FAILED\s+2\s+0\s+0\s.*its worker cannot`, lines[1],
		"before those with a lower number")
	require.Len(t, lines, 22)
	require.Equal(t, exitOK, w.run(t, "batch", "list", id, "--status", "failed", "-o", "json"), w.errors)
	var page ops.BatchPage
	require.NoError(t, json.Unmarshal([]byte(w.out), &page))
	jobs := page.Batches
	require.Len(t, jobs, 1)

	require.Equal(t, exitUsage, w.run(t, "batch", "requeue", id+"/29"))
	require.Contains(t, w.errors, "--why: expected the reason")
	require.Equal(t, exitFailed, w.run(t, "batch", "requeue", id+"/1", "--why", "x"))
	require.Contains(t, w.errors, "the batch is completed")
	require.Equal(t, exitOK, w.run(t, "batch", "requeue", "--yes", "--run", id, "--why", "mended"), w.errors)
	require.Equal(t, "the timer will send 1 batch again\n", w.out)
	require.Equal(t, exitFailed, w.run(t, "batch", "requeue", "--yes", "--run", id, "--why", "again"))
	require.Contains(t, w.errors, "no batch of run")
	require.Equal(t, exitUsage, w.run(t, "batch", "requeue", "--why", "x"))
	require.Equal(t, exitUsage, w.run(t, "batch", "requeue", id+"/1", "--run", id, "--why", "x"))
	require.Equal(t, exitOK, w.run(t, "run", "show", id), w.errors)
}

func TestCancelAndResumeARun(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x", "-o", "json"), w.errors)
	var started ops.Started
	require.NoError(t, json.Unmarshal([]byte(w.out), &started))
	id := started.Run
	require.Equal(t, exitUsage, w.run(t, "run", "cancel", id))
	require.Equal(t, exitOK, w.run(t, "run", "cancel", id, "--why", "wrong filter"), w.errors)
	require.Contains(t, w.out, id+": ends after the running batches")
	require.Equal(t, exitFailed, w.run(t, "run", "resume", id, "--why", "x"))
	require.Contains(t, w.errors, "it is to be cancelled: resume it when it has ended")
	require.Equal(t, exitOK, w.run(t, "run", "list"), w.errors)
	require.Regexp(t, `running, to be cancelled\s+\S+\s+0 of 1 handed off\s+-\s`, w.out,
		"nothing of what the preview found is handed off")
	require.Equal(t, exitOK, w.run(t, "run", "show", id), w.errors)
	require.Regexp(t, `filter\s+all\n`, w.out)
	require.Regexp(t, `documents\s+0 of 1 \(0%\), 0 a second on average\n`, w.out)
	complete(t, w.store, id)
	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "--watch"))
	require.Contains(t, w.errors, "run "+id+" is cancelled\nhint: `sqlwriterctl run resume "+id)
	require.Equal(t, exitOK, w.run(t, "run", "resume", id, "--why", "it was right"), w.errors)
	require.Contains(t, w.out, id+": resumed")
	require.Equal(t, exitFailed, w.run(t, "run", "cancel", "nobody", "--why", "x"))
}

func TestARunShowsHowManyOfItsManagersDied(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	for died := range 3 {
		_, ok, err := w.store.ClaimRun(t.Context(), id, died, -1,
			run.Worker{ID: fmt.Sprintf("manager-%08d", died), Instance: "test"}, 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, exitOK, w.run(t, "run", "show", id), w.errors)
		if died == 0 {
			require.NotContains(t, w.out, "lost managers")
		} else {
			require.Regexp(t, fmt.Sprintf(`lost managers\s+%d in a row, without another hand-off\n`, died), w.out)
		}
		require.Equal(t, exitOK, w.run(t, "run", "show", id, "-o", "json"), w.errors)
		var p map[string]any
		require.NoError(t, json.Unmarshal([]byte(w.out), &p))
		require.Equal(t, died > 0, p["lost_managers"] == float64(died), w.out)
	}
}

func TestUsageErrors(t *testing.T) {
	w := newWorking(t, 3)
	empty := filepath.Join(w.dir, "empty.txt")
	require.NoError(t, os.WriteFile(empty, []byte("\n  \n\r\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no kind": {[]string{"run", "start"}, "kind"},
		"an unknown kind": {
			[]string{"run", "start", "--yes", "census", "--all", "--why", "x"},
			`<kind> must be one of "drain","replay","reindex","reapply" but got "census"`,
		},
		"an unknown kind, error": {
			[]string{"document", "retry", "--yes", "--kind", "documents", "--why", "x"},
			"--kind: expected one of infrastructure, ",
		},
		"no time": {
			[]string{"run", "start", "--yes", "replay", "--since", "yesterday", "--why", "x"},
			"--since: expected so long ago",
		},
		"no other time": {
			[]string{"document", "retry", "--yes", "--until", "01.01.2026", "--why", "x"},
			"--until: expected so long ago",
		},
		"no filter": {
			[]string{"run", "start", "--yes", "replay", "--why", "x"}, "--all: expected a filter",
		},
		"no reason": {[]string{"run", "start", "--yes", "replay", "--all"}, "why: expected the reason"},
		"no file": {
			[]string{
				"run", "start", "--yes", "replay", "--ids-file", filepath.Join(w.dir, "none"), "--why", "x",
			}, "--ids-file: open",
		},
		"a file without ids": {
			[]string{"run", "start", "--yes", "drain", "--ids-file", empty, "--why", "x"},
			"expected one id a line, found none",
		},
		"an unknown status": {
			[]string{"batch", "list", "--status", "done"}, `--status: expected one of pending_queue`,
		},
		"no runs":               {[]string{"run", "list", "--limit", "0"}, "--limit: expected 1 or more, found 0"},
		"fewer than no batches": {[]string{"batch", "list", "--limit=-3"}, "--limit: expected 1 or more, found -3"},
		"fewer than no documents": {
			[]string{"run", "start", "--yes", "drain", "--limit=-1", "--why", "x"},
			"--limit: expected 0 to 100000000, found -1",
		},
		"back in time": {
			[]string{"run", "start", "--yes", "drain", "--rate=-1", "--why", "x"},
			"--rate: expected 0 to 100000 documents a minute, found -1",
		},
		"an empty period": {
			[]string{"document", "retry", "--yes", "--since", "1h", "--until", "2h", "--why", "x"},
			"--until: expected a time after --since (",
		},
		"no report": {
			[]string{"report", "show", "sales"}, `report: expected one of runs, batch-progress,`,
		},
		"no id": {
			[]string{"run", "show", "a b"},
			`run: expected the id of a run, as ` + "`run list`" + ` shows them, found "a b"`,
		},
		"no id, entries": {
			[]string{"audit", "list", "--run", "a b"},
			"--run: expected the id of a run, as `run list` shows them, found \"a b\"",
		},
		"fewer than no entries": {[]string{"audit", "list", "--limit=-1"}, "--limit: expected "},
		"an action of a novel": {
			[]string{"audit", "list", "--action", strings.Repeat("x", 41)},
			"--action: expected at most 40 characters, found 41",
		},
		"no document": {
			[]string{"run", "start", "--yes", "drain", "--id", "a/b", "--why", "x"},
			`--id, --ids-file: expected the id of a document, which has none of / \ ? #, found "a/b"`,
		},
		"lines of a replay": {
			[]string{"run", "start", "--yes", "replay", "--all", "--not-comparable", "--why", "x"},
			"--overwrite-edits, --not-comparable: go with a kind",
		},
		"lines and no documents": {
			[]string{"run", "start", "--yes", "reindex", "--overwrite-edits", "7", "--why", "x"},
			"--all: expected a filter",
		},
		"no batch": {
			[]string{"batch", "requeue", "x/0", "--why", "x"},
			`batch: expected RUN/NUMBER or the id of a batch, as ` + "`batch list`" + ` shows them, found "x/0"`,
		},
	} {
		require.Equal(t, exitUsage, w.run(t, c.args...), name)
		require.Contains(t, w.errors, c.want, name)
	}
	all, err := w.store.ListRuns(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, all)
	require.Equal(t, exitFailed, w.run(t, "run", "show", "nobody", "--watch"))
	require.Contains(t, w.errors, `no run "nobody"`)
	require.Equal(t, exitFailed, w.run(t, "batch", "list", "nobody"))
}

// The permissions of a rewrite reach the run, by the command line and by the app's Ops function.
func TestThePermissionsOfARewriteReachTheRun(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK,
		w.run(t, "run", "start", "--yes", "reindex", "--id", "2025-12-17 10:00:00.000000-06:00-0001-0",
			"--overwrite-edits", "7,8",
			"--overwrite-edits", "9", "--not-comparable", "--why", "x"), w.errors)
	row, _, err := w.store.Run(t.Context(), w.onlyRun(t))
	require.NoError(t, err)
	require.JSONEq(t,
		`{"ids":["2025-12-17 10:00:00.000000-06:00-0001-0"],"overwrite_edits":[7,8,9],"not_comparable":true}`,
		string(row.Filter))
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

func TestNothingToDoIsReported(t *testing.T) {
	w := newWorking(t, 0)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "drain", "--why", "x"), w.errors)
	require.Equal(t, "0 documents match a drain\n", w.out)
}

func TestReportsOnTheCommandLine(t *testing.T) {
	w := newWorking(t, 0)
	require.Equal(t, exitOK, w.run(t, "report", "show"), w.errors)
	for _, n := range shared.ReportNames() {
		require.Regexp(t, n.Name+`\s+`+regexp.QuoteMeta(n.Meaning)+`\n`, w.out)
	}
	require.Equal(t, exitOK, w.run(t, "report", "show", "workers"), w.errors)
	require.Regexp(t, `^kind\s+active\s+per_second\s+since\nmanager\s+1000000\s+2.5\s+-\n$`, w.out)
	require.Equal(t, exitOK, w.run(t, "report", "show", "workers", "-o", "json"), w.errors)
	var answer run.Table
	require.NoError(t, json.Unmarshal([]byte(w.out), &answer))
	require.Equal(t, []string{"kind", "active", "per_second", "since"}, answer.Columns)
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

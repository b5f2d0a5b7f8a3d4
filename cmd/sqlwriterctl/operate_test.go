package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// operated is a bench whose database is adopted, so that the app may commit.
func operated(t *testing.T) *real {
	t.Helper()
	r := newReal(t)
	require.NoError(t, r.store.MarkEmpty(t.Context(), "test"))
	return r
}

// failed submits a document that failed a while ago, and its line.
func (r *real) failed(t *testing.T, line int64, code string) string {
	t.Helper()
	id := fmt.Sprintf("2025-12-17 10:00:00.000000-06:00-0001-%d", line)
	text := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":"M","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":[]},"sql_writer":{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00",
		"last_error":"too long","last_error_kind":"document","last_error_code":%q,"last_error_at":"2025-12-18 09:00:00.000000-06:00"}}`, id, line, code)
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(text), true))
	r.line(t, line)
	return id
}

// count counts as the recovery timer does.
func (r *real) count(t *testing.T) {
	t.Helper()
	c, err := cosmos.Open(
		cosmos.Options{Connection: r.env["COSMOS_CONNECTION"], Database: "invoices", Container: "sqlwriter-control"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	timer := ops.New(ops.Ports{
		Finder: r.documents, Counts: cosmos.NewCounts(c, "web", false), Breaker: breaker.New(nil, breaker.Options{}),
		Stores: func(context.Context) (ops.Stores, error) { return ops.Stores{Findings: r.store.Findings("web")}, nil },
	}, ops.Options{SysName: "web", Mapping: "the default, version 7"})
	require.NoError(t, timer.SaveCounts(t.Context()))
}

func (r *real) writerState(t *testing.T, id string) invoice.State {
	t.Helper()
	raw, err := r.documents.Read(t.Context(), id)
	require.NoError(t, err)
	doc, err := invoice.Reader{}.Read(raw, time.Now())
	require.NoError(t, err)
	return doc.State
}

func TestOperating(t *testing.T) {
	r := operated(t)
	first, second := r.failed(t, 1, "2628"), r.failed(t, 2, "547")

	r.count(t)
	key := regexp.MustCompile(`(?m)^partition key\s+/request_details/id$`)
	require.Eventually(t, func() bool {
		return r.run(t, "status") == exitOK && key.MatchString(r.out)
	}, time.Minute, time.Millisecond, "the key as the container's definition has it")
	require.Regexp(t, `flow\s+running`, r.out)
	require.Regexp(t, `(?m)^DEPENDENCY\s+STATE\s+SINCE\s+LAST SEEN\s+BY\s+CODE\s+REASON\s*$`, r.out)
	require.Regexp(t, `(?m)^timer\s+ok\s+-\s+\d{4}-\d\d-\d\d \S+\s+-\s`, r.out)
	require.Regexp(t, `failed\s+2`, r.out)
	require.Regexp(t, `failed\s+document\s+2628\s+1`, r.out)
	require.Contains(t, r.errors, "(SQLWRITER_APP), with a function key")
	require.Equal(t, exitOK, r.run(t, "status", "-o", "json"))
	var s ops.Status
	require.NoError(t, json.Unmarshal([]byte(r.out), &s), "stdout is JSON and nothing else")
	require.Equal(t, ops.Count{Documents: 2}, s.Counts.Depth[invoice.Failed])

	require.Equal(t, exitOK, r.run(t, "document", "why", first), r.errors)
	require.Contains(t, r.out, "failed 2025-12-18 09:00:00-06:00 after 5 of 5 retries: document 2628", "in TIME_ZONE")
	require.NotContains(t, r.out, "web/failed/1/", "the store has no evidence of it")
	require.Equal(t, exitFailed, r.run(t, "document", "why", "nobody"))
	require.Contains(t, r.errors, `no document has the id "nobody"`)

	require.Equal(t, exitUsage, r.run(t, "run", "start", "--yes", "replay", "--why", "x"))
	require.Contains(t, r.errors, "all: expected a filter")
	require.Equal(t, exitUsage, r.run(t, "run", "start", "--yes", "replay", "--all"))
	require.Contains(t, r.errors, "why: expected the reason")
	require.Equal(t, exitUsage, r.run(t, "run", "start", "replay", "--since", "yesterday", "--dry-run"))
	require.Contains(t, r.errors, "--since: expected so long ago (90m, 1d, 2w)")
	require.Equal(t, exitOK, r.run(t, "run", "start", "replay", "--all", "--dry-run"), r.errors)
	require.Contains(t, r.out, "2 documents match")
	require.Regexp(t, first+`\s+failed\s+document\s+2628\s+2025-12-18 09:00:00-06:00`, r.out)
	require.Equal(t, invoice.Failed, r.writerState(t, first).Status)

	require.Equal(t, exitOK,
		r.run(t, "document", "retry", "--yes", "--error-code", "2628", "--why", "column widened"), r.errors)
	require.Regexp(t,
		`run\s+replay-\S+\nstatus\s+completed\nkind\s+replay\n[\s\S]*documents\s+1 of 1 \(100%\),.*\nbatches\s+1 completed\noutcomes\s+1 applied\n`, r.out)
	require.Equal(t, []any{invoice.Committed, invoice.Failed},
		[]any{r.writerState(t, first).Status, r.writerState(t, second).Status})
	require.Equal(t, exitOK, r.run(t, "run", "list"), r.errors)
	require.Regexp(t, `replay-\S+\s+completed\s+\S+\s+1 handed off\s+1 completed\s.*column widened`, r.out)

	require.Equal(t, exitUsage, r.run(t, "flow", "pause"))
	require.Equal(t, exitOK, r.run(t, "flow", "pause", "--why", "index rebuild"), r.errors)
	require.Contains(t, r.out, "the flow is paused by ")
	require.Equal(t, exitOK, r.run(t, "status"))
	require.Regexp(t, `flow\s+paused by .* since .*: index rebuild`, r.out)
	require.Equal(t, exitOK, r.run(t, "flow", "resume", "--why", "it is built"), r.errors)
	require.Contains(t, r.out, "the flow is ramping up, at most 1 in one request")
	require.Equal(t, exitUsage, r.run(t, "document", "mark-committed", second))
	require.Equal(t, exitOK, r.run(t, "document", "mark-committed", second, "--why", "typed in"), r.errors)
	require.Contains(t, r.out, "was failed, is committed (outcome manual)")
	require.Equal(t, exitOK, r.run(t, "document", "mark-committed", second, "--why", "again"), r.errors)
	require.Contains(t, r.out, "was committed, is committed (outcome manual)")
	require.Equal(t, exitOK, r.run(t, "document", "why", second))
	require.Contains(t, r.out, "committed by hand")

	require.Equal(t, exitFailed, r.run(t, "run", "cancel", "nobody", "--why", "x"))
	require.Contains(t, r.errors, `no run "nobody" is running`)
	require.Equal(t, exitOK, r.run(t, "audit", "list", "-o", "json"), r.errors)
	var page ops.AuditPage
	require.NoError(t, json.Unmarshal([]byte(r.out), &page))
	var actions []string
	for _, entry := range page.Audits {
		actions = append(actions, entry.Action)
		require.Equal(t, "function key operator", entry.By)
	}
	require.Equal(t, []string{
		run.CodeMarkCommitted, run.CodeMarkCommitted, ops.FlowResumed, ops.FlowPaused, run.CodeRunStart,
	}, actions)
}

// breakerOver makes the breaker of a single instance.
func breakerOver(sink commit.Sink) *breaker.Breaker {
	return breaker.New(inmem.NewControl(), breaker.Options{
		Build: "v1", SysName: "web", Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
	})
}

func storesOf(
	store *inmem.RunStore, executor ops.Executor, sink commit.Sink,
) func(context.Context) (ops.Stores, error) {
	return func(context.Context) (ops.Stores, error) {
		return ops.Stores{
			Audit: store.AuditLog(), Runs: store, Reports: tables{}, Executor: executor,
			Findings: store.Findings(nil), Ledger: noLedger{},
			Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
				return sink.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
			},
		}, nil
	}
}

// noLedger is a ledger without rows.
type noLedger struct{}

func (noLedger) LedgerLines(context.Context, []int64) ([]ops.LedgerLine, error) { return nil, nil }
func (noLedger) LedgerOf(context.Context, string) ([]ops.LedgerLine, error)     { return nil, nil }

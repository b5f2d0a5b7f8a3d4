package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/inmem"
)

// operated is a bench whose database is adopted, so that the app may commit.
func operated(t *testing.T) *real {
	t.Helper()
	r := newReal(t)
	require.NoError(t, r.store.MarkEmpty(t.Context(), "test"))
	return r
}

// control opens the control document.
func (r *real) control(t *testing.T) *cosmos.Control {
	t.Helper()
	c, err := cosmos.Open(
		cosmos.Options{Connection: r.env["COSMOS_CONNECTION"], Database: "invoices", Container: "sqlwriter-control"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return cosmos.NewControl(c, "web")
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
	}, ops.Options{SysName: "web"})
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

// The command of a group as it stands takes the group's documents.
func TestTheCommandOfAGroupTakesThatGroup(t *testing.T) {
	r := operated(t)
	first := r.failed(t, 1, "2628")
	r.failed(t, 2, "547")
	r.count(t)
	require.Equal(t, exitOK, r.run(t, "status"), r.errors)
	line := regexp.MustCompile(`(?m)^sqlwriterctl (.* --error-code 2628 .*)$`).FindStringSubmatch(r.out)
	require.NotNil(t, line, r.out)
	require.Equal(t, exitOK, r.run(t, append(shellWords(line[1]), "--dry-run", "-q")...), r.errors)
	require.Equal(t, first+"\n", r.out)
}

// A range that stands still, and the document at which it stands, are named by status and why.
func TestWhatTheFeedMissedIsNamed(t *testing.T) {
	r := operated(t)
	deep := `{"id":"deep","request_details":{"sys_name":"web"},"notes":` + strings.Repeat("[", 63) +
		strings.Repeat("]", 63) + `,"sql_writer":{"status":"pending"}}`
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(deep), false))
	at := time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC)
	_, err := r.control(t).Store(t.Context(), breaker.Control{Missed: breaker.Missed{
		Documents: 26, Oldest: at, At: at.Add(11 * time.Minute), Sample: "deep", Code: invoice.CodeTooDeep,
	}}, "")
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "status"), r.errors)
	require.Regexp(t,
		`ATTENTION\s+the feed did not bring 26 documents that were due, the oldest of .*, such as deep \(document.too_deep\); a lease may be stuck `+
			`\(runbook: The feed stands still\)`, r.out)
	require.Equal(t, exitOK, r.run(t, "document", "why", "deep"), r.errors)
	require.Regexp(t, `warning\s+document.too_deep: it has 64 levels or more`, r.out)
	require.Equal(t, exitOK, r.run(t, "explain", "document.too_deep"), r.errors)
	require.Contains(t, r.out, "the change feed stops at it")
}

func TestQueriesNeedNoSQL(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 1, "2628")
	r.env["SQL_CONNECTION"] = "sqlite:/nowhere/x.db"
	require.Equal(t, exitOK, r.run(t, "status"), r.errors)
	require.Equal(t, exitOK, r.run(t, "document", "why", id), r.errors)
	require.Regexp(t, `(?m)^status\s+failed$`, r.out)
	require.Regexp(t, `(?m)^lines\s+unknown: `, r.out)
	require.Equal(t, exitOK, r.run(t, "flow", "pause", "--why", "x"), r.errors)
	require.Contains(t, r.errors, "the entry goes to the audit log when SQL is available")
	require.Equal(t, exitOK, r.run(t, "flow", "resume", "--why", "x"), r.errors)
	require.Equal(t, exitFailed, r.run(t, "audit", "list"))
	require.Contains(t, r.errors, "(infrastructure, code 14)")
}

// An app that has just started can resume although SQL is full or down, and the audit log gets the entry once SQL is
// available.
func TestResumeWorksBehindEveryReason(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		t.Run(string(kind), func(t *testing.T) {
			r := operated(t)
			connection := r.env["SQL_CONNECTION"]
			_, err := r.control(t).Store(t.Context(), breaker.Control{Breaker: breaker.State{
				Name: breaker.Open, Kind: kind, Code: "9002", Reason: "x", Since: time.Now(),
				OpenUntil: time.Now().Add(time.Minute),
			}}, "")
			require.NoError(t, err)
			r.env["SQL_CONNECTION"] = "sqlite:/nowhere/x.db"
			require.Equal(t, exitOK, r.run(t, "status"), r.errors)
			require.Regexp(t, `\nflow\s+stopped since .* \(`+string(kind)+` 9002: x\)`, r.out)
			require.Equal(t, exitOK, r.run(t, "flow", "resume", "--yes", "--force", "--why", "made room"), r.errors)
			require.Contains(t, r.out, "the flow was stopped since")
			require.Contains(t, r.out, "there was nothing to accept; the flow was resumed")
			r.env["SQL_CONNECTION"] = connection
			// it sends the entries that are missing
			require.Equal(t, exitOK, r.run(t, "flow", "pause", "--why", "x"), r.errors)
			require.Equal(t, exitOK, r.run(t, "audit", "list", "-o", "json"), r.errors)
			var page ops.AuditPage
			require.NoError(t, json.Unmarshal([]byte(r.out), &page))
			at := slices.IndexFunc(page.Audits, func(a run.Audit) bool { return a.Action == ops.FlowResumed })
			require.GreaterOrEqual(t, at, 0, r.out)
			require.Equal(t, "made room", page.Audits[at].Why)
		})
	}
}

func TestADatabaseThatIsNotAdoptedIsNotWritten(t *testing.T) {
	r := newReal(t)
	id := r.failed(t, 1, "2628")
	require.Equal(t, exitFailed, r.run(t, "document", "retry", id, "--why", "x"))
	require.Contains(t, r.errors, "ledger_not_adopted")
	require.Equal(t, invoice.Failed, r.writerState(t, id).Status)
}

func TestAShadowReplaysNothing(t *testing.T) {
	r := operated(t)
	r.env["MODE"] = "shadow"
	r.failed(t, 1, "2628")
	require.Equal(t, exitFailed, r.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"))
	require.Contains(t, r.errors, "MODE=shadow")
	require.Equal(t, exitOK, r.run(t, "run", "start", "replay", "--all", "--dry-run"), r.errors)
}

// inMemory is the use case over in-memory adapters, with one failed document.
func inMemory(t *testing.T) (*ops.Ops, string) {
	t.Helper()
	docs, sink := inmem.NewDocuments(time.Now), inmem.NewSink()
	sink.AddLines(1)
	id := "2025-12-17 10:00:00.000000-06:00-0001-1"
	require.NoError(t,
		docs.Put(
			json.RawMessage(`{"id":"`+id+
				`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1},
		"process_output":{"manufacturer_name":"M","part_number":"4","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"sql_writer":{"status":"failed","last_error_kind":"document","last_error_code":"2628"}}`)))
	flow := breakerOver(sink)
	runStore := inmem.NewRunStore(time.Now, "web")
	executor := run.NewExecutor(run.Ports{
		Store: runStore, Finder: docs, Documents: docs, Breaker: flow,
		Commit: commit.NewCommit(docs, sink, commit.Options{SysName: "web", Breaker: flow}),
	}, run.Options{SysName: "web"})
	return ops.New(ops.Ports{
		Documents: docs, Finder: docs, Breaker: flow, Counts: &inmem.Counts{},
		Stores: storesOf(runStore, executor, sink), ReportNames: shared.ReportNames(),
		RunQueue: inmem.NewQueue(nil), Evidence: inmem.NewEvidence(),
	}, ops.Options{SysName: "web"}), id
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

func TestOperatingOverTheApp(t *testing.T) {
	o, id := inMemory(t)
	server := host(t, o, "key-marker")
	b := newBench(t)
	b.env["SQLWRITER_KEY"] = "key-marker"
	app := "--app=" + server.URL
	require.NoError(t, o.SaveCounts(t.Context()))
	require.Equal(t, exitOK, b.run(t, "status", app), b.errors)
	require.Regexp(t, `(?m)^partition key\s+-$`, b.out, "nothing says what it is")
	require.Regexp(t, `failed\s+1`, b.out)
	require.Contains(t, b.errors, "app: "+server.URL+" (--app), with a function key")
	require.Equal(t, exitOK, b.run(t, "document", "why", id, app), b.errors)
	require.Equal(t, exitFailed, b.run(t, "document", "why", "nobody", app))
	require.Contains(t, b.errors, `no document has the id "nobody"`)
	require.Equal(t, exitOK, b.run(t, "document", "diff", "nobody", id, app), b.errors)
	require.Regexp(t,
		`(?s)document  nobody\nstatus    gone\n.*line 1 \(main\): applied: a write changes \d+ columns\n.*\sCLN_MFR_AI_NM\s+NULL\s+"M"\n`, b.out)
	require.Equal(t, exitUsage, b.run(t, "document", "list", "--kind=nonsense", app),
		"the app's 400 is wrong usage, too")
	require.Equal(t, exitOK, b.run(t, "run", "start", "replay", "--id", id, "--dry-run", app), b.errors)
	require.Contains(t, b.out, "1 document matches a replay")
	require.Equal(t, exitOK, b.run(t, "flow", "pause", "--why", "x", app), b.errors)
	require.Equal(t, exitOK, b.run(t, "flow", "resume", "--why", "x", app), b.errors)
	require.Equal(t, exitOK, b.run(t, "document", "retry", "--yes", "--status", "failed", "--why", "x", app), b.errors)
	require.Regexp(t, `outcomes\s+1 applied`, b.out)
	require.Equal(t, exitFailed, b.run(t, "document", "mark-committed", id, "--why", "x", app))
	require.Contains(t, b.errors, "the document is committed")
	require.Equal(t, exitFailed, b.run(t, "run", "cancel", "r", "--why", "x", app))
	require.Equal(t, exitOK, b.run(t, "run", "list", app, "-o", "json"), b.errors)
	var runs ops.RunPage
	require.NoError(t, json.Unmarshal([]byte(b.out), &runs))
	require.Len(t, runs.Runs, 1)

	require.Equal(t, exitFailed, b.run(t, "status", app+"/elsewhere"))
	require.Contains(t, b.errors, "no operators' API at this address")
}

func TestADatabaseThatWentBackIsAcceptedByForce(t *testing.T) {
	r := operated(t)
	first, second := r.failed(t, 1, "2628"), r.failed(t, 2, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "retry", first, "--why", "x"), r.errors)
	// a copy of an hour ago
	_, err := r.store.Writer().ExecContext(t.Context(), `UPDATE sqlwriter_heartbeat SET number = number - 3600000`)
	require.NoError(t, err)
	require.Equal(t, exitFailed, r.run(t, "document", "retry", second, "--why", "x"))
	require.Contains(t, r.errors, breaker.CodeWentBack)
	begun := regexp.MustCompile(`replay-[-0-9a-f]+`).FindString(r.out)
	require.Equal(t, invoice.Failed, r.writerState(t, second).Status)
	require.Equal(t, exitOK, r.run(t, "status"), r.errors)
	require.Regexp(t, `flow\s+stopped .*database_went_back`, r.out)

	require.Equal(t, exitFailed, r.run(t, "flow", "resume", "--why", "it looks well"))
	require.Contains(t, r.errors, "is missing here")
	require.Contains(t, r.errors, "--force")
	require.Equal(t, exitOK, r.run(t, "flow", "resume", "--yes", "--force", "--why", "we lost an hour"), r.errors)
	require.Contains(t, r.out, "FORCED. "+breaker.Risk)
	require.NotContains(t, r.out, "nothing to accept")
	require.Equal(t, exitOK, r.run(t, "audit", "list"), r.errors)
	require.Contains(t, r.out, ops.FlowForced)
	require.Equal(t, exitOK, r.run(t, "run", "resume", begun, "--why", "x"), r.errors)
	require.Equal(t, invoice.Committed, r.writerState(t, second).Status)
}

// A filter of the API that a command lacked could not be typed.
func TestTheToolHasAFlagForEachFilter(t *testing.T) {
	for command := range strings.FieldsSeq("list retry") {
		for _, m := range opsapi.Members(reflect.TypeFor[ops.DocumentFilter]()) {
			flag := "--" + strings.ReplaceAll(m.Name, "_", "-")
			_, err := grammar(t).Parse([]string{"document", command, flag, "1"})
			require.NoError(t, err, "%s %s", command, flag)
		}
	}
}

// A list finds documents by each filter, and its ids go into other commands.
func TestDocumentsAreListed(t *testing.T) {
	r := operated(t)
	first, second := r.failed(t, 1, "2628"), r.failed(t, 2, "547")
	for want, args := range map[string][]string{
		first + "\n" + second:      {"--status", "failed"},
		first:                      {"--error-code", "2628"},
		second:                     {"--line", "2"},
		second + "\n" + first + "": {"--kind", "document", "--since", "1d"},
		"":                         {"--status", "pending"},
	} {
		require.Equal(t, exitOK, r.run(t, append([]string{"document", "list", "-q"}, args...)...), r.errors)
		require.ElementsMatch(t, strings.Fields(strings.ReplaceAll(want, " ", "_")),
			strings.Fields(strings.ReplaceAll(r.out, " ", "_")), args)
	}
	require.Equal(t, exitOK, r.run(t, "document", "list", "--limit", "1"), r.errors)
	require.Regexp(t,
		`^DOCUMENT\s+LINE\s+STATUS.*\n2025-12-17 10:00:00.000000-06:00-0001-\d\s+\d\s+failed\s+document\s`, r.out)
	require.Contains(t, r.errors, "Narrow by since, error_code")
	require.Equal(t, exitUsage, r.run(t, "document", "list", "--status", "faild"))
	require.Contains(t, r.errors,
		`--status: expected one of pending, retry_scheduled, committed, failed, processing, found "faild"`)
	require.Equal(t, exitUsage, r.run(t, "document", "list", "--error-code", "bogus"))
}

// An operator who knows a code finds the documents that wait for a retry, too.
func TestARetryTakesACode(t *testing.T) {
	r := operated(t)
	first := r.failed(t, 1, "2628")
	raw, err := r.documents.Read(t.Context(), first)
	require.NoError(t, err)
	waiting := strings.Replace(string(raw), `"status":"failed"`, `"status":"retry_scheduled"`, 1)
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(waiting), true))
	require.Equal(t, exitOK, r.run(t, "run", "start", "replay", "--all", "--dry-run"), r.errors)
	require.Contains(t, r.out, "0 documents match a replay")
	require.Contains(t, r.errors, "`document retry` also takes those that wait for a retry")
	require.Equal(t, exitOK, r.run(t, "document", "retry", "--error-code", "2628", "--dry-run"), r.errors)
	require.Contains(t, r.out, first)
	require.Equal(t, exitUsage, r.run(t, "document", "retry", "--status", "committed", "--dry-run"))
	require.Contains(t, r.errors, "--status: expected one of failed, retry_scheduled")
}

// foreign submits a document of another environment.
func (r *real) foreign(t *testing.T, id, request string, line int64) {
	t.Helper()
	text := fmt.Sprintf(
		`{"id":%q,"request_details":{"id":%q,"sys_name":"wbe"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},"sql_writer":{"status":"pending"}}`, id, request, line)
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(text), true))
}

// A wrong sys_name hides a document from lists. What looks for one line or one request shows it, and says whose it is.
func TestDocumentsOfOtherEnvironmentsAreNamed(t *testing.T) {
	r := operated(t)
	ours := r.failed(t, 1, "2628")
	theirs := "2025-12-18 10:00:00.000000-06:00-0001-1"
	r.foreign(t, theirs, "2025-12-18 10:00:00.000000-06:00-0001", 1)

	const leftOut = "documents of other environments are left out: --line and --request find them too"
	require.Equal(t, exitOK, r.run(t, "document", "list"), r.errors)
	require.Contains(t, r.errors, leftOut)
	require.NotContains(t, r.out, "wbe")
	require.NotContains(t, r.out, "SYS_NAME", "the same in each row")

	require.Equal(t, exitOK, r.run(t, "document", "list", "--line", "1"), r.errors)
	require.NotContains(t, r.errors, leftOut)
	require.Regexp(t, `^DOCUMENT\s+SYS_NAME\s+LINE\s`, r.out)
	require.Regexp(t, theirs+`\s+wbe\s+1\s+pending`, r.out)
	require.Regexp(t, ours+`\s+web\s+1\s+failed`, r.out)
	require.Equal(t, exitOK,
		r.run(t, "document", "list", "--request", "2025-12-18 10:00:00.000000-06:00-0001"), r.errors)
	require.Contains(t, r.errors,
		"request 2025-12-18 10:00:00.000000-06:00-0001: 0 lines present in 0 documents; no document says how many it has; 1 more document names another environment or none")

	require.Equal(t, exitOK, r.run(t, "document", "list", "--request", "0001"), r.errors)
	require.Contains(t, r.errors,
		`no document belongs to the request "0001": an id is the whole request_details.id, such as 2025-12-17 10:45:00.250000-06:00-0002`)
	require.NotContains(t, r.errors, "unknown number")

	require.Equal(t, exitOK, r.run(t, "document", "why", "--line", "1"), r.errors)
	require.Regexp(t, `why\s+a newer result names this line but belongs to the environment "wbe"`, r.out)
	require.Regexp(t, theirs+`\s+wbe\s+1\s+pending`, r.out)
}

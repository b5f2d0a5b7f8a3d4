package main

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/inmem"
)

// away replaces Cosmos DB by an address where nothing listens.
func (r *real) away(t *testing.T) {
	t.Helper()
	endpoint := regexp.MustCompile(`AccountEndpoint=[^;]+`)
	require.Regexp(t, endpoint, r.env["COSMOS_CONNECTION"])
	r.env["COSMOS_CONNECTION"] = endpoint.ReplaceAllString(r.env["COSMOS_CONNECTION"],
		"AccountEndpoint=http://127.0.0.1:1/")
}

// A usage error is reported before anything is asked of Cosmos DB or SQL: exit code 2, and one line with the flag, the
// expected and the found value.
func TestUsageErrorsAskNothing(t *testing.T) {
	// any other port would panic
	o := ops.New(ops.Ports{Breaker: breakerOver(inmem.NewSink()), ReportNames: shared.ReportNames()},
		ops.Options{SysName: "web", Faults: open.Faults()})
	r := newBench(t)
	r.env["SQLWRITER_APP"], r.env["SQLWRITER_KEY"] = host(t, o, "key-marker").URL, "key-marker"
	const (
		notARun   = "run: expected the id of a run, as `run list` shows them, found "
		notABatch = "batch: expected RUN/NUMBER or the id of a batch, as `batch list` shows them, found "
	)
	for _, c := range []struct {
		args []string
		want string
	}{
		{
			[]string{"run", "start", "--yes", "foo"},
			`<kind> must be one of "drain","replay","reindex","reapply" but got "foo"`,
		},
		{
			[]string{"document", "retry", "--yes", "--kind", "zzz", "--why", "x"},
			`--kind: expected one of infrastructure, `,
		},
		{[]string{"run", "start", "--yes", "replay", "--why", "x"}, `--all: expected a filter, `},
		{[]string{"run", "cancel", "nope"}, `--why: expected the reason, found nothing`},
		{[]string{"run", "cancel", "no pe", "--why", "x"}, notARun + `"no pe"`},
		{[]string{"run", "resume", "nope"}, `--why: expected the reason, found nothing`},
		{[]string{"run", "show", ""}, notARun + `""`},
		{[]string{"batch", "list", "x/0"}, notABatch + `"x/0"`},
		{[]string{"batch", "requeue", "x/-1", "--why", "x"}, notABatch + `"x/-1"`},
		{[]string{"batch", "requeue", "--yes", "--run", "r"}, `--why: expected the reason, found nothing`},
		{[]string{"batch", "list", "--status", "foo"}, `--status: expected one of pending_queue, pending_retry, `},
		{[]string{"report", "show", "nope"}, `report: expected one of runs, batch-progress, `},
		{[]string{"audit", "list", "--run", "n o"}, "--" + notARun + `"n o"`},
		{[]string{"batch", "requeue", "--yes", "--run", "n o", "--why", "x"}, "--" + notARun + `"n o"`},
		{[]string{"batch", "list", "n o"}, notARun + `"n o"`},
		{
			[]string{"run", "start", "--yes", "drain", "--id", "a/b", "--why", "x"},
			`--id, --ids-file: expected the id of a document, which has none of `,
		},
		{[]string{"document", "why", "a/b"}, `id: expected the id of a document, which has none of `},
		{[]string{"document", "list", "--limit", "1001"}, `--limit: expected 1 to 1000, found 1001`},
		{[]string{"run", "list", "--limit", "0"}, `--limit: expected 1 or more, found 0`},
		{[]string{"run", "list", "--limit=-1"}, `--limit: expected 1 or more, found -1`},
		{[]string{"run", "start", "--yes", "replay", "--all", "--rate=-2", "--why", "x"}, `--rate: expected 0 to `},
		{[]string{"flow", "pause"}, `--why: expected the reason, found nothing`},
	} {
		require.Equal(t, exitUsage, r.run(t, c.args...), "%v: %s", c.args, r.errors)
		require.Contains(t, r.errors, "error: "+c.want, "%v", c.args)
		require.Empty(t, r.out)
	}
}

// Commands that need only SQL work during an outage of Cosmos DB. Those that need Cosmos DB fail.
func TestSQLIsReadDuringACosmosOutage(t *testing.T) {
	r := operated(t)
	store := r.store.RunStore("web")
	require.NoError(t, store.StartRun(t.Context(), run.Run{ID: "drain-1", SysName: "web", Kind: run.Drain},
		run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "pat", Why: "x", Run: "drain-1"}))
	handOff(t, store, "drain-1", 1, 2)
	r.away(t)
	for says, args := range map[string][]string{
		`run\s+drain-1\nstatus\s+running\n`:               {"run", "show", "drain-1"},
		`drain-1\s+running\s+\S+\s+2 han`:                 {"run", "list"},
		`drain-1/1\s+queued`:                              {"batch", "list", "drain-1"},
		`\ndrain-1/1\s+queued`:                            {"batch", "list", "drain-1/1"},
		`INFO\s+RUN_START\s+pat\s`:                        {"audit", "list"},
		`RUN_START[^?]*drain-1`:                           {"audit", "list", "--run", "drain-1", "-o", "json"},
		`drain-1`:                                         {"report", "show", "runs"},
		`queue-lag`:                                       {"report", "show"},
		`control\s+the control document is not available`: {"status"},
	} {
		require.Equal(t, exitOK, r.run(t, args...), "%v: %s", args, r.errors)
		require.Regexp(t, says, r.out, "%v", args)
	}
	require.Equal(t, exitFailed, r.run(t, "run", "show", "nobody"))
	require.Contains(t, r.errors, `no run "nobody"`)
	for _, args := range [][]string{
		{"flow", "pause"},
		{"flow", "resume"},
		{"run", "start", "--yes", "replay", "--all"},
		{"run", "start", "--yes", "drain"},
		{"document", "mark-committed", "a"},
	} {
		require.Equal(t, exitFailed, r.run(t, append(args, "--why", "x")...), "%v: %s", args, r.errors)
		require.Regexp(t, `(?m)^error: .*(control document|the account's address)`, r.errors, "%v", args)
		require.Empty(t, r.out)
	}
	require.Equal(t, exitOK, r.run(t, "run", "cancel", "drain-1", "--why", "x"), r.errors)
	row, _, err := store.Run(t.Context(), "drain-1")
	require.NoError(t, err)
	require.True(t, row.Cancel)
}

// The request to the API contains the values of the flags.
func TestAuditsOverTheApp(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "flow", "pause", "--why", "index rebuild"), w.errors)
	require.Equal(t, exitOK, w.run(t, "flow", "resume", "--why", "it is built"), w.errors)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	handOff(t, w.store, id, 2, 2)
	work(t, w.store, id, 1, false)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"RUN_START", ops.FlowResumed, ops.FlowPaused}},
		{[]string{"--limit", "1"}, []string{"RUN_START"}},
		{
			[]string{"--all"},
			[]string{"BATCH_DONE", "BATCH_DONE", "RUN_HANDED_OFF", "RUN_START", ops.FlowResumed, ops.FlowPaused},
		},
		{[]string{"--run", id}, []string{"RUN_START"}},
		{[]string{"--run", id, "--all"}, []string{"BATCH_DONE", "BATCH_DONE", "RUN_START"}},
		{[]string{"--action", "BATCH_DONE"}, []string{"BATCH_DONE", "BATCH_DONE"}},
		{[]string{"--run", "nobody"}, nil},
	} {
		require.Equal(t, exitOK, w.run(t, append([]string{"audit", "list", "-o", "json"}, c.args...)...), w.errors)
		var audits ops.AuditPage
		require.NoError(t, json.Unmarshal([]byte(w.out), &audits))
		var actions []string
		for _, a := range audits.Audits {
			actions = append(actions, a.Action)
		}
		require.Equal(t, c.want, actions, "%v", c.args)
	}
	require.Equal(t, exitOK, w.run(t, "audit", "list", "--action", "BATCH_DONE"), w.errors)
	require.Regexp(t, `INFO\s+BATCH_DONE\s+test\s+`+id+`\s+x\n`, w.out)
	require.Equal(t, exitOK, w.run(t, "audit", "list", "--run", "nobody"), w.errors)
	require.Equal(t, exitOK, w.run(t, "audit", "list", "--action", "FLOW_PAUSE"), w.errors)
	require.Contains(t, w.errors,
		"no entry found of the action \"FLOW_PAUSE\": `sqlwriterctl audit list --all` shows how actions are spelled")
	require.Equal(t, exitOK, w.run(t, "audit", "list", "--run", "nobody"), w.errors)
	require.Contains(t, w.errors, "no entry found of operators' actions, warnings and errors: --all also shows")
}

// The command makes no request to SQL while the flow is stopped.
func TestAStoppedFlowIsSeenBeforeSQLIsRead(t *testing.T) {
	r := operated(t)
	_, err := r.control(t).Store(t.Context(), breaker.Control{Breaker: breaker.State{
		Name: breaker.Open, Kind: fault.Infrastructure, Code: "refused", Reason: "x", Since: time.Now(),
		OpenUntil: time.Now().Add(time.Minute),
	}}, "")
	require.NoError(t, err)
	r.env["SQL_CONNECTION"] = "sqlite:/nowhere/x.db"
	for _, args := range [][]string{
		{"audit", "list"}, {"run", "list"}, {"run", "show", "r"}, {"batch", "list"}, {"report", "show", "runs"},
	} {
		require.Equal(t, exitFailed, r.run(t, args...), "%v", args)
		require.Contains(t, r.errors, "stopped since", "%v", args)
		require.NotContains(t, r.errors, "SQLite", "%v", args)
	}
}

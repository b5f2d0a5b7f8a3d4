package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
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
		{[]string{"finding", "compare"}, `--why: expected the reason`},
		{[]string{"finding", "compare", "--all", "a", "--why", "x"}, `--all: goes without ids`},
		{[]string{"finding", "list", "--class", "edit"}, `--class: expected one of the classes edited, `},
		{[]string{"evidence", "get", "x", "--file=x.json"}, `--file: expected one of original.json, `},
		{[]string{"document", "diff", "a,b"}, `id: expected ids without a comma`},
		{[]string{"document", "list", "--status", "faild"}, `--status: expected one of pending, retry_scheduled, `},
		{[]string{"document", "retry", "--status", "committed", "--dry-run"}, `--status: expected one of failed, `},
		{[]string{"document", "retry", "-y", "--until", "01.01.2026", "--why", "x"}, `--until: expected so long ago (90m, `},
		{[]string{"document", "retry", "-y", "--since", "1h", "--until", "2h", "--why", "x"}, `--until: expected a time after --since (`},
		{[]string{"run", "items", "r", "--outcome", "bogus"}, `--outcome: expected some of applied, unchanged, `},
		{[]string{"run", "start", "-y", "replay", "--ids-file", "none", "--why", "x"}, `--ids-file: open none`},
		{[]string{"run", "start", "-y", "drain", "--ids-file", "-", "--why", "x"}, `--ids-file: -: expected one id a line, found none`},
		{[]string{"run", "start", "-y", "drain", "--limit=-1", "--why", "x"}, `--limit: expected 0 to 100000000, found -1`},
		{
			[]string{"run", "start", "-y", "replay", "--all", "--not-comparable", "--why", "x"},
			`--findings, --overwrite-edits, --not-comparable: go with a kind`,
		},
		{[]string{"run", "start", "reindex", "--findings", "bogus", "--dry-run"}, `--findings: expected edited, `},
		{[]string{"batch", "requeue", "r/1", "--run", "r", "--why", "x"}, `expected a batch or --run RUN, not both`},
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

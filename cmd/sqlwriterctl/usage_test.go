package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
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

// counted writes counts, as the recovery timer does each tick.
func (r *real) counted(t *testing.T) {
	t.Helper()
	c, err := cosmos.Open(
		cosmos.Options{Connection: r.env["COSMOS_CONNECTION"], Database: "invoices", Container: "sqlwriter-control"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, cosmos.NewCounts(c, "web", false).StoreCounts(t.Context(), ops.Saved{Counts: ops.Counts{
		At: time.Now(), EverySeconds: 300, Depth: map[invoice.Status]ops.Count{invoice.Failed: {Documents: 3}},
		Groups: []ops.Group{
			{Status: invoice.Failed, Kind: "document", Code: "2628", Documents: ops.Count{Documents: 3}},
		},
	}}))
}

func TestStatusCheckIsForMonitors(t *testing.T) {
	r := operated(t)
	known := breaker.Dependency{State: breaker.DependencyOK, Since: time.Now().Add(-11 * time.Minute)}
	require.NoError(t,
		r.control(t).StoreStatus(t.Context(),
			breaker.Status{Instance: "a", Dependencies: map[string]breaker.Dependency{"sql": known}}))
	require.Equal(t, exitAttention, r.run(t, "status", "--check"), r.errors)
	require.Regexp(t, "hint: `sqlwriterctl explain [a-z_]+` says what it means and what to do", r.errors)
	require.Regexp(t, `^ATTENTION\s+\S`, r.out)
	require.Contains(t, r.errors, "error: needs attention: timer_silent")
	require.Equal(t, exitAttention, r.run(t, "status", "--check", "-q"))
	require.Equal(t, "timer_silent\n", r.out)
	require.Equal(t, exitOK, r.run(t, "status"), "without --check it is an answer like others")
	r.counted(t)
	require.Equal(t, exitOK, r.run(t, "status", "--check"), r.out)
	require.Regexp(t, `^attention\s+nothing\n$`, r.out)
}

func TestVersion(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "version"))
	require.Regexp(t, `version\s+\S+\ncommit\s+\S.*\ngo\s+go1\.\S+\nplatform\s+\w+/\w+\n`, b.out)
}

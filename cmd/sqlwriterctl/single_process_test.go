package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// alone starts a run of one process, as reprocess does, and records 12 of 40 documents as done.
func (w *working) alone(t *testing.T, id string) {
	t.Helper()
	j := w.store.AuditLog()
	require.NoError(t, j.Start(t.Context(),
		ops.Run{ID: id, Kind: "reprocess", Filter: json.RawMessage(`{"code":"2628"}`), Matched: 40, RequestedBy: "pat@desk", Why: "column widened"},
		ops.Audit{Action: "reprocess", By: "pat@desk", Why: "column widened", Subject: id}))
	_, err := j.Progress(t.Context(), id, map[string]int{"applied": 9, "changed": 3})
	require.NoError(t, err)
}

// The same commands list, show and end both sorts of runs, with and without the app.
func TestTheSameCommandsServeBothSortsOfRuns(t *testing.T) {
	w := newWorking(t, 1)
	w.alone(t, "reprocess-1")
	require.Equal(t, exitOK, w.run(t, "run", "start", "replay", "--all", "--why", "x", "--json"), w.errors)
	var started ops.Started
	require.NoError(t, json.Unmarshal([]byte(w.out), &started))

	require.Equal(t, exitOK, w.run(t, "run", "list"), w.errors)
	require.Regexp(t, `reprocess-1\s+running\s+12 of 40 done\s+9 applied, 3 changed\s.*pat@desk\s+column widened\n`, w.out)
	require.Regexp(t, started.Run+`\s+running\s+0 of 1 handed off\s`, w.out)

	require.Equal(t, exitOK, w.run(t, "run", "show", "reprocess-1"), w.errors)
	for _, line := range []string{
		`run\s+reprocess-1\n`, `status\s+running\n`, `kind\s+reprocess\n`, `filter\s+\{"code":"2628"\}\n`, `requested by\s+pat@desk at \S+ \S+: column widened\n`,
		`done by\s+one process, without workers\n`, `documents\s+12 of 40 \(30%\), `, `outcomes\s+9 applied, 3 changed\n`, `heartbeat\s+20\d\d-`, `ended\s+-\n`,
	} {
		require.Regexp(t, line, w.out)
	}
	require.NotContains(t, w.out, "hand-off")

	require.Equal(t, exitFailed, w.run(t, "run", "resume", "reprocess-1", "--why", "x"))
	require.Contains(t, w.errors, "cannot be resumed")

	for _, id := range []string{"reprocess-1", started.Run} {
		require.Equal(t, exitUsage, w.run(t, "run", "cancel", id))
		require.Equal(t, exitOK, w.run(t, "run", "cancel", id, "--why", "wrong filter"), w.errors)
		require.Contains(t, w.out, id+": ends after the running batches")
		require.Equal(t, exitOK, w.run(t, "run", "show", id), w.errors)
		require.Regexp(t, `status\s+running, to be cancelled\n`, w.out)
	}
	require.Equal(t, exitFailed, w.run(t, "run", "cancel", started.Run, "--gone", "--why", "x"))
	require.Contains(t, w.errors, "no single process can be gone")
	require.Equal(t, exitOK, w.run(t, "run", "cancel", "reprocess-1", "--gone", "--why", "its process is gone"), w.errors)
	require.Contains(t, w.out, "reprocess-1: ended; written rows stay written")
	require.Equal(t, exitFailed, w.run(t, "run", "show", "reprocess-1"), w.errors)
	require.Regexp(t, `status\s+cancelled\n`, w.out)
	require.Contains(t, w.errors, "run reprocess-1 is cancelled: the same `reprocess` again takes the documents that are left")
	require.Equal(t, exitFailed, w.run(t, "run", "cancel", "reprocess-1", "--gone", "--why", "x"))
	require.Contains(t, w.errors, `no run "reprocess-1" is running: it is cancelled`)
}

func TestARunOfOneProcessIsWatched(t *testing.T) {
	w := newWorking(t, 0)
	w.alone(t, "reprocess-1")
	looks := 0
	w.wait = func(ctx context.Context, _ time.Duration) error {
		if looks++; looks == 1 {
			_, err := w.store.AuditLog().Progress(ctx, "reprocess-1", map[string]int{"applied": 20})
			return err
		}
		return w.store.AuditLog().End(ctx, "reprocess-1", ops.Stopped, map[string]int{"applied": 30})
	}
	require.Equal(t, exitFailed, w.run(t, "run", "show", "reprocess-1", "--wait"))
	require.Contains(t, w.errors, "reprocess-1: running, 12 of 40 documents (30%), ")
	require.Contains(t, w.errors, "; outcomes: 20 applied\n")
	require.Contains(t, w.errors, "reprocess-1: stopped, 30 of 40 documents (75%), ")
	require.Contains(t, w.errors, "run reprocess-1 is stopped: the same `reprocess` again takes the documents that are left")
	require.Regexp(t, `outcomes\s+30 applied\n`, w.out)
}

// The process of a run may have died. Then the watch must not wait for ever without a note.
func TestWatchingASilentProcessReportsIt(t *testing.T) {
	note := "it has recorded nothing since yesterday: if the process that did it is gone, `run cancel r --gone --why TEXT` ends it"
	for _, redraw := range []bool{false, true} {
		silent := func(p *ops.RunProgress) { p.Pattern, p.Note = "", note }
		w := newWatched(redraw, going(1, 2, silent), going(1, 2, silent), going(1, 2, ended(run.RunCancelled, 0)))
		_, err := w.watch(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(w.out.String(), note+"\n"), "once, and whole: %s", &w.out)
	}
}

func TestARunOfOneProcessHasNoReceipt(t *testing.T) {
	w := newWorking(t, 0)
	w.alone(t, "reprocess-1")
	w.wait = func(context.Context, time.Duration) error {
		t.Error("nobody waits for what will not come")
		return context.Canceled
	}
	file := filepath.Join(w.dir, "receipt.jsonl")
	for _, args := range [][]string{{"--receipt", file}, {"--wait", "--receipt", file}} {
		require.Equal(t, exitFailed, w.run(t, append([]string{"run", "show", "reprocess-1"}, args...)...))
		require.Contains(t, w.errors, "--receipt: run reprocess-1 was not done by workers: only its counts are stored, not the outcome of each document")
		require.NoFileExists(t, file)
	}
	left, err := os.ReadDir(w.dir)
	require.NoError(t, err)
	for _, f := range left {
		require.NotContains(t, f.Name(), "receipt")
	}
}

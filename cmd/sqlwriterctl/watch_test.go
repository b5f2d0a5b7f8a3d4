package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// ended is a run with a status and failed batches.
func ended(status run.RunStatus, failed int) ops.RunProgress {
	p := ops.RunProgress{Run: run.Run{ID: "r", Status: status, Documents: 2, HandedOffAt: time.Unix(1, 0)}, Done: 1}
	p.Stats.Batches = map[run.BatchStatus]int{run.Completed: 10 - failed, run.Failed: failed}
	return p
}

// A line is printed at each change, and the app may be away meanwhile.
func TestAWatchOutlivesTheAppsRestart(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	handOff(t, w.store, id, 1, 2)
	asked := 0
	behind := host(t, w.ops, "key-marker")
	flaky := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 || asked == 3 {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		behind.Config.Handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(flaky.Close)
	w.env["SQLWRITER_APP"] = flaky.URL
	waits := 0
	w.wait = func(context.Context, time.Duration) error {
		if waits++; waits == 4 {
			work(t, w.store, id, 1, false)
			complete(t, w.store, id)
		}
		return nil
	}
	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "--watch"), "a retry of one is scheduled")
	require.Equal(t, 2, strings.Count(w.errors, "no answer, trying again: the app answers 502"), w.errors)
	require.Equal(t, 1, strings.Count(w.errors, "running, 0 of 2 (0%)"), w.errors)
	require.Equal(t, 1, strings.Count(w.errors, "completed with failures, 2 of 2 (100%)"), w.errors)
	require.NotContains(t, w.errors, "\x1b")
	require.Contains(t, w.errors,
		"run "+id+" completed with failures: documents: 1 retry_scheduled\nhint: `sqlwriterctl run items "+id+
			" --outcome retry_scheduled` lists them")
}

func TestTheEndOfWatchingDoesNotEndTheRun(t *testing.T) {
	w := newWorking(t, 1)
	require.Equal(t, exitOK, w.run(t, "run", "start", "--yes", "replay", "--all", "--why", "x"), w.errors)
	id := w.onlyRun(t)
	w.wait = func(context.Context, time.Duration) error { return context.Canceled }
	require.Equal(t, exitFailed, w.run(t, "run", "show", id, "--watch"))
	require.Contains(t, w.errors,
		"\nerror: watching stopped, the run continues\nhint: `sqlwriterctl run show "+id+
			" --watch` watches it again, `sqlwriterctl run cancel "+id+" --why TEXT` ends it")
	row, _, err := w.store.Run(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []any{run.RunRunning, false}, []any{row.Status, row.Cancel})
}

// What cannot be answered is not asked again: a run that is not there, another key, and an app that never answered.
func TestFinalErrorsAreNotRetried(t *testing.T) {
	w := newWorking(t, 1)
	w.wait = func(context.Context, time.Duration) error { require.Fail(t, "it waits"); return nil }
	require.Equal(t, exitFailed, w.run(t, "run", "show", "nobody", "--watch"))
	require.Contains(t, w.errors, `no run "nobody"`)
	w.env["SQLWRITER_KEY"] = "another"
	require.Equal(t, exitFailed, w.run(t, "run", "show", "nobody", "--watch"))
	w.env["SQLWRITER_APP"] = "http://127.0.0.1:1"
	require.Equal(t, exitFailed, w.run(t, "run", "show", "nobody", "--watch"))
}

func TestTheVerdictOnARun(t *testing.T) {
	for name, c := range map[string]struct {
		status run.RunStatus
		failed int
		want   string
	}{
		"all is well":     {run.RunCompleted, 0, ""},
		"it goes on":      {run.RunRunning, 0, ""},
		"batches failed":  {run.RunCompletedWithFailures, 2, "2 batches failed"},
		"and it goes on":  {run.RunRunning, 1, "1 batch failed"},
		"it failed":       {run.RunFailed, 0, "run r is failed"},
		"it is cancelled": {run.RunCancelled, 3, "run r is cancelled"},
	} {
		err := verdict(ended(c.status, c.failed))
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
	}
}

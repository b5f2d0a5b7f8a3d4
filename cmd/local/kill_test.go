package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/store/sqlite"
)

// TestKillOfTheWholeStack ends every process of the stack with SIGKILL in the middle of the drain, the handler and the
// servers included, and starts it again on their state. Triggers in the test schema count the writes to each line, so the
// check does not depend on the ledger.
func TestKillOfTheWholeStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if runtime.GOOS != "linux" {
		t.Skip("finds the handler by /proc")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	state := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(state, "sqlwriter.db"), sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
	_, err = store.Writer().ExecContext(t.Context(), `CREATE TABLE counted (line INTEGER, what TEXT);
		CREATE TRIGGER count_detail AFTER UPDATE ON IVCE_DTL BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'detail'); END;
		CREATE TRIGGER count_insert AFTER INSERT ON IVCE_TRKG_MSTR WHEN new.CLN_MFR_AI_NM IS NOT 'A RESULT OF LONG AGO' BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'tracking'); END;
		CREATE TRIGGER count_update AFTER UPDATE ON IVCE_TRKG_MSTR BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'tracking'); END`)
	require.NoError(t, err)

	first := start(t, "run", "--no-outage", "--state="+state)
	written := 0
	require.Eventually(t, func() bool {
		written = count(t, store.Reader(), "SELECT count(*) FROM counted WHERE what = 'detail'")
		return written > 150
	}, 10*time.Minute, time.Millisecond, first.output()) // on a fresh machine the handler is built first
	killed := killEverybody(t, state)
	t.Logf("%d processes killed after %d lines were written", killed, written)

	second := start(t, "run", "--no-outage", "--state="+state)
	second.waitFor(t, "the stack is running")
	require.Contains(t, second.output(), "EXACT")
	requireNoLineTwice(t, store.Reader())

	// A killed host leaves no handler behind.
	left := handlers(t, state)
	require.NotEmpty(t, left)
	killServer(t, state, functionsName)
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(handlers(t, state), func(pid int) bool { return slices.Contains(left, pid) })
	},
		time.Minute, 10*time.Millisecond)
	second.waitFor(t, "the host ended (signal: killed)")
	require.NoError(t, second.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, second.exit(t, time.Minute))
}

// killServer sends SIGKILL to one server of the stack.
func killServer(t *testing.T, state, name string) {
	t.Helper()
	for _, p := range everybody(t, state) {
		if p.Name == name {
			require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
		}
	}
}

// TestTheStackGoesOn is what operators do to `make run`: six kills of the handler in a row, so two hosts give up; each server is
// killed; SQL goes away, and the process that asked for that is killed. Afterwards documents arrive, and after a restart
// everything is exact.
func TestTheStackGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if runtime.GOOS != "linux" {
		t.Skip("finds the handler by /proc")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	state := t.TempDir()
	stack := start(t, "run", "--no-outage", "--state="+state)
	stack.waitFor(t, "the stack is running")
	for range 6 {
		kill := start(t, "demo", "--state="+state, "kill-handler")
		require.Equal(t, exitOK, kill.exit(t, 2*time.Minute), kill.output())
	}
	require.Equal(t, 2, strings.Count(stack.output(), "the host ended (exit status 1), as in Azure after the third failure"), stack.output())

	off := start(t, "demo", "--state="+state, "sql-off", "10m")
	off.waitFor(t, "SQL is off for 10m0s")
	again := start(t, "demo", "--state="+state, "sql-off", "1s")
	require.Equal(t, exitFailed, again.exit(t, time.Minute))
	require.Contains(t, again.output(), "SQL is off already")
	bad := start(t, "demo", "--state="+state, "bad-document")
	off.waitFor(t, "sql failing (infrastructure 14)")
	require.NoError(t, off.cmd.Process.Kill())
	stack.waitFor(t, "SQL is on again")
	require.Equal(t, exitOK, bad.exit(t, 2*time.Minute), bad.output())

	for _, name := range []string{"cosmosdb", "azurite", "servicebus", functionsName} {
		killServer(t, state, name)
		stack.waitFor(t, map[bool]string{true: "the host", false: name}[name == functionsName]+" ended (signal: killed)")
	}
	require.Eventually(t, func() bool {
		one := start(t, "demo", "--state="+state, "bad-document")
		return one.exit(t, 2*time.Minute) == exitOK
	}, 5*time.Minute, time.Second, stack.output())
	require.NoError(t, stack.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, stack.exit(t, time.Minute))

	stack = start(t, "run", "--no-outage", "--state="+state)
	stack.waitFor(t, "the stack is running")
	require.Contains(t, stack.output(), "EXACT")
}

// requireNoLineTwice checks that no line was written more often than it has results.
func requireNoLineTwice(t *testing.T, db *sql.DB) {
	t.Helper()
	docs, err := sample.Examples()
	require.NoError(t, err)
	results := map[int64]int{}
	for _, d := range append(docs, sample.Generate(sample.Options{Seed: sample.DefaultSeed, Count: sample.DefaultCount})...) {
		for _, l := range d.Lines {
			results[l]++
		}
	}
	rows, err := db.QueryContext(t.Context(), "SELECT line, count(*) FROM counted GROUP BY line, what")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	lines := 0
	for rows.Next() {
		var line int64
		var n int
		require.NoError(t, rows.Scan(&line, &n))
		require.LessOrEqual(t, n, results[line], "line %d was written %d times for %d results", line, n, results[line])
		lines++
	}
	require.NoError(t, rows.Err())
	t.Logf("%d rows of two tables, none written more often than there are results for its line", lines)
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		return 0 // the database is locked, or does not exist yet
	}
	return n
}

// killEverybody sends SIGKILL to all processes of the stack at once: those of stack.json, and the handler, which is the
// process that runs from the stack's own script root.
func killEverybody(t *testing.T, state string) int {
	t.Helper()
	var pids []int
	all := everybody(t, state)
	for _, p := range all {
		pids = append(pids, p.PID)
	}
	pids = append(pids, handlers(t, state)...)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) { // some end together with earlier ones
			require.NoError(t, err)
		}
	}
	requireGone(t, all)
	return len(pids)
}

// handlers returns the processes that run from the stack's own script root.
func handlers(t *testing.T, state string) []int {
	t.Helper()
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	var pids []int
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && strings.HasPrefix(target, state) {
			pid, err := strconv.Atoi(strings.Split(exe, "/")[2])
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/stage/staging"
	// the handler is built by go build: without this, go test would answer (cached) after a change of the product
	_ "sqlwriter/internal/app"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
)

// asLocal makes this test binary run as the program ("run"), or as what starts it ("parent").
const asLocal = "LOCAL_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asLocal) {
	case "":
		os.Exit(m.Run())
	case "parent": // starts the program, as make does, and waits to be killed
		ctx, cancel := withParent(context.Background())
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), asLocal+"=run")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			os.Exit(exitFailed)
		}
	default:
		os.Exit(run())
	}
}

// program is a started `local`.
type program struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func start(t *testing.T, args ...string) *program { return startAs(t, "run", args...) }

func startAs(t *testing.T, as string, args ...string) *program {
	t.Helper()
	p := &program{log: filepath.Join(t.TempDir(), "out.log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	require.NoError(t, err)
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asLocal+"="+as, "ONCE=", "SQL_CONNECTION=", "MAPPING=")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the tests check the exit code
		_ = out.Close()
		close(p.done)
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // its servers end with it
	return p
}

func (p *program) waitFor(t *testing.T, text string) {
	t.Helper()
	ended := false
	require.Eventually(t, func() bool {
		select {
		case <-p.done:
			ended = true
		default:
		}
		return ended || strings.Contains(p.output(), text)
	}, 5*time.Minute, 20*time.Millisecond, "%q", text) // on a fresh machine the handler is built first
	require.Contains(t, p.output(), text)
}

func (p *program) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

func (p *program) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("it is still there after %v:\n%s", within, p.output())
		return 0
	}
}

// wholeStack skips a test that starts the whole stack where it cannot run.
func wholeStack(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("finds processes by /proc")
	}
}

// below are the processes that a process has started, and theirs, by the text of their command lines.
func below(t *testing.T, parent int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	found := map[int]string{}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		require.NoError(t, err)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		for child, line := range below(t, pid) {
			found[child] = line
		}
	}
	return found
}

// find finds the only process with a text in its command line.
func find(t *testing.T, all map[int]string, text string) (pid int) {
	t.Helper()
	for candidate, line := range all {
		if strings.Contains(line, text) {
			require.Zero(t, pid, "two processes with %q: %v", text, all)
			pid = candidate
		}
	}
	require.NotZero(t, pid, "no process with %q: %v", text, all)
	return pid
}

func requireGone(t *testing.T, all map[int]string) {
	t.Helper()
	require.NotEmpty(t, all)
	for pid, line := range all {
		require.Eventually(t, func() bool {
			_, err := stackfile.Started(t.Context(), pid)
			return err != nil
		}, time.Minute, 10*time.Millisecond, "%s is still there", line)
	}
}

// requireOnlyLogs checks that a stack has left its logs and nothing else.
func requireOnlyLogs(t *testing.T, state string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(state, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(state, "logs")}, left)
}

// TestTheStack is `make run` from the outside: another one beside it, a killed handler, Ctrl-C.
func TestTheStack(t *testing.T) {
	wholeStack(t)
	t.Setenv("AzureWebJobs.RecoverRetries.Disabled", "true") // every five minutes its timer reads the container
	state := t.TempDir()
	first := start(t, "run", "--no-outage", "--state="+state)
	first.waitFor(t, "the stack is running")
	require.Contains(t, first.output(), "EXACT")
	require.Contains(t, first.output(), "516 writes and 2 reads by the handler",
		"one write per document, none for 13; a read of two ranges only for 15, a second write for 14")
	all := below(t, first.cmd.Process.Pid)
	require.Len(t, all, 5, "four servers and the handler: %v", all)

	second := start(t, "run", "--no-outage", "--state="+state)
	require.Equal(t, exitFailed, second.exit(t, time.Minute))
	require.Contains(t, second.output(), "a stack is running already (process "+strconv.Itoa(first.cmd.Process.Pid))

	killed := find(t, all, filepath.Join(state, "data", "stage", staging.Binary))
	require.NoError(t, syscall.Kill(killed, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		now := below(t, first.cmd.Process.Pid)
		return len(now) == len(all) && now[killed] == ""
	}, time.Minute, 20*time.Millisecond, "the host starts another handler")

	all = below(t, first.cmd.Process.Pid)
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, first.exit(t, time.Minute), first.output())
	require.True(t, strings.HasSuffix(first.output(), "ending everything ...\n"), first.output())
	requireGone(t, all)
	requireOnlyLogs(t, state)
}

// A row that is not as its document says ends a run with --once as a failure.
func TestARowThatDiffersFailsTheRun(t *testing.T) {
	wholeStack(t)
	state := t.TempDir()
	p := start(t, "run", "--once", "--no-outage", "--state="+state)
	p.waitFor(t, "130 of 518") // the first line was shown
	docs, err := samples()
	require.NoError(t, err)
	db, err := openSQL(sqlite.Scheme+filepath.Join(state, "data", "sqlwriter.db"), nil)
	require.NoError(t, err)
	_, err = db.Writer.ExecContext(t.Context(), "UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'edited' WHERE IVCE_DTL_UID = ?",
		docs[0].Lines[0])
	require.NoError(t, errors.Join(err, db.Close()))
	require.Equal(t, exitFailed, p.exit(t, 5*time.Minute), p.output())
	require.Contains(t, p.output(), "DIFFERENT")
}

// A killed server ends the stack, which says its name and what it printed last.
func TestAServerThatEndsEndsTheStack(t *testing.T) {
	wholeStack(t)
	state := t.TempDir()
	for _, server := range []struct{ name, command, during string }{
		{"cosmosdb", " cosmosdb --listen", "518 of 518"},
		{"azurite", "azurite", "the stack is running"},
		{"servicebus", "server.mjs", "up in"},
		{"functions", " funchost --listen", "130 of 518"},
	} {
		p := start(t, "run", "--no-outage", "--state="+state) // the same folder: each begins with nothing
		p.waitFor(t, server.during)
		all := below(t, p.cmd.Process.Pid)
		require.NoError(t, syscall.Kill(find(t, all, server.command), syscall.SIGKILL))
		require.Equal(t, exitFailed, p.exit(t, time.Minute))
		log := filepath.Join(state, "logs", server.name+".log")
		require.Contains(t, p.output(), "local: "+server.name+" ended by itself (signal: killed); the end of "+log)
		requireGone(t, all)
		requireOnlyLogs(t, state)
	}
}

// What starts the stack may be killed at any time, and so may the stack: nothing stays behind, and the next one begins
// anew.
func TestNothingOutlivesAKilledStack(t *testing.T) {
	wholeStack(t)
	state := t.TempDir()
	p := startAs(t, "parent", "run", "--state="+state)
	p.waitFor(t, "518 of 518") // now the outage begins
	all := below(t, p.cmd.Process.Pid)
	require.Len(t, all, 6)
	require.NoError(t, p.cmd.Process.Kill())
	requireGone(t, all)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		// On a busy machine the next line may say which server did not end in time.
		require.Contains(c, p.output(), "\nlocal: ended before it was finished\n")
	}, time.Minute, 10*time.Millisecond)
	requireOnlyLogs(t, state)

	p = start(t, "run", "--no-outage", "--state="+state)
	p.waitFor(t, "259 of 518")
	all = below(t, p.cmd.Process.Pid)
	require.NoError(t, p.cmd.Process.Kill())
	requireGone(t, all)
	require.FileExists(t, filepath.Join(state, stackfile.Name), "nobody could remove it")

	once := start(t, "run", "--once", "--state="+state)
	require.Equal(t, exitOK, once.exit(t, 5*time.Minute), once.output())
	require.Contains(t, once.output(), "EXACT")
	require.Contains(t, once.output(), "while 200 documents arrived: 200 of them waited, 0 retries spent")
	require.Regexp(t, `all 200 committed \d+\.\d s after SQL came back, 0 retries spent`, once.output())
	requireOnlyLogs(t, state)
}

// A deployment's own file gives sample tables, a handler and readers. Its rows are not computed a second time, and the
// run says so.
func TestTheStackRunsByAFileOfItsOwn(t *testing.T) {
	wholeStack(t)
	state, file := t.TempDir(), filepath.Join(t.TempDir(), "mapping.json")
	require.NoError(t, os.WriteFile(file, mapping.File(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Key, tables[invoice.Tracking].Key = "LINE]ID", "DTL_ID"
		tables[invoice.Detail].Column("CLN_MFR_AI_NM")["name"] = "MAKER"
		tables[invoice.Detail].Column("DATA_VRFN_IND")["type"] = "flag(1,0)"
		tables[invoice.Tracking].Columns = append(tables[invoice.Tracking].Columns,
			mapping.Entry{"name": "SRC_CD", "value": "AI", "type": "text(5)"})
	}), 0o600))
	p := start(t, "run", "--once", "--no-outage", "--state="+state, "--mapping="+file)
	require.Equal(t, exitOK, p.exit(t, 5*time.Minute), p.output())
	require.Regexp(t, `IVCE_DTL\.MAKER +NULL +"THOMAS & BETTS"`, p.output())
	require.Regexp(t, `IVCE_TRKG_MSTR\.SRC_CD +NULL +"AI"`, p.output())
	require.Contains(t, p.output(), "rows: not computed a second time, because MAPPING names a file: no EXACT")
	require.NotContains(t, p.output(), "EXACT:")

	broken := filepath.Join(t.TempDir(), "mapping.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{}`), 0o600))
	p = start(t, "run", "--once", "--state="+state, "--mapping="+broken)
	require.Equal(t, exitFailed, p.exit(t, time.Minute))
	require.Contains(t, p.output(), "IVCE_DTL: expected a key and a list of columns")
}

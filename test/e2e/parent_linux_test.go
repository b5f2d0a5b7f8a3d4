package e2e_test

import (
	"fmt"
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

	"sqlwriter/cmd/stage/staging"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/sample"
)

// hostLimit is how long a handler may stay after its host was killed (docs/requirements.md R94).
const hostLimit = 5 * time.Second

// wrapper is the executable of a host whose handler outlives it. The emulator of the host ends its own child with
// itself, the real host does not: its child is this shell, and the handler is the shell's.
const wrapper = "#!/bin/sh\n\"$(dirname \"$0\")/real\" &\nwait\n"

// startDoomedHost starts a host process of its own over the stack, waits for its handler, and returns both process ids.
func (s *stack) startDoomedHost() (host *exec.Cmd, handler int) {
	s.t.Helper()
	root := filepath.Join(s.dir, "root")
	require.NoError(s.t, os.CopyFS(root, os.DirFS(scriptRoot)))
	binary := filepath.Join(root, "real")
	require.NoError(s.t, os.Rename(filepath.Join(root, staging.Binary), binary))
	require.NoError(s.t, os.WriteFile(filepath.Join(root, staging.Binary), []byte(wrapper), 0o700)) //nolint:gosec // it is executed
	host = s.hostProcess(hostFile{Root: root, Settings: s.settings(), Tune: s.tune()})
	require.Eventually(s.t, func() bool {
		exes, err := filepath.Glob("/proc/[0-9]*/exe")
		require.NoError(s.t, err)
		for _, exe := range exes {
			if target, err := os.Readlink(exe); err == nil && target == binary {
				handler, err = strconv.Atoi(strings.Split(exe, "/")[2])
				return err == nil
			}
		}
		return false
	}, patience, 10*time.Millisecond, "no handler")
	return host, handler
}

// adoptOrphans makes this process the parent of orphans below it, so that it learns their exit codes.
func adoptOrphans(t *testing.T) {
	t.Helper()
	const setChildSubreaper = 36 // prctl(2)
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
	require.Zero(t, errno)
}

// requireEnd waits for the end of an orphan, and returns its exit code and the time since its host was killed.
func requireEnd(t *testing.T, pid int, killed time.Time) (code int, after time.Duration) {
	t.Helper()
	var status syscall.WaitStatus
	gone := assert.Eventually(t, func() bool {
		ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		return err == nil && ended == pid
	}, 2*hostLimit, 5*time.Millisecond, "the handler is still there")
	if !gone {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the test has failed
		t.FailNow()
	}
	after = time.Since(killed)
	require.True(t, status.Exited(), "it ended by %s", status.Signal())
	return status.ExitStatus(), after
}

// Must show: the host is killed with SIGKILL in the middle of a drain. Its handler is gone within 5 s and leaves
// nothing half done: a new host finishes, and each line is written as often as there are results for it.
func TestAKilledHostTakesItsHandlerAlong(t *testing.T) {
	adoptOrphans(t)
	for _, c := range []struct {
		name string
		// held is when the patches are held, and released how long after the kill they go on; 0 means never.
		held     cosmosdb.When
		released time.Duration
	}{
		{"what is under way is finished", cosmosdb.Before, time.Second},
		{"what hangs before its patch is given up", cosmosdb.Before, 0},
		{"what hangs after its patch is given up", cosmosdb.After, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := sample.Generate(sample.Options{Seed: 5, Count: 300, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			rule := s.holdRequests(cosmosdb.OpPatch, c.held, 0)
			s.submit(jsons(docs)...)
			host, handler := s.startDoomedHost()
			require.NoError(t, s.cosmos.Server.WaitHeld(s.patiently(), rule, 1))
			_, most := s.writes("detail")
			require.Positive(t, most, "SQL has committed before any patch was sent")

			require.NoError(t, host.Process.Kill())
			killed := time.Now()
			if c.released > 0 {
				time.AfterFunc(c.released, func() { s.cosmos.Server.RemoveFault(rule) })
			}
			code, after := requireEnd(t, handler, killed)
			t.Logf("the handler ended %.2f s after its host, with exit code %d", after.Seconds(), code)
			require.Less(t, after, hostLimit)
			require.Equal(t, 1, code, "neither 0 nor 200 (docs/facts.md F22)")
			if c.released > 0 {
				require.Less(t, s.pending(), len(docs), "the batch under way was recorded")
			} else {
				s.cosmos.Server.RemoveFault(rule)
			}
			s.startHost()
			s.waitUntilQuiet(len(docs))
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
		})
	}
}

// pending counts the documents that nobody has finished.
func (s *stack) pending() (n int) {
	s.t.Helper()
	for _, raw := range s.all() {
		if strings.Contains(string(raw), fmt.Sprintf("%q:%q", "status", "pending")) {
			n++
		}
	}
	return n
}

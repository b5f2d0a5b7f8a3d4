package proc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/internal/proc"
)

// TestMain makes this test binary run as one of the processes, if the first argument is one.
func TestMain(m *testing.M) {
	switch os.Args[1] {
	case "polite": // ends with its parent, and reports that
		fmt.Println("polite ready", os.Getpid())
		signal.Ignore(syscall.SIGINT)
		ctx, cancel := proc.WatchParent(context.Background(), os.Stdin)
		defer cancel()
		<-ctx.Done()
		fmt.Println("polite ended")
	case "stubborn":
		signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1) // else the runtime sees a deadlock in what follows
		fmt.Println("stubborn ready", os.Getpid())
		select {}
	case "failing":
		fmt.Println("cannot listen on port 1")
		os.Exit(3)
	case "runner": // starts one polite process and waits to be killed
		p, err := proc.Start(context.Background(),
			proc.Spec{Name: "polite", Path: os.Args[0], Args: []string{"polite"}, Log: os.Args[2]})
		if err != nil {
			panic(err)
		}
		fmt.Println("runner ready", p.PID())
		select {}
	default:
		os.Exit(m.Run())
	}
}

func spec(t *testing.T, as string, args ...string) proc.Spec {
	t.Helper()
	return proc.Spec{
		Name: as, Path: os.Args[0], Args: append([]string{as}, args...), Log: filepath.Join(t.TempDir(), as+".log"),
	}
}

// waitFor waits until a line of the log contains text, and returns that line.
func waitFor(t *testing.T, log, text string) string {
	t.Helper()
	var line string
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(log)
		for l := range strings.Lines(string(b)) {
			if strings.Contains(l, text) {
				line = strings.TrimSpace(l)
			}
		}
		return line != ""
	}, time.Minute, 5*time.Millisecond, "%q in %s", text, log)
	return line
}

func TestAProcessIsAskedToEnd(t *testing.T) {
	s := spec(t, "polite")
	p, err := proc.Start(t.Context(), s)
	require.NoError(t, err)
	waitFor(t, s.Log, "ready")
	require.NoError(t, p.Stop(time.Minute))
	waitFor(t, s.Log, "polite ended")
	require.NoError(t, p.Stop(time.Minute), "twice does no harm")
}

func TestAProcessThatDoesNotEndIsKilled(t *testing.T) {
	s := spec(t, "stubborn")
	p, err := proc.Start(t.Context(), s)
	require.NoError(t, err)
	waitFor(t, s.Log, "ready")
	require.ErrorContains(t, p.Stop(50*time.Millisecond), "was killed")
	<-p.Done()
}

func TestAGroupEndsTheLastStartedFirst(t *testing.T) {
	var g proc.Group
	shared := filepath.Join(t.TempDir(), "all.log")
	var pids []int
	for range 3 {
		s := spec(t, "polite")
		s.Log = shared
		p, err := g.Start(t.Context(), s)
		require.NoError(t, err)
		pids = append(pids, p.PID())
		waitFor(t, shared, "ready "+strconv.Itoa(p.PID()))
	}
	require.NoError(t, g.Stop(time.Minute))
	for _, pid := range pids {
		_, err := stackfile.Started(t.Context(), pid)
		require.Error(t, err, "process %d is still there", pid)
	}
	select {
	case f := <-g.Failed():
		t.Fatalf("an ending that was asked for is no failure: %v", f)
	default:
	}
	_, err := g.Start(t.Context(), spec(t, "polite"))
	require.ErrorContains(t, err, "ending")
}

func TestAProcessThatEndsByItselfIsAFailureWithItsLastLines(t *testing.T) {
	var g proc.Group
	_, err := g.Start(t.Context(), spec(t, "failing"))
	require.NoError(t, err)
	select {
	case f := <-g.Failed():
		require.ErrorContains(t, f, "failing ended by itself (exit status 3)")
		require.ErrorContains(t, f, "cannot listen on port 1")
	case <-time.After(time.Minute):
		t.Fatal("nobody noticed")
	}
	require.NoError(t, g.Stop(time.Minute))
}

func TestWhenTheRunnerIsKilledItsProcessesEnd(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child.log")
	s := spec(t, "runner", child)
	runner, err := proc.Start(t.Context(), s)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimPrefix(waitFor(t, s.Log, "runner ready"), "runner ready "))
	require.NoError(t, err)
	waitFor(t, child, "polite ready")

	require.NoError(t, syscall.Kill(runner.PID(), syscall.SIGKILL))
	waitFor(t, child, "polite ended")
	require.Eventually(t, func() bool {
		_, err := stackfile.Started(t.Context(), pid)
		return err != nil
	}, time.Minute, 5*time.Millisecond)
	<-runner.Done()
}

func TestAPortThatIsTakenIsNotChosen(t *testing.T) {
	var l net.Listener
	var err error
	for range 100 { // below the range of automatic ports: no other process gets it when it is free again
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(15_000+rand.IntN(17_000))); err == nil {
			break
		}
	}
	require.NoError(t, err)
	taken := l.Addr().(*net.TCPAddr).Port
	got, err := proc.Port(t.Context(), taken)
	require.NoError(t, err)
	require.NotEqual(t, taken, got)
	require.NoError(t, l.Close())
	got, err = proc.Port(t.Context(), taken)
	require.NoError(t, err)
	require.Equal(t, taken, got, "the preferred one when it is free")
}

func TestTailGivesTheLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("1\n", 85)+strings.Repeat("2\n", 15)), 0o600))
	require.Equal(t, "  2"+strings.Repeat("\n  2", 14), proc.Tail(path))
	require.Contains(t, proc.Tail(path+"?"), "no such file")
}

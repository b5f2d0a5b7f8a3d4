package servicebus_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

func TestItEndsWithItsStandardInput(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.Stop() // closes it, and waits
	select {
	case <-s.Done():
	default:
		require.Fail(t, "it still runs")
	}
}

// Whoever runs its processes itself, as the local stack does, has Command.
func TestItEndsOnSIGTERM(t *testing.T) {
	t.Parallel()
	dir, err := os.Getwd()
	require.NoError(t, err)
	path, args, err := servicebus.Options{Dir: dir, Queues: []servicebus.Queue{{Name: jobs}}}.Command()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close() //nolint:errcheck // the process has ended
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	var listens struct{ AMQP, Control string }
	require.NoError(t, json.Unmarshal([]byte(line), &listens))
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, listens.AMQP)
	queues, err := servicebus.NewControl(listens.Control).Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, queues, 1)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "exit status 0")
}

func TestItSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir, err := os.Getwd()
	require.NoError(t, err)
	queue := func(change func(*servicebus.Queue)) servicebus.Options {
		q := servicebus.Queue{Name: jobs}
		change(&q)
		return servicebus.Options{Dir: dir, Queues: []servicebus.Queue{q}}
	}
	for want, o := range map[string]servicebus.Options{
		"lockDuration is 360000":         queue(func(q *servicebus.Queue) { q.LockDuration = 6 * time.Minute }),
		"maxDeliveryCount is 2001":       queue(func(q *servicebus.Queue) { q.MaxDeliveryCount = 2001 }),
		"duplicateDetectionWindow is":    queue(func(q *servicebus.Queue) { q.DuplicateDetectionWindow = time.Second }),
		"is no name for a queue":         queue(func(q *servicebus.Queue) { q.Name = "a b" }),
		"is there twice":                 {Dir: dir, Queues: []servicebus.Queue{{Name: jobs}, {Name: "Jobs"}}},
		"is not an address on loopback":  {Dir: dir, AMQP: "0.0.0.0:0"},
		"0.0.0.0:1 is not an address on": {Dir: dir, Control: "0.0.0.0:1"},
	} {
		_, err := servicebus.Start(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}

func TestItSaysHowToInstallIt(t *testing.T) {
	_, err := servicebus.Start(t.Context(), servicebus.Options{Dir: t.TempDir()})
	require.ErrorIs(t, err, servicebus.ErrNotInstalled)
	require.ErrorContains(t, err, "`make test` installs it")
	t.Setenv("PATH", filepath.Join(t.TempDir(), "nothing"))
	dir, err := os.Getwd()
	require.NoError(t, err)
	_, err = servicebus.Start(t.Context(), servicebus.Options{Dir: dir})
	require.ErrorIs(t, err, servicebus.ErrNotInstalled)
}

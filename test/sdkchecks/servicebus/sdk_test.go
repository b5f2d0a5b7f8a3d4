package servicebus

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// The checks with queues of their own kind, by their place in checks.mjs.
const (
	checks       = 29
	lostLock     = 26
	detection    = 27
	shortLock    = 3 * time.Second
	longestCheck = 4 * time.Minute
)

// refused are the checks that fail on purpose.
var refused = map[string]string{
	"defer, then receive by sequence number, complete": "the emulator refuses to defer: the product never does it",
}

func TestTheVendorsSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute: `make sdkchecks` runs it")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("the SDK is not installed: `make sdkchecks` installs it and runs this test")
	}
	var queues []servicebus.Queue
	for i := range checks {
		q := servicebus.Queue{
			Name: "q-" + strconv.Itoa(i), LockDuration: 30 * time.Second, RequiresDuplicateDetection: i == detection,
		}
		if i == lostLock {
			q.LockDuration = shortLock
		}
		queues = append(queues, q)
	}
	s := servicebustest.Start(t, queues...)
	ctx, cancel := context.WithTimeout(t.Context(), longestCheck)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "checks.mjs", s.AMQP, "q", "10")
	command.Env = append(os.Environ(), "DEDUP=1", "SHORTLOCK="+strconv.FormatInt(shortLock.Milliseconds(), 10))
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	passed, failed := 0, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "ok ") {
			passed++
		}
		if name, is := strings.CutPrefix(line, "FAIL  "); is {
			name = strings.TrimSpace(name)
			failed[name] = true
			require.Contains(t, refused, name)
		}
	}
	require.Len(t, failed, len(refused), "a check that passes now is no longer refused")
	require.Equal(t, checks-len(refused), passed)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/cmd/local/internal/term"
)

// fakeSwitch says on its channel what is asked of it.
type fakeSwitch chan string

func (f fakeSwitch) Off(context.Context) error { f <- "off"; return nil }
func (f fakeSwitch) On(context.Context) error  { f <- "on"; return nil }

// ask asks the runner to switch SQL off. The answer's body is open.
func ask(ctx context.Context, t *testing.T, s *stack, length string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.file.Control+"/sql-off?for="+length, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func TestSQLIsOnAgainWhateverBecomesOfTheCaller(t *testing.T) {
	f := make(fakeSwitch, 1)
	s := &stack{out: term.New(io.Discard), sql: f}
	require.NoError(t, s.serveControl(t.Context()))

	answer := ask(t.Context(), t, s, "1ms") // the time is over
	require.Equal(t, "off", <-f)
	_, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "on", <-f)

	ctx, killed := context.WithCancel(t.Context())
	require.Equal(t, http.StatusOK, ask(ctx, t, s, "1h").StatusCode)
	require.Equal(t, "off", <-f)
	require.Equal(t, http.StatusConflict, ask(t.Context(), t, s, "1h").StatusCode, "one at a time")
	killed()
	require.Equal(t, "on", <-f)
	require.Equal(t, http.StatusBadRequest, ask(t.Context(), t, s, "soon").StatusCode)

	require.Eventually(t, func() bool { return ask(t.Context(), t, s, "1h").StatusCode == http.StatusOK }, time.Minute, time.Millisecond)
	require.Equal(t, "off", <-f)
	require.NoError(t, s.endControl(), "the stack ends")
	require.Equal(t, "on", <-f)
}

func TestAStackWithoutASwitchSaysWhy(t *testing.T) {
	s := &stack{out: term.New(io.Discard)}
	_, err := s.switchOff(t.Context())
	require.ErrorContains(t, err, "SQL_CONNECTION names an instance without a port")
	require.NoError(t, s.endControl())
}

// A server that keeps ending is started again more and more seldom, and at once after it was calm.
func TestAServerThatKeepsEndingIsStartedMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var output bytes.Buffer
		s := &stack{out: term.New(&output), dir: t.TempDir(), pauses: map[string]time.Duration{}}
		require.NoError(t, os.MkdirAll(s.logs(), 0o750))
		began := time.Now()
		var at []int
		for _, lived := range []time.Duration{0, 0, 0, 0, 0, 0, 0, calm + 1} {
			f := &proc.Failure{Name: "x", Err: errors.New("exit status 1"), Log: "x.log", Lived: lived, Spec: proc.Spec{Name: "x", Path: filepath.Join(s.dir, "absent")}}
			require.ErrorIs(t, s.restart(t.Context(), f), os.ErrNotExist, "a program that is gone ends the stack")
			at = append(at, int(time.Since(began).Seconds()))
			began = time.Now()
		}
		require.Equal(t, []int{1, 2, 4, 8, 16, 30, 30, 1}, at)
		require.Contains(t, output.String(), "x ended (exit status 1) and starts again in 16s with the state that it stored; log: x.log")
	})
}

func TestTheProxyStandsForTheServerThatIsNamed(t *testing.T) {
	for dsn, want := range map[string]string{
		"sqlserver://sa:p@db?database=x":                        "db:1433",
		"sqlserver://sa:p@db:1500?database=x":                   "db:1500",
		"sqlserver://sa:p@db:1500/named?database=x":             "db:1500",
		"sqlserver://sa:p@db/named?database=x":                  "",
		"sqlserver://sa:p@x.database.windows.net?database=x":    "",
		"sqlserver://sa:p@[::1]:1433?database=x&encrypt=strict": "[::1]:1433",
	} {
		require.Equal(t, want, addressOf(dsn), dsn)
	}
	require.Equal(t, "sqlserver://sa:p%21@127.0.0.1:9?database=x&hostNameInCertificate=db", through("sqlserver://sa:p%21@db:1500?database=x", "127.0.0.1:9"))
	require.Equal(t, "sqlserver://sa:p@127.0.0.1:9?HostNameInCertificate=own&database=x", through("sqlserver://sa:p@db?HostNameInCertificate=own&database=x", "127.0.0.1:9"))
}

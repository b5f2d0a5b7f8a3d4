package outage_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/outage"
)

// offVariable makes this test binary switch a file off and then end without a word, as a killed process does.
const offVariable = "OUTAGE_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(offVariable); path != "" {
		if err := offAndEnd(path); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func offAndEnd(path string) error {
	store, err := sqlite.New(path, sqlite.Options{})
	if err != nil {
		return err
	}
	return outage.NewFile(path, store.Writer()).Off(context.Background())
}

// open opens the file as the handler does.
func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	return store
}

// newFile makes a database file with its tables and one row.
func newFile(t *testing.T) (path string, handler *sqlite.Store) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.db")
	handler = open(t, path)
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), handler.Writer()))
	require.NoError(t, handler.Migrate(t.Context()))
	_, err := handler.Writer().ExecContext(t.Context(), "INSERT INTO IVCE_DTL (IVCE_DTL_UID) VALUES (2)")
	require.NoError(t, err)
	require.NoError(t, write(t, handler))
	return path, handler
}

func write(t *testing.T, s *sqlite.Store) error {
	t.Helper()
	hash := strings.Repeat("0", 64)
	_, err := s.Apply(t.Context(), []commit.Item{{
		DocumentID: "x", FailureMark: true, Main: 1, Hash: hash, HashVersion: 1,
		Version: invoice.Version{US: 1, Key: invoice.Key("x")},
	}}, commit.Write, breaker.Heartbeat{})
	return err
}

// requireOff requires that the file cannot be used: not by connections that were open, not by new ones.
func requireOff(t *testing.T, path string, s *sqlite.Store) {
	t.Helper()
	const cantOpen = "14"
	_, beat := s.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
	_, fresh := sqlite.Open(t.Context(), path, sqlite.Options{})
	for what, err := range map[string]error{"write": write(t, s), "heartbeat": beat, "new connection": fresh} {
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s: %v", what, err)
		require.Equal(t, cantOpen, fault.CodeOf(err), what)
	}
}

func TestAFileThatIsOffFailsForEveryConnection(t *testing.T) {
	path, handler := newFile(t)
	defer func() { require.NoError(t, handler.Close()) }()
	stack := open(t, path)
	defer func() { require.NoError(t, stack.Close()) }()
	f := outage.NewFile(path, stack.Writer())
	for range 2 {
		require.NoError(t, f.Off(t.Context()))
		requireOff(t, path, handler)
		require.NoError(t, f.On(t.Context()))
		require.NoError(t, write(t, handler))
		require.NoError(t, write(t, stack))
	}
}

// A stack that is killed leaves nothing to mend: the next process that opens the file finds every row.
func TestAnOutageEndsWithTheProcessesThatUseTheFile(t *testing.T) {
	path, handler := newFile(t)
	stack := exec.CommandContext(t.Context(), os.Args[0])
	stack.Env = append(os.Environ(), offVariable+"="+path)
	out, err := stack.CombinedOutput()
	require.NoError(t, err, "%s", out)
	requireOff(t, path, handler)
	require.NoError(t, handler.Close())

	next := open(t, path)
	defer func() { require.NoError(t, next.Close()) }()
	var rows int
	require.NoError(t, next.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM IVCE_DTL").Scan(&rows))
	require.Equal(t, 1, rows)
	require.NoError(t, write(t, next))
}

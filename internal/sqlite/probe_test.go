package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/sqlite"
)

// readOnly makes the writer's connection, of which there is one, refuse every write.
func (d db) readOnly(t testing.TB) func() {
	t.Helper()
	d.exec(t, `PRAGMA query_only = 1`)
	return func() { d.exec(t, `PRAGMA query_only = 0`) }
}

// SQLite begins a read transaction without a word when the file is read-only.
func TestAProbeSeesAReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writer.db")
	openStore(t, path)
	s, err := sqlite.OpenReadOnly(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	err = s.Probe(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "read_only", fault.CodeOf(err))
}

func TestAProbeOfAFileWithoutOurTables(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "writer.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	err = s.Probe(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
}

// Package sqlitetest makes databases of the SQLite adapter for tests.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
)

// Open opens a database until the test ends, with the mapping in use where the options name none. If there is no such
// file, it makes one.
func Open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	if o.Mapping == nil {
		o.Mapping = mapping.InUse()
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		Make(t, path)
	}
	s, err := sqlite.Open(t.Context(), path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Make makes a database with our tables and samples of the user's. It is a copy of one that the process makes once:
// hundreds of tests need one.
func Make(t testing.TB, path string) {
	t.Helper()
	bytes, err := template()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes, 0o600))
}

// template is the file of a database of the mapping in use.
var template = sync.OnceValues(func() ([]byte, error) { //nolint:gochecknoglobals // what a process does once
	dir, err := os.MkdirTemp("", "sqlitetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, path := context.Background(), filepath.Join(dir, "template.db")
	s, err := sqlite.Open(ctx, path, sqlite.Options{Mapping: mapping.InUse()})
	if err != nil {
		return nil, err
	}
	// the last connection writes its WAL into the file
	err = errors.Join(s.Migrate(ctx), sqlite.CreateSampleSchemaAs(ctx, s.Writer(), mapping.InUse()), s.Close())
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // our own file
})

package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/sqlservertest"
)

// onServer is a bench whose connection is an empty database on a server.
func onServer(t *testing.T) (*bench, *sqlserver.Store) {
	t.Helper()
	dsn := sqlservertest.NewDatabase(t)
	store, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b := newBench(t)
	b.env["SQL_CONNECTION"] = dsn
	return b, store
}

func TestMigrateOnAServer(t *testing.T) {
	b, store := onServer(t)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"), b.errors)
	require.Regexp(t, `1\s+0001_schema\s+pending`, b.out)
	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	script := b.out

	// A database tool sends the text between two GO lines as one batch.
	ctx := t.Context()
	conn, err := store.DB().Conn(ctx)
	require.NoError(t, err)
	for _, batch := range regexp.MustCompile(`(?m)^GO$`).Split(script, -1) {
		_, err := conn.ExecContext(ctx, batch)
		require.NoError(t, err, batch)
	}
	require.NoError(t, conn.Close())
	require.Equal(t, exitOK, b.run(t, "migrate", "status"), b.out+b.errors)
	require.Equal(t, exitOK, b.run(t, "migrate", "up"))
	require.Contains(t, b.out, "nothing to do")

	other, _ := onServer(t)
	require.Equal(t, exitOK, other.run(t, "migrate", "up"), other.errors)
	require.Contains(t, other.out, "0001_schema: done")
	require.Equal(t, exitOK, other.run(t, "migrate", "status"))
}

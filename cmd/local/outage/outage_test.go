package outage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/local/outage"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlite"
)

func TestAnOutageIsInfrastructureAndEnds(t *testing.T) {
	store, err := sqlite.Open(t.Context(), t.TempDir()+"/x.db", sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
	require.NoError(t, store.Migrate(t.Context()))
	write := func() error {
		_, err := store.Apply(t.Context(), []commit.Item{{DocumentID: "x", FailureMark: true, Main: 1, Hash: "h", HashVersion: 1}}, commit.Write, breaker.Heartbeat{})
		return err
	}
	beat := func() error {
		_, err := store.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
		return err
	}
	require.NoError(t, write())

	on, err := outage.Off(t.Context(), store.Writer(), config.SQLite)
	require.NoError(t, err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(write()))
	require.Equal(t, fault.Infrastructure, fault.KindOf(beat()))
	require.NoError(t, on(t.Context()))
	require.NoError(t, write())

	_, err = outage.Off(t.Context(), store.Writer(), config.SQLite) // and the process is killed
	require.NoError(t, err)
	require.NoError(t, outage.Mend(t.Context(), store.Writer(), config.SQLite))
	require.NoError(t, write())
	require.NoError(t, beat())
	require.NoError(t, outage.Mend(t.Context(), store.Writer(), config.SQLite), "nothing to mend")
}

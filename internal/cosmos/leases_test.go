package cosmos_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
)

func TestLocks(t *testing.T) {
	t.Parallel()
	server, results := start(t)
	server.Leases(t, database, "leases")
	leases, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: database, Container: "leases"})
	require.NoError(t, err)
	t.Cleanup(leases.Close)
	l := cosmos.NewLeases(leases, results, "web-")
	found, err := l.Locks(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)

	db, err := server.Client.NewDatabase(database)
	require.NoError(t, err)
	of, err := db.Read(t.Context(), nil)
	require.NoError(t, err)
	c, err := db.NewContainer(container)
	require.NoError(t, err)
	own, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	ids := of.DatabaseProperties.ResourceID + "_" + own.ContainerProperties.ResourceID
	before := time.Now().Truncate(time.Second)
	for _, id := range []string{
		"web-127.0.0.1_" + ids + ".info", "web-127.0.0.1_" + ids + "..0", // no locks
		"web-2-127.0.0.1_" + ids + ".lock", "dev-127.0.0.1_" + ids + ".lock", // other environments'
		"web-127.0.0.1_" + of.DatabaseProperties.ResourceID + "_old.lock", // of a container that was deleted
	} {
		require.NoError(t, leases.Submit(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q,"ttl":30}`, id)), false))
	}
	found, err = l.Locks(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)

	lock := "web-127.0.0.1_" + ids + ".lock"
	require.NoError(t, leases.Submit(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q,"ttl":-1}`, lock)), false))
	found, err = l.Locks(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, lock, found[0].ID)
	require.WithinRange(t, found[0].At, before, time.Now().Add(time.Second))
}

func TestLocksWithoutTheirContainerAreInfrastructure(t *testing.T) {
	t.Parallel()
	server, results := start(t)
	missing, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: database, Container: "nowhere"})
	require.NoError(t, err)
	t.Cleanup(missing.Close)
	for name, l := range map[string]*cosmos.Leases{
		"leases": cosmos.NewLeases(missing, results, "web-"), "results": cosmos.NewLeases(results, missing, "web-"),
	} {
		_, err := l.Locks(t.Context())
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "without the container of the %s: %v", name, err)
	}
}

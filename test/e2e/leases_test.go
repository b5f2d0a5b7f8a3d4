package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/emulators/funchost"
)

// The lock has the name of the host's other documents: one that a host leaves behind is found under it.
func TestTheLockThatAHostLeavesBehindIsFound(t *testing.T) {
	t.Parallel()
	s := newStack(t, 1)
	_, err := s.startHost().WaitEvent(s.patiently(), 0, func(e funchost.Event) bool { return e.Kind == funchost.LeaseAcquired })
	require.NoError(t, err)
	open := func(name string) *cosmos.Container {
		c, err := cosmos.Open(cosmos.Options{Connection: s.cosmos.ConnectionString, Database: database, Container: name})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	leases := open("leases")
	l := cosmos.NewLeases(leases, open(container), s.settings()["LEASE_PREFIX"])
	found, err := l.Locks(t.Context())
	require.NoError(t, err)
	require.Empty(t, found, "a host that started has none")

	info := ""
	require.NoError(t, leases.Query(t.Context(), "SELECT c.id FROM c WHERE ENDSWITH(c.id, '.info')", nil, func(rows []json.RawMessage) (bool, error) {
		require.Len(t, rows, 1)
		var row struct{ ID string }
		require.NoError(t, json.Unmarshal(rows[0], &row))
		info = row.ID
		return true, nil
	}))
	lock := strings.TrimSuffix(info, ".info") + ".lock"
	client, err := s.cosmos.Client.NewContainer(database, "leases")
	require.NoError(t, err)
	_, err = client.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(lock), []byte(`{"id":"`+lock+`","ttl":-1}`), nil)
	require.NoError(t, err)
	found, err = l.Locks(t.Context())
	require.NoError(t, err)
	require.Equal(t, []reconcile.Lock{{ID: lock, At: found[0].At}}, found)
}

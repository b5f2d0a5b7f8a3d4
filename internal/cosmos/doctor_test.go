package cosmos_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// trials are a control container with the Trial of an environment.
func trials(t *testing.T) (*cosmosdbtest.Running, *azcosmos.ContainerClient, cosmos.Trial) {
	t.Helper()
	server := cosmosdbtest.Start(t)
	view := server.Leases(t, database, "control")
	c, err := cosmos.Open(cosmos.Options{
		Connection: server.ConnectionString, Database: database, Container: "control", KeyIsID: true,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return server, view, cosmos.NewTrial(c, "web")
}

func documentsIn(t *testing.T, c *azcosmos.ContainerClient) (n int) {
	t.Helper()
	pager := c.NewQueryItemsPager("SELECT c.id FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		n += len(page.Items)
	}
	return n
}

// Each right that the app needs is used: without one the Trial fails. What a killed one left is swept once it is old.
func TestATrialUsesEachRightAndLeavesNothing(t *testing.T) {
	server, view, trial := trials(t)
	require.NoError(t, trial.Try(t.Context(), "a"))
	require.Zero(t, documentsIn(t, view))
	for i, op := range []cosmosdb.Op{cosmosdb.OpCreate, cosmosdb.OpPatch, cosmosdb.OpDelete} {
		fail(t, server, cosmosdb.Rule{ID: "role", Op: op, Status: http.StatusForbidden, Substatus: 5301})
		err := trial.Try(t.Context(), string(op))
		require.Equal(t, "403/5301", fault.CodeOf(err), "%s: %v", op, err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		server.Server.RemoveFault("role")
		require.Equal(t, i, documentsIn(t, view), "%s: what stood stays until a sweep", op)
	}
	_, err := view.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("doctor:dev:b"),
		[]byte(`{"id":"doctor:dev:b","doctor_of":"dev"}`), nil)
	require.NoError(t, err)
	require.NoError(t, trial.Sweep(t.Context(), time.Now().Add(-time.Hour)))
	require.Equal(t, 3, documentsIn(t, view), "another run may still write")
	require.NoError(t, trial.Sweep(t.Context(), time.Now().Add(time.Hour)))
	require.Equal(t, 1, documentsIn(t, view), "another environment's stays")
}

// A longer prefix is another environment's, and the host's marks beside its leases are none.
func TestLeasesAreThoseOfThePrefix(t *testing.T) {
	server := cosmosdbtest.Start(t)
	view := server.Leases(t, database, "leases")
	c, err := cosmos.Open(cosmos.Options{
		Connection: server.ConnectionString, Database: database, Container: "leases", KeyIsID: true,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	all, err := c.Leases(t.Context(), "web-")
	require.NoError(t, err)
	require.Empty(t, all)
	for id, rest := range map[string]string{
		"web-127.0.0.1_d==_c==..0":   `"LeaseToken":"0","Owner":"host"`,
		"web-127.0.0.1_d==_c==..1":   `"LeaseToken":"1","Owner":null`,
		"web-127.0.0.1_d==_c==.info": `"x":1`,
		"web-2-127.0.0.1_d==_c==..0": `"LeaseToken":"0","Owner":"other"`,
	} {
		_, err := view.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(id),
			[]byte(`{"id":"`+id+`",`+rest+`}`), nil)
		require.NoError(t, err)
	}
	all, err = c.Leases(t.Context(), "web-")
	require.NoError(t, err)
	owners := map[string]bool{}
	for _, l := range all {
		owners[l.Owner] = true
		require.WithinDuration(t, time.Now(), l.RenewedAt, time.Minute)
	}
	require.Len(t, all, 2)
	require.Equal(t, map[string]bool{"host": true, "": true}, owners)
	server.Kill()
	_, err = c.Leases(t.Context(), "web-")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
}

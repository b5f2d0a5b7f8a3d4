package cosmos_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

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

// own is a container of the app's own.
func own(t *testing.T) (*cosmosdbtest.Running, *azcosmos.ContainerClient, *cosmos.Container) {
	t.Helper()
	server := cosmosdbtest.Start(t)
	view := server.Leases(t, database, "own")
	return server, view, openOn(t, server, "own", true)
}

// A doctor uses each right that the app needs, and leaves nothing. What one that failed left is deleted once it is an
// hour old; another environment's stays.
func TestADoctorUsesEachRightAndLeavesNothing(t *testing.T) {
	server, view, c := own(t)
	anHourAgo, inAnHour := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	_, err := view.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("doctor:dev:b"),
		[]byte(`{"id":"doctor:dev:b","doctor_of":"dev"}`), nil)
	require.NoError(t, err)
	for op, left := range map[cosmosdb.Op]int{
		cosmosdb.OpCreate: 1, cosmosdb.OpRead: 2, cosmosdb.OpPatch: 2, cosmosdb.OpDelete: 2, cosmosdb.OpQuery: 1,
	} {
		fail(t, server, cosmosdb.Rule{ID: "role", Op: op, Status: http.StatusForbidden, Substatus: 5301})
		err := c.TryWrites(t.Context(), "web", anHourAgo)
		require.Equal(t, "403/5301", fault.CodeOf(err), "%s: %v", op, err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		server.Server.RemoveFault("role")
		require.NoError(t, c.TryWrites(t.Context(), "web", anHourAgo))
		require.Equal(t, left, documentsIn(t, view), "%s: another doctor may still write", op)
		require.NoError(t, c.TryWrites(t.Context(), "web", inAnHour))
		require.Equal(t, 1, documentsIn(t, view), op)
	}
}

// The address is written in small letters. A longer prefix is another environment's, and the host's marks beside its
// leases are none.
func TestLeasesAreThoseOfThePrefix(t *testing.T) {
	server, view, c := own(t)
	all, err := c.Leases(t.Context(), "web-")
	require.NoError(t, err)
	require.Empty(t, all)
	for id, rest := range map[string]string{
		"web-localhost_d==_c==..0":   `"LeaseToken":"0","Owner":"capitals"`,
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
	capitals := strings.Replace(server.ConnectionString, "127.0.0.1", "LOCALHOST", 1)
	all, err = openOn(t, &cosmosdbtest.Running{ConnectionString: capitals}, "own", true).Leases(t.Context(), "web-")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "capitals", all[0].Owner)
	server.Kill()
	_, err = c.Leases(t.Context(), "web-")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
}

package cosmos_test

import (
	"context"
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

// A doctor uses each right that the app needs, and leaves nothing. What one that was killed left, at whatever step, is
// deleted once it is an hour old. Another doctor at each of its steps disturbs neither of the two.
func TestADoctorUsesEachRightAndLeavesNothing(t *testing.T) {
	server := cosmosdbtest.Start(t)
	view := server.Leases(t, database, "control")
	c, err := cosmos.Open(cosmos.Options{
		Connection: server.ConnectionString, Database: database, Container: "control", KeyIsID: true,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	anHourAgo, inAnHour := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	_, err = view.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("doctor:dev:b"),
		[]byte(`{"id":"doctor:dev:b","doctor_of":"dev"}`), nil)
	require.NoError(t, err)
	require.NoError(t, c.TryWrites(t.Context(), "web", anHourAgo))
	require.Equal(t, 1, documentsIn(t, view), "another environment's stays")
	sweep := func(left int) {
		t.Helper()
		require.Equal(t, left, documentsIn(t, view))
		require.NoError(t, c.TryWrites(t.Context(), "web", anHourAgo))
		require.Equal(t, left, documentsIn(t, view), "another doctor may still write")
		require.NoError(t, c.TryWrites(t.Context(), "web", inAnHour))
		require.Equal(t, 1, documentsIn(t, view))
	}
	for i, op := range []cosmosdb.Op{cosmosdb.OpCreate, cosmosdb.OpPatch, cosmosdb.OpDelete, cosmosdb.OpQuery} {
		fail(t, server, cosmosdb.Rule{ID: "role", Op: op, Status: http.StatusForbidden, Substatus: 5301})
		err := c.TryWrites(t.Context(), "web", anHourAgo)
		require.Equal(t, "403/5301", fault.CodeOf(err), "%s: %v", op, err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		server.Server.RemoveFault("role")
		sweep([]int{1, 2, 2, 1}[i])
		for when, left := range map[cosmosdb.When][]int{cosmosdb.Before: {1, 2, 2, 1}, cosmosdb.After: {2, 2, 1, 1}} {
			for _, killed := range []bool{true, false} {
				fail(t, server, cosmosdb.Rule{ID: "hold", Op: op, Hold: when, Times: 1})
				ctx, kill := context.WithCancel(t.Context())
				first := make(chan error, 1)
				go func() { first <- c.TryWrites(ctx, "web", anHourAgo) }()
				require.NoError(t, server.Server.WaitHeld(t.Context(), "hold", 1))
				if killed {
					kill()
					require.Error(t, <-first)
					require.Eventually(t, func() bool { return server.Server.Faults()[0].Held == 0 }, time.Minute,
						time.Millisecond, "the server sees that nobody waits")
					server.Server.RemoveFault("hold")
					sweep(left[i])
					continue
				}
				require.NoError(t, c.TryWrites(t.Context(), "web", anHourAgo), "the other one, at %s of %s", when, op)
				server.Server.RemoveFault("hold")
				require.NoError(t, <-first, "the first doctor, at %s of %s", when, op)
				require.Equal(t, 1, documentsIn(t, view))
				kill()
			}
		}
	}
	_, err = view.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("doctor:web:LEFT"),
		[]byte(`{"id":"doctor:web:LEFT","doctor_of":"web"}`), nil)
	require.NoError(t, err)
	fail(t, server, cosmosdb.Rule{ID: "hold", Op: cosmosdb.OpDelete, Doc: "*LEFT", Hold: cosmosdb.Before, Times: 1})
	first := make(chan error, 1)
	go func() { first <- c.TryWrites(t.Context(), "web", inAnHour) }()
	require.NoError(t, server.Server.WaitHeld(t.Context(), "hold", 1))
	require.NoError(t, c.TryWrites(t.Context(), "web", inAnHour))
	server.Server.RemoveFault("hold")
	require.NoError(t, <-first, "two delete the same")
	require.Equal(t, 1, documentsIn(t, view))
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

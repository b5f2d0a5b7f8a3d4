package cosmos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
)

func TestBacklog(t *testing.T) {
	conformance.TestBacklog(t, func(t *testing.T) conformance.BacklogHarness {
		server := cosmosdbtest.Start(t)
		return backlogOf(t, cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
	})
}

// backlogOf is the harness of a container.
func backlogOf(t *testing.T, o cosmos.Options) conformance.BacklogHarness {
	t.Helper()
	open := func(t testing.TB) *cosmos.Container {
		t.Helper()
		c, err := cosmos.Open(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	c := open(t)
	require.NoError(t, provision.Make(t.Context(), o.Connection, o.Database, provision.Results(o.Container)))
	return conformance.BacklogHarness{
		Backlog: c, Restarted: func(t testing.TB) commit.Backlog { return open(t) }, DocumentsHarness: emulated(t, o.Connection, c),
	}
}

func TestBacklogOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestBacklog(t, func(t *testing.T) conformance.BacklogHarness {
		c := onRealAccount(t)
		return conformance.BacklogHarness{
			Backlog: c, Restarted: func(testing.TB) commit.Backlog { return c }, DocumentsHarness: documentsOf(c),
		}
	})
}

func TestWaitingOfNothingAsksNothing(t *testing.T) {
	server, c := start(t)
	for _, statuses := range [][]invoice.Status{nil, {}, {""}} {
		require.NoError(t, c.PendingDocs(t.Context(), "web", statuses, 0, 1<<40, nil))
	}
	require.Zero(t, server.Server.Count(cosmosdb.OpQuery, container))
}

func TestAThrottledSearchIsThrottled(t *testing.T) {
	server, c := start(t)
	submitted(t, c, "a")
	server.Server.ResetStats()
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpQuery, Status: 429, Substatus: 3200, RetryAfterMS: 1})
	err := c.PendingDocs(t.Context(), "web", []invoice.Status{invoice.Pending}, 0, 1<<40, func([]commit.PendingDoc) (bool, error) { return true, nil })
	require.Equal(t, fault.Throttled, fault.KindOf(err), "%v", err)
}

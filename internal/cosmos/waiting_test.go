package cosmos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/porttest"
	"sqlwriter/internal/standin/cosmosdb"
	"sqlwriter/internal/writer"
)

func TestBacklog(t *testing.T) {
	porttest.TestBacklog(t, func(t *testing.T) porttest.BacklogHarness {
		_, c := start(t)
		return porttest.BacklogHarness{Backlog: c, DocumentsHarness: documentsOf(c)}
	})
}

func TestBacklogOnARealAccount(t *testing.T) {
	needRealAccount(t)
	porttest.TestBacklog(t, func(t *testing.T) porttest.BacklogHarness {
		c := onRealAccount(t)
		return porttest.BacklogHarness{Backlog: c, DocumentsHarness: documentsOf(c)}
	})
}

func TestWaitingOfNothingAsksNothing(t *testing.T) {
	server, c := start(t)
	for _, statuses := range [][]invoice.Status{nil, {}, {""}} {
		require.NoError(t, c.Waiting(t.Context(), "web", statuses, 0, 1<<40, nil))
	}
	require.Zero(t, server.Server.Count(cosmosdb.OpQuery, container))
}

func TestAThrottledSearchIsThrottled(t *testing.T) {
	server, c := start(t)
	submitted(t, c, "a")
	server.Server.ResetStats()
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpQuery, Status: 429, Substatus: 3200, RetryAfterMS: 1})
	err := c.Waiting(t.Context(), "web", []invoice.Status{invoice.Pending}, 0, 1<<40, func([]writer.Waiting) (bool, error) { return true, nil })
	require.Equal(t, fault.Throttled, fault.KindOf(err), "%v", err)
}

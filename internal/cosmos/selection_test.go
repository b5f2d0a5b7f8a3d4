package cosmos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
)

func TestSelection(t *testing.T) {
	for name, change := range map[string]func(*cosmosdb.Options){
		"two ranges, every third page empty":   func(*cosmosdb.Options) {},
		"seven ranges, every other page empty": func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 7, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestSelection(t, func(t *testing.T) conformance.SelectionHarness {
				server := cosmosdbtest.Start(t, change)
				return selectionOf(t, cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
			})
		})
	}
}

func TestSelectionOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestSelection(t, func(t *testing.T) conformance.SelectionHarness {
		c := onRealAccount(t)
		return conformance.SelectionHarness{Selection: c.Selection(), Restarted: func(testing.TB) run.Selection { return c.Selection() }, DocumentsHarness: documentsOf(c)}
	})
}

// selectionOf is the harness of a container.
func selectionOf(t *testing.T, o cosmos.Options) conformance.SelectionHarness {
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
	return conformance.SelectionHarness{
		Selection: c.Selection(), Restarted: func(t testing.TB) run.Selection { return open(t).Selection() }, DocumentsHarness: emulated(t, o.Connection, c),
	}
}

// pending asks for the pending documents in the environment of submitted documents.
func pending() run.Query {
	return run.Query{SysName: "web", Statuses: []invoice.Status{invoice.Pending}, To: 1 << 40}
}

// begun gives the continuation of a first page.
func begun(t *testing.T, c *cosmos.Container) string {
	t.Helper()
	_, next, err := c.Selection().Page(t.Context(), pending(), "")
	require.NoError(t, err)
	require.NotEmpty(t, next)
	return next
}

func TestAPageIsOneRequest(t *testing.T) {
	server, c := start(t)
	next := begun(t, c)
	_, _, err := c.Selection().Page(t.Context(), pending(), next)
	require.NoError(t, err)
	require.Equal(t, 2, server.Server.Count(cosmosdb.OpQuery, container))
	_, _, err = c.Selection().Page(t.Context(), run.Query{SysName: "web", To: 1 << 40}, "")
	require.NoError(t, err)
	_, _, err = c.Selection().Page(t.Context(), pending(), "garbage")
	require.Error(t, err)
	for _, q := range []run.Query{
		{SysName: "dev", Statuses: pending().Statuses, To: pending().To},
		{SysName: "web", Statuses: pending().Statuses, From: 1, To: pending().To},
		{SysName: "web", Statuses: []invoice.Status{invoice.Failed}, To: pending().To},
	} {
		_, _, err = c.Selection().Page(t.Context(), q, next)
		require.Error(t, err, "the service does not promise to notice")
	}
	require.Equal(t, 2, server.Server.Count(cosmosdb.OpQuery, container), "no request without statuses, nor with an invalid continuation")
}

// The service may refuse a continuation that this package made, for example after a restore.
func TestAContinuationThatTheServiceRefuses(t *testing.T) {
	server, c := start(t)
	next := begun(t, c)
	mark, _, _ := strings.Cut(next, ":")
	server.Server.ResetStats()
	_, _, err := c.Selection().Page(t.Context(), pending(), mark+":garbage")
	require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
	require.Equal(t, "continuation", fault.CodeOf(err))
	require.Equal(t, 1, server.Server.Count(cosmosdb.OpQuery, container), "the service refused it, once")
}

func TestAPageThatFailsIsNotAContinuation(t *testing.T) {
	server, c := start(t)
	next := begun(t, c)
	for name, want := range map[string]struct {
		rule         cosmosdb.Rule
		continuation string
		kind         fault.Kind
		code         string
	}{
		"throttled":                 {cosmosdb.Rule{Status: 429, Substatus: 3200, RetryAfterMS: 1}, next, fault.Throttled, "429/3200"},
		"gone range":                {cosmosdb.Rule{Status: 410, Substatus: 1002}, next, fault.Infrastructure, "410/1002"},
		"refused query":             {cosmosdb.Rule{Status: 400, Substatus: 1004}, next, fault.Infrastructure, "400/1004"},
		"refused at the beginning":  {cosmosdb.Rule{Status: 400}, "", fault.Infrastructure, "400"},
		"refused with continuation": {cosmosdb.Rule{Status: 400}, next, fault.Document, "continuation"},
		"down":                      {cosmosdb.Rule{Status: 503}, next, fault.Infrastructure, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Server.ClearFaults()
			want.rule.Op = cosmosdb.OpQuery
			fail(t, server, want.rule)
			_, _, err := c.Selection().Page(t.Context(), pending(), want.continuation)
			require.Equal(t, want.kind, fault.KindOf(err), "%v", err)
			require.Equal(t, want.code, fault.CodeOf(err))
		})
	}
	server.Server.ClearFaults()
	_, _, err := c.Selection().Page(t.Context(), pending(), next)
	require.NoError(t, err, "the continuation is as good as before")
}

func TestAPageHasADeadlineOfItsOwn(t *testing.T) {
	server := cosmosdbtest.Start(t)
	c, err := cosmos.Open(cosmos.Options{
		Connection: server.ConnectionString, Database: database, Container: container, Timeouts: cosmos.Timeouts{Page: 100 * time.Millisecond},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	server.Results(t, database, container)
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpQuery, Hold: cosmosdb.Before})
	begun := time.Now()
	_, _, err = c.Selection().Page(t.Context(), pending(), "")
	require.Equal(t, "timeout", fault.CodeOf(err), "%v", err)
	require.Less(t, time.Since(begun), 10*time.Second, "the page's timeout, not another one")
	server.Server.ClearFaults()
}

package cosmos_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestFinder(t *testing.T) {
	for name, change := range map[string]func(*cosmosdb.Options){
		"two ranges, every third page empty":   func(*cosmosdb.Options) {},
		"seven ranges, every other page empty": func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 7, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestFinder(t, func(t *testing.T) conformance.FinderHarness {
				server := cosmosdbtest.Start(t, change)
				open := func(t testing.TB) *cosmos.Container {
					t.Helper()
					c, err := cosmos.Open(
						cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
					require.NoError(t, err)
					t.Cleanup(c.Close)
					return c
				}
				c := open(t)
				server.Container(t, database, container, "/id") // a request may have an id that no key can have
				return conformance.FinderHarness{
					Finder: c, Restarted: func(t testing.TB) commit.Finder {
						t.Helper()
						return open(t)
					}, DocumentsHarness: documentsOf(c),
				}
			})
		})
	}
}

func TestFinderOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestFinder(t, func(t *testing.T) conformance.FinderHarness {
		c := onRealAccount(t)
		return conformance.FinderHarness{
			Finder: c, Restarted: func(testing.TB) commit.Finder { return c }, DocumentsHarness: documentsOf(c),
		}
	})
}

// pending asks for the pending documents in the environment of submitted documents.
func pending() commit.Query {
	return commit.Query{
		SysName: "web", Statuses: []invoice.Status{invoice.Pending}, To: 1 << 40,
		Members: commit.PendingMembers(), Size: commit.MaxPage,
	}
}

// begun gives the continuation of a first page.
func begun(t *testing.T, c *cosmos.Container) string {
	t.Helper()
	page, err := c.Find(t.Context(), pending(), "")
	require.NoError(t, err)
	require.NotEmpty(t, page.Next)
	return page.Next
}

func TestAPageIsOneRequest(t *testing.T) {
	server, c := start(t)
	next := begun(t, c)
	_, err := c.Find(t.Context(), pending(), next)
	require.NoError(t, err)
	require.Equal(t, 2, server.Server.Count(cosmosdb.OpQuery, container))
	_, err = c.Find(t.Context(), pending(), "garbage")
	require.Error(t, err)
	for _, change := range []func(*commit.Query){
		func(q *commit.Query) { q.SysName = "dev" },
		func(q *commit.Query) { q.From = 1 },
		func(q *commit.Query) { q.Members = []string{"id"} },
	} {
		q := pending()
		change(&q)
		_, err = c.Find(t.Context(), q, next)
		require.Equal(t, "continuation", fault.CodeOf(err), "the service does not promise to notice: %v", err)
	}
	require.Equal(t, 2, server.Server.Count(cosmosdb.OpQuery, container), "no request with an invalid continuation")
}

// The service may refuse a continuation that this package made, for example after a restore.
func TestAContinuationThatTheServiceRefuses(t *testing.T) {
	server, c := start(t)
	next := begun(t, c)
	mark, _, _ := strings.Cut(next, ":")
	server.Server.ResetStats()
	_, err := c.Find(t.Context(), pending(), mark+":garbage")
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
		"throttled": {
			cosmosdb.Rule{Status: 429, Substatus: 3200, RetryAfterMS: 1}, next, fault.Throttled, "429/3200",
		},
		"gone range": {
			cosmosdb.Rule{Status: 410, Substatus: 1002}, next, fault.Infrastructure, "410/1002",
		},
		"refused query": {
			cosmosdb.Rule{Status: 400, Substatus: 1004}, next, fault.Infrastructure, "400/1004",
		},
		"refused at the beginning":  {cosmosdb.Rule{Status: 400}, "", fault.Infrastructure, "400"},
		"refused with continuation": {cosmosdb.Rule{Status: 400}, next, fault.Document, "continuation"},
		"down":                      {cosmosdb.Rule{Status: 503}, next, fault.Infrastructure, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Server.ClearFaults()
			want.rule.Op = cosmosdb.OpQuery
			fail(t, server, want.rule)
			_, err := c.Find(t.Context(), pending(), want.continuation)
			require.Equal(t, want.kind, fault.KindOf(err), "%v", err)
			require.Equal(t, want.code, fault.CodeOf(err))
		})
	}
	server.Server.ClearFaults()
	_, err := c.Find(t.Context(), pending(), next)
	require.NoError(t, err, "the continuation is as good as before")
}

// A document may have 2 MB, so what nobody reads does not travel.
func TestOnlyTheMembersThatWereAskedForTravel(t *testing.T) {
	_, c := start(t)
	require.NoError(t,
		c.Submit(t.Context(), json.RawMessage(`{"id":"a","request_details":{"sys_name":"web"},"raw":"marker",
		"sql_writer":{"status":"pending","last_error":"marker","attempts":[{"at":"x","error":"marker"},{"at":"marker"}]}}`), false))
	for _, want := range []struct {
		members []string
		found   string
	}{
		{[]string{"id"}, `{"id":"a"}`},
		{[]string{"id", "post-processing"}, `{"id":"a"}`},
		{
			[]string{"sql_writer.status", "id", "sql_writer.attempts[0].at"},
			`{"id":"a","sql_writer":{"status":"pending","attempts":[{"at":"x"}]}}`,
		},
		{
			[]string{"sql_writer.failed_at", "invoice_details_from_rpa.IVCE_DTL_UID"},
			`{"sql_writer":{},"invoice_details_from_rpa":{}}`,
		},
	} {
		q := pending()
		q.Members = want.members
		var found []invoice.Projection
		require.NoError(t, commit.Each(t.Context(), c, q, func(page commit.Page) (bool, error) {
			found = append(found, page.Documents...)
			return true, nil
		}))
		require.Len(t, found, 1)
		require.JSONEq(t, want.found, string(found[0]))
	}
}

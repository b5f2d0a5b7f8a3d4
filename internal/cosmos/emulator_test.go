package cosmos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
)

const (
	database  = "db"
	container = "AI_PROCESS_LOGS"
)

// start starts an emulator and opens a container in it.
func start(t *testing.T) (*cosmosdbtest.Running, *cosmos.Container) {
	t.Helper()
	server := cosmosdbtest.Start(t)
	c, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	server.Results(t, database, container)
	server.Server.ResetStats()
	return server, c
}

// at is a document with an id, as it was at an etag.
func at(id, etag string) invoice.Snapshot {
	doc, err := invoice.Reader{}.ReadSnapshot(fmt.Appendf(nil, `{"id":%q}`, id), time.Now())
	if err != nil {
		panic(err) // the tests' ids are valid
	}
	doc.ETag = etag
	return doc
}

// realAccount names a setting with a connection string of a real account, where the suites then also run. Each test has
// a container of its own in the database "sqlwriter-test". An invalid value is an error.
const realAccount = "SQLWRITER_TEST_COSMOS"

// needRealAccount skips a test without a real account, before its cases run.
func needRealAccount(t *testing.T) {
	t.Helper()
	if os.Getenv(realAccount) == "" {
		t.Skip(realAccount + " is not set: the suite ran on the emulator only")
	}
}

// onRealAccount makes a container in the real account.
func onRealAccount(t *testing.T) *cosmos.Container {
	t.Helper()
	name := fmt.Sprintf("suite-%d", time.Now().UnixNano())
	c, err := cosmos.Open(
		cosmos.Options{Connection: os.Getenv(realAccount), Database: "sqlwriter-test", Container: name})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, provision.Make(t.Context(), os.Getenv(realAccount), "sqlwriter-test", provision.Results(name)))
	t.Logf("container %s is left in the account; delete the database sqlwriter-test when done", name)
	return c
}

func TestDocumentsOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestDocuments(t, func(t *testing.T) conformance.DocumentsHarness {
		h := documentsOf(onRealAccount(t))
		h.MaxBytes = 2 << 20
		return h
	})
}

// documentsOf is the harness of a container: it writes documents whole, as other programs do.
func documentsOf(c *cosmos.Container) conformance.DocumentsHarness {
	return conformance.DocumentsHarness{
		Documents: c,
		Put: func(t testing.TB, doc json.RawMessage) {
			t.Helper()
			require.NoError(t, c.Submit(t.Context(), doc, true))
		},
	}
}

func TestACutAfterApplyingIsInfrastructureAndThePatchIsThere(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]cosmosdb.Rule{
		"cut after":  {Op: cosmosdb.OpPatch, Times: 1, Cut: cosmosdb.After},
		"cut before": {Op: cosmosdb.OpPatch, Times: 1, Cut: cosmosdb.Before},
	} {
		t.Run(name, func(t *testing.T) {
			server, c := start(t)
			tag := submitted(t, c, "a")
			fail(t, server, rule)
			state := invoice.State{Status: invoice.Committed, Outcome: "applied"}
			_, err := c.Record(t.Context(), at("a", tag), state)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
			require.Equal(t, "eof", fault.CodeOf(err))
			require.Equal(t, 1, server.Server.Count(cosmosdb.OpPatch, container), "never sent twice")

			doc, err := c.Read(t.Context(), "a")
			require.NoError(t, err)
			var got struct {
				State *invoice.State `json:"sql_writer"`
				Etag  string         `json:"_etag"`
			}
			require.NoError(t, json.Unmarshal(doc, &got))
			_, again := c.Record(t.Context(), at("a", tag), state)
			if rule.Cut == cosmosdb.After {
				require.NotNil(t, got.State)
				require.Equal(t, invoice.Committed, got.State.Status)
				require.NotEqual(t, tag, got.Etag)
				require.True(t, fault.Has(again, fault.Changed), "a blind second try conflicts with the first one")
				return
			}
			require.Nil(t, got.State, "the caller cannot tell the two apart, only a read can")
			require.NoError(t, again)
		})
	}
}

func TestAReadIsRepeatedAfterACut(t *testing.T) {
	t.Parallel()
	server, c := start(t)
	submitted(t, c, "a")
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpRead, Times: 1, Cut: cosmosdb.After})
	_, err := c.Read(t.Context(), "a")
	require.NoError(t, err)
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpQuery, Times: 1, Cut: cosmosdb.After})
	docs, err := c.ReadMany(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, docs, 1)
}

func TestACancelledRecordMayHaveBeenApplied(t *testing.T) {
	t.Parallel()
	server, c := start(t)
	tag := submitted(t, c, "a")
	fail(t, server, cosmosdb.Rule{ID: "hold", Op: cosmosdb.OpPatch, Hold: cosmosdb.After})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := c.Record(ctx, at("a", tag), invoice.State{Status: invoice.Committed})
		result <- err
	}()
	require.Eventually(t, func() bool { return server.Server.Faults()[0].Held == 1 }, time.Minute, time.Millisecond)
	cancel()
	err := <-result
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, "cancelled", fault.CodeOf(err))
	server.Server.ClearFaults()
	doc, err := c.Read(t.Context(), "a")
	require.NoError(t, err)
	require.Contains(t, string(doc), `"committed"`)
}

func TestAMissingContainerBlamesNoDocument(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	for name, o := range map[string]cosmos.Options{
		"container": {Connection: server.ConnectionString, Database: database, Container: "nowhere"},
		"database":  {Connection: server.ConnectionString, Database: "nowhere", Container: container},
	} {
		c, err := cosmos.Open(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		_, readErr := c.Read(t.Context(), "a")
		_, recordErr := c.Record(t.Context(), at("a", `"1"`), invoice.State{})
		_, manyErr := c.ReadMany(t.Context(), []string{"a"})
		for op, err := range map[string]error{
			"ping": c.Ping(t.Context()), "read": readErr, "record": recordErr, "read many": manyErr,
			"submit": c.Submit(t.Context(), json.RawMessage(`{"id":"a"}`), false),
		} {
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s without its %s: %v", op, name, err)
			require.False(t, fault.Has(err, fault.Gone))
		}
	}
}

func TestAWrongKeyIsInfrastructureAndNotShown(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	const wrong = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkhIQ=="
	c, err := cosmos.Open(
		cosmos.Options{
			Connection: "AccountEndpoint=" + server.URL + ";AccountKey=" + wrong,
			Database:   database, Container: container,
		})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	err = c.Ping(t.Context())
	require.Equal(t, "401", fault.CodeOf(err), "%v", err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.NotContains(t, fmt.Sprintf("%+v", err), wrong[:12])
}

func TestCreator(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	conformance.TestCreator(t, c)
}

func TestATimeToLiveIsFound(t *testing.T) {
	t.Parallel()
	server, results := start(t)
	server.Leases(t, database, "leases")
	leases, err := cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: database, Container: "leases"})
	require.NoError(t, err)
	t.Cleanup(leases.Close)
	set, err := leases.HasTimeToLive(t.Context())
	require.NoError(t, err)
	require.True(t, set)
	set, err = results.HasTimeToLive(t.Context())
	require.NoError(t, err)
	require.False(t, set, "a result with a member ttl must not expire")

	missing, err := cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: database, Container: "missing"})
	require.NoError(t, err)
	t.Cleanup(missing.Close)
	_, err = missing.HasTimeToLive(t.Context())
	require.Equal(t, "404", fault.CodeOf(err), "%v", err)
}

func TestAQueryThatTheGatewayRefusesBlamesNoDocument(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, query := range []string{
		"SELECT * FROM c ORDER BY c._ts", "SELECT TOP 1 * FROM c", "SELECT VALUE COUNT(1) FROM c",
		"SELECT * FROM c WHERE",
	} {
		err := c.Query(t.Context(), query, nil, func([]json.RawMessage) (bool, error) { return true, nil })
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s: %v", query, err)
	}
}

// submitted writes a document and gives its etag.
func submitted(t *testing.T, c *cosmos.Container, id string) string {
	t.Helper()
	require.NoError(t, c.Submit(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q}`, id)), false))
	doc, err := c.Read(t.Context(), id)
	require.NoError(t, err)
	var got struct {
		Etag string `json:"_etag"`
	}
	require.NoError(t, json.Unmarshal(doc, &got))
	return got.Etag
}

func fail(t *testing.T, server *cosmosdbtest.Running, rule cosmosdb.Rule) {
	t.Helper()
	_, err := server.Server.AddFault(rule)
	require.NoError(t, err)
}

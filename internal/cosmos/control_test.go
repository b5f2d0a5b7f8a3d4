package cosmos_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

const controlContainer = "sqlwriter-control"

// openControl opens the emulator's control container again, as another instance does.
func openControl(t *testing.T, server *cosmosdbtest.Running) *cosmos.Container {
	t.Helper()
	c, err := cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: database, Container: controlContainer})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// startControl starts an emulator with a control container.
func startControl(t *testing.T) (*cosmosdbtest.Running, *cosmos.Container) {
	t.Helper()
	server, _ := start(t)
	server.Container(t, database, controlContainer, "/id")
	server.Server.ResetStats()
	return server, openControl(t, server)
}

func TestControlStore(t *testing.T) {
	t.Parallel()
	conformance.TestControlStore(t, func(t *testing.T) conformance.ControlHarness {
		server, c := startControl(t)
		return conformance.ControlHarness{
			Control: cosmos.NewControl(c, "web"), Another: cosmos.NewControl(openControl(t, server), "web"),
		}
	})
}

func TestCountsStore(t *testing.T) {
	t.Parallel()
	conformance.TestCountsStore(t, func(t *testing.T) conformance.CountsHarness {
		server, c := startControl(t)
		return conformance.CountsHarness{
			Counts: cosmos.NewCounts(c, "web", false), Another: cosmos.NewCounts(openControl(t, server), "web", false),
		}
	})
}

func TestCountsStoreOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestCountsStore(t, func(t *testing.T) conformance.CountsHarness {
		c := onRealAccount(t)
		return conformance.CountsHarness{
			Counts: cosmos.NewCounts(c, "web", false), Another: cosmos.NewCounts(c, "web", false),
		}
	})
}

// The timer of a shadow, or of another environment, must not hide that this one is silent.
func TestEachTimerHasItsCounts(t *testing.T) {
	t.Parallel()
	_, c := startControl(t)
	require.NoError(t, cosmos.NewCounts(c, "web", true).StoreCounts(t.Context(), ops.Saved{Counts: ops.Counts{Due: 1}}))
	require.NoError(t,
		cosmos.NewCounts(c, "dev", false).StoreCounts(t.Context(), ops.Saved{Counts: ops.Counts{Due: 2}}))
	found, err := cosmos.NewCounts(c, "web", false).LoadCounts(t.Context())
	require.NoError(t, err)
	require.Zero(t, found)
	require.NoError(t, c.Submit(t.Context(), json.RawMessage(`{"id":"status:web","at":"never"}`), false))
	_, err = cosmos.NewCounts(c, "web", false).LoadCounts(t.Context())
	require.Equal(t, "unreadable", fault.CodeOf(err))
}

func TestControlStoreOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestControlStore(t, func(t *testing.T) conformance.ControlHarness {
		c := onRealAccount(t)
		return conformance.ControlHarness{Control: cosmos.NewControl(c, "web"), Another: cosmos.NewControl(c, "web")}
	})
}

func TestEachEnvironmentHasItsControlDocument(t *testing.T) {
	t.Parallel()
	_, c := startControl(t)
	for _, name := range []string{"web", "dev"} {
		_, err := cosmos.NewControl(c, name).Store(t.Context(), breaker.Control{AppVersion: name}, "")
		require.NoError(t, err)
		doc, err := c.Read(t.Context(), "breaker:"+name)
		require.NoError(t, err)
		require.Contains(t, string(doc), `"app_version":"`+name+`"`)
	}
}

func TestAMissingControlContainerIsNoEmptyControl(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	for name, o := range map[string]cosmos.Options{
		"container": {Connection: server.ConnectionString, Database: database, Container: controlContainer},
		"database":  {Connection: server.ConnectionString, Database: "nowhere", Container: controlContainer},
	} {
		c, err := cosmos.Open(o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		control := cosmos.NewControl(c, "web")
		_, _, loadErr := control.Load(t.Context())
		_, createErr := control.Store(t.Context(), breaker.Control{}, "")
		_, storeErr := control.Store(t.Context(), breaker.Control{}, `"1"`)
		for op, err := range map[string]error{"load": loadErr, "create": createErr, "store": storeErr} {
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s without its %s: %v", op, name, err)
			require.Equal(t, fault.NoCondition, fault.As(err).Condition)
		}
	}
}

func TestAControlDocumentThatCannotBeReadIsNoEmptyControl(t *testing.T) {
	t.Parallel()
	_, c := startControl(t)
	require.NoError(t, c.Submit(t.Context(), json.RawMessage(`{"id":"breaker:web","breaker":"shut"}`), false))
	_, _, err := cosmos.NewControl(c, "web").Load(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "unreadable", fault.CodeOf(err))
}

func TestADeletedControlDocumentIsChanged(t *testing.T) {
	t.Parallel()
	server, c := startControl(t)
	control := cosmos.NewControl(c, "web")
	tag, err := control.Store(t.Context(), breaker.Control{}, "")
	require.NoError(t, err)
	items, err := server.Client.NewContainer(database, controlContainer)
	require.NoError(t, err)
	_, err = items.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString("breaker:web"), "breaker:web", nil)
	require.NoError(t, err)
	_, err = control.Store(t.Context(), breaker.Control{}, tag)
	require.True(t, fault.Has(err, fault.Changed), "%v", err)
	_, tag, err = control.Load(t.Context())
	require.NoError(t, err)
	require.Empty(t, tag)
}

// The meaning of each answer for the control document; none may be a document's error.
func TestAnswersAboutTheControlDocument(t *testing.T) {
	t.Parallel()
	const changed, none = fault.Changed, fault.NoCondition
	for _, c := range []struct {
		status    int
		kind      fault.Kind
		condition fault.Condition
	}{
		{http.StatusTooManyRequests, fault.Throttled, none},
		{449, fault.Contention, changed},
		{http.StatusPreconditionFailed, fault.Contention, changed},
		{http.StatusServiceUnavailable, fault.Infrastructure, none},
		{http.StatusForbidden, fault.Infrastructure, none},
		{http.StatusBadRequest, fault.Infrastructure, none},
		{http.StatusRequestEntityTooLarge, fault.Infrastructure, none},
		{http.StatusConflict, fault.Infrastructure, none},
		{http.StatusTeapot, fault.Infrastructure, none},
	} {
		server, container := startControl(t)
		control := cosmos.NewControl(container, "web")
		tag, err := control.Store(t.Context(), breaker.Control{AppVersion: "before"}, "")
		require.NoError(t, err)
		fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpReplace, Status: c.status, RetryAfterMS: 1})
		_, err = control.Store(t.Context(), breaker.Control{AppVersion: "after"}, tag)
		require.Equal(t, c.kind, fault.KindOf(err), "store: %v", err)
		require.Equal(t, c.condition, fault.As(err).Condition, "store: %v", err)

		if c.condition == none {
			fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpRead, Status: c.status, RetryAfterMS: 1})
			_, _, err = control.Load(t.Context())
			require.Equal(t, c.kind, fault.KindOf(err), "load: %v", err)
			require.Equal(t, none, fault.As(err).Condition, "load: %v", err)
		}
		server.Server.ClearFaults()
		loaded, again, err := control.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, "before", loaded.AppVersion, "nothing was done")
		require.Equal(t, tag, again)
	}
}

func TestACutStoreIsInfrastructureAndSentOnce(t *testing.T) {
	t.Parallel()
	for _, op := range []cosmosdb.Op{cosmosdb.OpCreate, cosmosdb.OpReplace} {
		server, c := startControl(t)
		control := cosmos.NewControl(c, "web")
		tag := ""
		if op == cosmosdb.OpReplace {
			var err error
			tag, err = control.Store(t.Context(), breaker.Control{AppVersion: "before"}, "")
			require.NoError(t, err)
		}
		server.Server.ResetStats()
		fail(t, server, cosmosdb.Rule{Op: op, Times: 1, Cut: cosmosdb.After})
		_, err := control.Store(t.Context(), breaker.Control{AppVersion: "after"}, tag)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.Equal(t, 1, server.Server.Count(op, controlContainer), "never sent twice")
		loaded, next, err := control.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, "after", loaded.AppVersion, "the write was applied")
		_, err = control.Store(t.Context(), loaded, next)
		require.NoError(t, err)
	}
}

package funchost

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// onEmulator points a host's connection at the Cosmos emulator.
func onEmulator(account *cosmosdbtest.Running) func(*Host, *Options) {
	return with(func(o *Options) { o.Settings["COSMOS"] = account.ConnectionString })
}

func create(t *testing.T, c *azcosmos.ContainerClient, id, text string) {
	t.Helper()
	_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(id), []byte(text), nil)
	require.NoError(t, err)
}

// The whole path on real wires: SDK, change feed, leases as documents.
func TestCosmosTriggerOverTheWire(t *testing.T) {
	account := cosmosdbtest.Start(t)
	docs := account.Container(t, "db", "docs", "/id")
	leases := account.Container(t, "db", "leases", "/id")
	for i := range 20 {
		id := strconv.Itoa(i)
		create(t, docs, id, `{"id":"`+id+`","at":"2025-12-17T10:30:01.1000000Z","n":9007199254740993}`)
	}
	r := newRoot(t).function("F", cosmosFn(`,"maxItemsPerInvocation":3`, ""))
	b := start(t, r, onEmulator(account))
	seen := func(b *bench) map[string]int {
		got := map[string]int{}
		for _, c := range b.control.seen() {
			text := c.documents(t)
			for i := range 40 {
				id := `"id":"` + strconv.Itoa(i) + `","at":"2025-12-17T10:30:01.1Z","n":9007199254740993`
				got[strconv.Itoa(i)] += strings.Count(text, id)
			}
		}
		return got
	}
	checkpointed := 0 // a batch that is seen but not checkpointed would come again
	_, err := b.WaitEvent(t.Context(), 0, func(e Event) bool {
		if e.Kind == Checkpoint {
			checkpointed += e.Items
		}
		return checkpointed == 20
	})
	require.NoError(t, err)
	require.Len(t, nonZero(seen(b)), 20)
	for id, n := range seen(b) {
		require.LessOrEqual(t, n, 1, id)
	}
	requireLeases(t, leases, b.await(LeaseAcquired).Owner)
	require.NoError(t, b.Stop())

	// The next host goes on where this one stopped.
	create(t, docs, "30", `{"id":"30","at":"2025-12-17T10:30:01.1000000Z","n":9007199254740993}`)
	next := start(t, r, onEmulator(account))
	next.await(Checkpoint)
	require.Equal(t, map[string]int{"30": 1}, nonZero(seen(next)))
	require.Zero(t, next.count(LeaseCreated))
}

var leaseName = regexp.MustCompile(`^p-127\.0\.0\.1_[\w=+-]+_[\w=+-]+$`)

// requireLeases compares the lease container with what was seen at the real host (docs/facts.md F44).
func requireLeases(t *testing.T, leases *azcosmos.ContainerClient, owner string) {
	t.Helper()
	prefix, tokens := "", []string{}
	pager := leases.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			var l map[string]any
			require.NoError(t, json.Unmarshal(item, &l))
			id, _ := l["id"].(string)
			if name, is := strings.CutSuffix(id, ".info"); is {
				prefix = name
				continue
			}
			token, _ := l["LeaseToken"].(string)
			tokens = append(tokens, token)
			require.Equal(t, id, strings.TrimSuffix(id, ".."+token)+".."+token)
			require.Regexp(t, `^"\d+"$`, l["ContinuationToken"], "the etag of the feed as it came")
			require.Equal(t, owner, l["Owner"])
			require.Equal(t, 0.0, l["version"])
			require.Equal(t, "Incremental Feed", l["Mode"])
			require.Equal(t, map[string]any{}, l["properties"])
			require.Contains(t, l["FeedRange"].(map[string]any)["Range"], "min")
			require.Contains(t, l, "timestamp")
		}
	}
	require.Regexp(t, leaseName, prefix, "and no lock is left")
	require.ElementsMatch(t, []string{"0", "1"}, tokens)
}

func nonZero(m map[string]int) map[string]int {
	out := map[string]int{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

// What a host read of a lease is good for one change, also on the wire.
func TestOfTwoChangesToOneLeaseOverTheWireOneIsRefused(t *testing.T) {
	account := cosmosdbtest.Start(t)
	account.Container(t, "db", "docs", "/id")
	account.Leases(t, "db", "leases")
	_, store, err := openCosmos(t.Context(), triggerOf(account))
	require.NoError(t, err)
	t.Cleanup(store.close)
	require.NoError(t, store.create(t.Context(), newLease("p-", keyRange{ID: "0"}, nil, time.Now())))
	read, err := store.read(t.Context(), leaseID("p-", "0"))
	require.NoError(t, err)
	changed, err := store.replace(t.Context(), read)
	require.NoError(t, err)
	_, err = store.replace(t.Context(), read)
	require.ErrorIs(t, err, errLeaseMoved)
	_, err = store.replace(t.Context(), changed)
	require.NoError(t, err)
}

func TestMissingContainersKeepTheListenerFromStarting(t *testing.T) {
	account := cosmosdbtest.Start(t)
	account.Container(t, "db", "docs", "/id")
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), onEmulator(account))
	e := b.await(ListenerFailed)
	require.ErrorContains(t, e.Err, "the lease container 'leases' (in database 'db') does not exist")
	require.Equal(t, http.StatusNotFound, status(e.Err))
	require.Zero(t, b.count(LeaseCreated))
}

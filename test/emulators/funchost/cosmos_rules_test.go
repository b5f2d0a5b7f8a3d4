package funchost

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// What the change feed processor does beside reading (docs/facts.md F40, F45, F44).

// deep is a document of n levels.
func deep(n int) string {
	return `{"id":"deep","x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
}

func TestLevels(t *testing.T) {
	for document, want := range map[string]int{
		`1`: 0, `{}`: 1, `{"a":[{}],"b":{}}`: 3, `{"a":"[[[\"[["}`: 1, deep(64): 64,
	} {
		require.Equal(t, want, levels([]byte(document)), document)
	}
}

// lockedBuffer is a log that a test may read while the host writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTheFirstStartOnAPrefixHoldsALock(t *testing.T) {
	store := newFakeCosmos(2)
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), store.uses())
	b.awaitN(LeaseAcquired, 2)
	require.Equal(t, []string{".lock 30", ".info 0"}, store.marked)
	require.Equal(t, map[string]int{leasePrefix + ".info": 0}, store.marks, "the lock is gone")
	require.NoError(t, b.Stop())

	store.in = append(store.in, keyRange{ID: "2", Min: "02", Max: "03"})
	next := start(t, newRoot(t).function("F", cosmosFn("", "")), store.uses())
	next.awaitN(LeaseAcquired, 2)
	require.Len(t, store.marked, 2, "a later start takes no lock")
	require.Zero(t, next.count(LeaseCreated), "and looks for no missing lease")
}

// A host that was killed while it held the lock leaves it behind.
func TestALockLeftBehindHangsEveryLaterStartWithoutALine(t *testing.T) {
	for ttl, starts := range map[int32]bool{-1: true, 0: false} {
		clock := newFakeClock()
		account := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Now = clock.Now })
		account.Container(t, "db", "docs", "/id")
		account.Container(t, "db", "leases", "/id", func(p *azcosmos.ContainerProperties) {
			if ttl != 0 {
				p.DefaultTimeToLive = to.Ptr(ttl)
			}
		})
		var log lockedBuffer
		b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), newControl(t), clock, onEmulator(account),
			with(func(o *Options) { o.Log = zerolog.New(&log) }))
		feed, store, err := openCosmos(t.Context(), triggerOf(account))
		require.NoError(t, err)
		t.Cleanup(store.close)
		require.NoError(t, store.mark(t.Context(), "p-"+feed.name()+".lock", int(lockTime.Seconds())))
		b.run()
		for range 2 { // 30 s
			require.Equal(t, []time.Duration{15 * time.Second}, clock.wait(t, waitLeaseLock, 1))
			require.Zero(t, b.count(ListenerStarted)+b.count(ListenerFailed))
			clock.advance(15 * time.Second)
		}
		if starts {
			b.awaitN(LeaseAcquired, 2)
			continue
		}
		for range 10 {
			clock.wait(t, waitLeaseLock, 1)
			clock.advance(15 * time.Second)
		}
		clock.wait(t, waitLeaseLock, 1)
		require.Zero(t, b.count(ListenerStarted)+b.count(ListenerFailed)+b.count(LeaseCreated))
		require.NotContains(t, strings.ToLower(log.String()), "lock")
		require.NotContains(t, log.String(), "lease")
	}
}

func triggerOf(account *cosmosdbtest.Running) *cosmosTrigger {
	c, err := parseCosmosConnection("COSMOS", map[string]string{"COSMOS": account.ConnectionString})
	if err != nil {
		panic(err)
	}
	return &cosmosTrigger{connection: c, database: "db", container: "docs", leases: "leases"}
}

func TestASplitOverTheWire(t *testing.T) {
	account := cosmosdbtest.Start(t)
	server, is := any(account.Server).(interface {
		Split(database, container, rangeID string) ([]string, error)
	})
	if !is {
		t.Skip("the Cosmos emulator has no splits yet")
	}
	docs := account.Container(t, "db", "docs", "/id")
	account.Container(t, "db", "leases", "/id")
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), onEmulator(account),
		with(func(o *Options) { o.Clock = systemClock{}; o.Tune.FeedPoll = 1e7 }))
	b.awaitN(LeaseAcquired, 2)
	for i := range 60 {
		if i == 20 || i == 40 {
			for _, r := range map[int][]string{20: {"0"}, 40: {"1"}}[i] {
				_, err := server.Split("db", "docs", r)
				require.NoError(t, err)
			}
		}
		create(t, docs, itoa(i), `{"id":"`+itoa(i)+`"}`)
	}
	seen := func() map[string]int {
		out := map[string]int{}
		for _, c := range b.control.seen() {
			for i := range 60 {
				if n := strings.Count(c.documents(t), `"id":"`+itoa(i)+`"`); n > 0 {
					out[itoa(i)] += n
				}
			}
		}
		return out
	}
	require.Eventually(t, func() bool {
		return len(seen()) == 60 && b.count(LeaseDeleted) == 2
	}, patience, 10*time.Millisecond)
	for id, n := range seen() {
		require.Equal(t, 1, n, id)
	}
	require.Zero(t, b.count(FeedError))
}

// One error of the feed ends the reading of a range until the next acquire interval; 429 is waited for inside.
func TestTheFeedClientRepeatsTooManyRequestsOnly(t *testing.T) {
	account := cosmosdbtest.Start(t)
	account.Container(t, "db", "docs", "/id")
	account.Container(t, "db", "leases", "/id")
	feed, store, err := openCosmos(t.Context(), triggerOf(account))
	require.NoError(t, err)
	t.Cleanup(store.close)
	read := func(status, times int) error {
		_, err := account.Server.AddFault(
			cosmosdb.Rule{Op: cosmosdb.OpFeed, Status: status, Times: times, RetryAfterMS: 1})
		require.NoError(t, err)
		defer account.Server.ClearFaults()
		page, err := feed.page(t.Context(), position{rangeID: "0"})
		if err == nil {
			require.NotEmpty(t, page.continuation)
		}
		return err
	}
	require.NoError(t, read(429, 9))
	for status, times := range map[int]int{429: 10, 503: 1, 500: 1, 408: 1, 404: 1} {
		var answer *feedStatus
		require.ErrorAs(t, read(status, times), &answer)
		require.Equal(t, status, answer.status)
	}
	_, err = feed.page(t.Context(), position{rangeID: "9"})
	require.ErrorIs(t, err, errRangeGone)
}

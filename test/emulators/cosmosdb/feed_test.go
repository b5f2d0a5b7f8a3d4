package cosmosdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// change is what the tests look at in a document of the feed.
type change struct {
	ID  string `json:"id"`
	N   int    `json:"n"`
	LSN int64  `json:"_lsn"`
}

// follow reads one feed range until there is nothing new and gives the continuation to go on from.
func follow(
	t *testing.T, c *azcosmos.ContainerClient, opts azcosmos.ChangeFeedOptions,
) (out []change, continuation string) {
	t.Helper()
	for reads := 0; ; reads++ {
		require.Less(t, reads, 10_000, "the feed never ends")
		resp, err := c.ReadChangeFeed(context.Background(), &opts)
		require.NoError(t, err)
		continuation = resp.ContinuationToken
		if len(resp.Items) == 0 {
			return out, continuation
		}
		for _, it := range resp.Items {
			var d change
			require.NoError(t, json.Unmarshal(it, &d))
			out = append(out, d)
		}
		opts.Continuation = &continuation
	}
}

func feedRanges(t *testing.T, c *azcosmos.ContainerClient) []azcosmos.FeedRange {
	t.Helper()
	ranges, err := c.ReadFeedRanges(context.Background(), nil)
	require.NoError(t, err)
	return ranges
}

func TestFeedRangesDivideTheDocuments(t *testing.T) {
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 3 })
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 90, 30)
	ranges := feedRanges(t, c)
	require.Len(t, ranges, 3)
	require.Empty(t, ranges[0].MinInclusive)
	require.Equal(t, "FF", ranges[2].MaxExclusive)
	seen := map[string]int{}
	for _, r := range ranges {
		got, _ := follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 4})
		require.NotEmpty(t, got, "every range has its share")
		require.Less(t, len(got), 90)
		last := int64(0)
		for _, d := range got {
			require.Greater(t, d.LSN, last, "in LSN order")
			last = d.LSN
			seen[d.ID]++
		}
	}
	require.Len(t, seen, 90)
}

func TestFeedCoalescesAndOrders(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 1 }).Container(t, "db", "logs", "/pk")
	whole := feedRanges(t, c)[0]
	seed(t, c, 5, 1)
	set := func(id string, n int) {
		_, err := c.UpsertItem(ctx, pk("p0"), fmt.Appendf(nil, `{"id":"%s","pk":"p0","n":%d}`, id, n), nil)
		require.NoError(t, err)
	}
	got, token := follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	require.Len(t, got, 5)

	set("0001", 101)
	set("0003", 103)
	set("0001", 201)
	_, err := c.DeleteItem(ctx, pk("p0"), "0002", nil)
	require.NoError(t, err)
	got, token = follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
	require.Len(t, got, 2, "one entry per document, its latest version, and no deletion")
	require.Equal(t, "0003", got[0].ID)
	require.Equal(t, 103, got[0].N)
	require.Equal(t, "0001", got[1].ID)
	require.Equal(t, 201, got[1].N)

	got, token = follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
	require.Empty(t, got, "304 until something changes")
	set("0004", 104)
	got, _ = follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
	require.Len(t, got, 1)

	got, _ = follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	require.Equal(t, []string{"0000", "0003", "0001", "0004"}, []string{got[0].ID, got[1].ID, got[2].ID, got[3].ID})
}

func TestFeedOverManyRewritesStaysComplete(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	seed(t, c, 20, 20)
	for round := range 30 { // 600 writes of 20 documents: stale entries are tidied away in between
		for i := range 20 {
			_, err := c.UpsertItem(ctx, pk(fmt.Sprintf("p%d", i)),
				fmt.Appendf(nil, `{"id":"%04d","pk":"p%d","n":%d}`, i, i, round), nil)
			require.NoError(t, err)
		}
	}
	n := 0
	for _, r := range feedRanges(t, c) {
		got, _ := follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 3})
		for _, d := range got {
			require.Equal(t, 29, d.N)
		}
		n += len(got)
	}
	require.Equal(t, 20, n)
}

func TestFeedNeverDividesABatch(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	batch := c.NewTransactionalBatch(pk("p"))
	for i := range 10 {
		batch.CreateItem(fmt.Appendf(nil, `{"id":"%d","pk":"p","n":%d}`, i, i), nil)
	}
	_, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	for _, r := range feedRanges(t, c) {
		resp, err := c.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 3})
		require.NoError(t, err)
		require.Contains(t, []int{0, 10}, len(resp.Items))
	}
}

func TestFeedStartTimeAndRESTHeaders(t *testing.T) {
	ctx := context.Background()
	var clock atomic.Int64
	clock.Store(1_766_000_000)
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) {
		o.Ranges = 1
		o.Now = func() time.Time { return time.Unix(clock.Load(), 0) }
	})
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 3, 1)
	clock.Add(100)
	_, err := c.CreateItem(ctx, pk("p"), []byte(`{"id":"late","pk":"p"}`), nil)
	require.NoError(t, err)
	from := time.Unix(1_766_000_050, 0)
	got, token := follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &feedRanges(t, c)[0], StartFrom: &from})
	require.Len(t, got, 1)
	require.Equal(t, "late", got[0].ID)
	got, _ = follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &token, StartFrom: &from})
	require.Empty(t, got)

	read := func(headers map[string]string) (int, http.Header, int) {
		h := map[string]string{"A-IM": "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": "0"}
		for n, v := range headers {
			h[n] = v
		}
		code, header, body := onDocs("GET", h, "").do(t, run)
		documents, _ := body["Documents"].([]any)
		return code, header, len(documents)
	}
	code, header, n := read(nil)
	require.Equal(t, 200, code)
	require.Equal(t, 4, n)
	etag := header.Get("Etag")
	require.Equal(t, `"4"`, etag)
	code, header, _ = read(
		map[string]string{"If-None-Match": etag, "x-ms-documentdb-partitionkeyrangeid": containerRID(t, run) + ",0"})
	require.Equal(t, 304, code)
	require.Equal(t, "0", header.Get("x-ms-item-count"), "the .NET SDK reads it, also where there is no body")
	require.Equal(t, etag, header.Get("Etag"))
	code, header, n = read(map[string]string{"x-ms-max-item-count": "3"})
	require.Equal(t, 200, code)
	require.Equal(t, 3, n)
	require.Equal(t, `"3"`, header.Get("Etag"))
	code, header, _ = read(map[string]string{"If-None-Match": "*"})
	require.Equal(t, 304, code, "* begins now")
	require.Equal(t, `"4"`, header.Get("Etag"))
	for name, tc := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"no such range":         {map[string]string{"x-ms-documentdb-partitionkeyrangeid": "7"}, 410},
		"of another container":  {map[string]string{"x-ms-documentdb-partitionkeyrangeid": "AAAAAAAAAAA=,0"}, 410},
		"continuation not ours": {map[string]string{"If-None-Match": "garbage"}, 400},
		"not a date":            {map[string]string{"If-Modified-Since": "yesterday"}, 400},
		"all versions mode":     {map[string]string{"A-IM": "Full-Fidelity Feed"}, 400},
		"limited by epk":        {map[string]string{"x-ms-start-epk": "", "x-ms-end-epk": "00"}, 304},
	} {
		code, _, _ := read(tc.headers)
		require.Equal(t, tc.want, code, name)
	}
	code, _, _ = onDocs("GET", map[string]string{"A-IM": "Incremental feed"}, "").do(t, cosmosdbtestTwoRanges(t))
	require.Equal(t, 400, code, "a feed over several ranges")
}

// The Java SDK's processor asks for the metadata beside the document.
func TestFeedWithMetadataBesideTheDocument(t *testing.T) {
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 1 })
	run.Container(t, "db", "logs", "/id")
	code, _, created := onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `["1"]`},
		`{"id":"1","n":7}`).do(t, run)
	require.Equal(t, 201, code)
	feed := feedOf("0", "")
	feed.headers["x-ms-cosmos-changefeed-wire-format-version"] = "2021-09-15"
	code, _, body := feed.do(t, run)
	require.Equal(t, 200, code)
	require.Equal(t,
		[]any{
			map[string]any{"current": created, "metadata": map[string]any{"lsn": 1.0, "crts": created["_ts"]}},
		}, body["Documents"])
	feed.headers["x-ms-cosmos-changefeed-wire-format-version"] = "1999-01-01"
	code, _, body = feed.do(t, run)
	require.Equal(t, 400, code)
	require.Contains(t, body["message"], "not implemented by this emulator")
}

// containerRID is the resource id of db/logs.
func containerRID(t *testing.T, run *cosmosdbtest.Running) string {
	t.Helper()
	_, _, body := rest{
		method: "GET", path: "/dbs/db/colls/logs", resourceType: "colls", link: "dbs/db/colls/logs",
	}.do(t, run)
	rid, _ := body["_rid"].(string)
	require.NotEmpty(t, rid)
	return rid
}

// cosmosdbtestTwoRanges is another account whose db/logs has two ranges.
func cosmosdbtestTwoRanges(t *testing.T) *cosmosdbtest.Running {
	t.Helper()
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/pk")
	return run
}

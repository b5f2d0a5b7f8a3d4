package cosmosdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

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

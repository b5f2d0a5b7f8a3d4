package cosmosdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// TestSDKRoundTrip goes once through everything the writer uses, with the real SDK.
func TestSDKRoundTrip(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 4 })
	c := run.Container(t, "db", "logs", "/id")
	var ids []azcosmos.ItemIdentity
	for i := range 200 {
		id := fmt.Sprintf("2025-12-17 10:30:15.%06d-06:00", i)
		pk := azcosmos.NewPartitionKeyString(id)
		resp, err := c.CreateItem(ctx, pk,
			[]byte(fmt.Sprintf(`{"id":%q,"n":%d,"sql_writer":{"status":"pending"}}`, id, i)), nil)
		require.NoError(t, err)
		require.NotEmpty(t, resp.ETag)
		ids = append(ids, azcosmos.ItemIdentity{ID: id, PartitionKey: pk})
	}
	var ops azcosmos.PatchOperations
	ops.AppendSet("/sql_writer", map[string]any{"status": "committed"})
	_, err := c.PatchItem(ctx, ids[0].PartitionKey, ids[0].ID, ops, nil)
	require.NoError(t, err)
	many, err := c.ReadManyItems(ctx, ids, nil)
	require.NoError(t, err)
	require.Len(t, many.Items, 200)

	pager := c.NewQueryItemsPager("SELECT * FROM c WHERE c.sql_writer.status = @s",
		azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{
			QueryParameters: []azcosmos.QueryParameter{{Name: "@s", Value: "pending"}}, PageSizeHint: 7,
		})
	n, pages := 0, 0
	for pager.More() {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		n += len(page.Items)
		pages++
	}
	require.Equal(t, 199, n)
	t.Log("pages", pages)

	ranges, err := c.ReadFeedRanges(ctx, nil)
	require.NoError(t, err)
	require.Len(t, ranges, 4)
	seen := map[string]bool{}
	for _, r := range ranges {
		opts := &azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 10}
		for {
			resp, err := c.ReadChangeFeed(ctx, opts)
			require.NoError(t, err)
			if len(resp.Items) == 0 {
				break
			}
			for _, it := range resp.Items {
				var d struct{ ID string }
				require.NoError(t, json.Unmarshal(it, &d))
				require.False(t, seen[d.ID])
				seen[d.ID] = true
			}
			opts.Continuation = &resp.ContinuationToken
		}
	}
	require.Len(t, seen, 200)
	etag := azcore.ETag("*")
	_, err = c.DeleteItem(ctx, ids[0].PartitionKey, ids[0].ID, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	require.NoError(t, err)
	th, err := c.ReadThroughput(ctx, nil)
	require.NoError(t, err)
	v, _ := th.ThroughputProperties.ManualThroughput()
	require.EqualValues(t, 400, v)
	_, err = c.Delete(ctx, nil)
	require.NoError(t, err)
	for _, s := range run.Server.Stats() {
		t.Logf("%+v", s)
	}
}

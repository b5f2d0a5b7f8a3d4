package cosmosdb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// pkRanges reads the ranges of db/logs; with an etag those made since.
func pkRanges(t *testing.T, run *cosmosdbtest.Running, etag string) (parents map[string][]any, code int, next string) {
	t.Helper()
	r := rest{
		method: "GET", path: "/dbs/db/colls/logs/pkranges", resourceType: "pkranges", link: "dbs/db/colls/logs",
		headers: map[string]string{"A-IM": "Incremental feed"},
	}
	if etag != "" {
		r.headers["If-None-Match"] = etag
	}
	code, header, body := r.do(t, run)
	parents = map[string][]any{}
	list, _ := body["PartitionKeyRanges"].([]any)
	for _, e := range list {
		entry, _ := e.(map[string]any)
		id, _ := entry["id"].(string)
		parents[id], _ = entry["parents"].([]any)
	}
	return parents, code, header.Get("Etag")
}

func feedOf(rangeID, etag string) rest {
	h := map[string]string{"A-IM": "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": rangeID}
	if etag != "" {
		h["If-None-Match"] = etag
	}
	return onDocs("GET", h, "")
}

func TestSplitTheParentIsGoneAndTheChildrenNameIt(t *testing.T) {
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 40, 40)
	before, _, etag := pkRanges(t, run, "")
	require.Equal(t, map[string][]any{"0": {}, "1": {}}, before)
	_, code, same := pkRanges(t, run, etag)
	require.Equal(t, 304, code)
	require.Equal(t, etag, same)

	children, err := run.Server.Split("db", "logs", "0")
	require.NoError(t, err)
	require.Equal(t, []string{"2", "3"}, children)
	news, code, etag := pkRanges(t, run, etag)
	require.Equal(t, 200, code)
	require.Equal(t, map[string][]any{"2": {"0"}, "3": {"0"}}, news, "what is new since the etag")
	_, err = run.Server.Split("db", "logs", "3")
	require.NoError(t, err)
	news, _, _ = pkRanges(t, run, etag)
	require.Equal(t, map[string][]any{"4": {"0", "3"}, "5": {"0", "3"}}, news, "all ancestors")
	all, _, _ := pkRanges(t, run, "")
	require.Equal(t, map[string][]any{"1": {}, "2": {"0"}, "4": {"0", "3"}, "5": {"0", "3"}}, all)

	query := onDocs("POST", map[string]string{
		"x-ms-documentdb-isquery": "True", "x-ms-documentdb-partitionkeyrangeid": "0",
		"x-ms-documentdb-query-enablecrosspartition": "True",
	}, `{"query":"SELECT * FROM c"}`)
	for name, r := range map[string]rest{
		"feed": feedOf("0", ""), "feed of a child that was split": feedOf("3", ""), "query": query,
	} {
		code, header, _ := r.do(t, run)
		require.Equal(t, 410, code, name)
		require.Equal(t, "1002", header.Get("x-ms-substatus"), name)
	}
	require.Len(t, allDocuments(t, c), 40)
	for i := range 40 {
		key := fmt.Sprintf("p%d", i)
		got, _, err := rows(context.Background(), c, "SELECT VALUE c.pk FROM c", pk(key), nil)
		require.NoError(t, err)
		require.Equal(t, []string{`"` + key + `"`}, got, "each document is where its hash says")
	}
	ranges := feedRanges(t, c)
	for i, r := range ranges[1:] {
		require.Equal(t, ranges[i].MaxExclusive, r.MinInclusive, "without a gap")
	}
}

// Every write is delivered once in its last version, whether the client knew of the split or learns of it from 410.
func TestSplitContinuationsOfTheParentGoOnInTheChildren(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 1 })
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 60, 60)
	whole := feedRanges(t, c)[0]
	first, err := c.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &whole, MaxItemCount: 25})
	require.NoError(t, err)
	require.Len(t, first.Items, 25)
	_, header, _ := feedOf("0", "").do(t, run)
	atSplit := header.Get("Etag")
	_, err = run.Server.Split("db", "logs", "0")
	require.NoError(t, err)

	got, token := follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &first.ContinuationToken, MaxItemCount: 10})
	got = append(got, drain(t, c, &token)...)
	require.Len(t, got, 35, "the rest of the parent, once")
	for i := range 60 {
		_, err := c.UpsertItem(ctx, pk(fmt.Sprintf("p%d", i)),
			fmt.Appendf(nil, `{"id":"%04d","pk":"p%d","n":%d}`, i, i, 1000+i), nil)
		require.NoError(t, err)
	}
	require.Len(t, drain(t, c, &token), 60)

	seen := 0
	for _, child := range []string{"1", "2"} {
		code, _, body := feedOf(child, atSplit).do(t, run)
		require.Equal(t, 200, code)
		documents, _ := body["Documents"].([]any)
		require.NotEmpty(t, documents, "both halves have documents")
		seen += len(documents)
	}
	require.Equal(t, 60, seen, "behind the parent's etag are the writes after it, and no other")
}

// drain follows a continuation over all of its ranges: a read that has nothing may have looked at one range only.
func drain(t *testing.T, c *azcosmos.ContainerClient, token *string) (out []change) {
	t.Helper()
	for quiet, reads := 0, 0; quiet < 4; reads++ {
		require.Less(t, reads, 1000, "the feed never ends")
		got, next := follow(t, c, azcosmos.ChangeFeedOptions{Continuation: token})
		out, *token = append(out, got...), next
		quiet++
		if len(got) > 0 {
			quiet = 0
		}
	}
	return out
}

func TestSplitAQueryGoesOnOverTheChildren(t *testing.T) {
	ctx := context.Background()
	for name, splits := range map[string][]string{
		"the range that is read": {"0"}, "the one behind it": {"1"}, "both, and a child again": {"0", "1", "2"},
	} {
		for page := range 7 {
			run := cosmosdbtest.Start(t)
			c := run.Container(t, "db", "logs", "/pk")
			seed(t, c, 60, 60)
			pager := c.NewQueryItemsPager("SELECT VALUE c.id FROM c", azcosmos.NewPartitionKey(),
				&azcosmos.QueryOptions{PageSizeHint: 9})
			seen := map[string]int{}
			for n := 0; pager.More(); n++ {
				require.Less(t, n, 100, "the pages never end")
				if n == page {
					for _, r := range splits {
						_, err := run.Server.Split("db", "logs", r)
						require.NoError(t, err)
					}
				}
				resp, err := pager.NextPage(ctx)
				require.NoError(t, err)
				for _, id := range resp.Items {
					seen[string(id)]++
				}
			}
			require.Len(t, seen, 60, "%s, before page %d", name, page)
			for id, times := range seen {
				require.Equal(t, 1, times, "%s, before page %d: %s", name, page, id)
			}
		}
	}
}

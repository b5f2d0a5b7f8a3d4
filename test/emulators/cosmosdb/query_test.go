package cosmosdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// seed makes n documents {"id":"0007","pk":"p1","n":7} in pks partition keys.
func seed(t testing.TB, c *azcosmos.ContainerClient, n, pks int) {
	t.Helper()
	for i := range n {
		key := fmt.Sprintf("p%d", i%pks)
		_, err := c.CreateItem(context.Background(), pk(key),
			fmt.Appendf(nil, `{"id":"%04d","pk":"%s","n":%d}`, i, key, i), nil)
		require.NoError(t, err)
	}
}

func TestQueryGatewayRefusals(t *testing.T) {
	ctx := context.Background()
	for _, ranges := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranges", ranges), func(t *testing.T) {
			c := cosmosdbtest.Start(t, func(o *cosmosdb.Options) {
				o.Ranges = ranges
			}).Container(t, "db", "logs", "/pk")
			seed(t, c, 10, 3)
			for query, want := range map[string]struct{ substatus, message string }{
				"SELECT * FROM c ORDER BY c.n": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT TOP 3 * FROM c": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT * FROM c OFFSET 1 LIMIT 2": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT DISTINCT c.pk FROM c": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT VALUE COUNT(1) FROM c": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT VALUE MAX(c.n) FROM c WHERE c.n > 1": {
					"1004", "can not be directly served by the gateway",
				},
				"SELECT COUNT(1) AS n FROM c": {
					"", "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates",
				},
				"SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk": {
					"", "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates",
				},
			} {
				_, _, err := rows(ctx, c, query, azcosmos.NewPartitionKey(), nil)
				got, sub := status(t, err)
				require.Equal(t, 400, got, query)
				require.Equal(t, want.substatus, sub, query)
				require.ErrorContains(t, err, want.message, query)
			}
			got, _, err := rows(ctx, c,
				`SELECT VALUE c.n FROM c WHERE c.id = "ORDER BY TOP DISTINCT COUNT(1)" OR c.n = 3`,
				azcosmos.NewPartitionKey(), nil)
			require.NoError(t, err, "words inside a literal are not a construct")
			require.Equal(t, []string{"3"}, got)
		})
	}
}

func TestQueryNeedsTheCrossPartitionHeader(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	seed(t, c, 4, 2)
	opts := &azcosmos.QueryOptions{EnableCrossPartitionQuery: to.Ptr(false)}
	_, _, err := rows(ctx, c, "SELECT * FROM c", azcosmos.NewPartitionKey(), opts)
	requireStatus(t, 400, err)
	require.ErrorContains(t, err, "Cross partition query is required but disabled")
	got, _, err := rows(ctx, c, "SELECT * FROM c", pk("p1"), opts)
	require.NoError(t, err)
	require.Len(t, got, 2)
}

func TestQueryEmptyPageFirstAndRangeWithoutMatch(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.EmptyPages = 0; o.Ranges = 8 })
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 40, 40)
	got, empty, err := rows(ctx, c, "SELECT VALUE c.n FROM c WHERE c.n = 17", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"17"}, got)
	require.GreaterOrEqual(t, empty, 6, "each range without a match is an empty page with a continuation")

	every := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.EmptyPages = 2 }).Container(t, "db", "logs", "/pk")
	seed(t, every, 4, 1)
	pager := every.NewQueryItemsPager("SELECT * FROM c", pk("p0"), nil)
	first, err := pager.NextPage(ctx)
	require.NoError(t, err)
	require.Empty(t, first.Items)
	require.NotNil(t, first.ContinuationToken)
	second, err := pager.NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, second.Items, 4)
}

func TestQueryContinuationIsChecked(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/pk")
	other := run.Container(t, "db", "other", "/pk")
	seed(t, c, 50, 5)
	const query = "SELECT * FROM c WHERE c.n >= 0"
	pager := c.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 3})
	var token *string
	n := 0
	for range 4 {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		token = page.ContinuationToken
		n += len(page.Items)
	}
	resume := func(c *azcosmos.ContainerClient, query, token string) (int, error) {
		got, _, err := rows(ctx, c, query, azcosmos.NewPartitionKey(),
			&azcosmos.QueryOptions{PageSizeHint: 3, ContinuationToken: &token})
		return len(got), err
	}
	rest, err := resume(c, query, *token)
	require.NoError(t, err, "a continuation works in a new pager")
	require.Equal(t, 50, n+rest)
	for _, bad := range []string{"garbage", "e30=", strings.Repeat("A", 40), (*token)[:len(*token)-5]} {
		_, err := resume(c, query, bad)
		requireStatus(t, 400, err)
		require.ErrorContains(t, err, "Invalid Continuation Token")
	}
	_, err = resume(c, "SELECT * FROM c", *token)
	requireStatus(t, 400, err)
	_, err = resume(other, query, *token)
	requireStatus(t, 400, err)
	for _, size := range []string{"abc", "-2", "1.5"} {
		got, _, _ := onDocs("POST", map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True",
			"x-ms-max-item-count": size,
		}, `{"query":"SELECT * FROM c"}`).do(t, run)
		require.Equal(t, 400, got, size)
	}
}

func TestQueryWhileDocumentsArePatched(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	seed(t, c, 200, 10)
	pager := c.NewQueryItemsPager("SELECT c.id, c.pk FROM c", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 20})
	seen := map[string]int{}
	for pager.More() {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		for _, it := range page.Items {
			var d struct{ ID, PK string }
			require.NoError(t, json.Unmarshal(it, &d))
			seen[d.ID]++
			var ops azcosmos.PatchOperations
			ops.AppendIncrement("/n", 1)
			_, err := c.PatchItem(ctx, pk(d.PK), d.ID, ops, nil)
			require.NoError(t, err)
		}
	}
	require.Len(t, seen, 200)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

func TestQueryPagesEndAt4MB(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.EmptyPages = 0 }).Container(t, "db", "logs", "/pk")
	for i := range 6 {
		_, err := c.CreateItem(ctx, pk("p"),
			fmt.Appendf(nil, `{"id":"%d","pk":"p","t":"%s"}`, i, strings.Repeat("x", 1_500_000)), nil)
		require.NoError(t, err)
	}
	pager := c.NewQueryItemsPager("SELECT * FROM c", pk("p"), nil)
	first, err := pager.NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, first.Items, 3)
	require.NotNil(t, first.ContinuationToken)
}

func TestQueryIsScopedToThePartitionKey(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/pk")
	seed(t, c, 30, 3)
	got, _, err := rows(ctx, c, "SELECT VALUE c.pk FROM c", pk("p2"), nil)
	require.NoError(t, err)
	require.Len(t, got, 10)
	require.Equal(t, []string{`"p2"`}, slices.Compact(got))
	got, _, err = rows(ctx, c, "SELECT * FROM c", pk("none"), nil)
	require.NoError(t, err)
	require.Empty(t, got)
	code, header, _ := onDocs("POST", map[string]string{
		"Content-Type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True",
		"x-ms-documentdb-partitionkeyrangeid": "9",
	}, `{"query":"SELECT * FROM c"}`).do(t, run)
	require.Equal(t, 410, code)
	require.Equal(t, "1002", header.Get("x-ms-substatus"))
}

func TestQueryHierarchicalPartitionKey(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/a", func(p *azcosmos.ContainerProperties) {
		p.PartitionKeyDefinition.Paths = []string{"/a", "/b"}
	})
	for i := range 20 {
		key := pk(fmt.Sprint("a", i%2)).AppendString(fmt.Sprint("b", i%5))
		_, err := c.CreateItem(ctx, key, fmt.Appendf(nil, `{"id":"%d","a":"a%d","b":"b%d"}`, i, i%2, i%5), nil)
		require.NoError(t, err)
	}
	got, _, err := rows(ctx, c, "SELECT * FROM c", pk("a1"), nil)
	require.NoError(t, err)
	require.Len(t, got, 10, "a prefix of the key")
	got, _, err = rows(ctx, c, "SELECT * FROM c", pk("a1").AppendString("b3"), nil)
	require.NoError(t, err)
	require.Len(t, got, 2)
}

// A limit that no continuation fits is refused, as the service does (docs/facts.md F109).
func TestQueryContinuationLimit(t *testing.T) {
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.EmptyPages = 0 })
	seed(t, run.Container(t, "db", "logs", "/pk"), 20, 20)
	for limit, want := range map[string]int{"": 200, "1": 200, "0": 400, "-1": 400, "x": 400} {
		code, header, _ := onDocs("POST", map[string]string{
			"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True",
			"x-ms-max-item-count":                                "1",
			"x-ms-documentdb-responsecontinuationtokenlimitinkb": limit,
		}, `{"query":"SELECT VALUE c.n FROM c"}`).do(t, run)
		require.Equal(t, want, code, limit)
		require.LessOrEqual(t, len(header.Get("x-ms-continuation")), 1024)
	}
}

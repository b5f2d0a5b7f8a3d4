package cosmosdb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// The figures are the vendor's and those of a recorded account (charge.go).
func TestRequestChargesAreNearTheService(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 1, 0 })
	c := run.Container(t, "db", "logs", "/id")
	for size, want := range map[int]float64{0: 1, 1000: 1, 10_000: 1.8, 102_000: 10} {
		id := fmt.Sprint("size ", size)
		_, err := c.CreateItem(ctx, pk(id), fmt.Appendf(nil, `{"id":%q,"big":%q}`, id, strings.Repeat("x", size)), nil)
		require.NoError(t, err)
		read, err := c.ReadItem(ctx, pk(id), id, nil)
		require.NoError(t, err)
		require.InDelta(t, want, read.RequestCharge, 0.1, "%d bytes", size)
	}
	small := run.Container(t, "db", "small", "/pk")
	seed(t, small, 1000, 1000)
	for size, want := range map[int32]float64{1000: 17.16, 500: 9.7} {
		p, err := small.NewQueryItemsPager("SELECT c.id FROM c", azcosmos.NewPartitionKey(),
			&azcosmos.QueryOptions{PageSizeHint: size}).NextPage(ctx)
		require.NoError(t, err)
		require.Len(t, p.Items, int(size))
		require.InDelta(t, want, p.RequestCharge, 0.2, "a page of %d", size)
	}
	p, err := c.NewQueryItemsPager("SELECT c.id FROM c WHERE c.id = 'size 10000'",
		azcosmos.NewPartitionKey(), nil).NextPage(ctx)
	require.NoError(t, err)
	require.InDelta(t, 3.19, p.RequestCharge, 0.1, "a document of 10 KB is loaded to give its id")
	none, err := c.NewQueryItemsPager("SELECT c.id FROM c WHERE c.id = 'none'",
		azcosmos.NewPartitionKey(), nil).NextPage(ctx)
	require.NoError(t, err)
	require.InDelta(t, 2.3, none.RequestCharge, 0.01)
}

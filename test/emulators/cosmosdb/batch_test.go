package cosmosdb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestTransactionalBatchIsAtomic(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	batch := c.NewTransactionalBatch(pk("p"))
	batch.CreateItem([]byte(`{"id":"1","pk":"p"}`), nil)
	batch.UpsertItem([]byte(`{"id":"2","pk":"p","n":1}`), nil)
	var ops azcosmos.PatchOperations
	ops.AppendIncrement("/n", 1)
	batch.PatchItem("2", ops, nil)
	batch.ReadItem("2", nil)
	resp, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Contains(t, string(resp.OperationResults[3].ResourceBody), `"n":2`)
	require.Equal(t, resp.OperationResults[2].ETag, resp.OperationResults[3].ETag)

	batch = c.NewTransactionalBatch(pk("p"))
	batch.CreateItem([]byte(`{"id":"3","pk":"p"}`), nil)
	batch.CreateItem([]byte(`{"id":"1","pk":"p"}`), nil)
	batch.DeleteItem("2", nil)
	resp, err = c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	require.False(t, resp.Success)
	require.EqualValues(t, []int32{424, 409, 424},
		[]int32{
			resp.OperationResults[0].StatusCode, resp.OperationResults[1].StatusCode,
			resp.OperationResults[2].StatusCode,
		})
	_, err = c.ReadItem(ctx, pk("p"), "3", nil)
	requireStatus(t, 404, err)
	_, err = c.ReadItem(ctx, pk("p"), "2", nil)
	require.NoError(t, err)

	batch = c.NewTransactionalBatch(pk("p"))
	batch.CreateItem([]byte(`{"id":"4","pk":"other"}`), nil)
	resp, err = c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	require.False(t, resp.Success)
	require.EqualValues(t, 400, resp.OperationResults[0].StatusCode)

	batch = c.NewTransactionalBatch(pk("p"))
	for i := range 101 {
		batch.UpsertItem(fmt.Appendf(nil, `{"id":"m%d","pk":"p"}`, i), nil)
	}
	_, err = c.ExecuteTransactionalBatch(ctx, batch, nil)
	requireStatus(t, 400, err)

	batch = c.NewTransactionalBatch(pk("p"))
	batch.DeleteItem("1", nil)
	batch.CreateItem([]byte(`{"id":"1","pk":"p","again":true}`), nil)
	resp, err = c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	require.True(t, resp.Success)
	read, err := c.ReadItem(ctx, pk("p"), "1", nil)
	require.NoError(t, err)
	require.Contains(t, string(read.Value), `"again":true`)
}

func TestTransactionalBatchKeepsTheOrderOfCreation(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/pk")
	batch := c.NewTransactionalBatch(pk("p"))
	for _, id := range []string{"a", "b", "c"} {
		batch.CreateItem([]byte(`{"id":"`+id+`","pk":"p"}`), nil)
	}
	var ops azcosmos.PatchOperations
	ops.AppendSet("/n", 1)
	batch.PatchItem("a", ops, nil)
	resp, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	require.True(t, resp.Success)
	got, _, err := rows(ctx, c, "SELECT VALUE c.id FROM c", pk("p"), &azcosmos.QueryOptions{PageSizeHint: 1})
	require.NoError(t, err)
	require.Equal(t, []string{`"a"`, `"b"`, `"c"`}, got)
}

package cosmosdb_test

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// allDocuments reads every document of a container as text.
func allDocuments(t *testing.T, c *azcosmos.ContainerClient) []string {
	t.Helper()
	got, _, err := rows(context.Background(), c, "SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	return got
}

func TestContainerRecreatedIsAnotherContainer(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/id")
	first, err := c.Read(ctx, nil)
	require.NoError(t, err)
	_, err = c.CreateItem(ctx, pk("1"), []byte(`{"id":"1"}`), nil)
	require.NoError(t, err)
	db, err := run.Client.NewDatabase("db")
	require.NoError(t, err)
	_, err = db.CreateContainer(ctx, *first.ContainerProperties, nil)
	requireStatus(t, 409, err)
	_, err = c.Delete(ctx, nil)
	require.NoError(t, err)
	c = run.Container(t, "db", "logs", "/id")
	second, err := c.Read(ctx, nil)
	require.NoError(t, err)
	require.NotEqual(t, first.ContainerProperties.ResourceID, second.ContainerProperties.ResourceID)
	require.Empty(t, allDocuments(t, c))
	props := *second.ContainerProperties
	props.DefaultTimeToLive = to.Ptr(int32(60))
	_, err = c.Replace(ctx, props, nil)
	require.NoError(t, err)
	props.PartitionKeyDefinition.Paths = []string{"/other"}
	_, err = c.Replace(ctx, props, nil)
	requireStatus(t, 400, err)
	_, err = db.Delete(ctx, nil)
	require.NoError(t, err)
	_, err = c.Read(ctx, nil)
	requireStatus(t, 404, err)
}

package cosmosdb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// allDocuments reads every document of a container as text.
func allDocuments(t *testing.T, c *azcosmos.ContainerClient) []string {
	t.Helper()
	got, _, err := rows(context.Background(), c, "SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	return got
}

func TestJournalKeepsEveryAcknowledgedWriteAfterAKill(t *testing.T) {
	ctx := context.Background()
	journal := filepath.Join(t.TempDir(), "journal")
	first := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal), func(o *cosmosdb.Options) { o.Ranges = 3 })
	c := first.Container(t, "db", "logs", "/pk", func(p *azcosmos.ContainerProperties) {
		p.DefaultTimeToLive = to.Ptr(int32(-1))
	})
	gone := first.Container(t, "db", "gone", "/id")
	seed(t, c, 50, 10)
	_, err := gone.CreateItem(ctx, pk("x"), []byte(`{"id":"x"}`), nil)
	require.NoError(t, err)
	_, err = gone.Delete(ctx, nil)
	require.NoError(t, err)
	var ops azcosmos.PatchOperations
	ops.AppendSet("/big", 9007199254740993)
	patched, err := c.PatchItem(ctx, pk("p1"), "0001", ops, nil)
	require.NoError(t, err)
	_, err = c.DeleteItem(ctx, pk("p2"), "0002", nil)
	require.NoError(t, err)
	_, err = c.CreateItem(ctx, pk("p2"), []byte(`{"id":"0002","pk":"p2","again":true}`), nil)
	require.NoError(t, err)
	_, err = c.DeleteItem(ctx, pk("p3"), "0003", nil)
	require.NoError(t, err)
	batch := c.NewTransactionalBatch(pk("p4"))
	batch.DeleteItem("0004", nil)
	batch.CreateItem([]byte(`{"id":"new","pk":"p4"}`), nil)
	_, err = c.ExecuteTransactionalBatch(ctx, batch, nil)
	require.NoError(t, err)
	before := allDocuments(t, c)
	first.Kill() // nothing is closed

	for restart := range 3 {
		run := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal), func(o *cosmosdb.Options) { o.Ranges = 1 })
		c, err := run.Client.NewContainer("db", "logs")
		require.NoError(t, err)
		require.Equal(t, before, allDocuments(t, c), "restart %d: every byte, in the same order", restart)
		require.Len(t, feedRanges(t, c), 3, "a container keeps its ranges")
		read, err := c.ReadItem(ctx, pk("p1"), "0001", nil)
		require.NoError(t, err)
		require.Equal(t, patched.ETag, read.ETag)
		_, err = c.ReadItem(ctx, pk("p3"), "0003", nil)
		requireStatus(t, 404, err)
		props, err := c.Read(ctx, nil)
		require.NoError(t, err)
		require.EqualValues(t, -1, *props.ContainerProperties.DefaultTimeToLive)
		other, err := run.Client.NewContainer("db", "gone")
		require.NoError(t, err)
		_, err = other.Read(ctx, nil)
		requireStatus(t, 404, err)
		_, err = c.ReplaceItem(ctx, pk("p1"), "0001", read.Value, ifMatch(read.ETag))
		require.NoError(t, err, "an etag from before the kill is good for If-Match")
		replaced, err := c.ReadItem(ctx, pk("p1"), "0001", nil)
		require.NoError(t, err)
		patched = replaced
		before = allDocuments(t, c)
		run.Kill()
	}
}

func TestJournalTornTailIsDropped(t *testing.T) {
	ctx := context.Background()
	journal := filepath.Join(t.TempDir(), "journal")
	first := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
	c := first.Container(t, "db", "logs", "/pk")
	seed(t, c, 5, 1)
	first.Kill()
	whole, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	last := lines[len(lines)-1]
	head := strings.TrimSuffix(string(whole), last+"\n")
	for _, cut := range []int{1, 5, 9, 10, len(last) / 2, len(last) - 1, len(last)} {
		require.NoError(t, os.WriteFile(journal, []byte(head+last[:cut]), 0o600))
		run := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
		c, err := run.Client.NewContainer("db", "logs")
		require.NoError(t, err)
		require.Len(t, allDocuments(t, c), 4, "cut after %d of %d bytes", cut, len(last))
		_, err = c.CreateItem(ctx, pk("p0"), []byte(`{"id":"0004","pk":"p0"}`), nil)
		require.NoError(t, err)
		run.Kill()
		again := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
		require.Equal(t, 5, again.Server.Documents("db", "logs"), "what follows a torn tail is kept")
		again.Kill()
	}
}

func TestJournalDamageBeforeTheLastRecordIsAnError(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	run := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
	seed(t, run.Container(t, "db", "logs", "/pk"), 5, 1)
	run.Kill()
	whole, err := os.ReadFile(journal)
	require.NoError(t, err)
	whole[len(whole)/2] ^= 1
	require.NoError(t, os.WriteFile(journal, whole, 0o600))
	_, err = cosmosdb.New(cosmosdb.Options{JournalPath: journal})
	require.ErrorContains(t, err, "is damaged and more follow it")
	require.ErrorContains(t, err, journal)
}

func TestJournalIsCompactedAtStart(t *testing.T) {
	ctx := context.Background()
	journal := filepath.Join(t.TempDir(), "journal")
	run := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
	c := run.Container(t, "db", "logs", "/id")
	for i := range 200 {
		_, err := c.UpsertItem(ctx, pk("1"), fmt.Appendf(nil, `{"id":"1","n":%d}`, i), nil)
		require.NoError(t, err)
	}
	run.Kill()
	before, err := os.Stat(journal)
	require.NoError(t, err)
	again := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(journal))
	after, err := os.Stat(journal)
	require.NoError(t, err)
	require.Less(t, after.Size(), before.Size()/50)
	c, err = again.Client.NewContainer("db", "logs")
	require.NoError(t, err)
	require.Contains(t, allDocuments(t, c)[0], `"n":199,`)
}

func TestJournalClosedMeansNoWriteIsAcknowledged(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t, cosmosdbtest.WithJournal(filepath.Join(t.TempDir(), "journal")))
	c := run.Container(t, "db", "logs", "/id")
	require.NoError(t, run.Server.Close())
	_, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1"}`), nil)
	requireStatus(t, 503, err)
	require.Zero(t, run.Server.Documents("db", "logs"))
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

package cosmosdb_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// fill makes n documents of about size bytes, 100 to a partition key.
func fill(b *testing.B, c *azcosmos.ContainerClient, n, size int) {
	b.Helper()
	text := strings.Repeat("x", size)
	for i := range n / 100 {
		batch := c.NewTransactionalBatch(pk(fmt.Sprintf("p%d", i)))
		for j := range 100 {
			batch.CreateItem(
				fmt.Appendf(nil, `{"id":"%d","pk":"p%d","n":%d,"t":"%s","sql_writer":{"status":"committed"}}`,
					j, i, i*100+j, text), nil)
		}
		_, err := c.ExecuteTransactionalBatch(context.Background(), batch, nil)
		require.NoError(b, err)
	}
}

// BenchmarkQuery100k is a filter over 100,000 documents of 1 KB in which one matches.
func BenchmarkQuery100k(b *testing.B) {
	c := cosmosdbtest.Start(b, func(o *cosmosdb.Options) { o.EmptyPages = 0 }).Container(b, "db", "logs", "/pk")
	fill(b, c, 100_000, 1000)
	for b.Loop() {
		got, _, err := rows(context.Background(), c,
			"SELECT VALUE c.n FROM c WHERE c.sql_writer.status = 'pending' OR c.n = 99999",
			azcosmos.NewPartitionKey(), nil)
		require.NoError(b, err)
		require.Len(b, got, 1)
	}
}

// BenchmarkReadMany100 reads 100 of 10,000 documents whose partition key is the id.
func BenchmarkReadMany100(b *testing.B) {
	c := cosmosdbtest.Start(b).Container(b, "db", "logs", "/id")
	var ids []azcosmos.ItemIdentity
	for i := range 10_000 {
		id := fmt.Sprint(i)
		_, err := c.CreateItem(context.Background(), pk(id), fmt.Appendf(nil, `{"id":"%d"}`, i), nil)
		require.NoError(b, err)
		if i%100 == 0 {
			ids = append(ids, azcosmos.ItemIdentity{ID: id, PartitionKey: pk(id)})
		}
	}
	for b.Loop() {
		resp, err := c.ReadManyItems(context.Background(), ids, nil)
		require.NoError(b, err)
		require.Len(b, resp.Items, 100)
	}
}

// BenchmarkPatch is one SDK patch of a 4 KB document, 16 at a time, with a journal.
func BenchmarkPatch(b *testing.B) {
	run := cosmosdbtest.Start(b, cosmosdbtest.WithJournal(filepath.Join(b.TempDir(), "journal")))
	c := run.Container(b, "db", "logs", "/id")
	text := strings.Repeat("x", 4000)
	const documents = 256
	for i := range documents {
		_, err := c.CreateItem(context.Background(), pk(fmt.Sprint(i)),
			fmt.Appendf(nil, `{"id":"%d","t":"%s"}`, i, text), nil)
		require.NoError(b, err)
	}
	var next atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := fmt.Sprint(next.Add(1) % documents)
			var ops azcosmos.PatchOperations
			ops.AppendSet("/sql_writer", map[string]any{"status": "committed", "retry_count": 0})
			if _, err := c.PatchItem(context.Background(), pk(id), id, ops, nil); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkJournalReplay10k starts on a journal of 10,000 documents of 4 KB.
func BenchmarkJournalReplay10k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "journal")
	run := cosmosdbtest.Start(b, cosmosdbtest.WithJournal(path))
	fill(b, run.Container(b, "db", "logs", "/pk"), 10_000, 4000)
	run.Kill()
	for b.Loop() {
		s, err := cosmosdb.New(cosmosdb.Options{JournalPath: path})
		require.NoError(b, err)
		require.Equal(b, 10_000, s.Documents("db", "logs"))
		require.NoError(b, s.Close())
	}
}

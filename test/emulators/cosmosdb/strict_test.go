package cosmosdb_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func setN(n int) (ops azcosmos.PatchOperations) {
	ops.AppendSet("/n", n)
	return ops
}

// TestDocumentIfMatchIsComparedUnderTheLockOfTheWrite does not leave the race to chance. The server asks the clock when
// it looks a document up and when it writes. The clock keeps the first patch between its comparison and its write until
// the second one has compared too, or has shown that it cannot.
func TestDocumentIfMatchIsComparedUnderTheLockOfTheWrite(t *testing.T) {
	ctx := context.Background()
	const compared = 3 // a patch asks twice before its comparison is over, and then to write
	var armed atomic.Bool
	var asked atomic.Int32
	held, second := make(chan struct{}), make(chan struct{})
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) {
		o.Now = func() time.Time {
			if armed.Load() {
				switch asked.Add(1) {
				case compared:
					close(held)
					select {
					case <-second:
					case <-time.After(200 * time.Millisecond): // as it should be: the other does not get that far
					}
				case 2 * compared:
					close(second)
				default:
				}
			}
			return time.Now()
		}
	})
	c := run.Container(t, "db", "logs", "/id")
	created, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1"}`), nil)
	require.NoError(t, err)
	armed.Store(true)
	results := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := c.PatchItem(ctx, pk("1"), "1", setN(i), ifMatch(created.ETag))
			results <- err
		}()
		<-held
	}
	got := map[int]int{}
	for range 2 {
		s, _ := status(t, <-results)
		got[s]++
	}
	require.Equal(t, map[int]int{0: 1, 412: 1}, got)
}

// A writer that patches without need must see its own change come back, or it loops only in Azure.
func TestPatchThatChangesNothingIsAWriteNevertheless(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 1 }).Container(t, "db", "logs", "/id")
	created, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1","n":7}`), nil)
	require.NoError(t, err)
	_, token := follow(t, c, azcosmos.ChangeFeedOptions{FeedRange: &feedRanges(t, c)[0]})
	patched, err := c.PatchItem(ctx, pk("1"), "1", setN(7), nil)
	require.NoError(t, err)
	require.NotEqual(t, created.ETag, patched.ETag)
	_, err = c.PatchItem(ctx, pk("1"), "1", setN(7), ifMatch(created.ETag))
	requireStatus(t, 412, err)
	got, _ := follow(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
	require.Len(t, got, 1)
}

func TestIfMatchWantsTheEtagWithItsQuotes(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/id")
	created, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1"}`), nil)
	require.NoError(t, err)
	_, err = c.PatchItem(ctx, pk("1"), "1", setN(1), ifMatch(azcore.ETag(strings.Trim(string(created.ETag), `"`))))
	requireStatus(t, 412, err)
	_, err = c.PatchItem(ctx, pk("1"), "1", setN(1), ifMatch(created.ETag))
	require.NoError(t, err)
}

func TestAbsentDocumentIs404WhateverIfMatchSays(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/id")
	created, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1"}`), nil)
	require.NoError(t, err)
	_, err = c.DeleteItem(ctx, pk("1"), "1", ifMatch(created.ETag))
	require.NoError(t, err)
	_, err = c.PatchItem(ctx, pk("1"), "1", setN(1), ifMatch(created.ETag))
	requireStatus(t, 404, err)
	_, err = c.ReplaceItem(ctx, pk("1"), "1", []byte(`{"id":"1"}`), ifMatch(created.ETag))
	requireStatus(t, 404, err)
	_, err = c.DeleteItem(ctx, pk("1"), "1", ifMatch(created.ETag))
	requireStatus(t, 404, err)
}

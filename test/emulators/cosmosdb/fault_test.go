package cosmosdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func addFault(t *testing.T, run *cosmosdbtest.Running, r cosmosdb.Rule) string {
	t.Helper()
	id, err := run.Server.AddFault(r)
	require.NoError(t, err)
	return id
}

// withDocument is a container with the document "1".
func withDocument(t *testing.T) (*cosmosdbtest.Running, *azcosmos.ContainerClient) {
	t.Helper()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/id")
	_, err := c.CreateItem(context.Background(), pk("1"), []byte(`{"id":"1","n":0}`), nil)
	require.NoError(t, err)
	return run, c
}

func increment(ctx context.Context, c *azcosmos.ContainerClient) error {
	var ops azcosmos.PatchOperations
	ops.AppendIncrement("/n", 1)
	_, err := c.PatchItem(ctx, pk("1"), "1", ops, nil)
	return err
}

func value(t *testing.T, c *azcosmos.ContainerClient) int {
	t.Helper()
	read, err := c.ReadItem(context.Background(), pk("1"), "1", nil)
	require.NoError(t, err)
	var doc struct{ N int }
	require.NoError(t, json.Unmarshal(read.Value, &doc))
	return doc.N
}

func TestFaultSubstatusReachesTheClient(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: 503, Substatus: 20003})
	got, sub := status(t, increment(context.Background(), c))
	require.Equal(t, 503, got)
	require.Equal(t, "20003", sub)
}

func TestFaultCutAfterIsAppliedAndTheCallerSeesEOF(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Cut: cosmosdb.After, Times: 1})
	err := increment(context.Background(), c)
	require.ErrorIs(t, err, io.EOF)
	var answered *azcore.ResponseError
	require.False(t, errors.As(err, &answered))
	require.Equal(t, 1, value(t, c), "applied, once, and not retried")
}

func TestFaultHoldUntilReleased(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, when := range []cosmosdb.When{cosmosdb.Before, cosmosdb.After} {
		run, c := withDocument(t)
		id := addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Hold: when})
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- increment(ctx, c) }()
		}
		require.NoError(t, run.Server.WaitHeld(ctx, id, 3))
		require.Len(t, run.Server.Faults()[0].Documents, 3, "whose requests are held is told")
		require.Empty(t, done)
		applied := map[cosmosdb.When]int{cosmosdb.Before: 0, cosmosdb.After: 3}[when]
		require.Equal(t, applied, value(t, c))
		require.Equal(t, 3, run.Server.Release(id))
		for range 3 {
			require.NoError(t, <-done)
		}
		require.Empty(t, run.Server.Faults()[0].Documents)
		require.Equal(t, 3, value(t, c))
	}
}

func TestFaultHeldRequestOfADeadClientChangesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	run, c := withDocument(t)
	id := addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Hold: cosmosdb.Before, Times: 1})
	dying, die := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- increment(dying, c) }()
	require.NoError(t, run.Server.WaitHeld(ctx, id, 1))
	die()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return run.Server.Faults()[0].Held == 0 }, 10*time.Second, time.Millisecond)
	run.Server.ClearFaults()
	require.Zero(t, value(t, c), "the patch of a client that has gone is not applied later")
	require.NoError(t, increment(ctx, c))
	require.Equal(t, 1, value(t, c))
}

func TestFaultRulesChooseTheirRequests(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	a, b := run.Container(t, "db", "a", "/id"), run.Container(t, "db", "b", "/id")
	create := func(c *azcosmos.ContainerClient, id string) int {
		_, err := c.CreateItem(ctx, pk(id), []byte(`{"id":"`+id+`"}`), nil)
		got, _ := status(t, err)
		return got
	}
	addFault(t, run,
		cosmosdb.Rule{ID: "mine", Op: cosmosdb.OpCreate, Container: "a", Doc: "x-*", Nth: 2, Times: 2, Status: 449})
	require.Zero(t, create(b, "x-1"), "another container")
	require.Zero(t, create(a, "y-1"), "another id")
	require.Zero(t, create(a, "x-1"), "the first match is let through")
	require.Equal(t, 449, create(a, "x-2"))
	require.Equal(t, 449, create(a, "x-3"))
	require.Zero(t, create(a, "x-4"), "twice only")
	state := run.Server.Faults()[0]
	require.Equal(t, 4, state.Seen)
	require.Equal(t, 2, state.Hit)
	_, err := a.ReadItem(ctx, pk("x-1"), "x-1", nil)
	require.NoError(t, err, "another kind")

	addFault(t, run, cosmosdb.Rule{Method: http.MethodDelete, Status: 449})
	_, err = a.DeleteItem(ctx, pk("x-1"), "x-1", nil)
	requireStatus(t, 449, err)

	for _, bad := range []cosmosdb.Rule{{}, {Doc: "[", Status: 500}, {Hold: "sometimes"}, {ID: "mine", Status: 500}} {
		_, err := run.Server.AddFault(bad)
		require.Error(t, err, "%+v", bad)
	}
}

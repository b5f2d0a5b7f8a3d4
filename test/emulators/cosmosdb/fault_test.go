package cosmosdb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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

func TestFaultThrottleOnceIsRetriedByTheSDK(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: 429, RetryAfterMS: 30, Times: 1})
	began := time.Now()
	require.NoError(t, increment(context.Background(), c))
	require.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)
	require.Equal(t, 1, value(t, c))
	require.Equal(t, 2, run.Server.Count(cosmosdb.OpPatch, "logs"))
}

func TestFaultThrottleForEverSurfacesAfterFourAttempts(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: 429, RetryAfterMS: 1})
	err := increment(context.Background(), c)
	got, sub := status(t, err)
	require.Equal(t, 429, got)
	require.Equal(t, "3200", sub)
	require.Equal(t, 4, run.Server.Faults()[0].Hit)
}

func TestFaultStatusesThatTheSDKDoesNotRetry(t *testing.T) {
	for _, code := range []int{449, 412, 413, 401, 410} {
		run, c := withDocument(t)
		addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: code})
		requireStatus(t, code, increment(context.Background(), c))
		require.Equal(t, 1, run.Server.Faults()[0].Hit, "%d", code)
		require.Zero(t, value(t, c))
	}
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

func TestFaultCutBeforeIsNotApplied(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpPatch, Cut: cosmosdb.Before, Times: 1})
	require.ErrorIs(t, increment(context.Background(), c), io.EOF)
	require.Zero(t, value(t, c))
	require.Equal(t, map[int]int{0: 1}, statusesOf(run, cosmosdb.OpPatch))
}

func statusesOf(run *cosmosdbtest.Running, op cosmosdb.Op) map[int]int {
	for _, s := range run.Server.Stats() {
		if s.Op == op {
			return s.Statuses
		}
	}
	return nil
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

func TestFaultDelay(t *testing.T) {
	run, c := withDocument(t)
	addFault(t, run, cosmosdb.Rule{Op: cosmosdb.OpRead, DelayMS: 50, Times: 1})
	began := time.Now()
	require.Zero(t, value(t, c))
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}

// control is a request to the control endpoint, as another process makes it.
func control(t *testing.T, run *cosmosdbtest.Running, method, path, body string, out any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, run.URL+"_emulator/"+path,
		strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if out != nil {
		require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(out), "%s", text)
	}
	return resp.StatusCode
}

func TestControlEndpoint(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	run, c := withDocument(t)
	var added struct{ ID string }
	require.Equal(t, 201,
		control(t, run, "POST", "faults", `{"op":"patch","hold":"before","container":"logs"}`, &added))
	done := make(chan error, 1)
	go func() { done <- increment(ctx, c) }()
	require.Equal(t, 200, control(t, run, "GET", "faults/"+added.ID+"/held?n=1&timeout_ms=10000", "", nil))
	require.Equal(t, 408, control(t, run, "GET", "faults/"+added.ID+"/held?n=2&timeout_ms=20", "", nil))
	var released struct{ Released int }
	require.Equal(t, 200, control(t, run, "POST", "faults/"+added.ID+"/release", "", &released))
	require.Equal(t, 1, released.Released)
	require.NoError(t, <-done)
	var rules []cosmosdb.RuleState
	require.Equal(t, 200, control(t, run, "GET", "faults", "", &rules))
	require.Len(t, rules, 1)
	require.Equal(t, 1, rules[0].Hit)
	require.Equal(t, 200, control(t, run, "DELETE", "faults/"+added.ID, "", nil))
	require.Empty(t, run.Server.Faults())
	var stats []cosmosdb.Stat
	require.Equal(t, 200, control(t, run, "GET", "stats", "", &stats))
	require.Contains(t, fmt.Sprint(stats), "{patch logs 1 map[200:1]}")
	require.Equal(t, 200, control(t, run, "DELETE", "stats", "", nil))
	require.Empty(t, run.Server.Stats())
	for _, bad := range []string{`{"op":"patch"}`, `{"nope":1}`, `x`} {
		require.Equal(t, 400, control(t, run, "POST", "faults", bad, nil), bad)
	}
	require.Equal(t, 404, control(t, run, "GET", "nothing", "", nil))
}

func TestStatsShowOneWriteAndNoReadPerDocument(t *testing.T) {
	run, c := withDocument(t)
	run.Server.ResetStats()
	for range 5 {
		require.NoError(t, increment(context.Background(), c))
	}
	require.Equal(t, 5, run.Server.Count(cosmosdb.OpPatch, "logs"))
	for _, op := range []cosmosdb.Op{cosmosdb.OpRead, cosmosdb.OpQuery, cosmosdb.OpReadMany, cosmosdb.OpList} {
		require.Zero(t, run.Server.Count(op, ""), op)
	}
}

package cosmosdb_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestDocumentIDRules(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/pk")
	for id, want := range map[string]int{
		`"plain"`: 0, `"2025-12-17 10:30:15.123456-06:00"`: 0, `"%20 and %2B + literally"`: 0,
		`"ünï 'quotes'"`: 0, `"ends with dot."`: 0,
		`"` + strings.Repeat("x", 1023) + `"`: 0, `"` + strings.Repeat("x", 1024) + `"`: 400,
		`"a/b"`: 400, `"a\\b"`: 400, `"a?b"`: 400, `"a#b"`: 400, `""`: 400, `7`: 400, `null`: 400, `["x"]`: 400,
	} {
		_, err := c.CreateItem(ctx, pk("p"), []byte(`{"pk":"p","id":`+id+`}`), nil)
		got, _ := status(t, err)
		require.Equal(t, want, got, "id %s: %v", id, err)
		if want == 0 {
			var name string
			require.NoError(t, json.Unmarshal([]byte(id), &name))
			read, err := c.ReadItem(ctx, pk("p"), name, nil)
			require.NoError(t, err, name)
			var doc struct{ ID string }
			require.NoError(t, json.Unmarshal(read.Value, &doc))
			require.Equal(t, name, doc.ID)
		}
	}
	_, err := c.CreateItem(ctx, pk("p"), []byte(`{"pk":"p"}`), nil)
	requireStatus(t, http.StatusBadRequest, err)
}

func TestDocumentPartitionKeyMustMatchTheHeader(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/a/b")
	_, err := c.CreateItem(ctx, pk("other"), []byte(`{"id":"1","a":{"b":"x"}}`), nil)
	got, sub := status(t, err)
	require.Equal(t, 400, got)
	require.Equal(t, "1001", sub)

	_, err = c.CreateItem(ctx, pk("x"), []byte(`{"id":"1","a":{"b":"x"}}`), nil)
	require.NoError(t, err)
	_, err = c.ReadItem(ctx, pk("x"), "1", nil)
	require.NoError(t, err, "a nested partition key path is read by its value")
	_, err = c.ReadItem(ctx, pk("y"), "1", nil)
	requireStatus(t, 404, err)
	_, err = c.UpsertItem(ctx, pk("y"), []byte(`{"id":"1","a":{"b":"x"}}`), nil)
	requireStatus(t, 400, err)
	_, err = c.ReplaceItem(ctx, pk("x"), "1", []byte(`{"id":"1","a":{"b":"y"}}`), nil)
	requireStatus(t, 400, err)
	_, err = c.CreateItem(ctx, azcosmos.NewPartitionKey(), []byte(`{"id":"2","a":{"b":"x"}}`), nil)
	got, sub = status(t, err)
	require.Equal(t, 400, got, "no partition key header")
	require.Equal(t, "1001", sub)
	_, err = c.CreateItem(ctx, pk("x"), []byte(`{"id":"1","a":{"b":"x"}}`), nil)
	requireStatus(t, 409, err)
	_, err = c.CreateItem(ctx, azcosmos.NewPartitionKeyNumber(1), []byte(`{"id":"1","a":{"b":1.0}}`), nil)
	require.NoError(t, err, "numbers are one key however they are written, and the same id is free under another key")
	_, err = c.CreateItem(ctx, pk("x"), []byte(`{"id":"3","a":{"b":["x"]}}`), nil)
	requireStatus(t, 400, err)
	got, _, _ = onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `[{}]`}, `{"id":"none"}`).do(t, run)
	require.Equal(t, 201, got, "[{}] is the key of a document without the member")
}

func TestDocumentNumbersComeBackAsWritten(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/id")
	body := `{"id":"n","a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615,"d":1.0,"e":1E2,"list":[9007199254740993]}`
	_, err := c.CreateItem(ctx, pk("n"), []byte(body), nil)
	require.NoError(t, err)
	var ops azcosmos.PatchOperations
	ops.AppendSet("/x", true)
	ops.AppendIncrement("/a", 2)
	_, err = c.PatchItem(ctx, pk("n"), "n", ops, nil)
	require.NoError(t, err)
	read, err := c.ReadItem(ctx, pk("n"), "n", nil)
	require.NoError(t, err)
	want := strings.Replace(strings.TrimSuffix(body, "}"), `"a":9007199254740993`,
		`"a":9007199254740995`, 1) + `,"x":true,`
	require.True(t, strings.HasPrefix(string(read.Value), want), "%s", read.Value)
	got, _, err := rows(ctx, c, "SELECT VALUE c.list[0] FROM c", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"9007199254740993"}, got)
}

func TestDocumentSystemMembers(t *testing.T) {
	ctx := context.Background()
	now := time.Unix(1_766_000_000, 900_000_000)
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Now = func() time.Time { return now } })
	c := run.Container(t, "db", "logs", "/id")
	opts := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	first, err := c.CreateItem(ctx, pk("1"), []byte(`{"_ts":1,"_etag":"mine","id":"1","_self":"x","_mine":2}`), opts)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(first.Value, &doc))
	require.EqualValues(t, 1_766_000_000, doc["_ts"])
	require.Equal(t, string(first.ETag), doc["_etag"])
	require.Regexp(t, `^"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"$`, doc["_etag"])
	require.Regexp(t, `^dbs/.+/colls/.+/docs/.+/$`, doc["_self"])
	require.EqualValues(t, 2, doc["_mine"])
	require.NotNil(t, first.SessionToken)
	require.Regexp(t, `^\d:-1#\d+$`, *first.SessionToken)
	require.Positive(t, first.RequestCharge)
	require.NotEmpty(t, first.ActivityID)

	second, err := c.UpsertItem(ctx, pk("1"), first.Value, nil)
	require.NoError(t, err)
	require.Empty(t, second.Value, "Prefer: return=minimal")
	require.NotEqual(t, first.ETag, second.ETag, "every write makes a new etag, the same content too")
	var again map[string]any
	read, err := c.ReadItem(ctx, pk("1"), "1", nil)
	require.NoError(t, err)
	require.Equal(t, second.ETag, read.ETag)
	require.NoError(t, json.Unmarshal(read.Value, &again))
	require.Equal(t, doc["_rid"], again["_rid"], "a document keeps its _rid")
}

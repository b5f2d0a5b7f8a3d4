package cosmosdb_test

import (
	"context"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

const patchBase = `{"id":"d","pk":"p","a":{"b":1,"c":null},"list":[1,2,3],"text":"t","x/y":1,"m~n":2,"k":{"key":"v"}}`

// TestPatchOperations runs each case on a fresh patchBase; want "" is a refusal with 400.
func TestPatchOperations(t *testing.T) {
	ctx := context.Background()
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/id")
	for name, tc := range map[string]struct{ ops, want string }{
		"set new": {
			`{"op":"set","path":"/n","value":{"q":[1]}}`,
			`{"id":"d","pk":"p","a":{"b":1,"c":null},"list":[1,2,3],"text":"t","x/y":1,"m~n":2,"k":{"key":"v"},"n":{"q":[1]}}`,
		},
		"set whole object": {
			`{"op":"set","path":"/a","value":{}}`, strings.Replace(patchBase, `{"b":1,"c":null}`, `{}`, 1),
		},
		"set nested": {
			`{"op":"set","path":"/a/b","value":9007199254740993}`,
			strings.Replace(patchBase, `"b":1`, `"b":9007199254740993`, 1),
		},
		"add nested new": {
			`{"op":"add","path":"/a/z","value":true}`, strings.Replace(patchBase, `"c":null`, `"c":null,"z":true`, 1),
		},
		"incr": {
			`{"op":"incr","path":"/a/b","value":-3}`, strings.Replace(patchBase, `"b":1`, `"b":-2`, 1),
		},
		"incr past 64 bits": {
			`{"op":"set","path":"/a/b","value":9223372036854775807},{"op":"incr","path":"/a/b","value":1}`,
			strings.Replace(patchBase, `"b":1`, `"b":9223372036854776000`, 1),
		},
		"escaped slash": {
			`{"op":"set","path":"/x~1y","value":5}`, strings.Replace(patchBase, `"x/y":1`, `"x/y":5`, 1),
		},
		"array append": {
			`{"op":"add","path":"/list/-","value":4}`, strings.Replace(patchBase, `[1,2,3]`, `[1,2,3,4]`, 1),
		},
		"array insert": {
			`{"op":"add","path":"/list/1","value":9}`, strings.Replace(patchBase, `[1,2,3]`, `[1,9,2,3]`, 1),
		},
		"ttl may be patched": {
			`{"op":"set","path":"/ttl","value":-1}`, strings.TrimSuffix(patchBase, "}") + `,"ttl":-1}`,
		},
		"in order": {
			`{"op":"set","path":"/n","value":{}},{"op":"set","path":"/n/x","value":1}`,
			strings.TrimSuffix(patchBase, "}") + `,"n":{"x":1}}`,
		},
		"array index beyond":      {`{"op":"add","path":"/list/4","value":9}`, ""},
		"array bad index":         {`{"op":"set","path":"/list/01","value":9}`, ""},
		"missing parent":          {`{"op":"set","path":"/nope/x","value":1}`, ""},
		"parent is text":          {`{"op":"set","path":"/text/x","value":1}`, ""},
		"remove absent":           {`{"op":"remove","path":"/zz"}`, ""},
		"incr text":               {`{"op":"incr","path":"/text","value":1}`, ""},
		"incr by text":            {`{"op":"incr","path":"/a/b","value":"1"}`, ""},
		"id":                      {`{"op":"set","path":"/id","value":"e"}`, ""},
		"_ts":                     {`{"op":"set","path":"/_ts","value":1}`, ""},
		"move":                    {`{"op":"move","path":"/a","from":"/text"}`, ""},
		"no path":                 {`{"op":"set","value":1}`, ""},
		"bad ttl":                 {`{"op":"set","path":"/ttl","value":0}`, ""},
		"none":                    {``, ""},
		"a good one before a bad": {`{"op":"set","path":"/text","value":"u"},{"op":"remove","path":"/zz"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.UpsertItem(ctx, pk("d"), []byte(patchBase), nil)
			require.NoError(t, err)
			before, err := c.ReadItem(ctx, pk("d"), "d", nil)
			require.NoError(t, err)
			got, _, body := onDoc("PATCH", "d", nil, `{"operations":[`+tc.ops+`]}`).do(t, run)
			after, err := c.ReadItem(ctx, pk("d"), "d", nil)
			require.NoError(t, err)
			if tc.want == "" {
				require.Equal(t, 400, got, "%v", body)
				require.Equal(t, before.Value, after.Value, "a refused patch changes nothing")
				return
			}
			require.Equal(t, 200, got, "%v", body)
			require.Equal(t, tc.want, withoutSystem(t, after.Value))
		})
	}
}

// withoutSystem is the document's text up to the members that the service adds.
func withoutSystem(t *testing.T, doc []byte) string {
	t.Helper()
	content, _, ok := strings.Cut(string(doc), `,"_rid"`)
	require.True(t, ok)
	return content + "}"
}

func TestPatchOfThePartitionKeyIsRefused(t *testing.T) {
	ctx := context.Background()
	c := cosmosdbtest.Start(t).Container(t, "db", "logs", "/k/key")
	_, err := c.CreateItem(ctx, pk("v"), []byte(patchBase), nil)
	require.NoError(t, err)
	for path, want := range map[string]int{"/k": 400, "/k/key": 400, "/k/key/x": 400, "/k/other": 0, "/pk": 0} {
		var ops azcosmos.PatchOperations
		ops.AppendSet(path, "v")
		_, err := c.PatchItem(ctx, pk("v"), "d", ops, nil)
		got, _ := status(t, err)
		require.Equal(t, want, got, path)
	}
}

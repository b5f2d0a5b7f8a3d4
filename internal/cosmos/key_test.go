package cosmos

import (
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

func TestTheHeaderOfAPartitionKey(t *testing.T) {
	k := partitionKey{paths: [][]string{{"a", "b"}, {"c"}}}
	for doc, want := range map[string]string{
		`{"a":{"b":"x"},"c":"y"}`:                      `["x","y"]`,
		`{"a":{"b":null},"c":true}`:                    `[null,true]`,
		`{"a":{},"c":7.0}`:                             `[{},7]`,
		`{"a":"b","c":1e20}`:                           `[{},100000000000000000000]`,
		`{"c":9007199254740993}`:                       `[{},9007199254740992]`,
		`{"a":null,"c":""}`:                            `[{},""]`,
		` {"a" : { "b" : "x" } , "c" : false } `:       `["x",false]`,
		`{"a":{"b":"1"},"a":{"b":"2"},"c":3,"c":4}`:    `["2",4]`,
		`{"a":{"b":"1"},"a":{},"c":-0.5}`:              `[{},-0.5]`,
		`{"a":{"b":"\u00fc\/\n\"\\"},"c":"ü/"}`:        `["\u00fc\/\n\"\\","\u00fc/"]`,
		`{"a":{"b":"\ud83d\ude00"},"c":"😀"}`:           `["\ud83d\ude00","\ud83d\ude00"]`,
		`{"a":{"b":"\ud83d"},"c":"\u007f"}`:            `["\ud83d","\u007f"]`,
		`{"a":{"b":"<&>"},"c":"\u003c\u0026\u003e"}`:   `["<&>","\u003c\u0026\u003e"]`,
		`{"\u0061":{"b":"escaped name"},"c":"\b\f\r"}`: `["escaped name","\b\f\r"]`,
	} {
		require.True(t, json.Valid([]byte(doc)), doc)
		require.Equal(t, want, k.of(json.RawMessage(doc)), doc)
	}
}

func TestOneKeyMayBeWrittenInSeveralWays(t *testing.T) {
	for a, b := range map[string]string{`["<",{}]`: `["\u003c",{}]`, `["\/"]`: `["/"]`, `[7]`: `[7]`} {
		require.True(t, sameKey(a, b), "%s %s", a, b)
	}
	for a, b := range map[string]string{`["7"]`: `[7]`, `[null]`: `[{}]`, `["a"]`: `["A"]`, `["a","b"]`: `["b","a"]`} {
		require.False(t, sameKey(a, b), "%s %s", a, b)
	}
}

func TestThePartitionKeyIsJSONInPlainASCII(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Draw(t, "id")
		doc, err := json.Marshal(map[string]string{"id": id})
		require.NoError(t, err)
		header := partitionKey{paths: [][]string{{"id"}}}.of(doc)
		for _, b := range []byte(header) {
			require.True(t, b >= ' ' && b <= '~', "%q", header)
		}
		var got []string
		require.NoError(t, json.Unmarshal([]byte(header), &got))
		require.Equal(t, []string{id}, got)
	})
}

// The definitions that are refused are in the first column of an operator's mail: each text says what mends it.
func TestPartitionKeysThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		own   bool
		want  string
	}{
		"below what the app writes": {[]string{"/sql_writer/shard"}, false, "the app writes sql_writer"},
		"what the app writes": {
			[]string{"/request_details/id", "/sql_writer"}, false, "the app writes sql_writer",
		},
		"a system member":       {[]string{"/_ts"}, false, "Cosmos DB itself writes _ts"},
		"below a system member": {[]string{"/_etag/x"}, false, "Cosmos DB itself writes _etag"},
		"a place in a list":     {[]string{"/items/0/id"}, false, "/items/0/id is no path of members"},
		"any place in a list":   {[]string{"/items/[]/id"}, false, "/items/[]/id is no path of members"},
		"none":                  {nil, false, "it has none"},
		"migrated without one":  {[]string{"/_partitionKey"}, false, "Cosmos DB itself writes _partitionKey"},
		"ours, another member": {
			[]string{"/request_details/id"}, true, "it must be /id: name a container that has that key, or make one",
		},
		"ours, two levels": {[]string{"/id", "/x"}, true, "it must be /id"},
	} {
		p := azcosmos.ContainerProperties{
			ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: c.paths},
		}
		_, err := partitionKeyOf(p, c.own)
		e := fault.As(err)
		require.NotNil(t, e, name)
		require.Equal(t, []string{"infrastructure", "partition_key"}, []string{string(e.Kind), e.Code}, name)
		require.Contains(t, e.Reason, c.want, name)
		require.Contains(t, e.Reason, "container c has the partition key ", name)
		if !c.own {
			require.Contains(t, e.Reason,
				"copy the documents into a container with another key, such as /request_details/id", name)
		}
	}
	for _, paths := range [][]string{{"/id"}, {"/0"}, {"/_tenant"}, {"/a", "/b/c", `/"post-processing"/id`}} {
		_, err := partitionKeyOf(
			azcosmos.ContainerProperties{PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: paths}}, false)
		require.NoError(t, err, "%v", paths)
	}
}

func TestNamesOfAPath(t *testing.T) {
	for path, want := range map[string][]string{
		"/id": {"id"}, "/request_details/id": {"request_details", "id"},
		`/"post-processing"/id`: {"post-processing", "id"},
		`/'a/b'/c`:              {"a/b", "c"}, `/"a\"b"`: {`a\"b`}, "": nil, "/": nil, "id": nil,
		"/a/": nil, "//a": nil, `/"a`: nil,
		`/""`: nil, `/"a"b`: nil,
	} {
		got, ok := splitPath(path)
		require.Equal(t, want != nil, ok, path)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

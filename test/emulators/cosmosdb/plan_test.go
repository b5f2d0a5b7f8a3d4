package cosmosdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func planOf(query string, headers map[string]string) rest {
	h := map[string]string{"x-ms-cosmos-is-query-plan-request": "True", "Content-Type": "application/query+json"}
	for n, v := range headers {
		h[n] = v
	}
	return onDocs("POST", h, query)
}

func TestPlanOfAQueryThatNeedsNone(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/pk")
	wholeSpace := map[string]any{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}
	for query, value := range map[string]bool{
		`{"query":"SELECT * FROM c WHERE STARTSWITH(c.id, @p)","parameters":[{"name":"@p","value":"x"}]}`: false,
		`{"query":"SELECT VALUE c.id FROM c"}`: true,
	} {
		code, _, plan := planOf(query, nil).do(t, run)
		require.Equal(t, 200, code, query)
		require.Equal(t, []any{wholeSpace}, plan["queryRanges"])
		info, _ := plan["queryInfo"].(map[string]any)
		require.Equal(t, value, info["hasSelectValue"])
		require.Equal(t, "None", info["distinctType"])
		for _, none := range []string{
			"orderBy", "aggregates", "groupByExpressions", "rewrittenQuery", "top", "offset", "limit",
		} {
			require.Empty(t, info[none])
		}
	}
	require.Equal(t, 2, run.Server.Count(cosmosdb.OpPlan, "logs"))
	require.Zero(t, run.Server.Count(cosmosdb.OpQuery, "logs"))
}

// What a client would have to merge gets no plan, lest a query that Azure serves otherwise works here by luck.
func TestPlanOverPartitionsIsRefusedInWords(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/pk")
	for query, words := range map[string]string{
		"SELECT * FROM c ORDER BY c.n":                    "ORDER BY",
		"SELECT TOP 1 * FROM c ORDER BY c.n":              "ORDER BY",
		"SELECT * FROM c OFFSET 1 LIMIT 1":                "OFFSET LIMIT",
		"SELECT DISTINCT VALUE c.n FROM c":                "DISTINCT",
		"SELECT c.n FROM c GROUP BY c.n":                  "GROUP BY",
		"SELECT VALUE COUNT(1) FROM c":                    "COUNT",
		"SELECT COUNT(1) AS n FROM c":                     "aggregate",
		"SELECT VALUE MAX(c.n) FROM c WHERE c.pk != 'p1'": "MAX",
	} {
		code, header, body := planOf(`{"query":"`+query+`"}`, nil).do(t, run)
		require.Equal(t, 400, code, query)
		require.Contains(t, body["message"], words)
		require.Contains(t, body["message"], "not implemented by this emulator")
		require.Empty(t, header.Get("x-ms-substatus"), "1004 would make the client ask for the plan again")
	}
	code, _, body := planOf(`{"query":"SELECT DISTINCT TOP 1 VALUE c.n FROM c"}`, nil).do(t, run)
	require.Equal(t, 400, code)
	require.Contains(t, body["message"], "DISTINCT is not implemented")
	code, _, _ = planOf(`{"query":"SELEC * FROM c"}`, nil).do(t, run)
	require.Equal(t, 400, code)
}

// A client asks each range for the same TOP and stops by the plan's number.
func TestPlanOfTopNamesItsNumber(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/pk")
	for query, top := range map[string]float64{
		`{"query":"SELECT TOP 5 * FROM c"}`: 5, `{"query":"SELECT TOP 0 * FROM c"}`: 0,
		`{"query":"SELECT TOP 3 * FROM c WHERE c.pk = 'p1'"}`:                                         3,
		`{"query":"SELECT TOP @n * FROM c WHERE c.n <> null","parameters":[{"name":"@n","value":1}]}`: 1,
	} {
		code, _, plan := planOf(query, nil).do(t, run)
		require.Equal(t, 200, code, query)
		info, _ := plan["queryInfo"].(map[string]any)
		require.Equal(t, top, info["top"], query) //nolint:testifylint // a number as it was written
		require.Empty(t, info["rewrittenQuery"])
	}
	code, _, body := planOf(
		`{"query":"SELECT TOP @n * FROM c","parameters":[{"name":"@n","value":"1"}]}`, nil).do(t, run)
	require.Equal(t, 400, code)
	require.Contains(t, body["message"], "TOP wants a whole number")
}

// A query limited to one partition key needs no merging; its plan names the one hash to ask, by which an aggregate has
// one row.
func TestPlanWithinAPartitionKeyNamesItsHash(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/pk")
	var hashes []any
	for query, headers := range map[string]map[string]string{
		"SELECT VALUE COUNT(1) FROM c":                        {"x-ms-documentdb-partitionkey": `["p1"]`},
		"SELECT * FROM c WHERE c.pk = 'p1' ORDER BY c.n":      nil,
		"SELECT TOP 1 * FROM c WHERE c.pk = 'p1' AND c.n > 0": nil,
	} {
		code, _, plan := planOf(`{"query":"`+query+`"}`, headers).do(t, run)
		require.Equal(t, 200, code, query)
		ranges, _ := plan["queryRanges"].([]any)
		require.Len(t, ranges, 1)
		one, _ := ranges[0].(map[string]any)
		require.Equal(t, one["min"], one["max"])
		require.Equal(t, true, one["isMaxInclusive"])
		require.Len(t, one["min"], 32)
		hashes = append(hashes, one["min"])
	}
	require.Equal(t, hashes[0], hashes[1])
	require.Equal(t, hashes[0], hashes[2])
	code, _, body := planOf(`{"query":"SELECT DISTINCT VALUE c.n FROM c WHERE c.pk = 'p1'"}`, nil).do(t, run)
	require.Equal(t, 400, code)
	require.Contains(t, body["message"], "DISTINCT is not implemented")
}

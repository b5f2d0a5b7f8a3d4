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

// Package cosmos_test runs the vendor's JavaScript SDK against the Cosmos DB emulator: an opinion about the emulator
// that is not ours. `make sdkchecks` installs the SDK and runs it.
package cosmos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

const inOnePartition = "in one partition: "

// refusal is a check that the emulator does not pass: the words in which it refuses, and why it may. The service serves
// all of them.
type refusal struct{ words, why string }

func refusals() map[string]refusal {
	const (
		merged   = "the client merges several ranges by the plan; azcosmos makes no plans, so the product has no such query (docs/facts.md F63)"
		noSuch   = "no query of the product has it"
		noDelete = "the product deletes no document"
		noBulk   = "azcosmos has only batches that are atomic"
	)
	return map[string]refusal{
		"patch: move": {"'move' is not implemented by this emulator", "the product's patch is one set"},

		"cross-partition query ORDER BY (query plan)": {
			"The plan of a query with ORDER BY over partitions is not implemented by this emulator", merged,
		},
		"aggregates across partitions (query plan)": {
			"The plan of a query with COUNT over partitions is not implemented by this emulator", merged,
		},

		inOnePartition +
			"SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 1": {
			"JOIN is not implemented by this emulator", noSuch,
		},
		inOnePartition +
			"SELECT DISTINCT VALUE c.s FROM c": {"DISTINCT is not implemented by this emulator", noSuch},
		inOnePartition +
			"SELECT c.s, COUNT(1) AS k FROM c GROUP BY c.s": {"GROUP BY is not implemented by this emulator", noSuch},
		inOnePartition +
			"SELECT VALUE SUM(c.n) FROM c": {
			"SUM here (only SELECT VALUE COUNT(...)) is not implemented by this emulator", noSuch,
		},
		inOnePartition +
			"SELECT VALUE MAX(c._ts) > 0 FROM c": {
			"MAX here (only SELECT VALUE COUNT(...)) is not implemented by this emulator", noSuch,
		},
		inOnePartition +
			"SELECT VALUE StringToNumber('12') FROM c WHERE c.n = 1": {
			"'StringToNumber' is not a function that this emulator implements", noSuch,
		},
		inOnePartition +
			"SELECT VALUE c.n FROM c WHERE REGEXMATCH(c.id, '^i0[13]$')": {
			"'REGEXMATCH' is not a function that this emulator implements", noSuch,
		},
		inOnePartition +
			"SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't3') AND c.n < 8": {
			"EXISTS is not implemented by this emulator", noSuch,
		},

		"items.bulk (a batch that is not atomic)": {
			"A batch that is not atomic is not implemented by this emulator", noBulk,
		},
		"items.executeBulkOperations": {
			"A batch that is not atomic is not implemented by this emulator", noBulk,
		},

		"unique key policy": {
			"Unique keys are not implemented by this emulator",
			"the container is the user's, and the product relies on none",
		},
		"stored procedures, triggers, UDFs": {
			"Stored procedures, triggers and user-defined functions are not implemented by this emulator",
			"the product has none",
		},
		"delete all items by partition key": {
			"deletion of all items of a partition key, are not implemented by this emulator", noDelete,
		},
	}
}

// checks is their number, so that none is lost without notice.
const checks = 62

func TestJavaScriptSDK(t *testing.T) {
	if _, err := os.Stat("node_modules/@azure/cosmos"); err != nil {
		t.Skip("the SDK is not installed: make sdkchecks (it needs Node.js and npm)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	node := exec.CommandContext(ctx, "node", "cosmos.mjs", cosmosdbtest.Start(t).URL)
	node.Stderr = &stderr
	out, err := node.Output()
	require.NoError(t, err, "%s%s", out, stderr.String())

	refused, seen := refusals(), 0
	lines := json.NewDecoder(bytes.NewReader(out))
	for lines.More() {
		var line struct{ Check, Error string }
		require.NoError(t, lines.Decode(&line))
		seen++
		t.Run(line.Check, func(t *testing.T) {
			refusal, known := refused[line.Check]
			delete(refused, line.Check)
			if !known {
				require.Empty(t, line.Error)
				return
			}
			require.Contains(t, line.Error, refusal.words, "it is listed as refused")
			t.Logf("refused (%s): %s", refusal.why, refusal.words)
		})
	}
	require.Equal(t, checks, seen)
	require.Empty(t, refused, "refusals of checks that are not there")
}

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/fill"
	"sqlwriter/test/mapping"
)

// duplicates is how many lines a document has beside its main line; linesOf counts both.
const (
	duplicates = 2
	linesOf    = 1 + duplicates
)

// refusedCode is a code that validation lets pass and the user's CHECK constraint refuses.
const refusedCode = "00000000"

// doc is one result: as the feed brings it, and as a sink takes it.
type doc struct {
	raw  json.RawMessage
	item commit.Item
}

// makeDocs makes n documents for the lines from first on. A later turn is a newer result for the same lines, with other
// contents.
func makeDocs(t testing.TB, first int64, n, turn int) []doc {
	t.Helper()
	docs := make([]doc, n)
	for i := range docs {
		docs[i] = makeDoc(t, first+int64(i*linesOf), turn, "")
	}
	return docs
}

// makeDoc makes a document of the usual size. Its contents depend on its line and turn alone; code, unless empty, is
// its UNSPSC code.
func makeDoc(t testing.TB, line int64, turn int, code string) doc {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(line), uint64(turn)))
	at := time.Date(2025, 12, 17, 10, turn, 0, 0, time.FixedZone("", -6*3600))
	id := fmt.Sprintf("%s-%04d-%d", stamp(at), 1, line)
	dups := make([]int64, duplicates)
	for i := range dups {
		dups[i] = line + 1 + int64(i)
	}
	part := fmt.Sprintf("%05d/%d", r.IntN(100000), r.IntN(10))
	raw, err := json.Marshal(map[string]any{
		"id": id, "_ts": at.Unix(), "_etag": `"0001"`,
		"request_details":          map[string]any{"sys_name": "web"},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": line},
		"post-processing":          map[string]any{"duplicate_detail_uids": dups},
		"process_output": map[string]any{
			"manufacturer_name": words(r, 3) + " GmbH & Co. Müller", "part_number": part,
			"unspsc":              cmp.Or(code, fmt.Sprintf("%08d", 10000000+r.IntN(80000000))),
			"cleaned_description": words(r, 40) + ", 1/2 in NPT",
			"web_search_url":      "https://parts.example/?q=" + strings.ReplaceAll(words(r, 19), " ", "+"),
		},
		"sql_writer": map[string]any{"status": "pending", "retry_count": 0},
	})
	require.NoError(t, err)
	raw = []byte(fill.Document(string(raw)))
	d, err := invoice.Reader{}.Read(raw, at)
	require.NoError(t, err)
	require.Nil(t, d.Problem)
	return doc{raw: raw, item: commit.ItemOf(d)}
}

// words makes a text of n words.
func words(r *rand.Rand, n int) string {
	from := strings.Fields("valve brass zinc-plated connector bearing pressure gauge 0-10_bar gloves cartridge filter 5_µm " +
		"O-ring nitrile proximity switch coupling thread sealant")
	list := make([]string, n)
	for i := range list {
		list[i] = from[r.IntN(len(from))]
	}
	return strings.Join(list, " ")
}

// stamp prints a time as the programs that produce results do.
func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000-07:00") }

// valueBytes is how long the values of a document's main line are together, as UTF-8.
func valueBytes(d doc) int {
	n := 0
	for _, v := range mapping.InUse().RowValues(d.item.Values, d.item.Main, d.item.Main) {
		n += len(v.Text)
	}
	return n
}

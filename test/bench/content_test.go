package bench

import (
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
	raw, err := json.Marshal(map[string]any{
		"id":                       id,
		"_ts":                      at.Unix(),
		"_etag":                    `"0001"`,
		"request_details":          map[string]any{"sys_name": "web"},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": line},
		"post-processing":          map[string]any{"duplicate_detail_uids": dups},
		"process_output":           output(r, at, code),
		"sql_writer":               map[string]any{"status": "pending", "retry_count": 0},
	})
	require.NoError(t, err)
	raw = []byte(fill.Document(string(raw)))
	d, err := invoice.Reader{}.Read(raw, at)
	require.NoError(t, err)
	require.Nil(t, d.Problem)
	return doc{raw: raw, item: commit.ItemOf(d)}
}

// output is a process_output with a value for every column: 1 to 1.5 KB in all, most of it description and address.
func output(r *rand.Rand, at time.Time, code string) map[string]any {
	if code == "" {
		code = fmt.Sprintf("%08d", 10000000+r.IntN(80000000))
	}
	part := fmt.Sprintf("%c%c-%05d/%d", 'A'+r.IntN(26), 'A'+r.IntN(26), r.IntN(100000), r.IntN(10))
	confidence := func() json.Number { return json.Number(fmt.Sprintf("0.%04d", 1+r.IntN(9998))) }
	stage := func() string { return pick(r, "catalog_match", "web_search", "classifier", "rules") }
	return map[string]any{
		"manufacturer_name":            words(r, 3) + " GmbH & Co. Müller",
		"manufacturer_name_confidence": confidence(),
		"manufacturer_name_stage":      stage(),
		"part_number":                  part,
		"part_number_confidence":       confidence(),
		"part_number_stage":            stage(),
		"unspsc":                       code,
		"unspsc_confidence":            confidence(),
		"unspsc_stage":                 stage(),
		"upc":                          fmt.Sprintf("%012d", r.Int64N(1_000_000_000_000)),
		"aks_part_number":              fmt.Sprintf("AKS-%07d", r.IntN(10_000_000)),
		"cleaned_description":          words(r, 35) + ", 1/2 in NPT",
		"data_verified":                r.IntN(2) == 0,
		"web_search_url": "https://parts.example/search?q=" + part + "&lang=en&terms=" +
			strings.ReplaceAll(words(r, 16), " ", "+"),
		"stage":                   stage(),
		"invoice_line_status":     pick(r, "RC-AI", "DS1"),
		"processing_started_at":   stamp(at.Add(time.Duration(r.IntN(1_000_000)) * time.Microsecond)),
		"processing_completed_at": stamp(at.Add(time.Second + time.Duration(r.IntN(5_000_000))*time.Microsecond)),
	}
}

// words makes a text of n words.
func words(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = pick(r, "valve", "brass", "zinc-plated", "connector", "bearing", "pressure",
			"gauge", "0-10 bar", "gloves",
			"cartridge", "filter", "5 µm", "O-ring", "nitrile", "proximity", "switch", "coupling",
			"cable gland", "thread", "sealant")
	}
	return strings.Join(list, " ")
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// stamp prints a time as the programs that produce results do.
func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000-07:00") }

// valueBytes is how long the values of a document's main line are together, as UTF-8.
func valueBytes(d doc) int {
	n := 0
	for _, v := range invoice.RowValues(d.item.Values, d.item.Main, d.item.Main) {
		n += len(v.Text)
	}
	return n
}

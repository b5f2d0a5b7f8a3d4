package invoice_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func ExampleReader() {
	d, err := invoice.Reader{}.Read([]byte(`{
	  "id": "2025-12-17 10:30:00.000000-06:00-0001-1421549",
	  "request_details": {"sys_name": "web"},
	  "invoice_details_from_rpa": {"IVCE_DTL_UID": 1421549},
	  "process_output": {"manufacturer_name": "THOMAS & BETTS", "part_number": "425", "invoice_line_status": "RC-AI"},
	  "post-processing": {"duplicate_detail_uids": [1421550]},
	  "sql_writer": {"status": "pending", "retry_count": 0}
	}`), time.Date(2025, 12, 17, 16, 35, 0, 0, time.UTC))
	fmt.Println(err, d.Problem, d.Eligibility(time.Now(), "web"))
	fmt.Println(d.Main, d.Duplicates, d.Version.US)
	for i, v := range invoice.DefaultMapping().RowValues(d.Values, d.Main, 1421550) {
		if c := invoice.DefaultMapping().Columns()[i]; c.Table == invoice.Detail && !v.Null {
			fmt.Println(c.Name, "=", v.Text)
		}
	}
	// Output:
	// <nil> <nil> take
	// 1421549 [1421550] 1765989000000000
	// CLN_MFR_AI_NM = THOMAS & BETTS
	// CLN_MFR_PRT_NUM = 425
	// IVCE_LNE_STAT = RC-AI
	// PRNT_IVCE_DTL_ID = 1421549
}

func TestReadFillsWhatTheDocumentIsRecordedBy(t *testing.T) {
	d, err := invoice.Reader{}.Read([]byte(" \r\n\t"+baseDocument+"\n"), rulesNow())
	require.NoError(t, err)
	require.NoError(t, d.Problem)
	require.Equal(t, "2025-12-17 10:30:00.000000-06:00-0001-1421549", d.ID)
	require.Equal(t, `"00000000-0000-0000-0000-000000000001"`, d.ETag, "quotes belong to an etag")
	require.Equal(t, int64(1765989015), d.TS)
	require.Equal(t, "web", d.SysName)
	require.True(t, d.HasTime)
	require.Equal(t, invoice.Key(d.ID), d.Version.Key)
	require.Len(t, d.Version.Key, 64)
}

// A batch may be 190 MB: a document that keeps a slice of its snapshot would keep all of it.
func TestReadKeepsNothingOfTheSnapshot(t *testing.T) {
	raw := rule{
		in: `{"sql_writer": {"note": {"by": "QA"}, "last_error": "e", "attempts": [{"at": "a", "error": "e"}]}, "post-processing": {"duplicate_detail_uids": ["5", "x"]}}`,
	}.document(t)
	want, err := invoice.Reader{}.Read(bytes.Clone(raw), rulesNow())
	require.NoError(t, err)
	got, err := invoice.Reader{}.Read(raw, rulesNow())
	require.NoError(t, err)
	for i := range raw {
		raw[i] = '#'
	}
	require.Equal(t, want, got)
}

func TestReadNeedsLittleMemoryForALargeDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("allocates 2 MB")
	}
	raw := largeDocument(t)
	result := testing.Benchmark(func(b *testing.B) { readAll(b, raw) })
	require.Less(t, result.AllocedBytesPerOp(), int64(64*1024), "a copy of the document was made")
}

func TestDepthCostsNothing(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	d := readRule(t, `{"new": `+deep+`, "process_output": {"new": `+deep+`}}`)
	require.NoError(t, d.Problem)
}

// padded adds unknown members to the base document up to about size bytes.
func padded(t testing.TB, size int) []byte {
	step := `{"stage": "web_search", "prompt": "find \"425\" <b>", "tokens": [1, 2, 3.5], "ok": true}`
	steps := strings.TrimSuffix(strings.Repeat(step+",", max(1, (size-len(baseDocument))/(len(step)+1))), ",")
	return rule{in: `{"process_output": {"trace": [` + steps + `]}}`}.document(t)
}

func largeDocument(t testing.TB) []byte { return padded(t, 1_900_000) }

func readAll(b *testing.B, raw []byte) {
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		d, err := invoice.Reader{}.Read(raw, rulesNow())
		if err != nil || d.Problem != nil {
			b.Fatal(err, d.Problem)
		}
	}
}

func BenchmarkRead4KB(b *testing.B)    { readAll(b, padded(b, 4_000)) }
func BenchmarkRead1900KB(b *testing.B) { readAll(b, largeDocument(b)) }

func FuzzRead(f *testing.F) {
	for _, g := range ruleGroups() {
		for _, r := range g.rules {
			f.Add(r.document(f))
		}
	}
	for _, s := range []string{
		`{"id":"x"}`, `{"id":"x","sql_writer":{"":1}}`, `[]`, `null`, "\xef\xbb\xbf{}", `{"id":"\u0000"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		d, err := invoice.Reader{}.Read(raw, rulesNow())
		require.Equal(t, before, raw, "Read changed its input")
		if err != nil {
			require.Equal(t, fault.Document, fault.KindOf(err))
			require.True(t, fault.Has(err, fault.Unreadable))
			require.LessOrEqual(t, len(err.Error()), invoice.MaxErrorBytes)
			return
		}
		require.True(t, json.Valid(raw))
		require.NotEmpty(t, d.ID)
		require.Len(t, d.Values, len(invoice.DefaultMapping().Columns()))
		require.Len(t, d.Hash, 64)
		require.NotContains(t, d.Duplicates, d.Main)
		require.NotEmpty(t, d.Eligibility(rulesNow(), "web"))
		if d.Problem == nil {
			require.Positive(t, d.Main)
		} else {
			require.LessOrEqual(t, len(d.Problem.Error()), invoice.MaxErrorBytes)
			require.NotContains(t, d.Problem.Error(), "\n")
			require.Equal(t, fault.Document, fault.KindOf(d.Problem))
		}
		b, err := json.Marshal(d.State)
		require.NoError(t, err)
		var again invoice.State
		require.NoError(t, json.Unmarshal(b, &again))
	})
}

// A limit is a setting. Content that it refuses keeps its hash, so that the evidence and the ledger of a refused
// document still fit when the setting changes.
func TestWhatALimitRefusesKeepsItsHash(t *testing.T) {
	twoLines := func(d invoice.Document) *invoice.FieldError {
		if len(d.Duplicates) < 2 {
			return nil
		}
		return &invoice.FieldError{
			Path: "post-processing.duplicate_detail_uids", Code: "too_many", Expected: "at most one id",
			FoundType: fmt.Sprint(len(d.Duplicates)),
		}
	}
	limited := invoice.Reader{Limits: []invoice.Limit{twoLines}}
	for in, refused := range map[string]string{
		`{"post-processing": {"duplicate_detail_uids": [2]}}`:                                        "",
		`{"post-processing": {"duplicate_detail_uids": [2, 3]}}`:                                     "validation.too_many",
		`{"post-processing": {"duplicate_detail_uids": [2, 3]}, "process_output": {"unspsc": true}}`: "validation.wrong_type",
	} {
		raw := rule{in: in}.document(t)
		free, err := invoice.Reader{}.Read(raw, rulesNow())
		require.NoError(t, err)
		d, err := limited.ReadSnapshot(raw, rulesNow())
		require.NoError(t, err)
		require.Equal(t, free.Hash, d.Hash, "%s", in)
		require.Equal(t, refused, fault.CodeOf(d.Problem), "%s", in)
		require.Equal(t, len(free.Duplicates) > 1, strings.Contains(fmt.Sprint(d.Problem), "at most one id"), "%s", in)
	}
}

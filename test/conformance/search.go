package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// SearchHarness has the port under test and the functions that TestSearch needs around it.
type SearchHarness struct {
	DocumentsHarness
	// Search is the port under test, over the same container.
	Search ops.DocumentSearch
	// Restarted makes another one over the same container, as the next process does.
	Restarted func(t testing.TB) ops.DocumentSearch
}

// TestSearch checks an implementation of ops.DocumentSearch against the port's contract. open makes a new one per test.
func TestSearch(t *testing.T, open func(t *testing.T) SearchHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, SearchHarness)
	}{
		{"each filter finds what it names, and all must match", searchFilters},
		{"a line is found by number and by digits, as main line and as duplicate", searchLines},
		{"a request is found by text and by number", searchRequests},
		{"a status is found in its three spellings and in no other", searchSpellings},
		{"a document is between the bounds of its _ts and of no other", searchBounds},
		{"what comes means what the document means", searchMembers},
		{"2,500 documents over pages of several sizes, each once, also in another process", searchPages},
		{"documents that do not change come once, whatever the others do", searchChanging},
		{"a continuation that is none, or of another search, is the search's fault", searchGarbage},
		{"a search whose context has ended is infrastructure, and can go on", searchCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// searched gives the ids of a search's documents, sorted.
func searched(t testing.TB, s ops.DocumentSearch, q ops.Search, size int) []string {
	t.Helper()
	found := ids(t, searchedDocs(t, s, q, size))
	slices.Sort(found)
	return found
}

// searchedDocs turns the pages of a search.
func searchedDocs(t testing.TB, s ops.DocumentSearch, q ops.Search, size int) []invoice.Projection {
	t.Helper()
	if q.To == 0 {
		q.To = forever
	}
	var docs []invoice.Projection
	for continuation := ""; ; {
		page, next, err := s.Search(t.Context(), q, size, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), size)
		docs = append(docs, page...)
		if next == "" {
			return docs
		}
		require.NotEqual(t, continuation, next, "a search that does not get on never ends")
		continuation = next
	}
}

func searchFilters(t *testing.T, h SearchHarness) {
	type doc = map[string]any
	line := func(id any, duplicates ...any) doc {
		return doc{"invoice_details_from_rpa": doc{"IVCE_DTL_UID": id}, "post-processing": doc{"duplicate_detail_uids": duplicates}}
	}
	for id, more := range map[string]doc{
		"a": {"request_details": doc{"sys_name": "web", "id": "r1"}, "sql_writer": doc{"status": "failed", "last_error_kind": "document", "last_error_code": "2628"}},
		"b": {"request_details": doc{"sys_name": "web", "id": "r1"}, "sql_writer": doc{"status": "retry_scheduled", "last_error_kind": "document", "last_error_code": "547"}},
		"c": {"request_details": doc{"sys_name": "web", "id": "r2"}, "sql_writer": doc{"status": "failed", "last_error_kind": "internal", "last_error_code": "2628"}},
		"d": {"request_details": doc{"sys_name": "dev", "id": "r1"}, "sql_writer": doc{"status": "failed", "last_error_kind": "document", "last_error_code": "2628"}},
		"e": {"request_details": doc{"id": "r1"}, "sql_writer": doc{"status": "failed", "last_error_kind": "document", "last_error_code": 2628}},
		"f": {"request_details": "web", "sql_writer": "failed"},
		"g": {"request_details": doc{"sys_name": "WEB"}, "sql_writer": nil},
	} {
		more["id"] = id
		maps.Copy(more, line(1))
		text, err := json.Marshal(more)
		require.NoError(t, err)
		h.Put(t, text)
	}
	for _, c := range []struct {
		q    ops.Search
		want []string
	}{
		{ops.Search{}, []string{"a", "b", "c", "d", "e", "f", "g"}},
		{ops.Search{SysName: "web"}, []string{"a", "b", "c"}},
		{ops.Search{Status: invoice.Failed}, []string{"a", "c", "d", "e"}},
		{ops.Search{SysName: "web", Status: invoice.Failed}, []string{"a", "c"}},
		{ops.Search{Kind: "document"}, []string{"a", "b", "d", "e"}},
		{ops.Search{Code: "2628"}, []string{"a", "c", "d"}},
		{ops.Search{Request: "r1"}, []string{"a", "b", "d", "e"}},
		{ops.Search{Request: "r1", SysName: "web", Kind: "document", Code: "547", Status: invoice.RetryScheduled, Line: 1}, []string{"b"}},
		{ops.Search{Request: "r1", SysName: "web", Kind: "document", Code: "547", Status: invoice.RetryScheduled, Line: 2}, []string{}},
		{ops.Search{Request: "R1"}, []string{}},
	} {
		require.ElementsMatch(t, c.want, searched(t, h.Search, c.q, 1000), "%+v", c.q)
	}
}

func searchLines(t *testing.T, h SearchHarness) {
	for id, members := range map[string]string{
		"number": `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549}`, "fraction of nothing": `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549.0}`,
		"digits":    `"invoice_details_from_rpa":{"IVCE_DTL_UID":"1421549"}`,
		"duplicate": `"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":[2,1421549]}`,
		"as digits": `"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":["1421549",3]}`,
		"both":      `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"post-processing":{"duplicate_detail_uids":[1421549]}`,
		"another":   `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421548},"post-processing":{"duplicate_detail_uids":[14215490,"01421549"," 1421549"]}`,
		"no list":   `"invoice_details_from_rpa":{"IVCE_DTL_UID":null},"post-processing":{"duplicate_detail_uids":1421549}`,
		"null":      `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"post-processing":null`,
		"nested":    `"invoice_details_from_rpa":{"IVCE_DTL_UID":[1421549]},"post-processing":{"duplicate_detail_uids":[[1421549],{"a":1421549},null]}`,
		"nothing":   `"sql_writer":{"status":"pending"}`,
		"exact":     `"invoice_details_from_rpa":{"IVCE_DTL_UID":"9007199254740993"}`,
		"rounded":   `"invoice_details_from_rpa":{"IVCE_DTL_UID":9007199254740993}`,
	} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`",`+members+`}`))
	}
	require.ElementsMatch(t, []string{"number", "fraction of nothing", "digits", "duplicate", "as digits", "both", "null"}, searched(t, h.Search, ops.Search{Line: 1421549}, 1000))
	require.Equal(t, []string{"exact"}, searched(t, h.Search, ops.Search{Line: 9007199254740993}, 1000), "a number that JSON writers round names no line")
}

func searchRequests(t *testing.T, h SearchHarness) {
	for id, request := range map[string]string{"text": `"77"`, "number": `77`, "other": `"077"`, "long": `"2025-12-17 10:30:00.000000-06:00-0001"`, "null": `null`, "list": `[77]`} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`","request_details":{"id":`+request+`}}`))
	}
	require.ElementsMatch(t, []string{"text", "number"}, searched(t, h.Search, ops.Search{Request: "77"}, 1000))
	require.Equal(t, []string{"other"}, searched(t, h.Search, ops.Search{Request: "077"}, 1000))
	require.Equal(t, []string{"long"}, searched(t, h.Search, ops.Search{Request: "2025-12-17 10:30:00.000000-06:00-0001"}, 1000))
}

func searchSpellings(t *testing.T, h SearchHarness) {
	for _, status := range []string{"failed", "FAILED", "Failed", "fAILED", " failed", "failed ", "faile"} {
		h.Put(t, result(status, "web", status))
	}
	require.ElementsMatch(t, []string{"failed", "FAILED", "Failed"}, searched(t, h.Search, ops.Search{Status: invoice.Failed}, 1000))
}

func searchBounds(t *testing.T, h SearchHarness) {
	h.Put(t, result("a", "web", "committed"))
	d, err := invoice.Read(mustRead(t, h.DocumentsHarness, "a"), time.Now())
	require.NoError(t, err)
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{0, forever, []string{"a"}},
		{d.TS, d.TS + 1, []string{"a"}},
		{1, d.TS, []string{}},
		{d.TS + 1, forever, []string{}},
		{d.TS, d.TS, []string{}},
	} {
		require.Equal(t, c.want, searched(t, h.Search, ops.Search{From: c.from, To: c.to}, 1000), "from %d to %d of %d", c.from, c.to, d.TS)
	}
}

func searchMembers(t *testing.T, h SearchHarness) {
	for id, members := range map[string]string{
		"2025-12-17 10:30:00.000000-06:00-0001-1": `"request_details":{"id":"r","sys_name":"web","total_invoice_detail_ids":3},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":[2,"3"]},
			"sql_writer":{"status":"RETRY_SCHEDULED","retry_count":2,"retry_after":1766000000.5,"last_error_kind":"document","last_error_code":"2628","failed_at":"x"}`,
		"without time": `"request_details":{"id":"r","sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"4"},"sql_writer":{"status":"committed","version":1766000000000001}`,
		"odd":          `"request_details":{"id":"r"},"invoice_details_from_rpa":[],"post-processing":[],"sql_writer":{"status":[]}`,
		"little":       `"request_details":{"id":"r"}`,
	} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`",`+members+`}`))
	}
	docs := searchedDocs(t, h.Search, ops.Search{Request: "r"}, 1000)
	require.Len(t, docs, 4)
	for _, raw := range docs {
		got, err := invoice.Read(raw, time.Now())
		require.NoError(t, err)
		want, err := invoice.Read(mustRead(t, h.DocumentsHarness, got.ID), time.Now())
		require.NoError(t, err)
		require.Equal(t, want.TS, got.TS)
		require.Equal(t, want.Version, got.Version)
		require.Equal(t, want.SysName, got.SysName)
		require.Equal(t, want.Main, got.Main)
		require.Equal(t, want.Duplicates, got.Duplicates)
		want.State.Present = got.State.Present // an empty sql_writer means the same as none
		require.Equal(t, want.State, got.State)
		type request struct {
			Details struct {
				ID    any `json:"id"`
				Total any `json:"total_invoice_detail_ids"`
			} `json:"request_details"`
		}
		var has, wants request
		require.NoError(t, json.Unmarshal(raw, &has))
		require.NoError(t, json.Unmarshal(mustRead(t, h.DocumentsHarness, got.ID), &wants))
		require.Equal(t, wants, has)
	}
}

func searchPages(t *testing.T, h SearchHarness) {
	want := make([]string, 2500)
	for i := range want {
		want[i] = fmt.Sprintf("doc %04d", i)
		h.Put(t, result(want[i], "web", "failed"))
		if i%10 == 0 {
			h.Put(t, result("other "+want[i], "web", "committed"))
		}
	}
	q := ops.Search{SysName: "web", Status: invoice.Failed}
	for _, size := range []int{1000, 999, 70} {
		require.Equal(t, want, searched(t, h.Search, q, size))
	}
	q.To = forever
	var docs []invoice.Projection
	size := 10
	for continuation := ""; ; size += 300 {
		page, next, err := h.Restarted(t).Search(t.Context(), q, size, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), size)
		require.LessOrEqual(t, len(next), 600, "an operator's continuation has 1 KB")
		docs = append(docs, page...)
		if continuation = next; next == "" {
			break
		}
	}
	got := ids(t, docs)
	slices.Sort(got)
	require.Equal(t, want, got)
}

func searchChanging(t *testing.T, h SearchHarness) {
	counts := map[string]int{}
	for i := range 600 {
		h.Put(t, result(fmt.Sprintf("doc %04d", i), "web", "failed"))
	}
	q := ops.Search{SysName: "web", Status: invoice.Failed, To: forever}
	for continuation, i := "", 0; ; i++ {
		page, next, err := h.Search.Search(t.Context(), q, 100, continuation)
		require.NoError(t, err)
		for _, id := range ids(t, page) {
			counts[id]++
		}
		for n := range 10 { // every third document is committed, and new ones come
			h.Put(t, result(fmt.Sprintf("doc %04d", (30*i+3*n)%600), "web", "committed"))
			h.Put(t, result(fmt.Sprintf("new %04d", 10*i+n), "web", "failed"))
		}
		if continuation = next; next == "" || i > 100 {
			break
		}
	}
	for i := range 600 {
		if i%3 != 0 {
			require.Equal(t, 1, counts[fmt.Sprintf("doc %04d", i)])
		}
	}
}

func searchGarbage(t *testing.T, h SearchHarness) {
	for i := range 30 {
		h.Put(t, result(fmt.Sprint("doc ", i), "web", "failed"))
	}
	q := ops.Search{SysName: "web", To: forever}
	_, good, err := h.Search.Search(t.Context(), q, 10, "")
	require.NoError(t, err)
	require.NotEmpty(t, good)
	for _, bad := range []string{"garbage", " ", "e30=", "\n", "a\r\nX-Injected: 1", "\x00", "ü😀", good + "!", good[1:], good[:17]} {
		_, _, err := h.Search.Search(t.Context(), q, 10, bad)
		requireFault(t, err, fault.Document, fault.NoCondition, "%q", bad)
		require.Equal(t, "continuation", fault.CodeOf(err), "%q", bad)
	}
	other := q
	other.From = 1
	_, _, err = h.Search.Search(t.Context(), other, 10, good)
	require.Equal(t, "continuation", fault.CodeOf(err))
}

func searchCancelled(t *testing.T, h SearchHarness) {
	for i := range 30 {
		h.Put(t, result(fmt.Sprint("doc ", i), "web", "failed"))
	}
	q := ops.Search{SysName: "web", To: forever}
	_, good, err := h.Search.Search(t.Context(), q, 10, "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	docs, next, err := h.Search.Search(ctx, q, 10, good)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	require.Empty(t, docs)
	require.Empty(t, next)
	_, _, err = h.Search.Search(t.Context(), q, 10, good)
	require.NoError(t, err)
}

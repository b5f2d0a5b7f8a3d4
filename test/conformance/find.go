package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// FinderHarness has the port under test and the functions that TestFinder needs around it.
type FinderHarness struct {
	DocumentsHarness
	// Finder is the port under test, over the same container.
	Finder commit.Finder
	// Restarted makes another one over the same container, as the next process does.
	Restarted func(t testing.TB) commit.Finder
}

// TestFinder checks an implementation of commit.Finder against the port's contract. open makes a new one per test.
func TestFinder(t *testing.T, open func(t *testing.T) FinderHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, FinderHarness)
	}{
		{"each filter finds what it names, and all must match", findFilters},
		{"a status is found in its three spellings and in no other", findSpellings},
		{"several statuses at once, each document once", findStatuses},
		{"what has no status is found by none", findWithoutStatus},
		{"of this environment only, to the letter", findEnvironment},
		{"a document is between the bounds of its _ts and of no other", findBounds},
		{"a line is found by number and by digits, as main line and as duplicate", findLines},
		{"a request is found by text and by number", findRequests},
		{"by ids come those that exist, whole, of any environment", findIDs},
		{"each retry is in its window and in no other", findRetries},
		{"a postponed retry is early when something was applied after it was last changed", findPostponed},
		{"what was left behind is pending or processing, and old", findOrphans},
		{"a window has nothing of another environment or without a status", findWindows},
		{"a pending document says what the document says", findPendingDocs},
		{"members of another type fail nothing", findOddTypes},
		{"members of a document mean what the document means", findMembers},
		{"a list's members mean what the document means", findParts},
		{"2,500 documents over pages of several sizes, each once, also in another process", findPages},
		{"a page that is asked for again is the same", findRepeated},
		{"documents that do not change come once, whatever the others do", findChanging},
		{"what was found may be written to before the next page", findWritten},
		{"a continuation that is none is the search's fault and not the network's", findGarbage},
		{"a continuation of another search is none", findOfAnother},
		{"nothing to find is no document and, in the end, no continuation", findNothing},
		{"each page tells its charge, more for more", findCharges},
		{"a search whose context has ended is infrastructure, and can go on", findCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// forever is a _ts that no document has.
const forever = 253_402_300_800

// find turns the pages of a search. Without bounds it has none, without a size pages of 1,000, without members the ids.
func find(t testing.TB, f commit.Finder, q commit.Query) []invoice.Projection {
	t.Helper()
	if q.To == 0 {
		q.To = forever
	}
	if q.Size == 0 {
		q.Size = commit.MaxPage
	}
	if q.Members == nil {
		q.Members = []string{"id"}
	}
	var docs []invoice.Projection
	for continuation := ""; ; {
		page, err := f.Find(t.Context(), q, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Documents), q.Size)
		docs = append(docs, page.Documents...)
		if page.Next == "" {
			return docs
		}
		require.NotEqual(t, continuation, page.Next, "a search that does not get on never ends")
		continuation = page.Next
	}
}

// foundIDs gives the ids of a search's documents, sorted.
func foundIDs(t testing.TB, f commit.Finder, q commit.Query) []string {
	t.Helper()
	found := ids(t, find(t, f, q))
	slices.Sort(found)
	return found
}

// findPending gives the documents of a search by their state.
func findPending(t testing.TB, f commit.Finder, q commit.Query) []commit.PendingDoc {
	t.Helper()
	q.Members = commit.PendingMembers()
	found, err := commit.PendingDocs(find(t, f, q))
	require.NoError(t, err)
	return found
}

// inStatus asks for documents of the environment web.
func inStatus(statuses ...invoice.Status) commit.Query {
	return commit.Query{SysName: "web", Statuses: statuses, To: forever, Members: []string{"id"}, Size: commit.MaxPage}
}

// statuses are all that there are.
func statuses() []invoice.Status {
	return []invoice.Status{
		invoice.Pending, invoice.RetryScheduled, invoice.Committed, invoice.Failed, invoice.Processing,
	}
}

func findFilters(t *testing.T, h FinderHarness) {
	type doc = map[string]any
	for id, more := range map[string]doc{
		"a": {
			"request_details": doc{"sys_name": "web", "id": "r1"},
			"sql_writer":      doc{"status": "failed", "last_error_kind": "document", "last_error_code": "2628"},
		},
		"b": {
			"request_details": doc{"sys_name": "web", "id": "r1"},
			"sql_writer": doc{
				"status": "retry_scheduled", "last_error_kind": "document", "last_error_code": "547",
			},
		},
		"c": {
			"request_details": doc{"sys_name": "web", "id": "r2"},
			"sql_writer":      doc{"status": "failed", "last_error_kind": "internal", "last_error_code": "2628"},
		},
		"d": {
			"request_details": doc{"sys_name": "dev", "id": "r1"},
			"sql_writer":      doc{"status": "failed", "last_error_kind": "document", "last_error_code": "2628"},
		},
		"e": {
			"request_details": doc{"id": "r1"},
			"sql_writer":      doc{"status": "failed", "last_error_kind": "document", "last_error_code": 2628},
		},
		"f": {"request_details": "web", "sql_writer": "failed"},
		"g": {"request_details": doc{"sys_name": "WEB"}, "sql_writer": nil},
	} {
		more["id"], more["invoice_details_from_rpa"] = id, doc{"IVCE_DTL_UID": 1}
		text, err := json.Marshal(more)
		require.NoError(t, err)
		h.Put(t, text)
	}
	failed, deferred := []invoice.Status{invoice.Failed}, []invoice.Status{invoice.RetryScheduled}
	for _, c := range []struct {
		q    commit.Query
		want []string
	}{
		{commit.Query{}, []string{"a", "b", "c", "d", "e", "f", "g"}},
		{commit.Query{SysName: "web"}, []string{"a", "b", "c"}},
		{commit.Query{Statuses: failed}, []string{"a", "c", "d", "e"}},
		{commit.Query{SysName: "web", Statuses: failed}, []string{"a", "c"}},
		{commit.Query{Kind: "document"}, []string{"a", "b", "d", "e"}},
		{commit.Query{Code: "2628"}, []string{"a", "c", "d"}},
		{commit.Query{Request: "r1"}, []string{"a", "b", "d", "e"}},
		{
			commit.Query{
				Request: "r1", SysName: "web", Kind: "document", Code: "547", Statuses: deferred, Line: 1,
			}, []string{"b"},
		},
		{
			commit.Query{
				Request: "r1", SysName: "web", Kind: "document", Code: "547", Statuses: deferred, Line: 2,
			}, []string{},
		},
		{commit.Query{Request: "R1"}, []string{}},
	} {
		require.Equal(t, c.want, foundIDs(t, h.Finder, c.q), "%+v", c.q)
	}
}

func findSpellings(t *testing.T, h FinderHarness) {
	want := map[invoice.Status][]string{
		invoice.Pending:        {"pending", "PENDING", "Pending"},
		invoice.RetryScheduled: {"retry_scheduled", "RETRY_SCHEDULED", "Retry_scheduled"},
		invoice.Committed:      {"committed", "COMMITTED", "Committed"},
		invoice.Failed:         {"failed", "FAILED", "Failed"},
		invoice.Processing:     {"processing", "PROCESSING", "Processing"},
	}
	for status, spellings := range want {
		other := string(status)
		for _, text := range append(slices.Clone(spellings), other[:1]+strings.ToUpper(other[1:]), " "+other,
			other+" ", other+"s", other[1:]) {
			h.Put(t, stateDocument(text, "web", text, ""))
		}
	}
	for status, spellings := range want {
		found := findPending(t, h.Finder, inStatus(status))
		require.ElementsMatch(t, spellings, pendingIDs(found))
		for _, doc := range found {
			require.Equal(t, status, doc.Status, "told in lower case")
		}
	}
}

func findStatuses(t *testing.T, h FinderHarness) {
	for _, status := range statuses() {
		h.Put(t, stateDocument(string(status), "web", string(status), ""))
	}
	require.Equal(t, []string{"failed", "processing"},
		foundIDs(t, h.Finder, inStatus(invoice.Failed, invoice.Processing)))
	repeated := inStatus(invoice.RetryScheduled, invoice.Pending, invoice.RetryScheduled)
	require.Equal(t, []string{"pending", "retry_scheduled"}, foundIDs(t, h.Finder, repeated))
	require.Len(t, foundIDs(t, h.Finder, inStatus(statuses()...)), len(statuses()))
}

// withoutStatus are documents of an environment without a status.
func withoutStatus(sysName string) []json.RawMessage {
	var docs []json.RawMessage
	for id, state := range map[string]string{
		"absent": ``, "null": `,"sql_writer":null`,
		"no status":   `,"sql_writer":{"retry_count":1,"retry_after":1,"postponed":true}`,
		"status null": `,"sql_writer":{"status":null,"last_error_kind":"contention"}`,
		"text":        `,"sql_writer":"pending"`, "list": `,"sql_writer":[{"status":"pending"}]`,
		"number": `,"sql_writer":7`, "false": `,"sql_writer":false`,
		"other case":    `,"sql_writer":{"Status":"pending"}`,
		"another place": `,"SQL_WRITER":{"status":"pending"},"status":"pending"`,
		"number 0":      `,"sql_writer":{"status":0}`, "empty": `,"sql_writer":{"status":""}`,
		"no":              `,"sql_writer":{"status":false}`,
		"list of pending": `,"sql_writer":{"status":["pending"]}`, "object": `,"sql_writer":{"status":{}}`,
	} {
		docs = append(docs,
			json.RawMessage(`{"id":"`+sysName+" "+id+`","request_details":{"sys_name":"`+sysName+`"}`+state+`}`))
	}
	return docs
}

func findWithoutStatus(t *testing.T, h FinderHarness) {
	for _, doc := range withoutStatus("web") {
		h.Put(t, doc)
	}
	require.Empty(t, foundIDs(t, h.Finder, inStatus(statuses()...)), "a result is offered by its status")
	h.Put(t, stateDocument("offered", "web", "pending", ""))
	require.Equal(t, []string{"offered"}, foundIDs(t, h.Finder, inStatus(invoice.Pending)))
	require.Len(t, foundIDs(t, h.Finder, inStatus()), len(withoutStatus("web"))+1, "any status, or none")
}

func findEnvironment(t *testing.T, h FinderHarness) {
	h.Put(t, stateDocument("ours", "web", "pending", ""))
	for i, name := range []string{
		`"WEB"`, `"Web"`, `"web "`, `" web"`, `"webs"`, `"we"`, `"dev"`, `""`, `null`, `7`, `true`,
		`["web"]`, `{"sys_name":"web"}`,
	} {
		h.Put(t,
			json.RawMessage(
				fmt.Sprintf(
					`{"id":"theirs %d","request_details":{"sys_name":%s},"sql_writer":{"status":"pending"}}`, i, name)))
	}
	for _, doc := range []string{
		`{"id":"nobody's"}`, `{"id":"text","request_details":"web"}`,
		`{"id":"list","request_details":[{"sys_name":"web"}]}`, `{"id":"null","request_details":null}`,
		`{"id":"another place","sys_name":"web"}`, `{"id":"another case","request_details":{"SYS_NAME":"web"}}`,
		`{"id":"another case above","Request_Details":{"sys_name":"web"}}`,
	} {
		h.Put(t, json.RawMessage(doc))
	}
	require.Equal(t, []string{"ours"}, foundIDs(t, h.Finder, inStatus(statuses()...)))
	require.Equal(t, []string{"ours"}, foundIDs(t, h.Finder, inStatus()))
}

func findBounds(t *testing.T, h FinderHarness) {
	h.Put(t, result("a", "web", "committed"))
	ts := tsOf(t, h, "a")
	for _, c := range []struct {
		from, to int64
		inside   bool
	}{
		{0, forever, true},
		{ts, ts + 1, true},
		{0, ts, false},
		{ts + 1, forever, false},
		{ts, ts, false},
		{ts + 1, ts, false},
	} {
		for _, q := range []commit.Query{{}, {SysName: "web"}, inStatus(invoice.Committed)} {
			q.From, q.To = c.from, c.to
			require.Equal(t, c.inside, slices.Contains(foundIDs(t, h.Finder, q), "a"),
				"from %d to %d of %d", c.from, c.to, ts)
		}
	}
	q := inStatus()
	q.To = 0
	page, err := h.Finder.Find(t.Context(), q, "")
	require.NoError(t, err)
	require.Empty(t, page.Documents, "a bound that was forgotten finds nothing")
}

func findLines(t *testing.T, h FinderHarness) {
	for id, members := range map[string]string{
		"number":              `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549}`,
		"fraction of nothing": `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549.0}`,
		"digits":              `"invoice_details_from_rpa":{"IVCE_DTL_UID":"1421549"}`,
		"duplicate":           `"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":[2,1421549]}`,
		"as digits":           `"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":["1421549",3]}`,
		"both":                `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"post-processing":{"duplicate_detail_uids":[1421549]}`,
		"another":             `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421548},"post-processing":{"duplicate_detail_uids":[14215490,"01421549"," 1421549"]}`,
		"no list":             `"invoice_details_from_rpa":{"IVCE_DTL_UID":null},"post-processing":{"duplicate_detail_uids":1421549}`,
		"null":                `"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"post-processing":null`,
		"nested":              `"invoice_details_from_rpa":{"IVCE_DTL_UID":[1421549]},"post-processing":{"duplicate_detail_uids":[[1421549],{"a":1421549},null]}`,
		"nothing":             `"sql_writer":{"status":"pending"}`,
		"exact":               `"invoice_details_from_rpa":{"IVCE_DTL_UID":"9007199254740993"}`,
		"rounded":             `"invoice_details_from_rpa":{"IVCE_DTL_UID":9007199254740993}`,
	} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`",`+members+`}`))
	}
	want := []string{"number", "fraction of nothing", "digits", "duplicate", "as digits", "both", "null"}
	require.ElementsMatch(t, want, foundIDs(t, h.Finder, commit.Query{Line: 1421549}))
	require.Equal(t, []string{"exact"}, foundIDs(t, h.Finder, commit.Query{Line: 9007199254740993}),
		"a number that JSON writers round names no line")
}

func findRequests(t *testing.T, h FinderHarness) {
	for id, request := range map[string]string{
		"text": `"77"`, "number": `77`, "other": `"077"`, "long": `"2025-12-17 10:30:00.000000-06:00-0001"`,
		"null": `null`, "list": `[77]`,
	} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`","request_details":{"id":`+request+`}}`))
	}
	require.ElementsMatch(t, []string{"text", "number"}, foundIDs(t, h.Finder, commit.Query{Request: "77"}))
	require.Equal(t, []string{"other"}, foundIDs(t, h.Finder, commit.Query{Request: "077"}))
	require.Equal(t, []string{"long"},
		foundIDs(t, h.Finder, commit.Query{Request: "2025-12-17 10:30:00.000000-06:00-0001"}))
}

func findIDs(t *testing.T, h FinderHarness) {
	want := []string{"dev 1", "none"}
	h.Put(t, result("dev 1", "dev", "committed"))
	h.Put(t, json.RawMessage(`{"id":"none","content":"marker"}`))
	asked := []string{"dev 1", "none", "missing"}
	for i := range 97 {
		id := fmt.Sprintf("web %02d", i)
		h.Put(t, result(id, "web", "failed"))
		want, asked = append(want, id), append(asked, id)
	}
	h.Put(t, result("another", "web", "failed"))
	require.Equal(t, want, foundIDs(t, h.Finder, commit.Query{IDs: asked}))
	require.Equal(t, want, foundIDs(t, h.Finder, commit.Query{IDs: asked, Size: 30}))
	require.Equal(t, want[2:], foundIDs(t, h.Finder, commit.Query{IDs: asked, SysName: "web"}))
	page, err := h.Finder.Find(t.Context(), commit.Query{IDs: []string{"none"}, Size: commit.MaxPage}, "")
	for err == nil && len(page.Documents) == 0 && page.Next != "" {
		page, err = h.Finder.Find(t.Context(), commit.Query{IDs: []string{"none"}, Size: commit.MaxPage}, page.Next)
	}
	require.NoError(t, err)
	require.Len(t, page.Documents, 1)
	require.JSONEq(t, string(mustRead(t, h.DocumentsHarness, "none")), string(page.Documents[0]),
		"whole, where no members are named")
}

func findPendingDocs(t *testing.T, h FinderHarness) {
	attempts := `"attempts":[{"at":"a","error":"b"},{"at":"c"}]`
	quoted := `<a&b> "ü😀"`
	for _, id := range []string{"2025-12-17 10:30:15.123456-06:00", quoted} {
		h.Put(t,
			stateDocument(id, "web", "Retry_scheduled",
				`"retry_count":3,"retry_after":1765999999.25,"postponed":true,"last_error_kind":"document",
			"last_error_code":2628,"failed_at":"2025-12-17 10:30:15.123456-06:00","last_error":"a text","last_error_at":"d","theirs":1,`+attempts))
		want := commit.PendingDoc{
			ID: id, TS: tsOf(t, h, id), Status: invoice.RetryScheduled, RetryAfter: asked, Postponed: true,
			Kind: "document", Code: "2628",
			FailedAt: "2025-12-17 10:30:15.123456-06:00", FirstAt: "a", ErrorAt: "d",
		}
		require.Contains(t, findPending(t, h.Finder, inStatus(invoice.RetryScheduled)), want)
		require.Contains(t, findPending(t, h.Finder, inWindow(commit.Blamed)), want)
	}
	h.Put(t,
		json.RawMessage(
			`{"id":"line","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"sql_writer":{"status":"pending"}}`))
	line := findPending(t, h.Finder, inStatus(invoice.Pending))
	require.Len(t, line, 1)
	require.EqualValues(t, 1421549, line[0].Line)
	h.Put(t, stateDocument("bare", "web", "failed", ""))
	require.Equal(t, []commit.PendingDoc{{ID: "bare", TS: tsOf(t, h, "bare"), Status: invoice.Failed}},
		findPending(t, h.Finder, inStatus(invoice.Failed)))
}

func findOddTypes(t *testing.T, h FinderHarness) {
	odd := map[string]string{
		"null": `null`, "text": `"1766000000"`, "list": `[1]`, "object": `{"a":1}`, "true": `true`,
		"huge": `1e300`, "negative": `-5`,
	}
	due := map[string]int64{"fraction": asked + 1, "whole": asked}
	for name, value := range odd {
		h.Put(t,
			json.RawMessage(`{"id":"`+name+
				`","request_details":{"sys_name":"web"},"sql_writer":{"status":"pending","retry_after":`+value+`,
			"postponed":`+value+`,"last_error_kind":`+value+`,"last_error_code":`+value+`,"failed_at":`+value+`,"last_error_at":`+value+`,"attempts":`+value+`},
			"invoice_details_from_rpa":`+value+`}`))
		h.Put(t,
			json.RawMessage(`{"id":"within `+name+
				`","request_details":{"sys_name":"web"},"sql_writer":{"status":"pending","attempts":[{"at":`+value+`}]},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":`+value+`}}`))
		h.Put(t,
			json.RawMessage(`{"id":"status `+name+`","request_details":{"sys_name":"web"},"sql_writer":{"status":[`+
				value+`],"retry_after":1}}`))
		due[name], due["within "+name] = 0, 0
	}
	h.Put(t, stateDocument("fraction", "web", "pending", `"retry_after":1766000000.25,"last_error_code":2628`))
	h.Put(t, stateDocument("whole", "web", "pending", `"retry_after":1766000000`))
	found := findPending(t, h.Finder, inStatus(invoice.Pending))
	require.Len(t, found, len(due))
	for _, doc := range found {
		require.Contains(t, due, doc.ID)
		require.Equal(t, due[doc.ID], doc.RetryAfter, doc.ID)
		require.Equal(t, doc.ID == "true", doc.Postponed, doc.ID)
		switch doc.ID {
		case "fraction":
			require.Equal(t, "2628", doc.Code, "somebody's editor wrote a number")
		case "null", "list", "object":
			require.Empty(t, doc.Kind+doc.Code+doc.FailedAt+doc.FirstAt, doc.ID)
		}
	}
	require.Empty(t,
		foundIDs(t, h.Finder, inStatus(invoice.Committed, invoice.RetryScheduled, invoice.Failed, invoice.Processing)))
}

func findMembers(t *testing.T, h FinderHarness) {
	docs := []json.RawMessage{
		result("2025-12-17 10:30:00.000000-06:00-0001-1", "web", "committed"),
		json.RawMessage(
			`{"id":"b","request_details":{"sys_name":"web"},"process_output":null,"sql_writer":{"status":"committed","old":[1]},"other":"x"}`),
		json.RawMessage(
			`{"id":"c","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"9007199254740993"},
			"post-processing":{"duplicate_detail_uids":[2,"3"]},"process_output":{"manufacturer_name":"<b>&\u00fc\ud83d\ude00","invoice_line_status":"DS1","part_number":7}}`),
	}
	for _, doc := range docs {
		h.Put(t, doc)
	}
	q := inStatus()
	q.Members, q.Size = mapping.InUse().Members(), 2
	found := find(t, h.Finder, q)
	require.Len(t, found, len(docs))
	now := time.Now()
	for _, raw := range found {
		got, err := invoice.Reader{}.Read(raw, now)
		require.NoError(t, err)
		want, err := invoice.Reader{}.Read(mustRead(t, h.DocumentsHarness, got.ID), now)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Members of members, and a member whose name needs quotes.
func findParts(t *testing.T, h FinderHarness) {
	for id, members := range map[string]string{
		"2025-12-17 10:30:00.000000-06:00-0001-1": `"request_details":{"id":"r","sys_name":"web","total_invoice_detail_ids":3},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"post-processing":{"duplicate_detail_uids":[2,"3"]},
			"sql_writer":{"status":"RETRY_SCHEDULED","retry_count":2,"retry_after":1766000000.5,"last_error_kind":"document","version":7}`,
		"without time": `"request_details":{"id":"r","sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"4"},"sql_writer":{"status":"committed","version":1766000000000001}`,
		"odd":          `"request_details":{"id":"r"},"invoice_details_from_rpa":[],"post-processing":[],"sql_writer":{"status":[]}`,
		"little":       `"request_details":{"id":"r"}`,
	} {
		h.Put(t, json.RawMessage(`{"id":"`+id+`",`+members+`}`))
	}
	q := commit.Query{Request: "r", Members: []string{
		"id", "_ts", "request_details", "post-processing", "invoice_details_from_rpa.IVCE_DTL_UID", "sql_writer.status",
		"sql_writer.retry_count",
		"sql_writer.retry_after", "sql_writer.last_error_kind", "sql_writer.version",
	}}
	docs := find(t, h.Finder, q)
	require.Len(t, docs, 4)
	for _, raw := range docs {
		got, err := invoice.Reader{}.Read(raw, time.Now())
		require.NoError(t, err)
		whole := mustRead(t, h.DocumentsHarness, got.ID)
		want, err := invoice.Reader{}.Read(whole, time.Now())
		require.NoError(t, err)
		require.Equal(t, []any{want.TS, want.Version, want.SysName, want.Main, want.Duplicates},
			[]any{got.TS, got.Version, got.SysName, got.Main, got.Duplicates})
		want.State.Present = got.State.Present // an empty sql_writer means the same as none
		require.Equal(t, want.State, got.State)
		require.Equal(t, members(t, whole)["request_details"], members(t, json.RawMessage(raw))["request_details"])
	}
}

// putFailed writes n documents that failed, and others. It gives the ids of the former, sorted.
func putFailed(t testing.TB, h FinderHarness, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("doc %04d", i)
		h.Put(t, result(ids[i], "web", []string{"failed", "FAILED"}[i%2]))
		if i%10 == 0 {
			h.Put(t, result(ids[i]+" is done", "web", "committed"))
			h.Put(t, result(ids[i]+" of dev", "dev", "failed"))
		}
	}
	return ids
}

func findPages(t *testing.T, h FinderHarness) {
	want := putFailed(t, h, 2500)
	q := inStatus(invoice.Failed)
	for _, size := range []int{1000, 999, 70} {
		q.Size = size
		require.Equal(t, want, foundIDs(t, h.Finder, q))
	}
	var found []string
	pages := 0
	q.Size = 10
	for continuation := ""; ; {
		page, err := h.Restarted(t).Find(t.Context(), q, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Documents), q.Size)
		found = append(found, ids(t, page.Documents)...)
		pages, q.Size = pages+1, min(q.Size+300, commit.MaxPage)
		if continuation = page.Next; continuation == "" {
			break
		}
	}
	require.Greater(t, pages, 3)
	slices.Sort(found)
	require.Equal(t, want, found)
}

func findRepeated(t *testing.T, h FinderHarness) {
	putFailed(t, h, 350)
	q := inStatus(invoice.Failed)
	q.Size = 100
	for continuation := ""; ; {
		page, err := h.Finder.Find(t.Context(), q, continuation)
		require.NoError(t, err)
		again, err := h.Restarted(t).Find(t.Context(), q, continuation)
		require.NoError(t, err)
		require.ElementsMatch(t, ids(t, page.Documents), ids(t, again.Documents))
		require.Equal(t, page.Next != "", again.Next != "", "the search is as far as it was")
		if continuation = page.Next; continuation == "" {
			return
		}
	}
}

// While somebody looks for documents, producers add some, and what was found already is committed or written again.
func findChanging(t *testing.T, h FinderHarness) {
	all := putFailed(t, h, 600)
	q := inStatus(invoice.Failed)
	q.Size = 100
	counts := map[string]int{}
	for continuation, i := "", 0; i <= 100; i++ { // producers that never stop can keep a search going
		page, err := h.Finder.Find(t.Context(), q, continuation)
		require.NoError(t, err)
		for _, id := range ids(t, page.Documents) {
			counts[id]++
		}
		for n := range 10 { // of every third document
			h.Put(t, result(all[(30*i+3*n)%len(all)], "web", []string{"committed", "failed"}[n%2]))
			h.Put(t,
				result(fmt.Sprintf("%s %04d", []string{"after", "doc 0300 new", "zz"}[n%3], 10*i+n), "web", "failed"))
		}
		if continuation = page.Next; continuation == "" {
			break
		}
	}
	for i, id := range all {
		if i%3 != 0 {
			require.Equal(t, 1, counts[id], id)
		}
	}
}

func findWritten(t *testing.T, h FinderHarness) {
	all := putFailed(t, h, 250)
	q := inStatus(invoice.Failed)
	q.Size = 100
	counts := map[string]int{}
	for continuation := ""; ; {
		page, err := h.Finder.Find(t.Context(), q, continuation)
		require.NoError(t, err)
		for _, id := range ids(t, page.Documents) {
			counts[id]++
			if counts[id] == 1 && id[len(id)-1]%2 == 0 {
				_, err := h.Documents.Record(t.Context(), whole(t, h.DocumentsHarness, id), state(invoice.Committed))
				require.NoError(t, err)
			}
		}
		if continuation = page.Next; continuation == "" {
			break
		}
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(counts)), "found, each at least once")
	for id, n := range counts {
		require.Equal(t, 1, n, id)
	}
	require.Len(t, foundIDs(t, h.Finder, q), len(all)/2)
}

// unfinished gives a search that has more pages, and the continuation of its first one.
func unfinished(t *testing.T, h FinderHarness) (commit.Query, string) {
	t.Helper()
	putFailed(t, h, 30)
	q := inStatus(invoice.Failed)
	q.Size = 10
	page, err := h.Finder.Find(t.Context(), q, "")
	require.NoError(t, err)
	require.NotEmpty(t, page.Next)
	return q, page.Next
}

// requireNoContinuation requires that a search refuses a continuation.
func requireNoContinuation(t *testing.T, f commit.Finder, q commit.Query, continuation string) {
	t.Helper()
	page, err := f.Find(t.Context(), q, continuation)
	requireFault(t, err, fault.Document, fault.NoCondition, "%q of %+v", continuation, q)
	require.Equal(t, "continuation", fault.CodeOf(err), "%q of %+v", continuation, q)
	require.Equal(t, commit.Page{}, page)
}

func findGarbage(t *testing.T, h FinderHarness) {
	q, good := unfinished(t, h)
	for _, bad := range []string{
		"garbage", " ", "e30=", "1", "null", "\n", "a\r\nX-Injected: 1", "\x00", "ü日本😀", ":",
		good + "!", good + "\n", good[:len(good)-5], good[1:], "x" + good, " " + good, good[:17],
	} {
		requireNoContinuation(t, h.Finder, q, bad)
	}
	require.Len(t, foundIDs(t, h.Finder, q), 30, "begun again, all is found")
}

func findOfAnother(t *testing.T, h FinderHarness) {
	q, good := unfinished(t, h)
	for _, change := range []func(*commit.Query){
		func(q *commit.Query) { q.SysName = "dev" },
		func(q *commit.Query) { q.SysName = "" },
		func(q *commit.Query) { q.Statuses = []invoice.Status{invoice.Committed} },
		func(q *commit.Query) { q.Statuses = []invoice.Status{invoice.Failed, invoice.Pending} },
		func(q *commit.Query) { q.From = 1 },
		func(q *commit.Query) { q.To-- },
		func(q *commit.Query) { q.Kind = "document" },
		func(q *commit.Query) { q.Code = "2628" },
		func(q *commit.Query) { q.Request = "r" },
		func(q *commit.Query) { q.Line = 1 },
		func(q *commit.Query) { q.IDs = []string{"a"} },
		func(q *commit.Query) { q.Window = commit.Blamed },
	} {
		other := q
		change(&other)
		requireNoContinuation(t, h.Finder, other, good)
	}
	for i := range 150 {
		h.Put(t, stateDocument(fmt.Sprint("due ", i), "web", "retry_scheduled", `"retry_after":1`))
	}
	blamed := inWindow(commit.Blamed)
	page, err := h.Finder.Find(t.Context(), blamed, "")
	require.NoError(t, err)
	require.NotEmpty(t, page.Next)
	for _, other := range []commit.Query{inWindow(commit.PutOff), inWindow(commit.Orphans)} {
		requireNoContinuation(t, h.Finder, other, page.Next)
	}
	later := blamed
	later.Times.Now++
	requireNoContinuation(t, h.Finder, later, page.Next)
	for q, continuation := range map[*commit.Query]string{&q: good, &blamed: page.Next} {
		_, err = h.Finder.Find(t.Context(), *q, continuation)
		require.NoError(t, err)
	}
}

func findNothing(t *testing.T, h FinderHarness) {
	require.Empty(t, foundIDs(t, h.Finder, inStatus(invoice.Pending)), "of an empty container")
	for i := range 50 {
		h.Put(t, result(fmt.Sprint("done ", i), "web", "committed"))
	}
	require.Empty(t, foundIDs(t, h.Finder, inStatus(invoice.Pending)))
	require.Empty(t, foundIDs(t, h.Finder, commit.Query{IDs: []string{"missing"}}))
}

func findCharges(t *testing.T, h FinderHarness) {
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprint("doc ", i))
		h.Put(t, result(all[i], "web", "failed"))
	}
	charge := func(ids []string) (sum float64) {
		require.NoError(t,
			commit.Each(t.Context(), h.Finder, commit.Query{IDs: ids, Size: commit.MaxPage},
				func(p commit.Page) (bool, error) {
					require.Positive(t, p.Charge)
					sum += p.Charge
					return true, nil
				}))
		return sum
	}
	require.Greater(t, charge(all), charge(all[:1]))
}

func findCancelled(t *testing.T, h FinderHarness) {
	q, good := unfinished(t, h)
	ctx := lateContext(t)
	for _, continuation := range []string{"", good} {
		page, err := h.Finder.Find(ctx, q, continuation)
		requireFault(t, err, fault.Infrastructure, fault.NoCondition)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, commit.Page{}, page,
			"an end of the search must not be taken for that of the call: the error says it")
	}
	_, err := h.Finder.Find(t.Context(), q, good)
	require.NoError(t, err)
}

func mustRead(t *testing.T, h DocumentsHarness, id string) json.RawMessage {
	t.Helper()
	raw, err := h.Documents.Read(t.Context(), id)
	require.NoError(t, err, id)
	return raw
}

func tsOf(t *testing.T, h FinderHarness, id string) int64 {
	t.Helper()
	d, err := invoice.Reader{}.Read(mustRead(t, h.DocumentsHarness, id), time.Now())
	require.NoError(t, err)
	return d.TS
}

func pendingIDs(found []commit.PendingDoc) []string {
	ids := make([]string, len(found))
	for i, doc := range found {
		ids[i] = doc.ID
	}
	return ids
}

// result makes a document of an environment with a status and one line.
func result(id, sysName, status string) json.RawMessage {
	doc, err := json.Marshal(map[string]any{
		"id": id, "request_details": map[string]any{"sys_name": sysName},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": 1},
		"process_output":           map[string]any{"invoice_line_status": "RC-AI", "unspsc_confidence": 0.25},
		"sql_writer": map[string]any{
			"status": status, "committed_at": "2025-12-17 10:30:15.123456-06:00",
		},
	})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return doc
}

// stateDocument makes a document with the text of a sql_writer.
func stateDocument(id, sysName, status, rest string) json.RawMessage {
	if rest != "" {
		rest = "," + rest
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		panic(err) // texts always marshal
	}
	return json.RawMessage(`{"id":` + string(quoted) + `,"request_details":{"sys_name":"` + sysName +
		`"},"sql_writer":{"status":"` + status + `"` + rest + `}}`)
}

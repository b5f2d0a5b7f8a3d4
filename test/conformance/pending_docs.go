package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// BacklogHarness has the port under test and the functions that TestBacklog needs around it.
type BacklogHarness struct {
	DocumentsHarness
	// Backlog is the port under test, over the same container.
	Backlog commit.Backlog
	// Restarted makes another one over the same container, as the next process does.
	Restarted func(t testing.TB) commit.Backlog
}

// TestBacklog checks an implementation of commit.Backlog against the port's contract. open makes a new one per test.
func TestBacklog(t *testing.T, open func(t *testing.T) BacklogHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, BacklogHarness)
	}{
		{"a status is found in its three spellings and in no other", pendingSpellings},
		{"several statuses at once, each document once; of none, none", pendingStatuses},
		{"what has no status waits for nobody", pendingWithoutStatus},
		{"of this environment only, to the letter", pendingEnvironment},
		{"a waiting document is in the window of its _ts and in no other", pendingBounds},
		{"what is told is what the document says", pendingReported},
		{"members of another type fail nothing", pendingOddTypes},
		{"2,500 documents in several pages, each once", pendingPages},
		{"a page that asks for no more, and one that fails, end it", pendingStops},
		{"what is found may be written to before the next page", pendingWritten},
		{"a search whose context has ended is infrastructure", pendingCancelled},
		{"each retry is in its window and in no other", backlogRetries},
		{"a postponed retry is early when something was applied after it was last changed", backlogApplied},
		{"what was left behind is pending or processing, and old", backlogOrphans},
		{"a window has nothing of another environment or without a status", backlogForeign},
		{"a window tells what the document says", backlogReported},
		{"250 documents over pages of at most 100, each once, also later and in another process", backlogPages},
		{"a search keeps the times that it began with", backlogTimes},
		{"documents that are written to while a window is searched", backlogWritten},
		{"a continuation that is none is the search's fault and not the network's", backlogGarbage},
		{"a continuation of another window is none", backlogOfAnother},
		{"a page whose context has ended is infrastructure, and can go on", backlogCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// morePages is how many documents are more than one page everywhere: a service gives at most 1,000 at once.
const morePages = 1100

// statuses are all that there are.
func statuses() []invoice.Status {
	return []invoice.Status{invoice.Pending, invoice.RetryScheduled, invoice.Committed, invoice.Failed, invoice.Processing}
}

func pendingSpellings(t *testing.T, h BacklogHarness) {
	want := map[invoice.Status][]string{
		invoice.Pending:        {"pending", "PENDING", "Pending"},
		invoice.RetryScheduled: {"retry_scheduled", "RETRY_SCHEDULED", "Retry_scheduled"},
		invoice.Committed:      {"committed", "COMMITTED", "Committed"},
		invoice.Failed:         {"failed", "FAILED", "Failed"},
		invoice.Processing:     {"processing", "PROCESSING", "Processing"},
	}
	for status, spellings := range want {
		other := string(status)
		for _, text := range append(slices.Clone(spellings), other[:1]+strings.ToUpper(other[1:]), " "+other, other+" ", other+"s", other[1:]) {
			h.Put(t, pendingDocument(text, "web", map[string]any{"status": text}))
		}
	}
	for status, spellings := range want {
		found := findPending(t, h, status)
		require.ElementsMatch(t, spellings, pendingIDs(found))
		for _, w := range found {
			require.Equal(t, status, w.Status, "told in lower case")
		}
	}
}

func pendingStatuses(t *testing.T, h BacklogHarness) {
	for _, status := range statuses() {
		h.Put(t, pendingDocument(string(status), "web", map[string]any{"status": status}))
	}
	require.ElementsMatch(t, []string{"failed", "processing"}, pendingIDs(findPending(t, h, invoice.Failed, invoice.Processing)))
	require.ElementsMatch(t, []string{"pending", "retry_scheduled"}, pendingIDs(findPending(t, h, invoice.RetryScheduled, invoice.Pending, invoice.RetryScheduled)))
	require.Len(t, findPending(t, h, statuses()...), len(statuses()))
	require.Empty(t, findPending(t, h))
}

// withoutStatus are documents of an environment without a status.
func withoutStatus(sysName string) []json.RawMessage {
	var docs []json.RawMessage
	for id, state := range map[string]string{
		"absent": ``, "null": `,"sql_writer":null`, "no status": `,"sql_writer":{"retry_count":1,"retry_after":1,"postponed":true}`,
		"status null": `,"sql_writer":{"status":null,"last_error_kind":"contention"}`,
		"text":        `,"sql_writer":"pending"`, "list": `,"sql_writer":[{"status":"pending"}]`, "number": `,"sql_writer":7`, "false": `,"sql_writer":false`,
		"other case": `,"sql_writer":{"Status":"pending"}`, "another place": `,"SQL_WRITER":{"status":"pending"},"status":"pending"`,
		"number 0": `,"sql_writer":{"status":0}`, "empty": `,"sql_writer":{"status":""}`, "no": `,"sql_writer":{"status":false}`,
		"list of pending": `,"sql_writer":{"status":["pending"]}`, "object": `,"sql_writer":{"status":{}}`,
	} {
		docs = append(docs, json.RawMessage(`{"id":"`+sysName+" "+id+`","request_details":{"sys_name":"`+sysName+`"}`+state+`}`))
	}
	return docs
}

func pendingWithoutStatus(t *testing.T, h BacklogHarness) {
	for _, doc := range withoutStatus("web") {
		h.Put(t, doc)
	}
	require.Empty(t, findPending(t, h, invoice.Pending), "a result is offered by its status")
	require.Empty(t, findPending(t, h, statuses()...))
	h.Put(t, pendingDocument("offered", "web", map[string]any{"status": "pending"}))
	require.Equal(t, []string{"offered"}, pendingIDs(findPending(t, h, invoice.Pending)))
}

func pendingEnvironment(t *testing.T, h BacklogHarness) {
	h.Put(t, pendingDocument("ours", "web", map[string]any{"status": "pending"}))
	for i, name := range []any{"WEB", "Web", "web ", " web", "webs", "we", "dev", "", nil, 7, true, []string{"web"}, map[string]string{"sys_name": "web"}} {
		h.Put(t, pendingDocument(fmt.Sprint("theirs ", i), name, map[string]any{"status": "pending"}))
	}
	for _, doc := range []string{
		`{"id":"nobody's"}`, `{"id":"text","request_details":"web"}`, `{"id":"list","request_details":[{"sys_name":"web"}]}`, `{"id":"null","request_details":null}`,
		`{"id":"another place","sys_name":"web"}`, `{"id":"another case","request_details":{"SYS_NAME":"web"}}`, `{"id":"another case above","Request_Details":{"sys_name":"web"}}`,
	} {
		h.Put(t, json.RawMessage(doc))
	}
	require.Equal(t, []string{"ours"}, pendingIDs(findPending(t, h, statuses()...)))
}

func pendingBounds(t *testing.T, h BacklogHarness) {
	h.Put(t, pendingDocument("status", "web", map[string]any{"status": "pending"}))
	for _, id := range []string{"status"} {
		d, err := invoice.Read(mustRead(t, h.DocumentsHarness, id), time.Now())
		require.NoError(t, err)
		for _, c := range []struct {
			from, to int64
			inside   bool
		}{
			{0, forever, true}, {d.TS, d.TS + 1, true}, {0, d.TS, false}, {d.TS + 1, forever, false}, {d.TS, d.TS, false}, {d.TS + 1, d.TS, false},
		} {
			var found []string
			err := h.Backlog.PendingDocs(t.Context(), "web", []invoice.Status{invoice.Pending}, c.from, c.to, func(page []commit.PendingDoc) (bool, error) {
				found = append(found, pendingIDs(page)...)
				return true, nil
			})
			require.NoError(t, err)
			require.Equal(t, c.inside, slices.Contains(found, id), "%s: from %d to %d of %d", id, c.from, c.to, d.TS)
		}
	}
}

func pendingReported(t *testing.T, h BacklogHarness) {
	state := map[string]any{
		"status": "Retry_scheduled", "retry_count": 3, "retry_after": 1_766_000_000, "postponed": true, "last_error_kind": "document", "last_error_code": "2628",
		"failed_at": "2025-12-17 10:30:15.123456-06:00", "last_error": "a text", "attempts": []any{map[string]any{"at": "a", "error": "b"}, map[string]any{"at": "c"}}, "theirs": 1,
		"last_error_at": "d",
	}
	ids := []string{"2025-12-17 10:30:15.123456-06:00", `<a&b> "ü😀"`}
	for _, id := range ids {
		h.Put(t, pendingDocument(id, "web", state))
	}
	found := findPending(t, h, invoice.RetryScheduled)
	require.ElementsMatch(t, ids, pendingIDs(found))
	for _, w := range found {
		d, err := invoice.Read(mustRead(t, h.DocumentsHarness, w.ID), time.Now())
		require.NoError(t, err)
		require.Equal(t, commit.PendingDoc{
			ID: w.ID, TS: d.TS, Status: invoice.RetryScheduled, RetryAfter: 1_766_000_000, Postponed: true, Kind: "document", Code: "2628",
			FailedAt: "2025-12-17 10:30:15.123456-06:00", FirstAt: "a", ErrorAt: "d",
		}, w)
	}
	h.Put(t, json.RawMessage(`{"id":"line","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},"sql_writer":{"status":"pending"}}`))
	line := findPending(t, h, invoice.Pending)
	require.Len(t, line, 1)
	require.EqualValues(t, 1421549, line[0].Line)
	h.Put(t, pendingDocument("bare", "web", map[string]any{"status": "failed"}))
	bare := findPending(t, h, invoice.Failed)
	require.Len(t, bare, 1)
	require.Positive(t, bare[0].TS)
	require.Equal(t, commit.PendingDoc{ID: "bare", TS: bare[0].TS, Status: invoice.Failed}, bare[0])
}

func pendingOddTypes(t *testing.T, h BacklogHarness) {
	odd := map[string]string{"null": `null`, "text": `"1766000000"`, "list": `[1]`, "object": `{"a":1}`, "true": `true`, "huge": `1e300`, "negative": `-5`}
	due := map[string]int64{"fraction": 1_766_000_001, "whole": 1_766_000_000}
	for name, value := range odd {
		h.Put(t, json.RawMessage(`{"id":"`+name+`","request_details":{"sys_name":"web"},"sql_writer":{"status":"pending","retry_after":`+value+`,
			"postponed":`+value+`,"last_error_kind":`+value+`,"last_error_code":`+value+`,"failed_at":`+value+`,"last_error_at":`+value+`,"attempts":`+value+`},
			"invoice_details_from_rpa":`+value+`}`))
		h.Put(t, json.RawMessage(`{"id":"within `+name+`","request_details":{"sys_name":"web"},"sql_writer":{"status":"pending","attempts":[{"at":`+value+`}]},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":`+value+`}}`))
		due["within "+name] = 0
		h.Put(t, json.RawMessage(`{"id":"status `+name+`","request_details":{"sys_name":"web"},"sql_writer":{"status":[`+value+`],"retry_after":1}}`))
		due[name] = 0
	}
	h.Put(t, pendingDocument("fraction", "web", map[string]any{"status": "pending", "retry_after": 1766000000.25, "last_error_code": 2628}))
	h.Put(t, pendingDocument("whole", "web", map[string]any{"status": "pending", "retry_after": 1766000000}))
	found := findPending(t, h, invoice.Pending)
	require.Len(t, found, len(due))
	for _, w := range found {
		require.Contains(t, due, w.ID)
		require.Equal(t, due[w.ID], w.RetryAfter, w.ID)
		require.Equal(t, w.ID == "true", w.Postponed, w.ID)
		switch w.ID {
		case "fraction":
			require.Equal(t, "2628", w.Code, "somebody's editor wrote a number")
		case "null", "list", "object":
			require.Empty(t, w.Kind+w.Code+w.FailedAt, w.ID)
		}
	}
	require.Empty(t, findPending(t, h, invoice.Committed, invoice.RetryScheduled, invoice.Failed, invoice.Processing))
}

func pendingPages(t *testing.T, h BacklogHarness) {
	const n = 2500
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("doc %04d", i)
		status := []any{"pending", "PENDING", "retry_scheduled"}[i%3]
		h.Put(t, pendingDocument(want[i], "web", map[string]any{"status": status}))
	}
	for i := range 100 {
		h.Put(t, pendingDocument(fmt.Sprint("done ", i), "web", map[string]any{"status": "committed"}))
	}
	var found []string
	pages := 0
	require.NoError(t, h.Backlog.PendingDocs(t.Context(), "web", []invoice.Status{invoice.Pending, invoice.RetryScheduled}, 0, forever, func(page []commit.PendingDoc) (bool, error) {
		pages++
		require.NotEmpty(t, page)
		found = append(found, pendingIDs(page)...)
		return true, nil
	}))
	require.Greater(t, pages, 1)
	slices.Sort(found)
	require.Equal(t, want, found)
}

func pendingStops(t *testing.T, h BacklogHarness) {
	for i := range morePages {
		h.Put(t, pendingDocument(fmt.Sprint("doc ", i), "web", map[string]any{"status": "pending"}))
	}
	visit := func(more bool, answer error) (pages int, err error) {
		err = h.Backlog.PendingDocs(t.Context(), "web", []invoice.Status{invoice.Pending}, 0, forever, func([]commit.PendingDoc) (bool, error) {
			pages++
			return more, answer
		})
		return pages, err
	}
	all, err := visit(true, nil)
	require.NoError(t, err)
	require.Greater(t, all, 1, "or the rest shows nothing")
	pages, err := visit(false, nil)
	require.NoError(t, err)
	require.Equal(t, 1, pages)
	mine := errors.New("mine")
	for _, more := range []bool{true, false} {
		pages, err = visit(more, mine)
		require.Equal(t, mine, err, "handed on as it is")
		require.Equal(t, 1, pages)
	}
}

func pendingWritten(t *testing.T, h BacklogHarness) {
	const n = 150
	for i := range n {
		h.Put(t, pendingDocument(fmt.Sprint("doc ", i), "web", map[string]any{"status": "pending"}))
	}
	written := map[string]bool{}
	require.NoError(t, h.Backlog.PendingDocs(t.Context(), "web", []invoice.Status{invoice.Pending}, 0, forever, func(page []commit.PendingDoc) (bool, error) {
		for _, w := range page {
			require.False(t, written[w.ID], "%s was found twice", w.ID)
			_, err := h.Documents.Record(t.Context(), whole(t, h.DocumentsHarness, w.ID), state(invoice.Committed))
			require.NoError(t, err)
			written[w.ID] = true
		}
		return true, nil
	}))
	for _, w := range findPending(t, h, invoice.Pending) { // a page may have moved while it was turned
		require.False(t, written[w.ID], "%s is committed", w.ID)
		written[w.ID] = true
	}
	require.Len(t, written, n)
}

func pendingCancelled(t *testing.T, h BacklogHarness) {
	for i := range morePages {
		h.Put(t, pendingDocument(fmt.Sprint("doc ", i), "web", map[string]any{"status": "pending"}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	pages := 0
	search := func() error {
		return h.Backlog.PendingDocs(ctx, "web", []invoice.Status{invoice.Pending}, 0, forever, func([]commit.PendingDoc) (bool, error) {
			pages++
			cancel()
			return true, nil
		})
	}
	err := search()
	requireFault(t, err, fault.Infrastructure, fault.NoCondition, "half of the backlog must not look like all of it")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, pages)
	requireFault(t, search(), fault.Infrastructure, fault.NoCondition)
	require.Equal(t, 1, pages, "nothing is read")
}

// findPending finds the documents that wait in statuses.
func findPending(t *testing.T, h BacklogHarness, statuses ...invoice.Status) []commit.PendingDoc {
	t.Helper()
	var all []commit.PendingDoc
	require.NoError(t, h.Backlog.PendingDocs(t.Context(), "web", statuses, 0, forever, func(page []commit.PendingDoc) (bool, error) {
		require.NotEmpty(t, page)
		all = append(all, page...)
		return true, nil
	}))
	return all
}

func pendingIDs(found []commit.PendingDoc) []string {
	ids := make([]string, len(found))
	for i, w := range found {
		ids[i] = w.ID
	}
	return ids
}

// pendingDocument makes a document of an environment with a state.
func pendingDocument(id string, sysName any, state map[string]any) json.RawMessage {
	doc, err := json.Marshal(map[string]any{"id": id, "request_details": map[string]any{"sys_name": sysName}, "sql_writer": state})
	if err != nil {
		panic(err) // texts, numbers, lists and maps always marshal
	}
	return doc
}

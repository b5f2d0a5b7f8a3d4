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
)

// asked is the Now of the window queries here. It is no real time: what is compared with _ts is asked for separately.
const asked = 1_766_000_000

func windowQuery(w commit.Window) commit.WindowQuery {
	return commit.WindowQuery{SysName: "web", Window: w, Now: asked}
}

// windowed turns all pages of a window.
func windowed(t *testing.T, b commit.Backlog, q commit.WindowQuery) []commit.PendingDoc {
	t.Helper()
	var all []commit.PendingDoc
	for continuation := ""; ; {
		found, next, err := b.Page(t.Context(), q, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(found), 100)
		all = append(all, found...)
		if next == "" {
			return all
		}
		require.NotEqual(t, continuation, next, "a search that does not get on never ends")
		continuation = next
	}
}

// retries are the cases of a document that is retry_scheduled: sql_writer without its status, and the window that has it,
// none when no window has.
func retries() map[string]struct {
	state  string
	window commit.Window
} {
	type retry = struct {
		state  string
		window commit.Window
	}
	cases := map[string]retry{
		"now":                {fmt.Sprintf(`"retry_after":%d`, asked), commit.Blamed},
		"a second ago":       {fmt.Sprintf(`"retry_after":%d`, asked-1), commit.Blamed},
		"in a second":        {fmt.Sprintf(`"retry_after":%d`, asked+1), ""},
		"in half a second":   {fmt.Sprintf(`"retry_after":%d.5`, asked), ""},
		"in a day":           {fmt.Sprintf(`"retry_after":%d`, asked+86400), ""},
		"in more than a day": {fmt.Sprintf(`"retry_after":%d`, asked+86401), commit.Blamed},
		"in milliseconds":    {fmt.Sprintf(`"retry_after":%d000`, asked), commit.Blamed},
		"never":              {`"retry_after":1e300`, commit.Blamed},
		"negative":           {`"retry_after":-5`, commit.Blamed},
		"missing":            {`"retry_count":1`, commit.Blamed},
		"null":               {`"retry_after":null`, commit.Blamed},
		"text":               {fmt.Sprintf(`"retry_after":"%d"`, asked+60), commit.Blamed},
		"list":               {fmt.Sprintf(`"retry_after":[%d]`, asked+60), commit.Blamed},
		"true":               {`"retry_after":true`, commit.Blamed},

		"put off, in a second":        {fmt.Sprintf(`"retry_after":%d,"last_error_kind":"contention"`, asked+1), ""},
		"put off, missing":            {`"last_error_kind":"contention"`, commit.PutOff},
		"put off, text":               {`"retry_after":"soon","last_error_kind":"contention"`, commit.PutOff},
		"put off, in milliseconds":    {fmt.Sprintf(`"retry_after":%d000,"last_error_kind":"throttled"`, asked), commit.PutOff},
		"put off and postponed":       {`"retry_after":1,"last_error_kind":"contention","postponed":true`, commit.PutOff},
		"put off, postponed, waiting": {fmt.Sprintf(`"retry_after":%d,"last_error_kind":"contention","postponed":true`, asked+1), ""},

		"postponed":                  {`"retry_after":1,"postponed":true,"last_error_kind":"document"`, commit.Blamed},
		"postponed without a kind":   {`"retry_after":1,"postponed":true`, commit.Blamed},
		"postponed, kind a list":     {`"retry_after":1,"postponed":true,"last_error_kind":["contention"]`, commit.Blamed},
		"postponed, now":             {fmt.Sprintf(`"retry_after":%d,"postponed":true`, asked), commit.Blamed},
		"postponed, in a second":     {fmt.Sprintf(`"retry_after":%d,"postponed":true`, asked+1), ""},
		"postponed, missing":         {`"postponed":true`, commit.Blamed},
		"postponed, text":            {`"postponed":true,"retry_after":"soon"`, commit.Blamed},
		"postponed, in milliseconds": {fmt.Sprintf(`"retry_after":%d000,"postponed":true`, asked), commit.Blamed},
	}
	for _, kind := range []string{"contention", "infrastructure", "throttled"} {
		cases["put off: "+kind] = retry{`"retry_after":1,"last_error_kind":"` + kind + `"`, commit.PutOff}
	}
	for _, kind := range []string{`"document"`, `"internal"`, `"quota"`, `"Contention"`, `"contention "`, `""`, `null`, `5`, `true`, `["contention"]`, `{"contention":1}`} {
		cases["judged: "+kind] = retry{`"retry_after":1,"last_error_kind":` + kind, commit.Blamed}
	}
	for _, value := range []string{`false`, `"true"`, `1`, `null`, `[true]`, `{}`} {
		cases["not postponed: "+value] = retry{`"retry_after":1,"postponed":` + value, commit.Blamed}
	}
	return cases
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
	return json.RawMessage(`{"id":` + string(quoted) + `,"request_details":{"sys_name":"` + sysName + `"},"sql_writer":{"status":"` + status + `"` + rest + `}}`)
}

func backlogRetries(t *testing.T, h BacklogHarness) {
	want := map[commit.Window][]string{}
	for name, c := range retries() {
		for _, status := range []string{"retry_scheduled", "RETRY_SCHEDULED", "Retry_scheduled"} {
			id := status + " " + name
			h.Put(t, stateDocument(id, "web", status, c.state))
			want[c.window] = append(want[c.window], id)
		}
		for _, status := range []string{"Retry_Scheduled", " retry_scheduled", "retry_scheduled ", "pending", "processing", "committed", "failed"} {
			h.Put(t, stateDocument("not, "+status+" "+name, "web", status, c.state))
		}
	}
	for _, w := range []commit.Window{commit.PutOff, commit.Blamed} {
		require.ElementsMatch(t, want[w], pendingIDs(windowed(t, h.Backlog, windowQuery(w))), w)
	}
	require.Empty(t, windowed(t, h.Backlog, windowQuery(commit.Orphans)), "by a time that is 0 nothing qualifies")
}

func backlogApplied(t *testing.T, h BacklogHarness) {
	later := fmt.Sprintf(`"retry_after":%d`, asked+600)
	h.Put(t, stateDocument("waiting", "web", "retry_scheduled", later+`,"postponed":true,"last_error_kind":"document"`))
	h.Put(t, stateDocument("upper", "web", "RETRY_SCHEDULED", later+`,"postponed":true`))
	h.Put(t, stateDocument("put off", "web", "retry_scheduled", later+`,"postponed":true,"last_error_kind":"infrastructure"`))
	h.Put(t, stateDocument("plain", "web", "retry_scheduled", later+`,"last_error_kind":"document"`))
	h.Put(t, stateDocument("pending", "web", "pending", later+`,"postponed":true`))
	h.Put(t, stateDocument("theirs", "dev", "retry_scheduled", later+`,"postponed":true`))
	h.Put(t, stateDocument("due", "web", "retry_scheduled", `"retry_after":1,"postponed":true`))
	early := func(before int64) []string {
		q := windowQuery(commit.Blamed)
		q.AppliedBefore = before
		return pendingIDs(windowed(t, h.Backlog, q))
	}
	ts := tsOf(t, h, "waiting")
	require.NotContains(t, early(ts), "waiting", "changed in this second: not before it")
	require.Contains(t, early(ts+1), "waiting")
	require.ElementsMatch(t, []string{"due"}, early(0))
	require.ElementsMatch(t, []string{"due", "waiting", "upper"}, early(forever))
	for _, w := range []commit.Window{commit.PutOff, commit.Orphans} {
		q := windowQuery(w)
		q.AppliedBefore = forever
		require.Empty(t, windowed(t, h.Backlog, q), w)
	}
}

func backlogOrphans(t *testing.T, h BacklogHarness) {
	for _, status := range []string{"pending", "PENDING", "Pending", "processing", "PROCESSING", "Processing", "PenDing", "committed", "failed", "retry_scheduled"} {
		h.Put(t, stateDocument(status, "web", status, `"retry_after":1`))
		h.Put(t, stateDocument("their "+status, "dev", status, `"retry_after":1`))
	}
	orphans := func(left, old int64) []string {
		q := windowQuery(commit.Orphans)
		q.LeftBefore, q.OldWriterBefore = left, old
		return pendingIDs(windowed(t, h.Backlog, q))
	}
	pending, processing := []string{"pending", "PENDING", "Pending"}, []string{"processing", "PROCESSING", "Processing"}
	require.ElementsMatch(t, pending, orphans(forever, 0))
	require.ElementsMatch(t, processing, orphans(0, forever))
	require.ElementsMatch(t, append(pending, processing...), orphans(forever, forever))
	require.Empty(t, orphans(0, 0))
	young, old := tsOf(t, h, "pending"), tsOf(t, h, "processing")
	require.NotContains(t, orphans(young, 0), "pending", "changed in this second: not before it")
	require.Contains(t, orphans(young+1, 0), "pending")
	require.NotContains(t, orphans(0, old), "processing")
	require.Contains(t, orphans(0, old+1), "processing")
	require.Empty(t, windowed(t, h.Backlog, commit.WindowQuery{SysName: "web", Window: commit.Orphans, Now: forever, AppliedBefore: forever}))
}

func backlogForeign(t *testing.T, h BacklogHarness) {
	for _, doc := range withoutStatus("web") {
		h.Put(t, doc)
	}
	states := map[commit.Window]string{
		commit.PutOff: `"retry_after":1,"last_error_kind":"contention"`, commit.Blamed: `"retry_after":1`,
	}
	for w, state := range states {
		for _, sysName := range []string{"dev", "WEB", "web ", ""} {
			h.Put(t, stateDocument(string(w)+" of "+sysName, sysName, "retry_scheduled", state))
		}
		h.Put(t, json.RawMessage(`{"id":"`+string(w)+` of nobody","sql_writer":{"status":"retry_scheduled",`+state+`}}`))
		h.Put(t, stateDocument(string(w), "web", "retry_scheduled", state))
	}
	h.Put(t, stateDocument("orphans", "web", "pending", ""))
	h.Put(t, stateDocument("orphans of dev", "dev", "processing", ""))
	for _, w := range commit.Windows() {
		q := windowQuery(w)
		q.AppliedBefore, q.LeftBefore, q.OldWriterBefore = forever, forever, forever
		require.Equal(t, []string{string(w)}, pendingIDs(windowed(t, h.Backlog, q)))
	}
	_, _, err := h.Backlog.Page(t.Context(), windowQuery("committed"), "")
	requireFault(t, err, fault.Internal, fault.NoCondition, "a window that is none")
}

func backlogReported(t *testing.T, h BacklogHarness) {
	id := `<a&b> "ü😀"`
	h.Put(t, stateDocument(id, "web", "Retry_scheduled", `"retry_count":3,"retry_after":1765999999.25,"postponed":true,"last_error_kind":"document",
		"last_error_code":2628,"failed_at":"2025-12-17 10:30:15.123456-06:00","last_error":"a text","theirs":1`))
	require.Equal(t, []commit.PendingDoc{{
		ID: id, TS: tsOf(t, h, id), Status: invoice.RetryScheduled, RetryAfter: asked, Postponed: true, Kind: "document", Code: "2628",
		FailedAt: "2025-12-17 10:30:15.123456-06:00",
	}}, windowed(t, h.Backlog, windowQuery(commit.Blamed)))
}

// putDue writes n documents that are due and many that are not, and answers the ids of the former, sorted.
func putDue(t *testing.T, h BacklogHarness, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("doc %04d", i)
		h.Put(t, stateDocument(ids[i], "web", "retry_scheduled", `"retry_after":1`))
		h.Put(t, stateDocument(ids[i]+" waits", "web", "retry_scheduled", fmt.Sprintf(`"retry_after":%d`, asked+300)))
		h.Put(t, stateDocument(ids[i]+" is done", "web", "committed", ""))
		h.Put(t, stateDocument(ids[i]+" of dev", "dev", "retry_scheduled", `"retry_after":1`))
	}
	return ids
}

func backlogPages(t *testing.T, h BacklogHarness) {
	want := putDue(t, h, 250)
	var found []string
	pages, q, b := 0, windowQuery(commit.Blamed), h.Backlog
	for continuation := ""; ; pages++ {
		page, next, err := b.Page(t.Context(), q, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 100)
		found = append(found, pendingIDs(page)...)
		if next == "" {
			break
		}
		continuation = next
		// The next tick, a few minutes later and perhaps in another process.
		q.Now, q.AppliedBefore, q.LeftBefore, q.OldWriterBefore = q.Now+7, q.AppliedBefore+7, q.LeftBefore+7, q.OldWriterBefore+7
		b = h.Restarted(t)
	}
	require.Greater(t, pages, 1)
	slices.Sort(found)
	require.Equal(t, want, found)
}

func backlogTimes(t *testing.T, h BacklogHarness) {
	want := putDue(t, h, 250)
	q := windowQuery(commit.Blamed)
	var found []string
	for continuation := ""; ; {
		page, next, err := h.Backlog.Page(t.Context(), q, continuation)
		require.NoError(t, err)
		found = append(found, pendingIDs(page)...)
		if continuation = next; next == "" {
			break
		}
		q.Now = asked + 600
	}
	slices.Sort(found)
	require.Equal(t, want, found, "what is due since the search began is found by the next one")
	require.Len(t, windowed(t, h.Backlog, q), 2*len(want))
}

func backlogWritten(t *testing.T, h BacklogHarness) {
	all := putDue(t, h, 250)
	counts := map[string]int{}
	for continuation := ""; ; {
		page, next, err := h.Backlog.Page(t.Context(), windowQuery(commit.Blamed), continuation)
		require.NoError(t, err)
		for _, w := range page {
			counts[w.ID]++
			if w.ID[len(w.ID)-1]%2 == 0 {
				h.Put(t, stateDocument(w.ID, "web", "committed", ""))
			}
		}
		if continuation = next; next == "" {
			break
		}
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(counts)), "found, each at least once")
	for id, n := range counts {
		require.Equal(t, 1, n, id)
	}
	require.Len(t, windowed(t, h.Backlog, windowQuery(commit.Blamed)), len(all)/2)
}

// unfinished answers a continuation that is good.
func unfinished(t *testing.T, h BacklogHarness) string {
	t.Helper()
	_, next, err := h.Backlog.Page(t.Context(), windowQuery(commit.Blamed), "")
	require.NoError(t, err)
	require.NotEmpty(t, next)
	return next
}

func backlogGarbage(t *testing.T, h BacklogHarness) {
	all := putDue(t, h, 250)
	good := unfinished(t, h)
	times, place, _ := strings.Cut(good, "/")
	for _, bad := range []string{
		"garbage", " ", "e30=", "1", "null", "\n", "a\r\nX-Injected: 1", "\x00", "ü日本😀", "/", "1.2.3.4/", "0.0.0.0/x", times, times + "/", place, "/" + place,
		good + "!", good + "\n", good[:len(good)-5], good[1:], "x" + good, " " + good, "+" + good, "0" + good, "1" + good, times + "0/" + place,
	} {
		found, next, err := h.Backlog.Page(t.Context(), windowQuery(commit.Blamed), bad)
		requireFault(t, err, fault.Document, fault.NoCondition, "%q", bad)
		require.Equal(t, "continuation", fault.CodeOf(err), "%q", bad)
		require.Empty(t, found)
		require.Empty(t, next)
	}
	require.ElementsMatch(t, all, pendingIDs(windowed(t, h.Backlog, windowQuery(commit.Blamed))), "begun again, all is found")
}

func backlogOfAnother(t *testing.T, h BacklogHarness) {
	putDue(t, h, 250)
	good := unfinished(t, h)
	others := []commit.WindowQuery{{SysName: "dev", Window: commit.Blamed, Now: asked}}
	for _, w := range commit.Windows() {
		if w != commit.Blamed {
			others = append(others, windowQuery(w))
		}
	}
	for _, q := range others {
		_, _, err := h.Backlog.Page(t.Context(), q, good)
		requireFault(t, err, fault.Document, fault.NoCondition, "%v", q)
		require.Equal(t, "continuation", fault.CodeOf(err), "%v", q)
	}
	_, _, err := h.Backlog.Page(t.Context(), windowQuery(commit.Blamed), good)
	require.NoError(t, err)
}

func backlogCancelled(t *testing.T, h BacklogHarness) {
	putDue(t, h, 250)
	good := unfinished(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, continuation := range []string{"", good} {
		found, next, err := h.Backlog.Page(ctx, windowQuery(commit.Blamed), continuation)
		requireFault(t, err, fault.Infrastructure, fault.NoCondition)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, found)
		require.Empty(t, next, "an end of the search must not be taken for that of the call: the error says it")
	}
	_, _, err := h.Backlog.Page(t.Context(), windowQuery(commit.Blamed), good)
	require.NoError(t, err)
}

// tsOf is a document's _ts.
func tsOf(t *testing.T, h BacklogHarness, id string) int64 {
	t.Helper()
	d, err := invoice.Read(mustRead(t, h.DocumentsHarness, id), time.Now())
	require.NoError(t, err)
	return d.TS
}

package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// fakeContainer has documents with an id and a _ts only, in physical partitions. It counts requests and documents.
type fakeContainer struct {
	partitions     int
	ids            []string // in the order of the container, for ever
	ts             map[string]int64
	requests, read int
}

func newFakeContainer(partitions int) *fakeContainer {
	return &fakeContainer{partitions: partitions, ts: map[string]int64{}}
}

func (c *fakeContainer) put(id string, ts int64) {
	if _, known := c.ts[id]; !known {
		c.ids = append(c.ids, id)
	}
	c.ts[id] = ts
}

// Search implements ops.DocumentSearch: a page has documents of one partition. The continuation is the partition and the place in it.
func (c *fakeContainer) Search(_ context.Context, q ops.Search, size int, continuation string) (docs []invoice.Projection, next string, err error) {
	c.requests++
	partition, at := 0, 0
	if continuation != "" {
		if _, err := fmt.Sscanf(continuation, "%d/%d", &partition, &at); err != nil {
			return nil, "", fault.New(fault.Document, "test", "continuation", "no continuation")
		}
	}
	for ; at < len(c.ids); at++ {
		id := c.ids[at]
		if ts := c.ts[id]; at%c.partitions == partition && ts >= q.From && ts < q.To {
			if len(docs) == size {
				return docs, fmt.Sprintf("%d/%d", partition, at), nil
			}
			c.read++
			docs = append(docs, invoice.Projection(fmt.Sprintf(`{"id":%q,"_ts":%d,"request_details":{"sys_name":"web"},"sql_writer":{"status":"failed"}}`, id, ts)))
		}
	}
	if partition++; partition < c.partitions {
		next = fmt.Sprintf("%d/0", partition)
	}
	return docs, next, nil
}

func (c *fakeContainer) lists() *ops.Ops {
	return ops.New(ops.Ports{Search: c}, ops.Options{SysName: "web", Now: start})
}

// allPages reads a list to its end. between is called between two pages.
func (c *fakeContainer) allPages(t *testing.T, limit int, between func()) (rows []ops.DocumentRow, calls, most int) {
	t.Helper()
	for page := ""; ; {
		before := c.requests
		p, err := c.lists().Documents(t.Context(), ops.DocumentQuery{Limit: limit, Page: page}) // each page in a process of its own
		require.NoError(t, err)
		require.LessOrEqual(t, len(p.Documents), limit)
		require.LessOrEqual(t, len(p.Next), 1024)
		calls, most = calls+1, max(most, c.requests-before)
		rows = append(rows, p.Documents...)
		if page = p.Next; page == "" {
			return rows, calls, most
		}
		require.Less(t, calls, 100_000, "the list never ends")
		between()
	}
}

// The shapes of ADR 0036: whatever the distribution, each document comes once, newest first, and no call makes many requests.
func TestAListHasEachDocumentOnce(t *testing.T) {
	now := start().Unix()
	for name, shape := range map[string]func(i int) int64{
		"one second":           func(int) int64 { return now - 5 },
		"one second, long ago": func(int) int64 { return now - 365*86400 },
		"nothing for a year":   func(i int) int64 { return now - 365*86400 - int64(i)*60 },
		"evenly in a year":     func(i int) int64 { return now - int64(i)*365*86400/5000 },
		"ten a second":         func(i int) int64 { return now - int64(i)/10 },
		"two bulks":            func(i int) int64 { return now - int64(i%2)*86400 },
		"the very beginning":   func(int) int64 { return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeContainer(3)
			const documents = 5000
			for i := range documents {
				c.put("doc "+strconv.Itoa(i*7919%documents), shape(i))
			}
			rows, calls, most := c.allPages(t, 307, func() {})
			seen := map[string]bool{}
			for i, row := range rows {
				require.False(t, seen[row.ID], "%s comes twice", row.ID)
				seen[row.ID] = true
				require.True(t, i == 0 || !row.ChangedAt.After(rows[i-1].ChangedAt), "newest first")
			}
			require.Len(t, seen, documents)
			require.LessOrEqual(t, most, 50+3+1, "requests of one call")
			require.Less(t, c.read, 8*documents, "documents read")
			t.Logf("%d calls, %d requests, at most %d a call, %d documents read", calls, c.requests, most, c.read)
		})
	}
}

// Producers and the app go on while somebody reads a list.
func TestWhatDoesNotChangeIsListedOnce(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, now := newFakeContainer(1+r.IntN(4)), start().Unix()
		span := []int64{1, 10, 5000, 10_000_000}[r.IntN(4)]
		documents := 1000 + r.IntN(1500)
		for i := range documents {
			c.put(strconv.Itoa(i), now-1-r.Int64N(span))
		}
		changed := map[string]bool{}
		rows, _, _ := c.allPages(t, 50+r.IntN(400), func() {
			now++
			for range r.IntN(20) {
				id := strconv.Itoa(r.IntN(documents + 200)) // some are new
				changed[id] = true
				c.put(id, now)
			}
		})
		seen := map[string]int{}
		for _, row := range rows {
			seen[row.ID]++
			require.Equal(t, 1, seen[row.ID], "seed %d: %s comes twice", seed, row.ID)
		}
		for i := range documents {
			if id := strconv.Itoa(i); !changed[id] {
				require.Equal(t, 1, seen[id], "seed %d: %s is left out", seed, id)
			}
		}
	}
}

func TestACallEndsBeforeItsListDoes(t *testing.T) {
	c := newFakeContainer(60) // more partitions than a call may make requests: one window each
	c.put("old", start().Unix()-365*86400)
	p, err := c.lists().Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	require.Empty(t, p.Documents)
	require.NotEmpty(t, p.Next, "none here does not mean none at all")
	require.LessOrEqual(t, c.requests, 61)
	rows, _, _ := c.allPages(t, 10, func() {})
	require.Len(t, rows, 1)
}

// rowsOf are the ids of a list, sorted, with their environments.
func rowsOf(t *testing.T, o *ops.Ops, f ops.DocumentFilter) []string {
	t.Helper()
	p, err := o.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: f, Limit: 1000})
	require.NoError(t, err)
	require.Empty(t, p.Next)
	var found []string
	for _, row := range p.Documents {
		found = append(found, row.SysName+" "+strconv.FormatInt(row.Line, 10))
	}
	slices.Sort(found)
	return found
}

func TestAListIsOfThisEnvironment(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, "a", failed(1, fault.Document, "2628")), result(2, "b", failed(1, fault.Internal, "panic")), result(3, "c", ""),
		documentOf("theirs", "dev", 4, "d", failed(1, fault.Document, "2628")), `{"id":"nobody's","invoice_details_from_rpa":{"IVCE_DTL_UID":"4"}}`)
	for _, c := range []struct {
		f    ops.DocumentFilter
		want []string
	}{
		{ops.DocumentFilter{}, []string{"web 1", "web 2", "web 3"}},
		{ops.DocumentFilter{Status: invoice.Failed}, []string{"web 1", "web 2"}},
		{ops.DocumentFilter{Kind: "internal"}, []string{"web 2"}},
		{ops.DocumentFilter{Code: "2628"}, []string{"web 1"}},
		{ops.DocumentFilter{Code: "PANIC"}, []string{"web 2"}},
		{ops.DocumentFilter{Line: 3}, []string{"web 3"}},
		{ops.DocumentFilter{Line: 4}, []string{" 4", "dev 4"}}, // a wrong sys_name must not hide a line
		{ops.DocumentFilter{Line: 4, Status: invoice.Failed}, []string{"dev 4"}},
		{ops.DocumentFilter{Since: start()}, []string{"web 1", "web 2", "web 3"}},
		{ops.DocumentFilter{Since: start().Add(time.Second)}, nil},
		{ops.DocumentFilter{Until: start()}, nil},
	} {
		require.Equal(t, c.want, rowsOf(t, w.ops, c.f), "%+v", c.f)
	}
}

func TestAListRefusesWhatIsUnknown(t *testing.T) {
	w := newWorld(t)
	first, err := w.ops.Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	require.Empty(t, first.Next)
	for name, q := range map[string]ops.DocumentQuery{
		"pending, retry_scheduled, committed, failed, processing": {DocumentFilter: ops.DocumentFilter{Status: "done"}},
		"infrastructure, ":     {DocumentFilter: ops.DocumentFilter{Kind: "bogus"}},
		"validation.too_long":  {DocumentFilter: ops.DocumentFilter{Code: "toolong"}},
		"a code of":            {DocumentFilter: ops.DocumentFilter{Code: "bogus"}},
		"line: expected":       {DocumentFilter: ops.DocumentFilter{Line: -1}},
		"request: expected":    {DocumentFilter: ops.DocumentFilter{Request: strings.Repeat("x", 1024)}},
		"until: expected":      {DocumentFilter: ops.DocumentFilter{Since: start(), Until: start()}},
		"limit: expected 1 to": {Limit: 1001},
		"page: expected":       {Page: "e30"},
	} {
		_, err := w.ops.Documents(t.Context(), q)
		require.Equal(t, ops.Usage, refusal(err), name)
		require.ErrorContains(t, err, name)
	}
	for _, code := range []string{"2628", "429/3200", "-1", "VALIDATION.too_long"} {
		_, err := w.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{Code: code}})
		require.NoError(t, err, code)
	}
}

func TestAPageIsOfOneList(t *testing.T) {
	w := newWorld(t)
	w.fill(30)
	q := ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{Status: invoice.Failed, Since: start()}, Limit: 10}
	p, err := w.ops.Documents(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, p.Documents, 10)
	q.Page, q.Since, q.Limit = p.Next, start().Add(time.Minute), 15 // "the last hour" is later now
	p, err = w.ops.Documents(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, p.Documents, 15)
	q.Status = invoice.Committed
	_, err = w.ops.Documents(t.Context(), q)
	require.Equal(t, ops.Usage, refusal(err))
}

func TestARequestSaysHowManyOfItsDetailsAreThere(t *testing.T) {
	w := newWorld(t)
	put := func(id, sysName string, line int, more string) {
		w.put(fmt.Sprintf(`{"id":%q,"request_details":{"id":"r1","total_invoice_detail_ids":7,"sys_name":%q},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d}%s}`, id, sysName, line, more))
	}
	put("a", "web", 1, `,"post-processing":{"duplicate_detail_uids":[2,"3",1]}`)
	put("b", "web", 4, "")
	put("b again", "web", 4, "")
	put("c", "dev", 5, "")
	w.put(`{"id":"d","request_details":{"id":"r1","sys_name":"web"}}`, `{"id":"e","request_details":{"id":"r2","sys_name":"web"}}`)
	p, err := w.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{Request: "r1"}, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, &ops.RequestCount{ID: "r1", Expected: 7, Present: 4, Documents: 4, Foreign: 1}, p.Request)
	require.Len(t, p.Documents, 2)
	p, err = w.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{Request: "r1"}, Limit: 10, Page: p.Next})
	require.NoError(t, err)
	require.Nil(t, p.Request)
	require.Len(t, p.Documents, 3)
}

func TestARowSaysWhatTheDocumentSays(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, "a", `{"status":"RETRY_SCHEDULED","retry_count":2,"retry_after":1766073660,"last_error_kind":"document","last_error_code":"547"}`),
		result(2, "a", `{"status":"retry_scheduled","retry_after":1766073660000}`), result(3, "a", failed(7, fault.Document, "2628")),
		result(4, "a", `{"status":"odd"}`), result(5, "a", `{}`))
	p, err := w.ops.Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	slices.SortFunc(p.Documents, func(a, b ops.DocumentRow) int { return int(a.Line - b.Line) })
	zone := p.Documents[0].ChangedAt.Location()
	at := start().In(zone)
	require.Equal(t, []ops.DocumentRow{
		{ID: id(1), SysName: "web", Line: 1, Status: "retry_scheduled", Kind: "document", Code: "547", Retries: 2, ChangedAt: at, RetryAt: time.Unix(1766073660, 0).In(zone)},
		{ID: id(2), SysName: "web", Line: 2, Status: "retry_scheduled", ChangedAt: at},
		{ID: id(3), SysName: "web", Line: 3, Status: "failed", Kind: "document", Code: "2628", Retries: 5, ChangedAt: at, FailedAt: time.Date(2025, 12, 18, 9, 7, 0, 0, zone)},
		{ID: id(4), SysName: "web", Line: 4, Status: "odd", ChangedAt: at},
		{ID: id(5), SysName: "web", Line: 5, Status: "not offered", ChangedAt: at},
	}, p.Documents)
	_, err = json.Marshal(p)
	require.NoError(t, err, "a time in the far future is no time of JSON")
}

// The container gives a document again whose _ts changed after its page.
func TestADocumentThatMovesWithinItsWindowComesOnce(t *testing.T) {
	now := start().Unix()
	doc := func(id string, ago int64) invoice.Projection {
		return invoice.Projection(fmt.Sprintf(`{"id":%q,"_ts":%d}`, id, now-ago))
	}
	moving := searchFunc(func(q ops.Search, continuation string) ([]invoice.Projection, string) {
		switch {
		case q.To < now:
			return nil, ""
		case continuation == "":
			return []invoice.Projection{doc("a", 10)}, "more"
		}
		return []invoice.Projection{doc("b", 20), doc("a", 5)}, ""
	})
	p, err := ops.New(ops.Ports{Search: moving}, ops.Options{SysName: "web", Now: start}).Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	var found []string
	for _, row := range p.Documents {
		found = append(found, row.ID+" "+strconv.FormatInt(row.ChangedAt.Unix()-now, 10))
	}
	require.Equal(t, []string{"a -5", "b -20"}, found)
}

// searchFunc is an ops.DocumentSearch.
type searchFunc func(q ops.Search, continuation string) ([]invoice.Projection, string)

func (f searchFunc) Search(_ context.Context, q ops.Search, _ int, continuation string) ([]invoice.Projection, string, error) {
	docs, next := f(q, continuation)
	return docs, next, nil
}

func TestAPageHasTwentyDocumentsUnlessMoreAreAsked(t *testing.T) {
	w := newWorld(t)
	for line := range int64(21) {
		w.put(result(line+1, "x", `{"status":"failed"}`))
	}
	p, err := w.ops.Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	require.Len(t, p.Documents, 20, "as every list (docs/api.md)")
	require.NotEmpty(t, p.Next)
}

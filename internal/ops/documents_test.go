package ops_test

import (
	"cmp"
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

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// fakeContainer has documents with an id and a _ts only, in physical partitions. It counts requests and documents.
type fakeContainer struct {
	partitions int
	ids        []string // in the order of the container, for ever
	ts         map[string]int64
	requests   int
	// between is called before each request but the first.
	between func()
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

// Find implements commit.Finder: a page has documents of one partition. The continuation is the partition and the place
// in it.
func (c *fakeContainer) Find(_ context.Context, q commit.Query, continuation string) (page commit.Page, err error) {
	if c.requests++; c.between != nil && c.requests > 1 {
		c.between()
	}
	partition, at := 0, 0
	if continuation != "" {
		if _, err := fmt.Sscanf(continuation, "%d/%d", &partition, &at); err != nil {
			return page, fault.New(fault.Document, "test", "continuation", "no continuation")
		}
	}
	for ; at < len(c.ids); at++ {
		id := c.ids[at]
		if ts := c.ts[id]; at%c.partitions == partition && ts >= q.From && ts < q.To {
			if len(page.Documents) == q.Size {
				page.Next = fmt.Sprintf("%d/%d", partition, at)
				return page, nil
			}
			page.Documents = append(page.Documents,
				invoice.Projection(
					fmt.Sprintf(
						`{"id":%q,"_ts":%d,"request_details":{"sys_name":"web"},"sql_writer":{"status":"failed"}}`, id,
						ts)))
		}
	}
	if partition++; partition < c.partitions {
		page.Next = fmt.Sprintf("%d/0", partition)
	}
	return page, nil
}

// list lists documents. Each request takes a time.
func (c *fakeContainer) list(t *testing.T, takes time.Duration, q ops.DocumentQuery) ops.DocumentList {
	t.Helper()
	before := c.requests
	now := func() time.Time { return start().Add(time.Duration(c.requests-before) * takes) }
	l, err := ops.New(ops.Ports{Finder: c}, ops.Options{SysName: "web", Now: now}).Documents(t.Context(), q)
	require.NoError(t, err)
	return l
}

// latest are the ids of a container's documents, newest first and then in the order of their keys.
func (c *fakeContainer) latest() []string {
	all := slices.Clone(c.ids)
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.ts[b], c.ts[a]), cmp.Compare(invoice.Key(a), invoice.Key(b)))
	})
	return all
}

// Whatever the distribution (ADR 0036), a list has the documents that changed last, in their order, and says how many
// match.
func TestAListIsTheNewest(t *testing.T) {
	now := start().Unix()
	for name, shape := range map[string]struct {
		ts func(i int) int64
		// matched are those that are counted; since is the window in hours, 0 for all time.
		matched, since int
	}{
		"one second":           {func(int) int64 { return now - 5 }, 5000, 1},
		"one second, long ago": {func(int) int64 { return now - 365*86400 }, 5000, 0},
		"nothing for a year":   {func(i int) int64 { return now - 365*86400 - int64(i)*60 }, 5000, 0},
		"evenly in a year":     {func(i int) int64 { return now - int64(i)*365*86400/5000 }, 5000, 0},
		"a minute apart":       {func(i int) int64 { return now - int64(i)*60 }, 5000, 7 * 24},
		"ten a second":         {func(i int) int64 { return now - int64(i)/10 }, 5000, 1},
		"two bulks":            {func(i int) int64 { return now - int64(i%2)*86400 }, 2500, 1},
		"the very beginning":   {func(int) int64 { return 1 }, 5000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeContainer(3)
			const documents = 5000
			for i := range documents {
				c.put("doc "+strconv.Itoa(i*7919%documents), shape.ts(i))
			}
			l := c.list(t, 0, ops.DocumentQuery{Limit: 307})
			var ids []string
			for _, row := range l.Documents {
				ids = append(ids, row.ID)
			}
			require.Equal(t, c.latest()[:307], ids)
			require.Equal(t, ops.Count{Documents: shape.matched, AtLeast: shape.since > 0}, l.Matched)
			if shape.since == 0 {
				require.True(t, l.LookedSince.IsZero(), l.LookedSince)
			} else {
				require.Equal(t, start().Add(-time.Duration(shape.since)*time.Hour), l.LookedSince)
			}
			require.False(t, l.Cut)
			require.Equal(t, []string{"since"}, l.NarrowBy, "no other filter tells these documents apart")
			require.LessOrEqual(t, c.requests, 3*3+documents/1000)
			require.Contains(t, l.Says, "the newest 307 of ")
		})
	}
}

// A window is read whole while the time lasts. Then the list says that it was cut, and by what to narrow it.
func TestAListThatIsCutSaysSo(t *testing.T) {
	c, now := newFakeContainer(1), start().Unix()
	for i := range 30_000 {
		c.put(strconv.Itoa(i), now-3599+int64(i)/10) // the container gives the oldest first
	}
	l := c.list(t, time.Second, ops.DocumentQuery{Limit: 10})
	require.True(t, l.Cut)
	require.Equal(t, 20, c.requests, "twenty seconds")
	require.Equal(t, ops.Count{Documents: 20_000, AtLeast: true}, l.Matched)
	require.Len(t, l.Documents, 10)
	require.Equal(t, time.Unix(now-3599+1999, 0), l.Documents[0].ChangedAt.Local(), "the newest that were read")
	require.Equal(t,
		"the time was over: the newest 10 of the 20000 that were read since 2025-12-18T15:00:00Z, and newer ones may be left out. Narrow by since", l.Says)

	c.requests = 0
	whole := c.list(t, time.Second,
		ops.DocumentQuery{Limit: 10, DocumentFilter: ops.DocumentFilter{Since: start().Add(-11 * time.Minute)}})
	require.False(t, whole.Cut, "narrower")
	require.Equal(t, time.Unix(now-3599+2999, 0), whole.Documents[0].ChangedAt.Local())
	require.Equal(t, ops.Count{Documents: 610}, whole.Matched)

	empty := newFakeContainer(60) // the document is in the last of them
	empty.put("old", now-365*86400)
	l = empty.list(t, time.Second, ops.DocumentQuery{})
	require.True(t, l.Cut)
	require.Empty(t, l.Documents, "none here does not mean none at all")
	require.Contains(t, l.Says, "the time was over before a document was found")
}

// A list names the filters whose values differ among what was read.
func TestAListSaysWhatWouldNarrowIt(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, "a", failed(1, fault.Document, "2628")),
		result(2, "b", failed(1, fault.Document, "547")), result(3, "c", ""))
	narrowBy := func(f ops.DocumentFilter, limit int) []string {
		l := must(w.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: f, Limit: limit}))(t)
		return l.NarrowBy
	}
	require.Equal(t, []string{"since", "status", "kind", "error_code"}, narrowBy(ops.DocumentFilter{}, 1))
	require.Equal(t, []string{"since", "error_code"}, narrowBy(ops.DocumentFilter{Status: invoice.Failed}, 1))
	require.Empty(t, narrowBy(ops.DocumentFilter{Status: invoice.Failed}, 3), "all that match are there")
}

// Documents that change while a list is read come once, and those that do not change are not left out.
func TestWhatDoesNotChangeIsListedOnce(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, now := newFakeContainer(1+r.IntN(4)), start().Unix()
		span := []int64{1, 10, 3000}[r.IntN(3)]
		documents := 1000 + r.IntN(4000)
		for i := range documents {
			c.put(strconv.Itoa(i), now-60-r.Int64N(span))
		}
		changed := map[string]bool{}
		c.between = func() {
			for range r.IntN(20) {
				id := strconv.Itoa(r.IntN(documents + 200)) // some are new
				changed[id] = true
				c.put(id, now-r.Int64N(50))
			}
		}
		l := c.list(t, 0, ops.DocumentQuery{Limit: 1000})
		seen := map[string]bool{}
		for _, row := range l.Documents {
			require.False(t, seen[row.ID], "seed %d: %s comes twice", seed, row.ID)
			seen[row.ID] = true
		}
		for _, id := range c.latest()[:900-len(changed)] {
			require.True(t, seen[id] || changed[id], "seed %d: %s is left out", seed, id)
		}
	}
}

// rowsOf are the ids of a list, sorted, with their environments.
func rowsOf(t *testing.T, o *ops.Ops, f ops.DocumentFilter) []string {
	t.Helper()
	p := must(o.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: f, Limit: 1000}))(t)
	require.Equal(t, ops.Count{Documents: len(p.Documents)}, p.Matched)
	var found []string
	for _, row := range p.Documents {
		found = append(found, row.SysName+" "+strconv.FormatInt(row.Line, 10))
	}
	slices.Sort(found)
	return found
}

func TestAListIsOfThisEnvironment(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, "a", failed(1, fault.Document, "2628")),
		result(2, "b", failed(1, fault.Internal, "panic")), result(3, "c", ""),
		documentOf("theirs", "dev", 4, "d", failed(1, fault.Document, "2628")),
		`{"id":"nobody's","invoice_details_from_rpa":{"IVCE_DTL_UID":"4"}}`)
	for _, c := range []struct {
		f    ops.DocumentFilter
		want []string
	}{
		{ops.DocumentFilter{}, []string{"web 1", "web 2", "web 3"}},
		{ops.DocumentFilter{Status: invoice.Failed}, []string{"web 1", "web 2"}},
		{ops.DocumentFilter{Kind: "internal"}, []string{"web 2"}},
		{ops.DocumentFilter{ErrorCode: "2628"}, []string{"web 1"}},
		{ops.DocumentFilter{ErrorCode: "PANIC"}, []string{"web 2"}},
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
	for name, q := range map[string]ops.DocumentQuery{
		"pending, retry_scheduled, committed, failed, processing": {DocumentFilter: ops.DocumentFilter{Status: "done"}},
		"infrastructure, ":     {DocumentFilter: ops.DocumentFilter{Kind: "bogus"}},
		"a code of":            {DocumentFilter: ops.DocumentFilter{ErrorCode: "bogus"}},
		"line: expected":       {DocumentFilter: ops.DocumentFilter{Line: -1}},
		"request: expected":    {DocumentFilter: ops.DocumentFilter{Request: strings.Repeat("x", 1024)}},
		"until: expected":      {DocumentFilter: ops.DocumentFilter{Since: start(), Until: start()}},
		"limit: expected 1 to": {Limit: 1001},
	} {
		_, err := w.ops.Documents(t.Context(), q)
		require.Equal(t, ops.Usage, refusal(err), name)
		require.ErrorContains(t, err, name)
	}
	for _, code := range []string{"2628", "429/3200", "-1", "VALIDATION.too_long"} {
		_, err := w.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{ErrorCode: code}})
		require.NoError(t, err, code)
	}
}

func TestARequestSaysHowManyOfItsDetailsAreThere(t *testing.T) {
	w := newWorld(t)
	put := func(id, sysName string, line int, more string) {
		w.put(
			fmt.Sprintf(
				`{"id":%q,"request_details":{"id":"r1","total_invoice_detail_ids":7,"sys_name":%q},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d}%s}`, id, sysName, line, more))
	}
	put("a", "web", 1, `,"post-processing":{"duplicate_detail_uids":[2,"3",1]}`)
	put("b", "web", 4, "")
	put("b again", "web", 4, "")
	put("c", "dev", 5, "")
	w.put(`{"id":"d","request_details":{"id":"r1","sys_name":"web"}}`,
		`{"id":"e","request_details":{"id":"r2","sys_name":"web"}}`)
	p, err := w.ops.Documents(t.Context(),
		ops.DocumentQuery{DocumentFilter: ops.DocumentFilter{Request: "r1"}, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, &ops.RequestCount{ID: "r1", Expected: 7, Present: 4, Documents: 4, Foreign: 1}, p.Request)
	require.Len(t, p.Documents, 2)
	require.Equal(t, ops.Count{Documents: 5}, p.Matched)
}

func TestARowSaysWhatTheDocumentSays(t *testing.T) {
	w := newWorld(t)
	w.put(
		result(1, "a",
			`{"status":"RETRY_SCHEDULED","retry_count":2,"retry_after":1766073660,"last_error_kind":"document","last_error_code":"547"}`),
		result(2, "a", `{"status":"retry_scheduled","retry_after":1766073660000}`),
		result(3, "a", failed(7, fault.Document, "2628")),
		result(4, "a", `{"status":"odd"}`), result(5, "a", `{}`))
	p := must(w.ops.Documents(t.Context(), ops.DocumentQuery{}))(t)
	slices.SortFunc(p.Documents, func(a, b ops.DocumentRow) int { return int(a.Line - b.Line) })
	zone := p.Documents[0].ChangedAt.Location()
	at := start().In(zone)
	require.Equal(t, []ops.DocumentRow{
		{
			ID: id(1), SysName: "web", Line: 1, Status: "retry_scheduled", Kind: "document", Code: "547", Retries: 2,
			ChangedAt: at, RetryAt: time.Unix(1766073660, 0).In(zone),
		},
		{ID: id(2), SysName: "web", Line: 2, Status: "retry_scheduled", ChangedAt: at},
		{
			ID: id(3), SysName: "web", Line: 3, Status: "failed", Kind: "document", Code: "2628", Retries: 5,
			ChangedAt: at, FailedAt: time.Date(2025, 12, 18, 9, 7, 0, 0, zone),
		},
		{ID: id(4), SysName: "web", Line: 4, Status: "odd", ChangedAt: at},
		{ID: id(5), SysName: "web", Line: 5, Status: "not offered", ChangedAt: at},
	}, p.Documents)
	_, err := json.Marshal(p)
	require.NoError(t, err, "a time in the far future is no time of JSON")
}

// The container gives a document again whose _ts changed after its page.
func TestADocumentThatMovesWithinItsWindowComesOnce(t *testing.T) {
	now := start().Unix()
	doc := func(id string, ago int64) invoice.Projection {
		return invoice.Projection(fmt.Sprintf(`{"id":%q,"_ts":%d}`, id, now-ago))
	}
	moving := findFunc(func(q commit.Query, continuation string) ([]invoice.Projection, string) {
		switch {
		case q.To < now:
			return nil, ""
		case continuation == "":
			return []invoice.Projection{doc("a", 10)}, "more"
		}
		return []invoice.Projection{doc("b", 20), doc("a", 5)}, ""
	})
	p, err := ops.New(ops.Ports{Finder: moving},
		ops.Options{SysName: "web", Now: start}).Documents(t.Context(), ops.DocumentQuery{})
	require.NoError(t, err)
	var found []string
	for _, row := range p.Documents {
		found = append(found, row.ID+" "+strconv.FormatInt(row.ChangedAt.Unix()-now, 10))
	}
	require.Equal(t, []string{"a -5", "b -20"}, found)
}

// findFunc is a commit.Finder.
type findFunc func(q commit.Query, continuation string) ([]invoice.Projection, string)

func (f findFunc) Find(_ context.Context, q commit.Query, continuation string) (page commit.Page, err error) {
	page.Documents, page.Next = f(q, continuation)
	return page, nil
}

func TestAListHasTwentyDocumentsUnlessMoreAreAsked(t *testing.T) {
	w := newWorld(t)
	for line := range int64(21) {
		w.put(result(line+1, "x", `{"status":"failed"}`))
	}
	p := must(w.ops.Documents(t.Context(), ops.DocumentQuery{}))(t)
	require.Len(t, p.Documents, 20, "as every list (docs/api.md)")
	require.Equal(t, "the newest 20 of at least 21 that match since 2025-12-18T09:00:00-06:00. Narrow by since", p.Says)
}

package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// SelectionHarness has the port under test and the functions that TestSelection needs around it.
type SelectionHarness struct {
	DocumentsHarness
	// Selection is the port under test, over the same container.
	Selection run.Selection
	// Restarted makes another one over the same container, as the next process does.
	Restarted func(t testing.TB) run.Selection
}

// TestSelection checks an implementation of run.Selection against the port's contract. open makes a new one per test.
func TestSelection(t *testing.T, open func(t *testing.T) SelectionHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, SelectionHarness)
	}{
		{"2,500 documents over pages of at most 1,000, each once", selectionPages},
		{"another process goes on from every continuation", selectionResumed},
		{"a page that is asked for again is the same", selectionRepeated},
		{"documents that do not change are found once, whatever the others do", selectionChanging},
		{"a continuation that is none is the search's fault and not the network's", selectionGarbage},
		{"a continuation of another query is none", selectionOfAnotherQuery},
		{"nothing to find is no document and, in the end, no continuation", selectionNothing},
		{"a search whose context has ended is infrastructure, and can go on", selectionCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	// What matches is what commit.Backlog matches: the same cases.
	for _, c := range []struct {
		name string
		run  func(*testing.T, BacklogHarness)
	}{
		{"a status is found in its three spellings and in no other", pendingSpellings},
		{"several statuses at once, each document once; of none, none", pendingStatuses},
		{"what has no status waits for nobody", pendingWithoutStatus},
		{"of this environment only, to the letter", pendingEnvironment},
		{"a document is in the window of its _ts and in no other", pendingBounds},
		{"what is told is what the document says", pendingReported},
		{"members of another type fail nothing", pendingOddTypes},
		{"what is found may be written to before the next page", pendingWritten},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			c.run(t, BacklogHarness{Backlog: pagewise{selection: h.Selection}, DocumentsHarness: h.DocumentsHarness})
		})
	}
}

// pagewise is a commit.Backlog that turns the pages of a run.Selection.
type pagewise struct {
	commit.Backlog
	selection run.Selection
}

func (p pagewise) PendingDocs(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]commit.PendingDoc) (bool, error)) error {
	for continuation := ""; ; {
		found, next, err := p.selection.Page(ctx, run.Query{SysName: sysName, Statuses: statuses, From: from, To: to}, continuation)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			if more, err := page(found); err != nil || !more {
				return err
			}
		}
		if next == "" {
			return nil
		}
		continuation = next
	}
}

// selectedPage is one page as it came: the continuation that it was asked with, the ids, the next one.
type selectedPage struct {
	from, next string
	ids        []string
}

func selectionQuery(statuses ...invoice.Status) run.Query {
	return run.Query{SysName: "web", Statuses: statuses, To: forever}
}

// selectedFrom turns the pages of pending documents from a continuation on.
func selectedFrom(t testing.TB, s run.Selection, continuation string) []selectedPage {
	t.Helper()
	var pages []selectedPage
	for {
		found, next, err := s.Page(t.Context(), selectionQuery(invoice.Pending), continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(found), 1000)
		pages = append(pages, selectedPage{from: continuation, next: next, ids: pendingIDs(found)})
		if next == "" {
			return pages
		}
		require.NotEqual(t, continuation, next, "a search that does not get on never ends")
		continuation = next
	}
}

// idsOf are the ids of pages, sorted.
func idsOf(pages []selectedPage) []string {
	var all []string
	for _, p := range pages {
		all = append(all, p.ids...)
	}
	slices.Sort(all)
	return all
}

// putPending writes n documents that are pending and answers their ids, sorted.
func putPending(t testing.TB, h SelectionHarness, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("doc %04d", i)
		h.Put(t, pendingDocument(ids[i], "web", map[string]any{"status": "pending"}))
	}
	return ids
}

func selectionPages(t *testing.T, h SelectionHarness) {
	want := putPending(t, h, 2500)
	for i := range 100 {
		h.Put(t, pendingDocument(fmt.Sprint("done ", i), "web", map[string]any{"status": "committed"}))
		h.Put(t, pendingDocument(fmt.Sprint("theirs ", i), "dev", map[string]any{"status": "pending"}))
	}
	pages := selectedFrom(t, h.Selection, "")
	require.GreaterOrEqual(t, len(pages), 3)
	require.Equal(t, want, idsOf(pages))
}

func selectionResumed(t *testing.T, h SelectionHarness) {
	want := putPending(t, h, morePages)
	pages := selectedFrom(t, h.Selection, "")
	require.Greater(t, len(pages), 1, "or the rest shows nothing")
	require.Equal(t, want, idsOf(pages))
	for i := range pages {
		require.Equal(t, idsOf(pages[i:]), idsOf(selectedFrom(t, h.Restarted(t), pages[i].from)), "from page %d", i)
	}
}

func selectionRepeated(t *testing.T, h SelectionHarness) {
	putPending(t, h, morePages)
	for _, p := range selectedFrom(t, h.Selection, "") {
		for range 2 {
			found, next, err := h.Selection.Page(t.Context(), selectionQuery(invoice.Pending), p.from)
			require.NoError(t, err)
			require.Equal(t, p.next != "", next != "", "the search is as far as it was")
			require.ElementsMatch(t, p.ids, pendingIDs(found))
		}
	}
}

// While a run looks for documents, producers add some, and what it found already is committed.
func selectionChanging(t *testing.T, h SelectionHarness) {
	all := putPending(t, h, morePages)
	changing := map[string]bool{}
	for i, id := range all {
		changing[id] = i%3 == 0
	}
	counts := map[string]int{}
	continuation, added := "", 0
	for {
		found, next, err := h.Selection.Page(t.Context(), selectionQuery(invoice.Pending), continuation)
		require.NoError(t, err)
		for _, w := range found {
			counts[w.ID]++
		}
		for range 20 {
			for _, id := range []string{fmt.Sprintf("after %04d", added), fmt.Sprintf("doc %04d new", added), fmt.Sprintf("zz %04d", added)} {
				h.Put(t, pendingDocument(id, "web", map[string]any{"status": "pending"}))
			}
			id := all[3*(added%(len(all)/3))]
			if added%2 == 0 {
				h.Put(t, pendingDocument(id, "web", map[string]any{"status": "committed"}))
			} else {
				h.Put(t, pendingDocument(id, "web", map[string]any{"status": "pending", "corrected": true}))
			}
			added++
		}
		if next == "" || len(counts) > 3*len(all) { // producers that never stop can keep a search going
			break
		}
		continuation = next
	}
	for _, id := range all {
		if !changing[id] {
			require.Equal(t, 1, counts[id], id)
		}
	}
}

func selectionGarbage(t *testing.T, h SelectionHarness) {
	putPending(t, h, morePages)
	pages := selectedFrom(t, h.Selection, "")
	good := pages[0].next
	require.NotEmpty(t, good)
	for _, bad := range []string{
		"garbage", " ", "e30=", "1", "null", "\n", "a\r\nX-Injected: 1", "\x00", "ü日本😀", good + "!", good + "\n", good[:len(good)-5], good[1:], "x" + good, good[:17],
	} {
		found, next, err := h.Selection.Page(t.Context(), selectionQuery(invoice.Pending), bad)
		requireFault(t, err, fault.Document, fault.NoCondition, "%q", bad)
		require.Equal(t, "continuation", fault.CodeOf(err), "%q", bad)
		require.Empty(t, found)
		require.Empty(t, next)
	}
	require.Equal(t, idsOf(pages), idsOf(selectedFrom(t, h.Selection, "")), "begun again, all is found")
}

func selectionOfAnotherQuery(t *testing.T, h SelectionHarness) {
	putPending(t, h, morePages)
	good := selectedFrom(t, h.Selection, "")[0].next
	require.NotEmpty(t, good)
	_, _, err := h.Selection.Page(t.Context(), selectionQuery(invoice.Pending), good)
	require.NoError(t, err)
	for name, q := range map[string]run.Query{
		"statuses": selectionQuery(invoice.Failed), "more statuses": selectionQuery(invoice.Pending, invoice.Failed),
		"environment": {SysName: "dev", Statuses: []invoice.Status{invoice.Pending}, To: forever},
		"from":        {SysName: "web", Statuses: []invoice.Status{invoice.Pending}, From: 1, To: forever},
		"to":          {SysName: "web", Statuses: []invoice.Status{invoice.Pending}, To: forever - 1},
	} {
		_, _, err := h.Selection.Page(t.Context(), q, good)
		requireFault(t, err, fault.Document, fault.NoCondition, name)
		require.Equal(t, "continuation", fault.CodeOf(err), name)
	}
}

func selectionNothing(t *testing.T, h SelectionHarness) {
	require.Empty(t, idsOf(selectedFrom(t, h.Selection, "")), "of an empty container")
	for i := range 50 {
		h.Put(t, pendingDocument(fmt.Sprint("done ", i), "web", map[string]any{"status": "committed"}))
	}
	require.Empty(t, idsOf(selectedFrom(t, h.Selection, "")))
	found, next, err := h.Selection.Page(t.Context(), selectionQuery(), "")
	require.NoError(t, err)
	require.Empty(t, found, "of no status")
	require.Empty(t, next)
}

func selectionCancelled(t *testing.T, h SelectionHarness) {
	putPending(t, h, morePages)
	pages := selectedFrom(t, h.Selection, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, continuation := range []string{"", pages[0].next} {
		found, next, err := h.Selection.Page(ctx, selectionQuery(invoice.Pending), continuation)
		requireFault(t, err, fault.Infrastructure, fault.NoCondition)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, found)
		require.Empty(t, next, "an end of the search must not be taken for that of the call: the error says it")
	}
	require.Equal(t, idsOf(pages[1:]), idsOf(selectedFrom(t, h.Selection, pages[0].next)))
}

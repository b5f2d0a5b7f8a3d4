package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// ReconcileDocumentsHarness has the port under test and the functions that TestReconcileDocuments needs around it.
type ReconcileDocumentsHarness struct {
	DocumentsHarness
	// Reconcile is the port under test, of the environment web, over the same container.
	Reconcile reconcile.Documents
	// Restarted makes another one, as the next process does.
	Restarted func(t testing.TB) reconcile.Documents
}

// TestReconcileDocuments checks an implementation of reconcile.Documents against the port's contract. open makes a new one per test.
func TestReconcileDocuments(t *testing.T, open func(t *testing.T) ReconcileDocumentsHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, ReconcileDocumentsHarness)
	}{
		{"what changed comes once, over pages of several sizes, also in another process", changedPages},
		{"what changed is between the bounds of its _ts, and of this environment to the letter", changedBounds},
		{"what changed has any status", changedEnvironment},
		{"what changed means what the document means", changedMembers},
		{"what does not change meanwhile comes once", changedMeanwhile},
		{"a continuation that is none, or of another window, is the request's fault", changedGarbage},
		{"read many gives whole documents of any environment, and leaves out the missing", reconcileReadMany},
		{"each answer tells its charge, more for more", reconcileCharges},
		{"a call whose context has ended is infrastructure", reconcileCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// changed turns the pages of what changed, each by a process of its own.
func (h ReconcileDocumentsHarness) changed(t testing.TB, from, to int64, size int) []invoice.Projection {
	t.Helper()
	var docs []invoice.Projection
	for continuation := ""; ; {
		page, next, charge, err := h.Restarted(t).Changed(t.Context(), from, to, size, continuation)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), size)
		require.Positive(t, charge)
		require.LessOrEqual(t, len(next), 1100, "a run's watermark holds it")
		docs = append(docs, page...)
		if next == "" {
			return docs
		}
		require.NotEqual(t, continuation, next, "pages that do not get on never end")
		continuation = next
	}
}

// sortedIDs are the ids of documents.
func sortedIDs[T ~[]byte](t testing.TB, docs []T) []string {
	t.Helper()
	found := ids(t, docs)
	slices.Sort(found)
	return found
}

func changedPages(t *testing.T, h ReconcileDocumentsHarness) {
	want := make([]string, 600)
	for i := range want {
		want[i] = fmt.Sprintf("doc %04d", i)
		h.Put(t, result(want[i], "web", "failed"))
		if i%10 == 0 {
			h.Put(t, result("other "+want[i], "dev", "failed"))
		}
	}
	for _, size := range []int{1000, 100, 7} {
		require.Equal(t, want, sortedIDs(t, h.changed(t, 0, forever, size)))
	}
}

func changedBounds(t *testing.T, h ReconcileDocumentsHarness) {
	h.Put(t, result("a", "web", "committed"))
	for i, other := range []string{"WEB", "web ", "we", ""} {
		h.Put(t, result(fmt.Sprint("other ", i), other, "committed"))
	}
	h.Put(t, json.RawMessage(`{"id":"without","sql_writer":{"status":"committed"}}`))
	d, err := invoice.Read(mustRead(t, h.DocumentsHarness, "a"), time.Now())
	require.NoError(t, err)
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{0, forever, []string{"a"}},
		{d.TS, d.TS + 1, []string{"a"}},
		{0, d.TS, nil},
		{d.TS + 1, forever, nil},
	} {
		require.ElementsMatch(t, c.want, sortedIDs(t, h.changed(t, c.from, c.to, 100)), "from %d to %d of %d", c.from, c.to, d.TS)
	}
}

func changedEnvironment(t *testing.T, h ReconcileDocumentsHarness) {
	var want []string
	for _, status := range []string{"committed", "failed", "pending", "retry_scheduled", "Committed ", "processing", "odd"} {
		h.Put(t, result("web "+status, "web", status))
		h.Put(t, result("dev "+status, "dev", status))
		want = append(want, "web "+status)
	}
	for _, doc := range []string{
		`{"id":"no environment"}`, `{"id":"null","request_details":{"sys_name":null}}`, `{"id":"text","request_details":"web"}`,
		`{"id":"list","request_details":{"sys_name":["web"]}}`, `{"id":"WEB","request_details":{"sys_name":"WEB"}}`,
	} {
		h.Put(t, json.RawMessage(doc))
	}
	h.Put(t, json.RawMessage(`{"id":"no status","request_details":{"sys_name":"web"}}`))
	require.ElementsMatch(t, append(want, "no status"), ids(t, h.changed(t, 0, forever, 5)))
}

func changedMembers(t *testing.T, h ReconcileDocumentsHarness) {
	docs := []json.RawMessage{
		result("2025-12-17 10:30:00.000000-06:00-0001-1", "web", "committed"),
		json.RawMessage(`{"id":"b","request_details":{"sys_name":"web"},"process_output":null,"sql_writer":{"status":"committed","old":[1]},"other":"x"}`),
		json.RawMessage(`{"id":"c","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"9007199254740993"},
			"post-processing":{"duplicate_detail_uids":[2,"3"]},"process_output":{"manufacturer_name":"<b>&\u00fc\ud83d\ude00","invoice_line_status":"DS1","part_number":7}}`),
	}
	for _, doc := range docs {
		h.Put(t, doc)
	}
	found := h.changed(t, 0, forever, 2)
	require.Len(t, found, len(docs))
	now := time.Now()
	for _, raw := range found {
		got, err := invoice.Read(raw, now)
		require.NoError(t, err)
		want, err := invoice.Read(mustRead(t, h.DocumentsHarness, got.ID), now)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func changedMeanwhile(t *testing.T, h ReconcileDocumentsHarness) {
	counts := map[string]int{}
	for i := range 300 {
		h.Put(t, result(fmt.Sprintf("doc %04d", i), "web", "failed"))
	}
	for continuation, i := "", 0; ; i++ {
		page, next, _, err := h.Reconcile.Changed(t.Context(), 0, forever, 50, continuation)
		require.NoError(t, err)
		for _, id := range ids(t, page) {
			counts[id]++
		}
		for n := range 10 { // every third document is written again, and new ones come
			h.Put(t, result(fmt.Sprintf("doc %04d", (30*i+3*n)%300), "web", "committed"))
			h.Put(t, result(fmt.Sprintf("new %04d", 10*i+n), "web", "failed"))
		}
		if continuation = next; next == "" || i > 100 {
			break
		}
	}
	for i := range 300 {
		if i%3 != 0 {
			require.Equal(t, 1, counts[fmt.Sprintf("doc %04d", i)])
		}
	}
}

func changedGarbage(t *testing.T, h ReconcileDocumentsHarness) {
	for i := range 30 {
		h.Put(t, result(fmt.Sprint("doc ", i), "web", "failed"))
	}
	_, good, _, err := h.Reconcile.Changed(t.Context(), 0, forever, 10, "")
	require.NoError(t, err)
	require.NotEmpty(t, good)
	for _, bad := range []string{"garbage", " ", "\n", "a\r\nX-Injected: 1", good[1:], good[:17]} {
		_, _, _, err := h.Reconcile.Changed(t.Context(), 0, forever, 10, bad)
		requireFault(t, err, fault.Document, fault.NoCondition, "%q", bad)
		require.Equal(t, "continuation", fault.CodeOf(err), "%q", bad)
	}
	_, _, _, err = h.Reconcile.Changed(t.Context(), 1, forever, 10, good)
	require.Equal(t, "continuation", fault.CodeOf(err))
}

func reconcileReadMany(t *testing.T, h ReconcileDocumentsHarness) {
	want := []string{"dev 1", "none"}
	h.Put(t, result("dev 1", "dev", "committed"))
	h.Put(t, json.RawMessage(`{"id":"none","content":"marker"}`))
	asked := []string{"dev 1", "none", "missing", "none"}
	for i := range 97 {
		id := fmt.Sprintf("web %02d", i)
		h.Put(t, result(id, "web", "failed"))
		want, asked = append(want, id), append(asked, id)
	}
	docs, charge, err := h.Reconcile.ReadMany(t.Context(), asked)
	require.NoError(t, err)
	require.Positive(t, charge)
	require.Equal(t, want, sortedIDs(t, docs))
	for _, doc := range docs {
		require.JSONEq(t, string(mustRead(t, h.DocumentsHarness, ids(t, []json.RawMessage{doc})[0])), string(doc), "whole")
	}
	docs, _, err = h.Reconcile.ReadMany(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, docs)
}

func reconcileCharges(t *testing.T, h ReconcileDocumentsHarness) {
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprint("doc ", i))
		h.Put(t, result(all[i], "web", "failed"))
	}
	few, charge, err := h.Reconcile.ReadMany(t.Context(), all[:1])
	require.NoError(t, err)
	require.Len(t, few, 1)
	_, more, err := h.Reconcile.ReadMany(t.Context(), all)
	require.NoError(t, err)
	require.Greater(t, more, charge)
}

func reconcileCancelled(t *testing.T, h ReconcileDocumentsHarness) {
	h.Put(t, result("a", "web", "failed"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, _, changedErr := h.Reconcile.Changed(ctx, 0, forever, 10, "")
	_, _, manyErr := h.Reconcile.ReadMany(ctx, []string{"a"})
	for i, err := range []error{changedErr, manyErr} {
		requireFault(t, err, fault.Infrastructure, fault.NoCondition, "%d", i)
	}
}

// forever is a _ts that no document has.
const forever = 253_402_300_800

func mustRead(t *testing.T, h DocumentsHarness, id string) json.RawMessage {
	t.Helper()
	raw, err := h.Documents.Read(t.Context(), id)
	require.NoError(t, err, id)
	return raw
}

// result makes a document of an environment with a status and one line.
func result(id, sysName, status string) json.RawMessage {
	doc, err := json.Marshal(map[string]any{
		"id": id, "request_details": map[string]any{"sys_name": sysName}, "invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": 1},
		"process_output": map[string]any{"invoice_line_status": "RC-AI", "unspsc_confidence": 0.25},
		"sql_writer":     map[string]any{"status": status, "committed_at": "2025-12-17 10:30:15.123456-06:00"},
	})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return doc
}

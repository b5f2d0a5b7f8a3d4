package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// WindowHarness has the port under test and the functions that TestWindow needs around it.
type WindowHarness struct {
	DocumentsHarness
	// Windows is the port under test, over the same container.
	Windows adopt.Documents
}

// TestWindow checks an implementation of adopt.Documents against the port's contract. open makes a new one per test.
func TestWindow(t *testing.T, open func(t *testing.T) WindowHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, WindowHarness)
	}{
		{"a document is in the window of its _ts and in no other", windowBounds},
		{"whatever the status, and of this environment only", windowEnvironment},
		{"what comes means what the document means", windowMembers},
		{"pages of 250 documents, each once", windowPages},
		{"a page that asks for no more, and one that fails", windowStops},
		{"a call whose context has ended is infrastructure", windowCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// forever is a _ts that no document has.
const forever = 253_402_300_800

func windowBounds(t *testing.T, h WindowHarness) {
	h.Put(t, result("a", "web", "committed"))
	d, err := invoice.Read(mustRead(t, h.DocumentsHarness, "a"), time.Now())
	require.NoError(t, err)
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{0, forever, []string{"a"}},
		{d.TS, d.TS + 1, []string{"a"}},
		{0, d.TS, []string{}},
		{d.TS + 1, forever, []string{}},
		{d.TS, d.TS, []string{}},
	} {
		require.Equal(t, c.want, ids(t, window(t, h, "web", c.from, c.to)), "from %d to %d of %d", c.from, c.to, d.TS)
	}
}

func windowEnvironment(t *testing.T, h WindowHarness) {
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
	require.ElementsMatch(t, append(want, "no status"), ids(t, window(t, h, "web", 0, forever)))
}

func windowMembers(t *testing.T, h WindowHarness) {
	docs := []json.RawMessage{
		result("2025-12-17 10:30:00.000000-06:00-0001-1", "web", "committed"),
		json.RawMessage(`{"id":"b","request_details":{"sys_name":"web"},"process_output":null,"sql_writer":{"status":"committed","old":[1]},"other":"x"}`),
		json.RawMessage(`{"id":"c","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"9007199254740993"},
			"post-processing":{"duplicate_detail_uids":[2,"3"]},"process_output":{"manufacturer_name":"<b>&\u00fc\ud83d\ude00","invoice_line_status":"DS1","part_number":7}}`),
	}
	for _, doc := range docs {
		h.Put(t, doc)
	}
	found := window(t, h, "web", 0, forever)
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

func windowPages(t *testing.T, h WindowHarness) {
	const n = 250
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("doc %03d", i)
		h.Put(t, result(want[i], "web", "committed"))
	}
	require.ElementsMatch(t, want, ids(t, window(t, h, "web", 0, forever)))
}

func windowStops(t *testing.T, h WindowHarness) {
	for i := range 150 {
		h.Put(t, result(fmt.Sprint("doc ", i), "web", "committed"))
	}
	pages := 0
	require.NoError(t, h.Windows.Window(t.Context(), "web", 0, forever, func([]invoice.Projection) (bool, error) {
		pages++
		return false, nil
	}))
	require.Equal(t, 1, pages)
	mine := errors.New("mine")
	err := h.Windows.Window(t.Context(), "web", 0, forever, func([]invoice.Projection) (bool, error) {
		pages++
		return true, mine
	})
	require.Equal(t, mine, err, "handed on as it is")
	require.Equal(t, 2, pages)
}

func windowCancelled(t *testing.T, h WindowHarness) {
	h.Put(t, result("a", "web", "committed"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := h.Windows.Window(ctx, "web", 0, forever, func([]invoice.Projection) (bool, error) {
		t.Error("nothing is read")
		return false, nil
	})
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
}

// window reads one window to its end.
func window(t *testing.T, h WindowHarness, sysName string, from, to int64) []invoice.Projection {
	t.Helper()
	var docs []invoice.Projection
	require.NoError(t, h.Windows.Window(t.Context(), sysName, from, to, func(page []invoice.Projection) (bool, error) {
		require.NotEmpty(t, page)
		docs = append(docs, page...)
		return true, nil
	}))
	return docs
}

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

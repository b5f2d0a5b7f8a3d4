package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// historyCases: random histories, step by step against the oracle, and many writers at once.
func historyCases() []sinkCase {
	return []sinkCase{
		{"random histories end as the oracle says, verdict by verdict and row by row", nil, histories},
		{
			"storms: parallel writers, failures, lost acknowledgements and replays end with the newest in every row",
			nil, storms,
		},
	}
}

// historyLines is how many lines a history is about; the last of them never exists.
const historyLines = 6

// history is one random history: a few documents with their snapshots over a few lines, sent in any order.
type history struct {
	*sinkTest
	rt     *rapid.T
	oracle *inmem.Sink
	lines  []int64
	docs   []commit.Item
	sent   [][]commit.Item
	// newest is the largest version that was sent for each line by an item that was not left out.
	newest map[int64]invoice.Version
	// touched are the lines that a person changed after the last write in mode write.
	touched map[int64]bool
	// contents has every content ever sent, by document, hash and line.
	contents map[string][]invoice.Value
}

func histories(s *sinkTest) {
	run := 0
	rapid.Check(s, func(rt *rapid.T) {
		run++ // each history has lines and documents of its own in the one database
		h := &history{
			sinkTest: s, rt: rt, oracle: inmem.NewSink(), lines: span(int64(run)*100, historyLines),
			newest: map[int64]invoice.Version{}, touched: map[int64]bool{}, contents: map[string][]invoice.Value{},
		}
		exist := h.lines[:historyLines-1]
		s.h.AddLines(s, exist...)
		h.oracle.AddLines(exist...)
		for i := range rapid.IntRange(1, 5).Draw(rt, "documents") {
			lines := rapid.SliceOfNDistinct(rapid.SampledFrom(h.usual()), 1, 3, rapid.ID).Draw(rt, "lines")
			us := int64(rapid.IntRange(1, 3).Draw(rt, "version"))
			h.docs = append(h.docs, doc(fmt.Sprintf("doc-%d-%d", run, i), us, 0, "", lines...))
		}
		if rapid.Bool().Draw(rt, "adopted") {
			h.adoptOne()
		}
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			if rapid.IntRange(0, 2).Draw(rt, "edit") == 0 {
				h.edit()
			}
			h.step()
		}
	})
}

// usual lists the lines, those that exist several times: most documents should not be left out.
func (h *history) usual() []int64 {
	return slices.Concat(h.lines[:historyLines-1], h.lines[:historyLines-1], h.lines)
}

// item draws a snapshot of a document: content and time are few, so that they repeat.
func (h *history) item() commit.Item {
	it := rapid.SampledFrom(h.docs).Draw(h.rt, "document")
	content := fmt.Sprint(it.DocumentID, rapid.IntRange(1, 3).Draw(h.rt, "content"))
	it = doc(it.DocumentID, it.Version.US, int64(rapid.IntRange(1, 4).Draw(h.rt, "source_ts")), content, linesOf(it)...)
	if rapid.IntRange(0, 5).Draw(h.rt, "recipe") == 0 {
		it = otherRecipe(it)
	}
	for _, line := range linesOf(it) {
		h.contents[contentKey(it.DocumentID, it.Hash, line)] = mapping.InUse().RowValues(it.Values, it.Main, line)
	}
	if rapid.IntRange(0, 4).Draw(h.rt, "mark") == 0 {
		return mark(it)
	}
	it.Overwrite = rapid.SliceOfNDistinct(rapid.SampledFrom(linesOf(it)), 0, 1, rapid.ID).Draw(h.rt, "overwrite")
	it.NotComparable = rapid.Bool().Draw(h.rt, "not comparable")
	if ago := rapid.IntRange(-1, 2).Draw(h.rt, "leave since, hours ago"); ago != 0 && ago < 2 {
		it.LeaveSince = time.Now().Add(-time.Duration(ago) * time.Hour).Unix()
	}
	return it
}

// once leaves LeaveSince to documents that stand once in a request: only a run sets it, and offers each document once.
func once(items []commit.Item) {
	for i := range items {
		for j := range items {
			if i != j && items[i].DocumentID == items[j].DocumentID {
				items[i].LeaveSince, items[j].LeaveSince = 0, 0
			}
		}
	}
}

// edit is a person's change of a line: a text, a status, or the tracking row.
func (h *history) edit() {
	line := rapid.SampledFrom(h.lines[:historyLines-1]).Draw(h.rt, "edited line")
	row := h.h.Row(h.sinkTest, line)
	place := rapid.SampledFrom(written(func(c invoice.Column) bool { return c.Kind == invoice.Text })).Draw(
		h.rt, "edited column")
	switch table := mapping.InUse().Columns()[place].Table; {
	case table == invoice.Detail || row.Tracking && rapid.Bool().Draw(h.rt, "tracking row stays"):
		row.Values = slices.Clone(row.Values)
		row.Values[place] = invoice.Of(rapid.SampledFrom([]string{"", "x", "X", "x "}).Draw(h.rt, "edited text"))
	default:
		row = withoutTracking(row)
	}
	h.h.SetRow(h.sinkTest, line, row)
	h.oracle.SetLine(line, inmem.Line{Tracking: row.Tracking, Values: row.Values})
	h.touched[line] = true
}

func contentKey(id, hash string, line int64) string { return fmt.Sprint(id, " ", hash, " ", line) }

// adoptOne starts a line with an adopted ledger row; its row in the user's table holds that content.
func (h *history) adoptOne() {
	it := h.item()
	if it.FailureMark {
		return
	}
	line := it.Main
	if line == h.lines[historyLines-1] {
		return
	}
	l := ledgerOf(it, line)
	values := mapping.InUse().RowValues(it.Values, it.Main, line)
	h.h.SetRow(h.sinkTest, line, SinkRow{Detail: true, Tracking: true, Values: values})
	h.oracle.SetLine(line, inmem.Line{Tracking: true, Values: values})
	l.Outcome, l.DetailHash, l.TrackingHash = inmem.OutcomeAdopted, "", ""
	h.h.SetLedger(h.sinkTest, line, l)
	h.oracle.SetEntry(line, inmem.Entry{
		Version: l.Version, DocumentID: l.DocumentID, SourceTS: l.SourceTS, Hash: l.Hash, HashVersion: l.HashVersion,
		SysName: l.SysName, DetailHash: l.DetailHash, TrackingHash: l.TrackingHash, Outcome: l.Outcome,
		At: time.Now().Unix(),
	})
	h.newest[line] = l.Version
}

// step makes one request on both and compares everything.
func (h *history) step() {
	var items []commit.Item
	if len(h.sent) > 0 && rapid.IntRange(0, 3).Draw(h.rt, "replay") == 0 {
		items = rapid.SampledFrom(h.sent).Draw(h.rt, "request")
	} else {
		for range rapid.IntRange(1, 5).Draw(h.rt, "items") {
			items = append(items, h.item())
		}
		once(items)
		h.sent = append(h.sent, items)
	}
	mode := rapid.SampledFrom(
		[]commit.Mode{commit.Write, commit.Write, commit.Rewrite, commit.Rewrite, commit.Preview}).Draw(h.rt, "mode")
	want, err := h.oracle.Apply(h.Context(), items, mode, unknown(sysName))
	require.NoError(h.rt, err)
	got, err := h.h.Sink.Apply(h.Context(), items, mode, unknown(sysName))
	require.NoError(h.rt, err)
	require.Equal(h.rt, want, got)
	if mode != commit.Preview {
		h.remember(items, got)
		for _, o := range got {
			for _, r := range o.Rows {
				if mode == commit.Write && r.Verdict == invoice.OutcomeApplied {
					delete(h.touched, r.DetailID)
				}
			}
		}
	}
	for _, line := range h.lines {
		h.compare(line)
	}
}

// remember records the newest version that each line must now have.
func (h *history) remember(items []commit.Item, outcomes []commit.DocumentOutcome) {
	for i, o := range outcomes {
		for _, r := range o.Rows {
			if slices.Contains(
				[]invoice.Outcome{
					invoice.OutcomeMissing, invoice.OutcomeEdited, invoice.OutcomeNotComparable, "",
				}, r.Verdict) {
				continue
			}
			if v := items[i].Version; v.Compare(h.newest[r.DetailID]) > 0 {
				h.newest[r.DetailID] = v
			}
		}
	}
}

// compare checks one line against the oracle and the invariant: the row equals the content of the document that the
// ledger names, and that document is the newest.
func (h *history) compare(line int64) {
	row := h.h.Row(h.sinkTest, line)
	want, exists := h.oracle.Line(line)
	if !exists {
		want.Values = nullValues()
	}
	require.Equal(h.rt, SinkRow{Detail: exists, Tracking: want.Tracking, Values: want.Values}, row, "line %d", line)
	l, ok := h.h.Ledger(h.sinkTest, line)
	e, known := h.oracle.Entry(line)
	require.Equal(h.rt, known, ok)
	require.Equal(h.rt, LedgerRow{
		Version: e.Version, DocumentID: e.DocumentID, SourceTS: e.SourceTS, Hash: e.Hash, HashVersion: e.HashVersion,
		SysName: e.SysName, DetailHash: e.DetailHash, TrackingHash: e.TrackingHash, Outcome: e.Outcome,
	}, l, "ledger of line %d", line)
	if !ok {
		return
	}
	require.Equal(h.rt, h.newest[line], l.Version, "line %d: the ledger names the newest", line)
	if h.touched[line] {
		return
	}
	if l.Outcome == inmem.OutcomeFailed {
		require.Equal(h.rt, withStatus(row), row, "line %d carries the mark", line)
		return
	}
	require.Equal(h.rt, butForStatus(h.contents[contentKey(l.DocumentID, l.Hash, line)]), butForStatus(row.Values),
		"line %d holds what the ledger names, but for a status that a rewrite kept", line)
}

func butForStatus(values []invoice.Value) []invoice.Value {
	values = slices.Clone(values)
	for i, c := range mapping.InUse().Columns() {
		if c.Status {
			values[i] = invoice.Null()
		}
	}
	return values
}

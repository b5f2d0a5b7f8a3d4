package reconcile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// corruption is planted on the document of a line, and mended again.
type corruption struct {
	name string
	// plant returns the findings that follow.
	plant func(w *world, line int64) []string
	mend  func(w *world, line int64)
}

// planting keeps what a corruption replaced.
func (w *world) keep(line int64) {
	l, _ := w.sink.Line(line)
	e, _ := w.sink.Entry(line)
	w.kept[line] = kept{l, e, w.doc(w.idOf(line)).State}
}

type kept struct {
	line  inmem.Line
	entry inmem.Entry
	state invoice.State
}

func (w *world) back(line int64) {
	k := w.kept[line]
	w.sink.SetLine(line, k.line)
	w.sink.SetEntry(line, k.entry)
	w.dropEvidence(w.idOf(line))
	w.put(document(int(line%600), line, "ACME", stateOf(k.state), w.doc(w.idOf(line)).Duplicates...))
}

// dropEvidence deletes the evidence of a document.
func (w *world) dropEvidence(id string) {
	w.t.Helper()
	for name := range w.evidence.Files() {
		if f, ok := commit.ReadEvidenceName(name); ok && f.DocumentID == id {
			w.evidence.Remove(f.Folder)
		}
	}
}

// idOf is the id of a consistent document.
func (w *world) idOf(line int64) string { return idOf(int(line%600), line) }

func stateOf(s invoice.State) string {
	text, err := s.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return string(text)
}

// fail makes a committed document failed, as Commit does: evidence, mark, status.
func (w *world) fail(line int64) string {
	w.t.Helper()
	id := w.idOf(line)
	w.put(document(int(line%600), line, "FAILS", "", w.doc(id).Duplicates...))
	d := w.doc(id)
	for _, file := range []string{"original.json", "error.json", "metadata.json"} {
		require.NoError(w.t, w.evidence.Keep(w.t.Context(), commit.EvidenceFolder(d, 0)+"/"+file, fmt.Appendf(nil, `{"document_id":%q}`, id)))
	}
	_, err := applying{w}.Apply(w.t.Context(), []commit.Item{commit.MarkOf(d)}, commit.Write, breaker.Heartbeat{SysName: sysName})
	require.NoError(w.t, err)
	w.record(id, func(s *invoice.State) {
		s.Status, s.FailedAt, s.LastErrorKind, s.LastErrorCode = invoice.Failed, invoice.Stamp(w.clock, time.UTC), "document", "2628"
	})
	return id
}

// reapply writes documents again in mode write, as a run that mends does.
func (w *world) reapply(ids ...string) {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	_, err = w.commit.Run(w.t.Context(), commit.Batch{
		Documents: raws, Purpose: commit.ForRun, TakeOver: []invoice.Status{invoice.Committed, invoice.Failed}, Received: w.clock,
	})
	require.NoError(w.t, err)
}

// rewrite writes documents again in mode rewrite, as a run that mends does.
func (w *world) rewrite(ids ...string) {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	_, err = w.commit.Run(w.t.Context(), commit.Batch{
		Documents: raws, Purpose: commit.ForRun, TakeOver: []invoice.Status{invoice.Committed}, Rewrite: true, Received: w.clock,
	})
	require.NoError(w.t, err)
}

func corruptions() []corruption {
	one := func(class reconcile.Class) func(w *world, line int64) []string {
		return func(w *world, line int64) []string {
			return []string{fmt.Sprintf("%s %d %s", class, line, w.idOf(line))}
		}
	}
	back := func(w *world, line int64) { w.back(line) }
	planted := func(class reconcile.Class, plant func(w *world, line int64)) func(w *world, line int64) []string {
		return func(w *world, line int64) []string {
			w.keep(line)
			plant(w, line)
			return one(class)(w, line)
		}
	}
	edit := func(w *world, line int64) { w.edit(line, "CLN_MFR_AI_NM", "Acme Inc.") }
	change := func(w *world, line int64) {
		w.put(document(int(line%600), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State), w.doc(w.idOf(line)).Duplicates...))
	}
	return []corruption{
		{"a lost row", planted(reconcile.RowMissing, func(w *world, line int64) { w.sink.DeleteLine(line) }), back},
		{"a lost tracking row", planted(reconcile.TrackingMissing, func(w *world, line int64) {
			l, _ := w.sink.Line(line)
			l.Tracking = false
			w.sink.SetLine(line, l)
		}), back},
		{"an edit", planted(reconcile.Edited, edit), back},
		{"other content", planted(reconcile.Stale, change), func(w *world, line int64) { w.reapply(w.idOf(line)) }},
		{"older content", func(w *world, line int64) []string {
			w.keep(line)
			newer := w.put(documentOf(idOf(599, line)+"b", line, "NEWER", ""))
			w.offer(newer)
			w.sink.SetLine(line, w.kept[line].line)
			w.sink.SetEntry(line, w.kept[line].entry)
			return []string{fmt.Sprintf("stale %d %s", line, newer)}
		}, func(w *world, line int64) { w.reapply(w.idOf(line), idOf(599, line)+"b") }},
		{"a lost ledger row", planted(reconcile.NotInLedger, func(w *world, line int64) {
			w.sink.DeleteEntry(line)
			w.touch(line)
		}), func(w *world, line int64) { w.reapply(w.idOf(line)) }},
		{"a lost mark", func(w *world, line int64) []string {
			w.keep(line)
			w.fail(line)
			w.sink.DeleteEntry(line)
			return one(reconcile.FailedUnmarked)(w, line)
		}, back},
		{"a written document that failed", func(w *world, line int64) []string {
			w.keep(line)
			w.fail(line)
			k := w.kept[line]
			w.put(document(int(line%600), line, "ACME", stateOf(w.doc(w.idOf(line)).State), w.doc(w.idOf(line)).Duplicates...))
			w.sink.SetLine(line, k.line)
			w.sink.SetEntry(line, k.entry)
			return one(reconcile.FailedButWritten)(w, line)
		}, back},
		{"lost evidence", func(w *world, line int64) []string {
			w.keep(line)
			id := w.fail(line)
			w.dropEvidence(id)
			return one(reconcile.FailedWithoutEvidence)(w, line)
		}, back},
		{"evidence of nothing", planted(reconcile.EvidenceWithoutFailed, func(w *world, line int64) {
			d := w.doc(w.idOf(line))
			require.NoError(w.t, w.evidence.Keep(w.t.Context(), commit.EvidenceFolder(d, 0)+"/metadata.json", fmt.Appendf(nil, `{"document_id":%q}`, d.ID)))
		}), func(w *world, line int64) {
			w.dropEvidence(w.idOf(line))
		}},
		{"a document that waits", planted(reconcile.PendingTooLong, func(w *world, line int64) {
			w.put(document(int(line%600), line, "WAITS", "", w.doc(w.idOf(line)).Duplicates...))
		}), func(w *world, line int64) { w.offer(w.idOf(line)) }},
		{"a lock", func(w *world, _ int64) []string {
			w.leases.Set(reconcile.Lock{ID: "web-lock", At: w.clock})
			return []string{"left_behind 0 web-lock"}
		}, func(w *world, _ int64) { w.leases.Set() }},
		{"an edit of content that changed since", func(w *world, line int64) []string {
			w.keep(line)
			edit(w, line)
			change(w, line)
			return append(one(reconcile.Edited)(w, line), one(reconcile.Stale)(w, line)...)
		}, back},
		{"a lost row of a failed document, with its mark and evidence", func(w *world, line int64) []string {
			w.keep(line)
			id := w.fail(line)
			w.sink.DeleteLine(line)
			w.sink.DeleteEntry(line)
			w.dropEvidence(id)
			return one(reconcile.FailedWithoutEvidence)(w, line)
		}, back},
	}
}

// touch lets a document change without any other content.
func (w *world) touch(line int64) { w.record(w.idOf(line), func(*invoice.State) {}) }

// harmless is what is no finding: stewards' work, repairs by hand, adopted lines, lines of another HashVersion.
func (w *world) harmless(lines ...int64) {
	w.t.Helper()
	for i, line := range lines {
		switch i % 4 {
		case 0:
			w.edit(line, invoice.StatusColumn, "CC-ENR")
		case 1:
			w.edit(line, "UPC_CD", "1")
			w.record(w.idOf(line), func(s *invoice.State) { s.Outcome = commit.Manual })
		case 2:
			e, _ := w.sink.Entry(line)
			e.Outcome, e.DetailHash, e.TrackingHash = inmem.OutcomeAdopted, "", ""
			w.sink.SetEntry(line, e)
		case 3:
			e, _ := w.sink.Entry(line)
			e.HashVersion = 99
			w.sink.SetEntry(line, e)
		}
	}
}

// Each corruption alone: it is found, by its class, and by the next night it is gone when its cause is.
func TestEachCorruptionIsFoundAndGone(t *testing.T) {
	t.Parallel()
	for _, c := range corruptions() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.consistent(12)
			w.night(run.Filter{})
			w.pass(24 * time.Hour)
			want := c.plant(w, 4)
			slices.Sort(want)
			w.pass(2 * time.Hour)
			found := w.night(run.Filter{})
			require.Equal(t, want, w.open())
			for _, f := range w.all(reconcile.Query{}) {
				require.NotEmpty(t, f.Detail)
				require.Equal(t, 1, found.Counts[string(f.Class)])
			}
			w.pass(24 * time.Hour)
			again := w.night(run.Filter{})
			require.Equal(t, want, w.open())
			require.Zero(t, again.Counts["gone"])
			for _, f := range w.all(reconcile.Query{}) {
				require.Equal(t, again.ID, f.Run, "%s was looked at again", name(f.Key))
			}
			c.mend(w, 4)
			w.pass(2 * time.Hour)
			mended := w.night(run.Filter{})
			require.Empty(t, w.open())
			require.Equal(t, len(want), mended.Counts["gone"])
		})
	}
}

// All of them together, several times each, among 5,000 consistent documents and what is no finding.
func TestAllCorruptionsAreFoundExactly(t *testing.T) {
	t.Parallel()
	w, size := newWorld(t), 5000
	if testing.Short() {
		size = 2500
	}
	w.consistent(size)
	w.night(run.Filter{Mend: true})
	require.Empty(t, w.open())
	w.pass(24 * time.Hour)
	var want []string
	at := map[int64]corruption{}
	for times := range int64(5) {
		for i, c := range corruptions() {
			line := 300*times + 3*int64(i) + 1 // without a duplicate
			at[line] = c
			want = append(want, c.plant(w, line)...)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want) // there is one lock
	var quiet []int64
	for line := range int64(400) {
		quiet = append(quiet, 2000+line)
	}
	w.harmless(quiet...)
	w.pass(2 * time.Hour)
	row := w.night(run.Filter{Mend: true})
	require.Equal(t, want, w.open())
	require.Equal(t, 100, row.Counts["reviewed"])
	for line, c := range at {
		c.mend(w, line)
	}
	w.pass(2 * time.Hour)
	w.night(run.Filter{})
	require.Empty(t, w.open())
	w.pass(time.Hour)
	whole := w.night(run.Filter{Whole: true})
	require.Empty(t, w.open(), "a comparison of everything finds no more: %v", counted(whole))
}

// A document that the ledger names, or evidence is of, may be gone. It is counted by a comparison of everything.
func TestAGoneDocumentIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	for _, line := range []int64{1, 2, 3} { // 3 has a duplicate
		w.docs.Delete(w.idOf(line))
	}
	require.Zero(t, w.night(run.Filter{}).Counts["document_gone"])
	row := w.night(run.Filter{Whole: true})
	require.Equal(t, 4, row.Counts["document_gone"])
	require.Empty(t, w.open())
}

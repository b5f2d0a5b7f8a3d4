package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/inmem"
)

// wronged is a world in which a newer document of line 1 took line 2 from its own result, by mistake.
func wronged(t *testing.T) (w *world, right, wrong string) {
	t.Helper()
	w = newWorld(t)
	w.addLines(1, 2, 3)
	right = w.put(document(1, 2, "RIGHT", ""))
	w.offer(right)
	wrong = w.put(document(2, 1, "WRONG", "", 2))
	w.offer(wrong)
	require.Equal(t, "WRONG", w.manufacturer(2))
	w.night()
	require.Empty(t, w.found())
	return w, right, wrong
}

// manufacturer is a line's first value.
func (w *world) manufacturer(line int64) string {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok)
	return l.Values[0].Text
}

// corrects replaces a document by one that waits, and commits it.
func (w *world) corrects(doc string) {
	w.t.Helper()
	w.pass(time.Hour)
	w.offer(w.put(doc))
	w.pass(time.Hour)
}

// oneLeft requires one finding, of a class and about line 2.
func (w *world) oneLeft(class reconcile.Class, document string) reconcile.Finding {
	w.t.Helper()
	require.Equal(w.t, []string{name(reconcile.Key{Class: class, Line: 2, Document: document})}, w.found())
	return w.all(reconcile.Query{})[0]
}

// Sequence A of the review: the duplicates of a document shrink.
func TestALineThatItsDocumentNoLongerNamesIsFound(t *testing.T) {
	t.Parallel()
	w, right, wrong := wronged(t)
	w.corrects(document(2, 1, "WRONG", ""))
	c := w.night()
	f := w.oneLeft(reconcile.NotNamed, wrong)
	require.True(t, f.Mends)
	require.Contains(t, f.Detail, right)
	require.Equal(t, 1, c.Counts[reconcile.NotNamed])
	w.night()
	require.Equal(t, f.FirstSeen, w.oneLeft(reconcile.NotNamed, wrong).FirstSeen)
}

// Sequence B: the key of a document is corrected.
func TestALineOfADocumentThatMovedToAnotherLineIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addLines(2, 3)
	right := w.put(document(1, 2, "RIGHT", ""))
	w.offer(right)
	wrong := w.put(document(2, 2, "WRONG", ""))
	w.offer(wrong)
	w.night()
	w.corrects(documentOf(wrong, 3, "WRONG", ""))
	require.Equal(t, "WRONG", w.manufacturer(3))
	w.night()
	require.True(t, w.oneLeft(reconcile.NotNamed, wrong).Mends)
	require.Contains(t, w.all(reconcile.Query{})[0].Detail, right)
}

// Sequence C: a newer document is deleted. A deleted document is in no list of changes, so only a comparison of
// everything sees it, and a person decides.
func TestALineOfADeletedDocumentIsFoundByAComparisonOfEverything(t *testing.T) {
	t.Parallel()
	w, right, wrong := wronged(t)
	w.docs.Delete(wrong)
	w.night()
	require.Empty(t, w.found())
	w.compare(true)
	f := w.oneLeft(reconcile.NotNamed, wrong)
	require.False(t, f.Mends, "whoever deleted it says so")
	require.Contains(t, f.Detail, right)
	w.docs.Delete(right)
	w.night()
	require.Equal(t, reconcile.NoDocument, w.all(reconcile.Query{Suspects: true})[0].Class)
}

// A comparison that names a document finds its lines that a document has which does not name them.
func TestALineThatItsDocumentNoLongerNamesIsFoundByTheOneThatDoes(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		w, right, wrong := wronged(t)
		w.corrects(document(2, 1, "WRONG", ""))
		if gone {
			w.docs.Delete(wrong)
		}
		w.compare(false, right)
		require.Equal(t, !gone, w.oneLeft(reconcile.NotNamed, wrong).Mends)
	}
}

// A document that cannot be read is not gone: its lines are not left.
func TestADocumentThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	w, _, wrong := wronged(t)
	w.unreadable = wrong
	w.pass(time.Hour)
	w.compare(true)
	require.Empty(t, w.all(reconcile.Query{Suspects: true}))
}

// A line that nothing names is listed, and asks for nobody.
func TestALineThatNoDocumentNamesIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addLines(1, 2)
	wrong := w.put(document(2, 1, "WRONG", "", 2))
	w.offer(wrong)
	w.night()
	w.corrects(document(2, 1, "WRONG", ""))
	w.night()
	require.False(t, w.oneLeft(reconcile.NoDocument, wrong).Mends)
	require.False(t, reconcile.NoDocument.Asks())
	// its own result comes, and is older
	right := w.put(document(1, 2, "RIGHT", ""))
	w.offer(right)
	require.Equal(t, invoice.OutcomeSuperseded, w.doc(right).State.Outcome)
	w.pass(time.Hour)
	w.night()
	w.night()
	require.True(t, w.oneLeft(reconcile.NotNamed, wrong).Mends)
	// the document names it again
	w.corrects(document(2, 1, "WRONG", "", 2))
	w.night()
	require.Empty(t, w.all(reconcile.Query{Suspects: true}))
}

// What a night must leave alone is listed all the same.
func TestALineThatANightMustNotReleaseIsListed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, right, wrong string){
		"edited": func(w *world, _, _ string) { w.edit(2, "UPC_CD", "1") },
		"its own result was repaired by hand": func(w *world, right, _ string) {
			w.record(right, func(s *invoice.State) { s.Outcome = invoice.OutcomeManual })
		},
		"the other was marked by hand": func(w *world, _, wrong string) {
			w.record(wrong, func(s *invoice.State) { s.Outcome = invoice.OutcomeManual })
		},
		"adopted": func(w *world, _, _ string) {
			e, _ := w.sink.Entry(2)
			e.Outcome, e.DetailHash, e.TrackingHash = inmem.OutcomeAdopted, "", ""
			w.sink.SetEntry(2, e)
		},
		"of another hash version": func(w *world, _, _ string) {
			e, _ := w.sink.Entry(2)
			e.HashVersion = 99
			w.sink.SetEntry(2, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, right, wrong := wronged(t)
			w.corrects(document(2, 1, "WRONG", ""))
			change(w, right, wrong)
			w.night()
			left := w.all(reconcile.Query{Classes: []reconcile.Class{reconcile.NotNamed}})
			require.Len(t, left, 1)
			require.False(t, left[0].Mends)
		})
	}
}

// What is no such line is none.
func TestALineIsNamedOrItsDocumentWaits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, right, wrong string){
		"the document waits": func(w *world, _, _ string) { w.put(document(2, 1, "WRONG", "")) },
		"the document failed": func(w *world, _, wrong string) {
			w.put(document(2, 1, "WRONG", ""))
			w.record(wrong, func(s *invoice.State) { s.Status = invoice.Failed })
		},
		"the document changed and names it": func(w *world, _, _ string) {
			w.corrects(document(2, 1, "WRONG", "", 2, 3))
		},
		"another environment's": func(w *world, _, _ string) {
			w.corrects(document(2, 1, "WRONG", ""))
			e, _ := w.sink.Entry(2)
			e.SysName = "other"
			w.sink.SetEntry(2, e)
		},
		"the line is gone": func(w *world, _, _ string) {
			w.corrects(document(2, 1, "WRONG", ""))
			w.sink.DeleteLine(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, right, wrong := wronged(t)
			change(w, right, wrong)
			w.night()
			require.Empty(t, w.all(reconcile.Query{
				Classes: []reconcile.Class{reconcile.NotNamed, reconcile.NoDocument}, Suspects: true,
			}))
		})
	}
}

// The newest committed document that names the line is the one that a release writes; what waits or failed is none.
func TestTheNewestCommittedDocumentGetsTheLine(t *testing.T) {
	t.Parallel()
	w, _, wrong := wronged(t)
	w.offer(w.put(document(0, 2, "OLDER", "")))
	w.put(document(1, 2, "RIGHT", `{"status":"failed"}`))
	w.corrects(document(2, 1, "WRONG", ""))
	w.night()
	require.Contains(t, w.oneLeft(reconcile.NotNamed, wrong).Detail, idOf(0, 2))
	w.put(document(1, 2, "RIGHT", `{"status":"committed","committed_at":"2025-12-18 16:00:00Z"}`))
	w.pass(time.Hour)
	w.night()
	require.Contains(t, w.all(reconcile.Query{Suspects: true})[0].Detail, idOf(1, 2))
}

// A release writes the older document whole. So its other lines decide, and not those of the document that dropped one.
func TestAReleaseLeavesADocumentWithALineOfPeople(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edited int64
		mends  bool
	}{
		"a line of the older document":        {3, false},
		"a line of the document that dropped": {1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addLines(1, 2, 3)
			w.offer(w.put(document(1, 2, "RIGHT", "", 3)))
			w.offer(w.put(document(2, 1, "WRONG", "", 2)))
			w.corrects(document(2, 1, "WRONG", ""))
			w.edit(c.edited, "UPC_CD", "1")
			w.night()
			left := w.all(reconcile.Query{Classes: []reconcile.Class{reconcile.NotNamed}})
			require.Len(t, left, 1)
			require.Equal(t, c.mends, left[0].Mends)
		})
	}
}

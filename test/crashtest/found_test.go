package crashtest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// Histories that found a fault in the writer, without the luck.

// TestADocumentCorrectedWhileItIsPoisoned: an id without a time, unreadable, and the correction arrives before any step
// of its burial. What is corrected is written; it never fails with the evidence and the cause of what it was.
func TestADocumentCorrectedWhileItIsPoisoned(t *testing.T) {
	d := want{id: "unreadable", json: doc("unreadable", 160, "corrected", ""), end: invoice.Committed}
	atEachStepOf(t, d.id, invoice.Committed, func(w *world) { w.put(d) })
}

// TestADocumentTouchedWhileItIsPoisoned: the same, and another program changes a member of its own. The mark has the
// version that the document remembers.
func TestADocumentTouchedWhileItIsPoisoned(t *testing.T) {
	atEachStepOf(t, "unreadable", invoice.Failed, func(w *world) { w.touch("unreadable") })
}

// atEachStepOf has something happen before each step that is about a document of the path commit.
func atEachStepOf(t *testing.T, id string, end invoice.Status, happens func(w *world)) {
	t.Helper()
	clean, _ := without(t, commitPath())
	steps := 0
	for _, s := range clean.steps {
		if !strings.Contains(s.about, id) {
			continue
		}
		steps++
		w := newWorld(commitPath(), nil, nil)
		w.onStep = func(now step) {
			if now.n >= s.n {
				w.advance(time.Second) // no two of what follows are in one second
			}
			if now.n == s.n {
				happens(w)
			}
		}
		w.run()
		w.verify(nil)
		require.Empty(t, w.report(), "before %s", s)
		d, _ := w.document(id)
		require.Equal(t, end, d.State.Status)
		if e, _ := w.sink.Entry(d.Main); e.Version != d.Version {
			t.Errorf("before %s: the ledger has version %d, the document %d", s, e.Version.US, d.Version.US)
		}
	}
	require.GreaterOrEqual(t, steps, 6, "read, three files, version, mark, status")
}

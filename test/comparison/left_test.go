package comparison

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

const waits = `{"status":"pending","retry_count":0}`

// takenOver makes line 2 hold the content of a newer document of line 1 that names it by mistake.
func (w *world) takenOver() (right, wrong string) {
	w.Helper()
	w.db.addLines(w, 1, 2, 3)
	right = w.put(documentOf(idAt(2, 8), 2, "RIGHT", waits))
	w.offer(right)
	wrong = w.put(documentOf(idAt(1, 9), 1, "WRONG", waits, 2, 3))
	w.offer(wrong)
	w.has(2, "WRONG")
	w.pass(2 * time.Hour)
	w.compare(false)
	require.Empty(w, w.found())
	return right, wrong
}

// corrects replaces a document, as a person does who resets it, and commits it.
func (w *world) corrects(doc string) {
	w.Helper()
	w.pass(2 * time.Second)
	w.offer(w.put(doc))
	w.pass(2 * time.Hour)
}

// has requires the content of a line.
func (w *world) has(line int64, content string) {
	w.Helper()
	require.Equal(w, content, value(w.lines(line)[line], invoice.Detail, maker), "line %d", line)
}

// releases releases a line, and executes the run to its end: the world's clock is ahead of the machine's.
func (w *world) releases(r ops.LineReleaseRequest) {
	w.Helper()
	released, err := w.ops.ReleaseLine(w.operator(), r)
	require.NoError(w, err)
	w.execute(released.Run)
}

// The duplicates of a document shrink: the next night gives the line back, and the one after it finds nothing.
func TestANightGivesALineBackThatItsDocumentDropped(t *testing.T) {
	forEach(t, func(w *world) {
		right, _ := w.takenOver()
		w.corrects(documentOf(idAt(1, 9), 1, "WRONG", waits, 3))
		w.has(2, "WRONG")
		n := w.compare(false)
		require.Equal(w, 1, n.compared.Counts[reconcile.NotNamed])
		require.Len(w, n.mended, 1)
		w.has(2, "RIGHT")
		w.has(1, "WRONG")
		w.has(3, "WRONG")
		require.Equal(w, right, w.lines(2)[2].Ledger.DocumentID)
		again := w.compare(true)
		require.Empty(w, again.mended)
		require.Empty(w, w.found())
	})
}

// The key of a document is corrected.
func TestANightGivesALineBackWhoseDocumentMoved(t *testing.T) {
	forEach(t, func(w *world) {
		w.db.addLines(w, 2, 3)
		w.offer(w.put(documentOf(idAt(2, 8), 2, "RIGHT", waits)))
		wrong := w.put(documentOf(idAt(2, 9), 2, "WRONG", waits))
		w.offer(wrong)
		w.pass(2 * time.Hour)
		w.compare(false)
		w.corrects(documentOf(wrong, 3, "WRONG", waits))
		w.compare(false)
		w.has(2, "RIGHT")
		w.has(3, "WRONG")
		w.compare(true)
		require.Empty(w, w.found())
	})
}

// The dropped line was edited: it is listed, no night writes it, and an operator releases it by his word.
func TestAnEditedLineIsGivenBackByAnOperatorAlone(t *testing.T) {
	forEach(t, func(w *world) {
		w.takenOver()
		w.corrects(documentOf(idAt(1, 9), 1, "WRONG", waits, 3))
		w.db.set(w, invoice.Detail, "UPC_CD", "123", 2)
		require.Empty(w, w.compare(false).mended)
		w.has(2, "WRONG")
		_, err := w.ops.ReleaseLine(w.operator(), ops.LineReleaseRequest{Line: 2, Why: "x"})
		require.ErrorContains(w, err, "--overwrite-edits")
		shown, err := w.ops.ReleaseLine(w.operator(),
			ops.LineReleaseRequest{Line: 2, OverwriteEdits: true, DryRun: true})
		require.NoError(w, err)
		require.Len(w, shown.Diffs, 1)
		require.True(w, shown.Diffs[0].Lines[0].Writes, "%+v", shown.Diffs)
		w.has(2, "WRONG")
		w.releases(ops.LineReleaseRequest{Line: 2, OverwriteEdits: true, Why: "x"})
		w.has(2, "RIGHT")
		w.compare(true)
		require.Empty(w, w.found())
	})
}

// A newer document is deleted on purpose: a comparison of everything lists its line, and an operator releases it. A
// retry of a third, older document at the same moment changes nothing.
func TestALineOfADeletedDocumentIsGivenBackByAnOperator(t *testing.T) {
	forEach(t, func(w *world) {
		right, wrong := w.takenOver()
		third := w.put(documentOf(idAt(2, 7), 2, "ANCIENT", waits))
		w.container.remove(w, wrong)
		require.Empty(w, w.compare(true).mended, "whoever deleted it decides")
		var found []reconcile.Key
		for _, f := range w.found() {
			require.Equal(w, reconcile.NotNamed, f.Class)
			found = append(found, f.Key)
		}
		require.Equal(w, []reconcile.Key{{Class: reconcile.NotNamed, Line: 2, Document: wrong}}, found)
		w.offer(third)
		w.releases(ops.LineReleaseRequest{Line: 2, Why: "deleted on purpose"})
		w.has(2, "RIGHT")
		entries, err := w.db.audit.Audits(w.Context(), ops.AuditQuery{Action: run.CodeRunStart, Limit: 1})
		require.NoError(w, err)
		require.Equal(w, []string{"ann", "deleted on purpose"}, []string{entries[0].By, entries[0].Why})
		require.Contains(w, string(entries[0].Detail), `"first_released":2`)
		w.commitAs(commit.FromTimer, third)
		w.has(2, "RIGHT")
		_, err = w.ops.ReleaseLine(w.operator(), ops.LineReleaseRequest{Line: 2, Why: "again"})
		require.ErrorContains(w, err, "needs no release")
		require.Equal(w, right, w.lines(2)[2].Ledger.DocumentID)
		w.compare(true)
		require.Empty(w, w.found())
	})
}

// The run of the night comes late: the document names the line again, or a person edited it.
func TestANightsReleaseLosesToWhatHappensMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"it names the line again": func(w *world) {
			w.corrects(documentOf(idAt(1, 9), 1, "WRONG", waits, 2, 3))
		},
		"it names the line again, with other content": func(w *world) {
			w.corrects(documentOf(idAt(1, 9), 1, "WRONG", waits, 2))
		},
		"a person edited the line": func(w *world) { w.db.set(w, invoice.Detail, "UPC_CD", "123", 2) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			forEach(t, func(w *world) {
				w.takenOver()
				w.corrects(documentOf(idAt(1, 9), 1, "WRONG", waits, 3))
				n := w.compareAlone(false)
				require.Len(w, n.mended, 1)
				meanwhile(w)
				w.execute(n.mended[0].ID)
				w.has(2, "WRONG")
			})
		})
	}
}

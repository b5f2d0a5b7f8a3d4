package reconcile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// byHand says that a person repaired the lines of a document, as everybody can who may write the container.
func (w *world) byHand(id string) {
	w.t.Helper()
	w.record(id, func(s *invoice.State) {
		s.Status, s.Outcome, s.CommittedAt = invoice.Committed, invoice.OutcomeManual,
			invoice.Stamp(w.clock, w.clock.Location())
	})
}

// audited writes the entry of a mark, of an environment, with the document's committed_at.
func (w *world) audited(sysName, id string) {
	w.t.Helper()
	at := w.doc(strings.TrimSpace(id)).State.CommittedAt
	require.NoError(w.t, w.store.For(sysName).Write(w.t.Context(), markOf(id, at)))
}

func markOf(id, committedAt string) run.Audit {
	return run.Audit{
		Action: run.CodeMarkCommitted, By: "kim", Why: "typed it in", Subject: id,
		Detail: json.RawMessage(fmt.Sprintf(`{"committed_at":%q}`, committedAt)),
	}
}

func (w *world) keysFound() (all []reconcile.Key) {
	w.t.Helper()
	w.compare(true)
	for _, f := range w.all(reconcile.Query{}) {
		require.False(w.t, f.Mends, "%+v: nothing writes over it", f.Key)
		all = append(all, f.Key)
	}
	return all
}

func TestAForgedMarkHidesNoDocumentThatWasNeverWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addLines(77)
	id := w.put(document(40, 77, "ACME", ""))
	w.byHand(id)
	require.Equal(t, []reconcile.Key{{Class: reconcile.MarkWithoutAudit, Line: 77, Document: id}}, w.keysFound())
	w.record(id, func(s *invoice.State) { s.Status = invoice.Pending }) // as docs/findings.md says
	require.Equal(t, 1, w.offer(id).Outcomes[invoice.OutcomeApplied])
	require.Empty(t, w.keysFound())
}

// The entry of an earlier mark vouches for no other outcome manual of the document.
func TestAnOldEntryVouchesForNoForgedMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addLines(77)
	id := w.put(document(40, 77, "ACME", ""))
	w.byHand(id)
	w.audited(sysName, id)
	require.Empty(t, w.keysFound())
	w.clock = w.clock.Add(time.Minute)
	w.byHand(id)
	require.Equal(t, []reconcile.Key{{Class: reconcile.MarkWithoutAudit, Line: 77, Document: id}}, w.keysFound())
}

func TestAForgedMarkHidesNoEditedRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(1)
	w.edit(1, "UPC_CD", "1")
	w.byHand(w.idOf(1))
	w.audited("dev", w.idOf(1))
	w.audited(sysName, w.idOf(1)+" ")
	require.Equal(t, []reconcile.Key{
		{Class: reconcile.Edited, Line: 1, Document: w.idOf(1)},
		{Class: reconcile.MarkWithoutAudit, Line: 1, Document: w.idOf(1)},
	}, w.keysFound(), "entries of another environment or document prove nothing")
}

// After a restore the entry is gone: the mark is found until a person says it again.
func TestAMarkCountsWithItsEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(2)
	for line := range int64(2) {
		w.edit(line+1, "UPC_CD", "1")
		w.byHand(w.idOf(line + 1))
	}
	w.audited(sysName, w.idOf(1))
	require.Len(t, w.keysFound(), 2, "those of line 2 alone")
	w.audited(sysName, w.idOf(2))
	require.Empty(t, w.keysFound())
}

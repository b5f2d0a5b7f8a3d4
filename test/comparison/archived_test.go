package comparison

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// The user archives lines that are 400 days old. One of last week's is lost, and it alone is found. A row that is there
// is compared, however old it is.
func TestArchivedLinesDrownNoLoss(t *testing.T) {
	archived := int64(100_000)
	if testing.Short() {
		archived = 3000
	}
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open, inMemoryContainer)
			ids := w.consistent(1, 30)
			w.offer(ids...)
			const old, lost, edited = 400, 22, 23
			// a document of an archived line is changed by somebody, and stays committed
			w.rewrite(ids[3], func(members map[string]any) {
				members["process_output"].(map[string]any)["manufacturer_name"] = "other"
			})
			w.db.written(t, old, 1, 2, 4, 5, edited)
			w.db.written(t, 7, lost)
			w.db.remove(t, invoice.Detail, 1, 2, 4, 5, lost)
			w.db.set(t, invoice.Detail, "UPC_CD", "by hand", edited)
			w.db.copies(t, ledgerTable, 1, 5*duplicateOf, archived)

			w.pass(day)
			w.db.rows = w.db.rowsKept(sysName, 395)
			n := w.compare(false)
			found := w.found()
			require.Equal(t, 2, len(found)) //nolint:testifylint // a failure must not print thousands
			require.Equal(t, reconcile.Edited, found[0].Class)
			require.EqualValues(t, edited, found[0].Line)
			require.Equal(t, reconcile.RowMissing, found[1].Class)
			require.EqualValues(t, lost, found[1].Line)
			require.EqualValues(t, archived+4+1, n.counts()[reconcile.Archived], "lines, and the document that changed")
			require.Empty(t, n.mended)
		})
	}
}

// A day by mistake hides losses. It changes nothing that a night or an operator writes.
func TestOneDayByMistakeWritesNothingElse(t *testing.T) {
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			var written [][]string
			for _, kept := range []int{0, 1} {
				w := newWorld(t, open, inMemoryContainer)
				ids := w.consistent(1, 30)
				w.offer(ids...)
				for _, id := range []int{10, 11, 12} {
					w.rewrite(ids[id], func(members map[string]any) {
						members["process_output"].(map[string]any)["manufacturer_name"] = "other"
					})
				}
				lines := linesOf(30)
				for line := range int64(29) {
					lines = append(lines, linesOf(line+1)...)
				}
				w.db.written(t, 3, lines...)
				w.db.remove(t, invoice.Detail, 1, 3, duplicateOf+6)
				w.db.remove(t, invoice.Tracking, 7, 8)
				w.db.set(t, invoice.Detail, "UPC_CD", "by hand", 9)
				w.db.forget(t, 10)

				w.pass(day)
				w.db.rows = w.db.rowsKept(sysName, kept)
				n := w.compare(false)
				require.Len(t, n.mended, 1)
				require.Equal(t, kept == 1, n.counts()[reconcile.Archived] > 0)
				w.startHere(ops.StartRequest{Kind: run.Reindex, IDs: ids, Why: "a test"})
				var rows []string
				for _, table := range []string{"IVCE_DTL", "IVCE_TRKG_MSTR"} {
					rows = append(rows, w.db.content(t, table)...)
				}
				written = append(written, rows)
			}
			require.Equal(t, written[0], written[1])
		})
	}
}

package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
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
	w.put(document(int(line%600), line, "ACME", stateOf(k.state), w.doc(w.idOf(line)).Duplicates...))
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

// reapply writes documents again in mode write, as a run that mends does.
func (w *world) reapply(ids ...string) {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	_, err = w.commit.Run(w.t.Context(), commit.Delivery{
		Documents: raws, Purpose: commit.ForRun,
		TakeOver: []invoice.Status{invoice.Committed, invoice.Failed}, Received: w.clock,
	})
	require.NoError(w.t, err)
}

// rewrite writes documents again in mode rewrite, as a run that mends does.
func (w *world) rewrite(ids ...string) {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	_, err = w.commit.Run(w.t.Context(), commit.Delivery{
		Documents: raws, Purpose: commit.ForRun, TakeOver: []invoice.Status{invoice.Committed},
		Rewrite: true, Received: w.clock,
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
		w.put(
			document(int(line%600), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State),
				w.doc(w.idOf(line)).Duplicates...))
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
		{"an edit of content that changed since", func(w *world, line int64) []string {
			w.keep(line)
			edit(w, line)
			change(w, line)
			return append(one(reconcile.Edited)(w, line), one(reconcile.Stale)(w, line)...)
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
			w.edit(line, invoice.DefaultMapping().Status(invoice.Detail), "CC-ENR")
		case 1:
			w.edit(line, "UPC_CD", "1")
			w.audited(sysName, w.idOf(line))
			w.record(w.idOf(line), func(s *invoice.State) { s.Outcome = invoice.OutcomeManual })
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

// Each corruption alone: it is found, by its class, and by the next night it is no finding when its cause is gone.
func TestEachCorruptionIsFoundAndGone(t *testing.T) {
	t.Parallel()
	for _, c := range corruptions() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.consistent(12)
			w.night()
			want := c.plant(w, 4)
			slices.Sort(want)
			found := w.night()
			require.Equal(t, want, w.found())
			for _, f := range w.all(reconcile.Query{}) {
				require.NotEmpty(t, f.Detail)
				require.Equal(t, 1, found.Counts[f.Class])
			}
			again := w.night()
			require.Equal(t, want, w.found())
			for _, f := range w.all(reconcile.Query{}) {
				require.Equal(t, 1, again.Counts[f.Class], "%s was looked at again", name(f.Key))
			}
			c.mend(w, 4)
			w.night()
			require.Empty(t, w.all(reconcile.Query{Suspects: true}))
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
	w.night()
	require.Empty(t, w.found())
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
	var quiet []int64
	for line := range int64(400) {
		quiet = append(quiet, 2000+line)
	}
	w.harmless(quiet...)
	c := w.night()
	require.Equal(t, want, w.found())
	require.Equal(t, 100, c.Counts[reconcile.Reviewed])
	for line, c := range at {
		c.mend(w, line)
	}
	w.night()
	require.Empty(t, w.found())
	whole := w.compare(true)
	require.Empty(t, w.found(), "a comparison of everything finds no more: %v", counted(whole))
}

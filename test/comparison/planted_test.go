package comparison

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/mapping"
)

// The columns that people edit here.
const (
	maker     = "CLN_MFR_AI_NM"
	byHand    = "Acme Inc."
	steward   = "CC-ENR"
	otherText = "CHANGED"
)

// plan is what is planted, and what must be found of it. Lines and documents are taken in order, each once.
type plan struct {
	*world

	next int64
	// nightly are the findings that every night can see, whole those that need a comparison of everything.
	nightly, whole []reconcile.Key
	// mended are the lines that the timer mends, with the value of maker that they then have; kept are lines that
	// nobody may touch.
	mended map[int64]string
	kept   []int64
	// lost are lines without their row in IVCE_DTL.
	lost []int64
	// reviewed are those of the mended lines that have a steward's status.
	reviewed []int64
	// lines counts what a scan counts: lines of the ledger by class. links counts the same for documents and their
	// lines.
	lines, links map[reconcile.Class]int
	// others are lines of the ledger with another hash version.
	others int
}

// take gives n lines with their documents that nothing was planted on.
func (p *plan) take(n int) (lines []int64) {
	for range n {
		lines = append(lines, p.next)
		p.next++
	}
	return lines
}

// single gives n lines of documents without duplicates; double gives n with one.
func (p *plan) single(n int) []int64 { return p.taken(n, func(line int64) bool { return line%3 != 0 }) }

func (p *plan) double(n int) []int64 { return p.taken(n, func(line int64) bool { return line%3 == 0 }) }

func (p *plan) taken(n int, wanted func(int64) bool) (lines []int64) {
	for len(lines) < n {
		if line := p.take(1)[0]; wanted(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// line expects findings of lines as the scan sees them.
func (p *plan) line(class reconcile.Class, document string, lines ...int64) {
	for _, line := range lines {
		p.nightly = append(p.nightly, reconcile.Key{Class: class, Line: line, Document: document})
		p.lines[class]++
	}
}

// link expects findings of a changed document and its lines.
func (p *plan) link(class reconcile.Class, document string, lines ...int64) {
	for _, line := range lines {
		p.nightly = append(p.nightly, reconcile.Key{Class: class, Line: line, Document: document})
		p.links[class]++
	}
}

// keeps notes lines whose values nobody may change.
func (p *plan) keeps(lines ...int64) { p.kept = append(p.kept, lines...) }

// mends notes lines that the timer mends.
func (p *plan) mends(value string, lines ...int64) {
	for _, line := range lines {
		p.mended[line] = value
	}
}

// changes is another program that changes the content of a committed document.
func (p *plan) changes(id string) {
	p.Helper()
	p.rewrite(id, func(members map[string]any) {
		members["process_output"].(map[string]any)["manufacturer_name"] = otherText
	})
}

// plant plants k of the smallest number of each class, and classes that overlap.
func (p *plan) plant(k int) {
	detail, tracking := invoice.Detail, invoice.Tracking

	// Lost rows.
	for _, line := range p.take(3 * k) {
		p.lost = append(p.lost, line)
		p.db.remove(p, detail, line)
		p.line(reconcile.RowMissing, idOf(line), line)
	}
	for _, line := range p.take(2 * k) {
		p.lost = append(p.lost, line)
		p.db.remove(p, tracking, line)
		p.db.remove(p, detail, line)
		p.line(reconcile.RowMissing, idOf(line), line)
	}
	for _, line := range p.take(5 * k) {
		p.db.remove(p, tracking, line)
		p.line(reconcile.TrackingMissing, idOf(line), line)
		p.mends("ACME", line)
	}
	// A steward worked on a line, then it lost its tracking row: its status stays.
	p.reviewed = p.take(k)
	p.db.set(p, detail, mapping.InUse().Status(detail), steward, p.reviewed...)
	p.db.remove(p, tracking, p.reviewed...)
	for _, line := range p.reviewed {
		p.line(reconcile.TrackingMissing, idOf(line), line)
		p.mends("ACME", line)
	}

	// Edits of documents that did not change, in either table, and of a duplicate's line.
	edited := p.take(5 * k)
	p.db.set(p, detail, maker, byHand, edited...)
	inTracking := p.take(3 * k)
	p.db.set(p, tracking, "CLN_MFR_PRT_NUM", byHand, inTracking...)
	for _, line := range append(edited, inTracking...) {
		p.line(reconcile.Edited, idOf(line), line)
		p.keeps(line)
	}
	for _, line := range p.double(2 * k) {
		p.db.set(p, detail, maker, byHand, duplicateOf+line)
		p.line(reconcile.Edited, idOf(line), duplicateOf+line)
		p.keeps(duplicateOf + line)
	}
	// The same, and the main line lost its tracking row: a night leaves a document with an edited line whole.
	for _, line := range p.double(k) {
		p.db.set(p, detail, maker, byHand, duplicateOf+line)
		p.db.remove(p, tracking, line)
		p.line(reconcile.Edited, idOf(line), duplicateOf+line)
		p.line(reconcile.TrackingMissing, idOf(line), line)
		p.keeps(line, duplicateOf+line)
	}
	// An edit whose document is gone.
	for _, line := range p.single(k) {
		p.db.set(p, detail, maker, byHand, line)
		p.container.remove(p, idOf(line))
		p.line(reconcile.Edited, idOf(line), line)
		p.keeps(line)
	}

	// Stewards: the status leaves DS1.
	stewards := p.take(20 * k)
	p.db.set(p, detail, mapping.InUse().Status(detail), steward, stewards...)
	p.lines[reconcile.Reviewed] += len(stewards)
	p.keeps(stewards...)

	// What cannot be compared.
	p.db.ledger(p, otherHash, p.take(3*k)...)
	p.db.ledger(p, adoptedLine, p.take(2*k)...)
	p.lines[reconcile.NotComparable] += 5 * k
	for _, line := range p.single(k) {
		p.db.ledger(p, otherHash, line)
		p.touch(idOf(line))
		p.lines[reconcile.NotComparable]++
		p.links[reconcile.NotComparable]++
	}
	p.others = 4 * k
	// Another environment's lines, which are edited.
	others := p.take(k)
	p.db.set(p, detail, maker, byHand, others...)
	p.db.ledger(p, otherSystem, others...)
	p.lines[reconcile.Consistent] -= k

	p.plantStale(k)

	// Documents that are gone.
	for _, line := range p.take(2 * k) {
		p.container.remove(p, idOf(line))
	}
}

// plantStale plants lines that have older content than a committed document, or none in the ledger.
func (p *plan) plantStale(k int) {
	for _, line := range p.take(4 * k) {
		p.changes(idOf(line))
		p.link(reconcile.Stale, idOf(line), linesOf(line)...)
		p.mends(otherText, linesOf(line)...)
	}
	// A newer document that the database lost.
	for _, line := range p.single(3 * k) {
		newer := p.put(documentOf(idAt(line, 9), line, "NEWER", p.committedAt(p.now())))
		p.link(reconcile.Stale, newer, line)
		p.mends("NEWER", line)
	}
	// The lines of a committed document have its failure mark. A rewrite could mend them, if a person wants it.
	for _, line := range p.single(2 * k) {
		p.db.ledger(p, markedLine, line)
		p.db.set(p, invoice.Detail, mapping.InUse().Status(invoice.Detail), invoice.StatusAIError, line)
		p.touch(idOf(line))
		p.link(reconcile.Stale, idOf(line), line)
		p.keeps(line)
	}
	// An edit of a line whose document changed.
	for _, line := range p.single(2 * k) {
		p.db.set(p, invoice.Detail, maker, byHand, line)
		p.changes(idOf(line))
		p.line(reconcile.Edited, idOf(line), line)
		p.link(reconcile.Stale, idOf(line), line)
		p.keeps(line)
	}
	// The same of one of two lines.
	for _, line := range p.double(k) {
		p.db.set(p, invoice.Detail, maker, byHand, duplicateOf+line)
		p.changes(idOf(line))
		p.line(reconcile.Edited, idOf(line), duplicateOf+line)
		p.link(reconcile.Stale, idOf(line), linesOf(line)...)
		p.keeps(line, duplicateOf+line)
	}
	// The same, and the database lost a newer document of the other line.
	for _, line := range p.double(k) {
		p.db.set(p, invoice.Detail, maker, byHand, duplicateOf+line)
		p.changes(idOf(line))
		newer := p.put(documentOf(idAt(line, 9), line, "NEWER", p.committedAt(p.now())))
		p.line(reconcile.Edited, idOf(line), duplicateOf+line)
		p.link(reconcile.Stale, idOf(line), linesOf(line)...)
		p.link(reconcile.Stale, newer, line)
		p.keeps(duplicateOf + line)
		p.mends("NEWER", line)
	}
	// A line that lost its tracking row and whose document changed.
	for _, line := range p.single(2 * k) {
		p.db.remove(p, invoice.Tracking, line)
		p.changes(idOf(line))
		p.line(reconcile.TrackingMissing, idOf(line), line)
		p.link(reconcile.Stale, idOf(line), line)
		p.mends(otherText, line)
	}
	// Lost rows of the ledger: of documents that changed since, and of others.
	for _, line := range p.take(4 * k) {
		p.db.forget(p, linesOf(line)...)
		p.touch(idOf(line))
		p.link(reconcile.NotInLedger, idOf(line), linesOf(line)...)
		p.mends("ACME", linesOf(line)...)
		p.lines[reconcile.Consistent] -= len(linesOf(line))
	}
	for _, line := range p.single(2 * k) {
		p.db.forget(p, line)
		p.whole = append(p.whole, reconcile.Key{Class: reconcile.NotInLedger, Line: line, Document: idOf(line)})
		p.mends("ACME", line)
		p.lines[reconcile.Consistent]--
	}
	// A document of another writer, whose line does not exist; one from before the adoption, whose line does.
	for n := range k {
		line := int64(3_000_000 + n)
		id := p.put(documentOf(idOf(line), line, "ACME", p.committedAt(p.now())))
		p.link(reconcile.NotInLedger, id, line)
		line += 100_000
		p.db.addLines(p, line)
		id = p.put(documentOf(idOf(line), line, "ACME", p.committedAt(p.now().Add(-400*day))))
		p.link(reconcile.NotInLedger, id, line)
		p.keeps(line)
	}
	// A person repaired a line by hand, and said so.
	for _, line := range p.single(k) {
		p.db.set(p, invoice.Detail, maker, byHand, line)
		require.NoError(p, p.db.audit.Write(p.Context(),
			run.Audit{
				Action: run.CodeMarkCommitted, By: "kim", Why: "typed it in", Subject: idOf(line),
				Detail: json.RawMessage(`{"committed_at":"2025-12-18 10:00:00.000000-06:00"}`),
			}))
		p.setState(idOf(line), func(state map[string]any) {
			state["outcome"], state["committed_at"] = "manual", "2025-12-18 10:00:00.000000-06:00"
		})
		p.keeps(line)
	}
}

// counts are those of the next night. It compares n lines of the ledger, and documents that changed with so many lines.
func (p *plan) counts(ledger, changed int) map[reconcile.Class]int {
	total := map[reconcile.Class]int{}
	for class, n := range p.lines {
		total[class] += n
	}
	for class, n := range p.lines {
		if class != reconcile.Consistent {
			ledger -= n
		}
	}
	total[reconcile.Consistent] += ledger + changed
	for class, n := range p.links {
		total[class] += n
		total[reconcile.Consistent] -= n
	}
	total[reconcile.NewEdits] = total[reconcile.Edited]
	total[reconcile.Class(fmt.Sprintf("%s/%d", reconcile.NotComparable, mapping.InUse().Version()+1))] = p.others
	for class, n := range total {
		if n == 0 {
			delete(total, class)
		}
	}
	return total
}

// size is the number of documents, and how many of them are corrupt in a unit.
func size() (documents int64, k int) {
	if testing.Short() {
		return 500, 1
	}
	return 5000, 10
}

func TestPlantedCorruptionIsFoundExactlyAndMended(t *testing.T) {
	for name, open := range databases() {
		contain := inMemoryContainer
		if name == "sqlite" && !testing.Short() {
			contain = emulated
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planted(newWorld(t, open, contain))
		})
	}
}

func planted(w *world) {
	documents, k := size()
	w.offer(w.consistent(1, documents)...)
	links := len(w.links) // each is a line of the ledger

	w.pass(6 * time.Hour)
	first := w.compare(false)
	require.Equal(w, map[reconcile.Class]int{
		reconcile.Consistent: links + links, // lines, and documents with lines
	}, first.counts())
	require.Empty(w, w.found())
	require.Empty(w, first.mended)

	w.pass(17 * time.Hour)
	p := &plan{
		world: w, next: 1, mended: map[int64]string{}, lines: map[reconcile.Class]int{},
		links: map[reconcile.Class]int{},
	}
	p.plant(k)
	require.LessOrEqual(w, p.next, documents)
	w.pass(7 * time.Hour)
	waiting := w.consistent(6_000_001, int64(k))
	w.pass(time.Minute)
	before := w.lines(p.kept...)
	changed := 0
	for id := range w.changed {
		d, _ := w.read(id)
		changed += 1 + len(d.Duplicates)
	}

	found := w.compareAlone(false)
	requireKeys(w, p.nightly, w.found())
	require.Equal(w, p.counts(links, changed), found.counts())
	w.Logf("%s: %d documents, %d findings, counted %v", w.db.name, documents, len(p.nightly), found.counts())
	require.Len(w, found.mended, 1)
	w.offer(waiting...)
	w.pass(day)
	again := w.compareAlone(false)
	requireKeys(w, p.nightly, w.found())
	require.Len(w, again.mended, 1, "the next night tries again")
	for _, r := range append(found.mended, again.mended...) {
		w.execute(r.ID)
	}
	requireUntouched(w, before)
	w.pass(day)

	second := w.compare(true)
	open := w.found()
	byPeople := slices.DeleteFunc(slices.Clone(p.nightly), func(key reconcile.Key) bool {
		_, mended := p.mended[key.Line]
		return mended
	})
	requireKeys(w, append(byPeople, p.whole...), open)
	w.Logf("after mending: %v, of them %d that only a comparison of everything finds", byClass(open), len(p.whole))
	for _, f := range open {
		require.Equal(w, slices.Contains(p.whole, f.Key), f.Mends, "%v", f)
	}
	require.Len(w, second.mended, 1)
	require.Equal(w, len(p.whole), second.mended[0].Documents)
	requireUntouched(w, before)
	for line, want := range p.mended {
		l := w.lines(line)[line]
		require.Contains(w, []reconcile.RowState{reconcile.RowsSame, reconcile.RowsReviewed}, l.Rows, "line %d", line)
		require.Equal(w, want, value(l, invoice.Detail, maker), "line %d", line)
		if slices.Contains(p.reviewed, line) {
			require.Equal(w, steward, value(l, invoice.Detail, mapping.InUse().Status(invoice.Detail)), "line %d", line)
		}
	}
	w.pass(day)
	w.rewriteLost(p.lost)
	requireUntouched(w, before)
	byPeople = slices.DeleteFunc(byPeople, func(key reconcile.Key) bool { return key.Class == reconcile.RowMissing })
	third := w.compare(true)
	requireKeys(w, byPeople, w.found())
	require.Empty(w, third.mended)
	for range 3 {
		w.pass(day)
		clean := w.compare(false)
		requireKeys(w, byPeople, w.found())
		require.Zero(w, clean.counts()[reconcile.NewEdits])
		require.Empty(w, clean.mended)
	}
	requireUntouched(w, before)
}

// rewriteLost is the program that makes lines, and an operator who has their rows written again.
func (w *world) rewriteLost(lines []int64) {
	w.Helper()
	w.db.addLines(w, lines...)
	request := ops.StartRequest{Kind: run.Reindex, Findings: []reconcile.Class{reconcile.RowMissing}, DryRun: true}
	preview, err := w.ops.StartRun(w.operator(), request)
	require.NoError(w, err)
	require.Equal(w, len(lines), preview.Matched)
	request.DryRun, request.Why = false, "the lines are there again"
	require.Equal(w, map[invoice.Outcome]int{invoice.OutcomeApplied: len(lines)}, w.startHere(request))
}

func byClass(list []reconcile.Finding) map[reconcile.Class]int {
	n := map[reconcile.Class]int{}
	for _, f := range list {
		n[f.Class]++
	}
	return n
}

// requireKeys requires a set of findings.
func requireKeys(w *world, want []reconcile.Key, found []reconcile.Finding) {
	w.Helper()
	is, wanted := keys(found), map[reconcile.Key]bool{}
	for _, key := range want {
		require.False(w, wanted[key], "planted twice: %v", key)
		wanted[key] = true
	}
	var missed, extra []string
	for key := range wanted {
		if !is[key] {
			missed = append(missed, fmt.Sprint(key))
		}
	}
	for _, f := range found {
		if !wanted[f.Key] {
			extra = append(extra, fmt.Sprint(f.Key, " ", f.Detail))
		}
	}
	slices.Sort(missed)
	slices.Sort(extra)
	require.Empty(w, missed, "not found")
	require.Empty(w, extra, "found, and not there")
	require.Len(w, found, len(want))
}

// requireUntouched requires that lines are as they were, byte by byte.
func requireUntouched(w *world, before map[int64]reconcile.Line) {
	w.Helper()
	for id, line := range w.lines(slices.Collect(maps.Keys(before))...) {
		require.Equal(w, before[id].Values, line.Values, "line %d", id)
		require.Equal(w, before[id].RowHash, line.RowHash, "line %d", id)
	}
}

package inmem

import (
	"cmp"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// work is one Apply before it takes effect: what it would leave behind, and how it got there.
type work struct {
	s     *Sink
	items []commit.Item
	mode  commit.Mode
	// sysName is the environment that writes.
	sysName string
	// winner has the item that each line's newest content is in.
	winner map[int64]int
	// entries and lines are the ledger rows and the lines that would change.
	entries map[int64]Entry
	lines   map[int64]Line
	// taken are the lines that the winner writes (a raised SourceTS is a change of the entry, but no write).
	taken map[int64]bool
}

// work decides everything: first which item wins each line, then what the winner writes to it.
func (s *Sink) work(items []commit.Item, mode commit.Mode, sysName string) *work {
	w := &work{
		s: s, items: items, mode: mode, sysName: sysName,
		winner: map[int64]int{}, entries: map[int64]Entry{}, lines: map[int64]Line{}, taken: map[int64]bool{},
	}
	for i, it := range items {
		if w.leftOut(it) {
			continue
		}
		for _, id := range linesOf(it) {
			best, contested := w.winner[id]
			if w.exists(id) && w.leftAlone(it, id) == "" && (!contested || compareItems(it, items[best]) >= 0) {
				w.winner[id] = i // an equal one that comes later wins
			}
		}
	}
	for id, i := range w.winner {
		w.settle(id, items[i])
	}
	return w
}

// settle applies the winner of a line, if the ledger lets it.
func (w *work) settle(id int64, it commit.Item) {
	e, known := w.s.ledger[id]
	switch {
	case !known || w.mayTake(e, it, id):
		w.taken[id] = true
		w.entries[id] = w.entryOf(it, id, w.s.writes+1)
		w.lines[id] = w.s.written(w.s.lines[id], it, id)
		if known && it.Version.Compare(e.Version) <= 0 && (!other(e, it) || w.s.had(e, it)) && !it.Overwrites(id) {
			w.lines[id] = withStatusOf(w.lines[id], w.s.lines[id])
		}
	case holds(e, it) && it.SourceTS > e.SourceTS:
		e.SourceTS = it.SourceTS
		w.entries[id] = e
	}
}

// leftAlone is the verdict on a line that a rewrite does not write, because a person edited it or nobody knows; empty
// otherwise.
func (w *work) leftAlone(it commit.Item, id int64) invoice.Outcome {
	e, known := w.s.ledger[id]
	recipe := w.s.recipe(e.HashVersion)
	unlessTold := invoice.OutcomeNotComparable
	if it.NotComparable {
		unlessTold = ""
	}
	switch {
	case w.mode != commit.Rewrite || it.FailureMark || it.Overwrites(id) || !known || !w.mayTake(e, it, id):
		return ""
	case e.Outcome != OutcomeApplied || recipe == nil || e.DetailHash == "" || e.TrackingHash == "":
		return unlessTold
	}
	l := w.s.lines[id]
	values := w.s.own(l.Values)
	if detail, tracking := recipe.RowHashes(values); detail != e.DetailHash ||
		(l.Tracking && tracking != e.TrackingHash) {
		return invoice.OutcomeEdited
	}
	if recipe.Replaces(values, w.s.mapping.RowValues(it.Values, it.Main, id)) {
		return unlessTold
	}
	return ""
}

// exists reports whether a line has a detail row.
func (w *work) exists(id int64) bool {
	_, ok := w.s.lines[id]
	return ok
}

// leftOut reports whether a document is out because one of its lines does not exist. Marks are never out as a whole.
func (w *work) leftOut(it commit.Item) bool {
	return !it.FailureMark && slices.ContainsFunc(linesOf(it), func(id int64) bool { return !w.exists(id) })
}

// entry is the ledger's row as it would be after the work.
func (w *work) entry(id int64) Entry {
	if e, changed := w.entries[id]; changed {
		return e
	}
	return w.s.ledger[id]
}

// outcomes draws the verdicts.
func (w *work) outcomes() []commit.DocumentOutcome {
	out := make([]commit.DocumentOutcome, len(w.items))
	for i, it := range w.items {
		o := commit.DocumentOutcome{DocumentID: it.DocumentID}
		var newest invoice.Version
		for _, id := range linesOf(it) {
			r := commit.RowOutcome{DetailID: id, Verdict: w.verdict(i, id)}
			if r.Verdict == invoice.OutcomeSuperseded {
				e := w.entry(id)
				r.By = e.DocumentID
				if o.SupersededBy == "" || e.Version.Compare(newest) > 0 {
					o.SupersededBy, newest = e.DocumentID, e.Version
				}
			}
			o.Rows = append(o.Rows, r)
		}
		o.Verdict = verdictOn(it, o.Rows)
		out[i] = o
	}
	return out
}

// verdict is what became of one line of an item.
func (w *work) verdict(i int, id int64) invoice.Outcome {
	it := w.items[i]
	switch e := w.entry(id); {
	case !w.exists(id):
		return invoice.OutcomeMissing
	case w.leftOut(it):
		return "" // nothing became of it: its document was left out whole
	case w.leftAlone(it, id) != "":
		return w.leftAlone(it, id)
	case w.taken[id] && sameEntry(e, w.entryOf(it, id, e.Write)):
		return invoice.OutcomeApplied
	case leaves(e, it):
		return invoice.OutcomeNotComparable
	case holds(e, it), outdatedHash(e, it):
		return invoice.OutcomeUnchanged
	default:
		// no other program writes here: content that is neither ours nor the same is newer
		return invoice.OutcomeSuperseded
	}
}

// preview fills in the lines' values before and after, and those that each item wants.
func (w *work) preview(out []commit.DocumentOutcome) {
	for i := range out {
		for j := range out[i].Rows {
			r := &out[i].Rows[j]
			before, ok := w.s.lines[r.DetailID]
			if !ok {
				continue
			}
			r.Before, r.After = before.Values, before.Values
			r.Want = w.s.written(before, w.items[i], r.DetailID).Values
			if after, changed := w.lines[r.DetailID]; changed {
				r.After = after.Values
			}
		}
	}
}

// The rules.

// recipe is that of a hash version; nil if nobody can compare it.
func (s *Sink) recipe(version int) *invoice.Recipe {
	for _, m := range s.mappings {
		if m.Version() != version {
			continue
		}
		if r, ok := s.mapping.Recipe(version, m.Lines()); ok {
			return &r
		}
	}
	return nil
}

// own are the values of the sink's columns in a line.
func (s *Sink) own(values []invoice.Value) []invoice.Value {
	var own []invoice.Value
	for _, place := range s.places {
		own = append(own, values[place])
	}
	return own
}

// compareItems orders contents for one line: by version, then by the snapshot they came from.
func compareItems(a, b commit.Item) int {
	return cmp.Or(a.Version.Compare(b.Version), cmp.Compare(a.SourceTS, b.SourceTS))
}

// holds reports whether the ledger says that the line was written with this very content of this document.
func holds(e Entry, it commit.Item) bool {
	return e.Outcome != OutcomeFailed && e.Version.Key == it.Version.Key && e.Hash == it.Hash &&
		e.HashVersion == it.HashVersion
}

// outdatedHash reports whether the ledger names the document with a hash that cannot be compared, from a snapshot that
// is not older: then nothing says that the content is another.
func outdatedHash(e Entry, it commit.Item) bool {
	return e.Outcome != OutcomeFailed && e.Version == it.Version && e.HashVersion != it.HashVersion &&
		it.SourceTS <= e.SourceTS
}

// mayTake is the guard: whether an item may take a line over from what the ledger names.
func (w *work) mayTake(e Entry, it commit.Item, id int64) bool {
	if order := it.Version.Compare(e.Version); order != 0 {
		return order > 0 || w.released(e, it, id)
	}
	return it.SourceTS >= e.SourceTS && (other(e, it) || (!it.FailureMark && w.mode == commit.Rewrite))
}

// released reports whether a release of the item names the line's entry.
func (w *work) released(e Entry, it commit.Item, id int64) bool {
	return w.mode == commit.Rewrite && slices.ContainsFunc(it.Releases, func(r commit.Release) bool {
		return r.Line == id && r.Key == e.Version.Key && r.WriteID == e.writeID() && r.SourceTS == e.SourceTS
	})
}

// other reports whether an item has other content than the ledger says that the line was written with.
func other(e Entry, it commit.Item) bool {
	if e.Outcome == OutcomeFailed {
		return true
	}
	if e.HashVersion != it.HashVersion { // nobody can tell
		return it.SourceTS > e.SourceTS && !leaves(e, it)
	}
	return e.Hash != it.Hash
}

// had reports whether another recipe wrote an item's content to its line.
func (s *Sink) had(e Entry, it commit.Item) bool {
	recipe := s.recipe(e.HashVersion)
	if recipe == nil || it.FailureMark || e.Version != it.Version {
		return false
	}
	hash, known := recipe.ContentHash(invoice.Document{Main: it.Main, Duplicates: it.Duplicates, Values: it.Values})
	return known && hash == e.Hash
}

// leaves reports whether a mark, or a document that a run took over, leaves a line alone that another recipe wrote.
func leaves(e Entry, it commit.Item) bool {
	return e.Outcome != OutcomeFailed && e.Version == it.Version && e.HashVersion != it.HashVersion &&
		(it.FailureMark || it.LeaveSince > 0 && max(e.SourceTS, e.At) >= it.LeaveSince)
}

// entryOf is the ledger's row for a line that an item wrote.
func (w *work) entryOf(it commit.Item, id, write int64) Entry {
	e := Entry{
		Version: it.Version, DocumentID: it.DocumentID, SysName: w.sysName, SourceTS: it.SourceTS,
		Write: write, Outcome: OutcomeFailed, At: w.s.now().Unix(),
	}
	if !it.FailureMark {
		e.Outcome, e.Hash, e.HashVersion = OutcomeApplied, it.Hash, it.HashVersion
		e.DetailHash, e.TrackingHash = w.s.mapping.RowHashes(w.s.mapping.RowValues(it.Values, it.Main, id))
	}
	return e
}

// sameEntry compares what two entries say, apart from the values of their lines.
func sameEntry(a, b Entry) bool {
	a.DetailHash, b.DetailHash, a.TrackingHash, b.TrackingHash, a.At, b.At = "", "", "", "", 0, 0
	return a == b
}

// written is a line after an item wrote it: a mark changes the status in IVCE_DTL, everything else both tables.
func (s *Sink) written(l Line, it commit.Item, id int64) Line {
	if !it.FailureMark {
		values, want := slices.Clone(l.Values), s.mapping.RowValues(it.Values, it.Main, id)
		for i, place := range s.places {
			if c := s.mapping.Columns()[i]; !c.Keep || !want[i].Null {
				values[place] = want[i]
			}
		}
		return Line{Tracking: true, Values: values}
	}
	marked := Line{Tracking: l.Tracking, Values: slices.Clone(l.Values)}
	for i, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Detail && c.Status {
			marked.Values[i] = invoice.Of(invoice.StatusAIError)
		}
	}
	return marked
}

// withStatusOf is a line with the status that it had before: a steward may have set it. A new tracking row has none to
// keep.
func withStatusOf(l, before Line) Line {
	for i, c := range mapping.InUse().Columns() {
		if c.Status && (c.Table == invoice.Detail || before.Tracking) {
			l.Values[i] = before.Values[i]
		}
	}
	return l
}

// verdictOn is the verdict on a document, from those on its lines.
func verdictOn(it commit.Item, rows []commit.RowOutcome) invoice.Outcome {
	has := func(v invoice.Outcome) bool {
		return slices.ContainsFunc(rows, func(r commit.RowOutcome) bool { return r.Verdict == v })
	}
	if !it.FailureMark && has(invoice.OutcomeMissing) {
		return invoice.OutcomeMissing
	}
	for _, v := range []invoice.Outcome{
		invoice.OutcomeEdited, invoice.OutcomeNotComparable, invoice.OutcomeApplied, invoice.OutcomeUnchanged,
		invoice.OutcomeSuperseded,
	} {
		if has(v) {
			return v
		}
	}
	return invoice.OutcomeMissing // a mark none of whose lines exist
}

// linesOf lists an item's lines, the main one first.
func linesOf(it commit.Item) []int64 {
	return append([]int64{it.Main}, it.Duplicates...)
}

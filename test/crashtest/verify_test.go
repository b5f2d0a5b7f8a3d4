package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// What is asserted when nothing is left to do.

// end is what a run without faults leaves behind: every other run of the path must leave the same.
type end struct {
	lines  map[int64][]invoice.Value
	states map[string]invoice.State
	// findings are what comparisons found, counts what they counted.
	findings []string
	counts   map[string]map[reconcile.Class]int
}

// verify asserts the promises. Without is nil for the run without faults itself.
func (w *world) verify(without *end) *end {
	is := &end{lines: map[int64][]invoice.Value{}, states: map[string]invoice.State{}}
	for _, id := range w.there() {
		d, raw := w.document(id)
		is.states[id] = d.State
		w.verifyDocument(d, raw)
	}
	lines := w.allLines()
	for line, r := range w.rows(lines) {
		if line < 9000 {
			is.lines[line] = r.line.Values
		}
		w.verifyLine(line, r)
	}
	if w.runs != nil {
		w.runs.verify(without == nil)
		is.findings, is.counts = w.runs.found(), w.runs.compared()
	}
	if without != nil {
		w.verifySame(without, is)
	}
	w.verifyRedelivery(lines)
	for f, in := range w.plan {
		if !w.fired[f] {
			w.violated("machinery", "%s at step %d did not fire: there were %d steps", in.kind, in.step, len(w.steps))
		}
	}
	return is
}

// verifyDocument asserts G1, G2, G5, G7 for one document, and that what is not ours in it is as it was.
func (w *world) verifyDocument(d invoice.Document, raw json.RawMessage) {
	g := w.given[d.ID]
	w.verifyMembers(g, raw)
	s := d.State
	if g.untouched {
		if s.Status != invoice.Pending || s.RetryCount != 0 {
			w.violated("G1", "%s is not ours, and it is %s", d.ID, s.Status)
		}
		return
	}
	switch s.Status {
	case invoice.Committed:
		if slices.Contains(w.path.byPeople, d.Main) {
			break
		}
		if g.code != "" && s.Outcome != invoice.OutcomeSuperseded {
			w.violated("G2", "%s cannot be written, and it is committed", d.ID)
		}
		w.written(d, s)
	case invoice.Failed:
		if g.code == "" {
			w.violated("G5", "%s has no error of its own, and it failed: %s", d.ID, s.LastError)
		}
		if !w.evidenceOf(d.ID, d.Hash, s.ReprocessCount) {
			w.violated("G7", "%s failed, and its evidence is not whole", d.ID)
		}
		w.verifyMarked(d)
	case invoice.RetryScheduled:
		if s.RetryAfter == 0 {
			w.violated("G1", "%s waits with no due time", d.ID)
		}
		if g.code == "" && g.end != "" {
			w.violated("G1", "%s has no error of its own, and it waits: %s", d.ID, s.LastError)
		}
		w.verifyUnwritten(d)
	default:
		w.violated("G1", "%s is still %s", d.ID, s.Status)
	}
	if g.end != "" && s.Status != g.end {
		w.violated("G1", "%s is %s: expected %s", d.ID, s.Status, g.end)
	}
	w.verifyBudget(g, d)
}

// verifyBudget asserts that a document remembers own failures of its own code only, and when it is to be tried again.
// What each counted was asserted when it was recorded (charged).
func (w *world) verifyBudget(g *given, d invoice.Document) {
	const layout = "2006-01-02 15:04:05.999999999-07:00"
	for _, a := range d.State.Attempts {
		if isOwn(a.Kind) && a.Code != g.code && a.Code != commit.CodeFailsAlone {
			w.violated("G5", "%s was told of %s %s: its own error is %q", d.ID, a.Kind, a.Code, g.code)
		}
		when, err := time.Parse(layout, a.At)
		if err != nil {
			w.violated("G5", "%s failed at %q", d.ID, a.At)
		}
		if a.NextTry == "" {
			continue
		}
		if due, err := time.Parse(layout, a.NextTry); err != nil || due.Sub(when) < 120*time.Second {
			w.violated("G5", "%s failed at %s, and next_try is %s", d.ID, a.At, a.NextTry)
		}
	}
	if d.State.RetryCount < g.spent {
		w.violated("G5", "%s has spent %d retries: it had spent %d", d.ID, d.State.RetryCount, g.spent)
	}
}

// verifyMembers asserts that the other programs' members are unchanged.
func (w *world) verifyMembers(g *given, raw json.RawMessage) {
	var is map[string]json.RawMessage
	if err := json.Unmarshal(raw, &is); err != nil {
		panic(err)
	}
	for name, value := range g.last {
		if name != "sql_writer" && !bytes.Equal(is[name], value) {
			w.violated("members", "%s: %s is not as it was put", g.id, name)
		}
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(is["sql_writer"], &own); err != nil {
		panic(err)
	}
	if !bytes.Equal(own["ticket"], g.own["ticket"]) {
		w.violated("members", "%s: an unknown member of sql_writer is not as it was put", g.id)
	}
	for name := range is {
		_, put := g.last[name]
		if !put && name != "sql_writer" && !slices.Contains([]string{"_etag", "_rid", "_ts"}, name) {
			w.violated("members", "%s has a member that it was not put with: %s", g.id, name)
		}
	}
}

// verifyMarked asserts that each line of a poison message has AI-ERROR or newer content, or is named in final_error.
func (w *world) verifyMarked(d invoice.Document) {
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		e, _ := w.sink.Entry(line)
		_, there := w.sink.Line(line)
		marked := e.DocumentID == d.ID && e.Outcome == inmem.OutcomeFailed
		if there && (marked || e.Version.Compare(d.Version) > 0) {
			continue
		}
		if !strings.Contains(d.State.FinalError, fmt.Sprint(line)) {
			w.violated("G7", "%s failed, its line %d is not marked and not named in final_error", d.ID, line)
		}
		if there && !strings.HasPrefix(d.State.FinalError, "MANUAL REVIEW") {
			w.violated("G7",
				"%s failed, its line %d exists and is not marked, and nobody is asked to review it", d.ID, line)
		}
	}
}

// verifyUnwritten asserts that no line has the content of a document that is not committed.
func (w *world) verifyUnwritten(d invoice.Document) {
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		if e, _ := w.sink.Entry(line); e.DocumentID == d.ID && e.Hash == d.Hash {
			w.violated("G2", "%s is %s, and line %d holds its content", d.ID, d.State.Status, line)
		}
	}
}

// verifyLine asserts the invariant: the row equals the content of the document that the ledger names for it, and that
// document names the line.
func (w *world) verifyLine(line int64, r row) {
	if slices.Contains(w.path.byPeople, line) {
		return
	}
	if !w.renames && w.dropped(r.entry.DocumentID, line) {
		w.violated("invariant", "line %d has content of %s, which does not name it", line, r.entry.DocumentID)
	}
	status := invoice.Null()
	for n, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Detail && c.Status {
			status = r.line.Values[n]
		}
	}
	switch r.entry.Outcome {
	case "":
		if r.line.Tracking || slices.ContainsFunc(r.line.Values, func(v invoice.Value) bool { return !v.Null }) {
			w.violated("invariant", "line %d was written, and the ledger names nobody for it", line)
		}
	case inmem.OutcomeFailed:
		if status.Text != invoice.StatusAIError {
			w.violated("invariant", "line %d is marked in the ledger and says %q", line, status.Text)
		}
		g, left := w.given[r.entry.DocumentID], w.renames && w.left(r.entry.DocumentID, line)
		if g == nil || g.code == "" && g.spent == 0 && w.path.name != "replay" && !left {
			w.violated("invariant", "line %d is marked for %q, which has no error", line, r.entry.DocumentID)
		}
	default:
		c := w.history[r.entry.DocumentID][r.entry.Hash]
		switch {
		case c == nil:
			w.violated("invariant", "line %d: the ledger names content that %q never had", line, r.entry.DocumentID)
		case !slices.Contains(c.lines, line):
			w.violated("invariant", "line %d is not a line of %s", line, r.entry.DocumentID)
		case !r.line.Tracking || !reflect.DeepEqual(r.line.Values, mapping.InUse().RowValues(c.values, c.main, line)):
			w.violated("invariant", "line %d does not hold what %s says", line, r.entry.DocumentID)
		}
	}
}

// verifySame asserts that faults changed nothing in the end: the rows are those of the run without, and so is the state
// of every document that must end.
func (w *world) verifySame(without, is *end) {
	if !reflect.DeepEqual(without.findings, is.findings) {
		w.violated("findings", "%v: without faults %v", is.findings, without.findings)
	}
	if !reflect.DeepEqual(without.counts, is.counts) {
		w.violated("findings", "counted %v: without faults %v", is.counts, without.counts)
	}
	for _, id := range w.there() {
		was, there := without.states[id]
		if g := w.given[id]; !there || g.end == "" {
			continue
		}
		s := is.states[id]
		spent := s.RetryCount
		switch {
		case s.Status == invoice.Committed && failedAlone(s): // three times like an outage, and then it was written
			spent = was.RetryCount
		case w.given[id].code == unreadableCode: // each failure counts, also one that a fault leaves unproven
			spent = min(spent, was.RetryCount)
		}
		if s.Status != was.Status || spent != was.RetryCount || s.ReprocessCount != was.ReprocessCount ||
			(s.FinalError == "") != (was.FinalError == "") {
			w.violated("G5", "%s is %s after %d retries and %d resets: without faults it is %s after %d and %d",
				id, s.Status, s.RetryCount, s.ReprocessCount, was.Status, was.RetryCount, was.ReprocessCount)
		}
	}
	for line, values := range without.lines {
		if !reflect.DeepEqual(values, is.lines[line]) && !w.mayBeMarked(line) {
			w.violated("G3", "line %d does not hold what it holds without faults", line)
		}
	}
}

// failedAlone reports whether a document was charged for failing like an outage by itself.
func failedAlone(s invoice.State) bool {
	return slices.ContainsFunc(s.Attempts, func(a invoice.Attempt) bool { return a.Code == commit.CodeFailsAlone })
}

// mayBeMarked reports whether a line is marked for a document that may wait: its retries may be spent when that took
// long.
func (w *world) mayBeMarked(line int64) bool {
	e, _ := w.sink.Entry(line)
	g := w.given[e.DocumentID]
	return g != nil && g.end == "" && e.Outcome == inmem.OutcomeFailed
}

// verifyRedelivery brings everything once more: as it is now, as it was at first, and as it was at first as an old
// offer. Nothing may be written, not even over a person's correction.
func (w *world) verifyRedelivery(lines []int64) {
	if len(w.seen) > 0 {
		return
	}
	w.numbering, w.draw = false, nil
	for _, id := range w.there() {
		if d, _ := w.document(id); d.State.Status == invoice.Committed {
			l, there := w.sink.Line(d.Main)
			if e, _ := w.sink.Entry(d.Main); there && e.DocumentID == id {
				corrected := slices.Clone(l.Values)
				corrected[0] = invoice.Of("corrected by hand")
				w.sink.SetLine(d.Main, inmem.Line{Tracking: l.Tracking, Values: corrected})
			}
		}
	}
	before := w.rows(lines)
	etags := map[string]string{}
	var first, now []json.RawMessage
	for _, id := range w.there() {
		d, raw := w.document(id)
		etags[id] = d.ETag
		first, now = append(first, w.given[id].first), append(now, raw)
	}
	offers := [][]json.RawMessage{first, first, now}
	retries := []int{0, 1, 0}
	switch {
	case w.scheduled: // the first offer may show contents that were never written, and no feed shows those
		offers, retries = offers[1:], retries[1:]
	// the first is the hardest: old snapshots that pass for new ones
	case len(w.plan) > 1, w.runs != nil && len(w.plan) > 0:
		offers = offers[:1]
	}
	i := w.start()
	for n, batch := range offers {
		if err := w.redeliver(i, batch, retries[n]); err != nil {
			w.violated("G4", "a redelivery when all is quiet failed: %v", err)
		}
	}
	for line, r := range w.rows(lines) {
		was := before[line]
		was.entry.SourceTS = r.entry.SourceTS                   // raising it alone is no write
		if !reflect.DeepEqual(r, was) && !w.mayBeMarked(line) { // one that waits may be due by now
			w.violated("G4", "a redelivery changed line %d from %+v to %+v", line, was.entry, r.entry)
		}
	}
	for _, id := range w.there() {
		if d, _ := w.document(id); d.ETag != etags[id] && w.given[id].end != "" {
			w.violated("G4", "a redelivery changed %s", id)
		}
	}
}

// redeliver offers a batch as the host does: again while the breaker waits for its probe.
func (w *world) redeliver(i *instance, batch []json.RawMessage, retry int) (err error) {
	for range mostOffers {
		_, err = i.commit.Run(context.Background(),
			commit.Delivery{Documents: batch, Received: w.now(), RetryCount: retry})
		if err == nil || !breaker.IsRefusal(err) {
			return err
		}
		w.advance(hostPause)
	}
	return err
}

package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// What is asserted at every call, between the fault and what the call does.

// apply is a request to the database.
func (w *world) apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	before := make([][]inmem.Entry, len(items))
	for n, it := range items {
		for position := range it.Rows() {
			e, _ := w.sink.Entry(it.Line(position))
			before[n] = append(before[n], e)
		}
	}
	outcomes, err := w.real.sink.Apply(ctx, items, mode, known)
	for n, it := range items {
		for position := range it.Rows() {
			w.wrote(it, it.Line(position), before[n][position], mode)
		}
	}
	if err == nil && w.onApplied != nil && w.numbering {
		w.onApplied(items)
	}
	return outcomes, err
}

// dropped reports whether a document is committed and does not name a line: then alone it may go back.
func (w *world) dropped(id string, line int64) bool {
	raw, err := w.docs.Read(context.Background(), id)
	if err != nil {
		return false
	}
	d, err := invoice.Reader{}.Read(raw, w.now())
	return err == nil && d.State.Status == invoice.Committed && d.Main != line && !slices.Contains(d.Duplicates, line)
}

// left reports whether a document is gone, or names a line no more.
func (w *world) left(id string, line int64) bool {
	if w.deleted[id] {
		return true
	}
	d, _ := w.document(id)
	return d.Main != line && !slices.Contains(d.Duplicates, line)
}

// wrote asserts what became of one line.
func (w *world) wrote(it commit.Item, line int64, before inmem.Entry, mode commit.Mode) {
	after, _ := w.sink.Entry(line)
	if after == before {
		return
	}
	if after.Outcome == inmem.OutcomeApplied && after.Write != before.Write {
		w.applied = w.now()
	}
	released := mode == commit.Rewrite && it.Released(line) && w.dropped(before.DocumentID, line)
	switch order := after.Version.Compare(before.Version); {
	case order < 0 && !released:
		w.violated("G3", "line %d went back from %s to %s", line, before.DocumentID, after.DocumentID)
	case order == 0 && after.SourceTS < before.SourceTS:
		w.violated("G3", "line %d went back to older content of %s", line, after.DocumentID)
	}
	again := after.Write != before.Write && after.Version == before.Version && after.Hash == before.Hash
	if again && mode != commit.Rewrite && after.Outcome == inmem.OutcomeApplied &&
		before.Outcome == inmem.OutcomeApplied {
		w.violated("G4", "line %d was written again with unchanged content of %s", line, after.DocumentID)
	}
	if after.Write != before.Write && after.Outcome == inmem.OutcomeFailed {
		if it.DocumentID == after.DocumentID {
			w.hasEvidence(it.DocumentID, it.Hash, "line "+fmt.Sprint(line)+" was marked AI-ERROR")
		}
	}
}

// record is a patch of sql_writer.
func (w *world) record(ctx context.Context, i *instance, doc invoice.Snapshot, s invoice.State) (string, error) {
	id := doc.ID
	if w.deleted[id] {
		return w.real.docs.Record(ctx, doc, s)
	}
	was, _ := w.document(id)
	answer, err := w.real.docs.Record(ctx, doc, s)
	if err != nil {
		return answer, err
	}
	delete(w.cached, id)
	is, _ := w.document(id)
	if is.ETag == was.ETag {
		return answer, nil // not done although reported: found at the end
	}
	w.changes = append(w.changes, id)
	switch {
	case was.State.Status == invoice.Committed:
		w.violated("G1", "%s was committed, and %s made it %s", id, i.name, s.Status)
	case was.State.Status == invoice.Failed && s.Status != invoice.Committed &&
		s.ReprocessCount == was.State.ReprocessCount:
		w.violated("G1", "%s was failed, and %s made it %s without anybody's wish", id, i.name, s.Status)
	case was.State.Status == invoice.Failed && s.ReprocessCount > was.State.ReprocessCount && !w.audited():
		w.violated("G8", "%s was tried again with no entry in the audit log", id)
	}
	if w.given[id].untouched {
		w.violated("G1", "%s is not ours to touch, and %s made it %s", id, i.name, s.Status)
		return answer, nil
	}
	w.charged(i, was, is)
	switch s.Status {
	case invoice.Failed:
		w.hasEvidence(id, is.Hash, "its status became failed")
		w.poisonedOnlyWithProof(i, was)
	case invoice.Committed:
		w.written(is, s)
		if w.runs != nil {
			w.runs.ended[id] = w.now()
		}
	default:
	}
	return answer, nil
}

// audited reports whether the audit log has the start of a run.
func (w *world) audited() bool {
	return w.runs != nil &&
		slices.ContainsFunc(w.runs.store.Audits(), func(a run.Audit) bool { return a.Action == run.CodeRunStart })
}

// written asserts that every line of a committed document is there: its content, or something newer.
func (w *world) written(d invoice.Document, s invoice.State) {
	newer := 0
	lines := append([]int64{d.Main}, d.Duplicates...)
	for _, line := range lines {
		e, _ := w.sink.Entry(line)
		switch {
		case e.Version.Compare(d.Version) > 0:
			newer++
		case e.Version == d.Version && e.Hash == d.Hash && e.Outcome == inmem.OutcomeApplied:
		default:
			w.violated("G2", "%s is committed (%s), and its line %d holds %q of %q", d.ID, s.Outcome, line,
				e.Outcome, e.DocumentID)
		}
	}
	if s.Outcome == invoice.OutcomeSuperseded && newer < len(lines) {
		w.violated("G2", "%s is committed as %s, and %d of its %d lines hold something newer", d.ID,
			s.Outcome, newer, len(lines))
	}
}

// hasEvidence asserts that a poison message has its three files of evidence, of this content and this episode.
func (w *world) hasEvidence(id, hash, because string) {
	if !w.evidenceOf(id, hash, -1) {
		w.violated("G7", "%s, and there is no evidence of %s", because, id)
	}
}

// evidenceOf looks for the three files of a content of a document; reprocessed is how often it was, and -1 any number.
func (w *world) evidenceOf(id, hash string, reprocessed int) bool {
	files := w.evidence.Files()
	for name, content := range files {
		if !strings.HasSuffix(name, "/metadata.json") {
			continue
		}
		var m struct {
			DocumentID  string `json:"document_id"`
			ContentHash string `json:"content_hash"`
			Reprocess   int    `json:"reprocess_count"`
		}
		if json.Unmarshal(content, &m) != nil || m.DocumentID != id || m.ContentHash != hash ||
			(reprocessed >= 0 && m.Reprocess != reprocessed) {
			continue
		}
		folder := strings.TrimSuffix(name, "metadata.json")
		original, err := invoice.Reader{}.Read(files[folder+"original.json"], w.now())
		if err == nil && original.ID == id && original.Hash == hash && json.Valid(files[folder+"error.json"]) {
			return true
		}
	}
	return false
}

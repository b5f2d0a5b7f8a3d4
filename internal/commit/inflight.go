package commit

import (
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/events"
	"sqlwriter/internal/invoice"
)

// inflight is one document on its way through the stages. Each stage takes works and gives works.
type inflight struct {
	// doc is the newest snapshot.
	doc invoice.Snapshot
	// heal says that SQL may have older content of the document than this snapshot, which is then written whatever its
	// status. Two contents within one second of _ts have no order, so the older one may have been written last
	// (docs/rules.md).
	heal bool
	// races counts how often the document changed before its outcome was recorded.
	races int

	// written is the snapshot that result is about. Both are valid when done.
	written invoice.Snapshot
	result  result
	done    bool

	// step is what judge decided, and next the state to record. cause is the error that next records; nil for a
	// verdict.
	step  step
	next  invoice.State
	cause error
	// proven says of a spent document that others were written after its last failure.
	proven bool
}

// step is what follows for a document.
type step int

const (
	// undecided: no stage decided about it.
	undecided step = iota
	// finished: it is counted, and nothing follows.
	finished
	// spent: its retries are spent, and it becomes a poison message.
	spent
	// recordable: next is to be recorded.
	recordable
	// changed: it has another etag than the snapshot, and is read again.
	changed
)

// result is the answer of the sink for one document, or its error. An error of document scope is the document's own;
// any other error puts the document off.
type result struct {
	outcome DocumentOutcome
	err     error
}

func (r result) failed() bool { return r.err != nil }

// answer gives the work its result.
func (w *inflight) answer(r result) { w.written, w.result, w.done = w.doc, r, true }

// needsResult reports whether the document needs a result.
func (w *inflight) needsResult() bool { return !w.done && w.step == undecided }

// supersededByItself reports whether a line has later content of the same document. The document is then not finished:
// either its snapshot is old, or the container's clock went back.
func supersededByItself(r result) bool {
	for _, row := range r.outcome.Rows {
		if row.Verdict == invoice.OutcomeSuperseded && row.By == r.outcome.DocumentID {
			return true
		}
	}
	return false
}

// sameContent reports whether two snapshots of a document have the same content for SQL.
func sameContent(a, b invoice.Snapshot) bool {
	return a.Hash == b.Hash && (a.Problem == nil) == (b.Problem == nil)
}

// guard recovers a panic that one document caused. Otherwise the process would end, with every other invocation. The
// document is left to the recovery timer.
func guard(t *tally, w *inflight) {
	if r := recover(); r != nil {
		w.step = finished
		t.add(resultOf(w.doc, invoice.OutcomeLeft, t.log.Panic("commit: record", events.Fields{Document: w.doc.ID}, r)))
	}
}

// each calls do for the works that it concerns, with bounded concurrency, and gives the first error.
func each(works []inflight, parallel int, concerns func(*inflight) bool, do func(*inflight) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range works {
		if w := &works[i]; concerns(w) {
			group.Go(func() error { return do(w) })
		}
	}
	return group.Wait()
}

// idList lists at most ten ids in a text.
func idList(ids []int64) string {
	const most = 10
	var b strings.Builder
	for i, id := range ids {
		if i == most {
			b.WriteString(" and " + strconv.Itoa(len(ids)-most) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

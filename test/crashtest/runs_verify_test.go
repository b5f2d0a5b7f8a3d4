package crashtest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
)

// What is asserted about runs: some at every call of the run store, the rest at the end.

// workerStale and managerStale are after how long without a word one is dead (docs/requirements.md R75).
const (
	workerStale  = 10 * time.Minute
	managerStale = 2 * time.Minute
)

// watch compares the run store with its state before a call. Every change must be in the table of states.
func (r *runs) watch(by string) {
	now := r.w.now()
	for _, is := range r.all() {
		was, known := r.seenRuns[is.ID]
		r.seenRuns[is.ID] = is
		if !known {
			continue
		}
		if was.Status == run.RunRunning && is.Status != run.RunRunning {
			r.count.ends[is.ID]++
		}
		if is.Watermark != was.Watermark && placeOf(is.Watermark).before(placeOf(was.Watermark)) ||
			is.Documents < was.Documents || is.Batches < was.Batches || is.Epoch < was.Epoch {
			r.w.violated("runs", "%s: run %s went back: %+v -> %+v", by, is.ID, was, is)
		}
		claimed := is.Epoch > was.Epoch && is.Owner != ""
		if claimed && is.LostManagers > was.LostManagers && now.Sub(was.HeartbeatAt) < managerStale {
			r.w.violated("runs", "%s: run %s was taken from a manager that lives", by, is.ID)
		}
	}
	tookOver := false
	for _, is := range r.store.AllBatches() {
		was, known := r.seenBatches[is.ID]
		if is == was {
			continue
		}
		r.seenBatches[is.ID] = is
		if !known {
			if is.Status != run.PendingQueue && is.Status != run.Queued {
				r.w.violated("runs", "%s: batch %d begins as %s", by, is.Number, is.Status)
			}
			continue
		}
		if was.Status != is.Status && !conformance.AllowedChange(was.Status, is.Status) || is.Epoch < was.Epoch ||
			is.Attempt < was.Attempt {
			r.w.violated("runs", "%s: batch %d changed from %+v to %+v", by, is.Number, was, is)
		}
		if is.Status == run.Processing && is.Epoch > was.Epoch {
			lost := is.LostWorkers > was.LostWorkers // one that let go shows its epoch, and is not
			if was.StartedAt.IsZero() || lost {
				r.count.claims[is.ID]++ // those that are audited
			}
			if lost && now.Sub(was.HeartbeatAt) < workerStale {
				r.w.violated("runs", "%s: batch %d was taken from a worker that lives", by, is.Number)
			}
			tookOver = tookOver || was.Owner != ""
		}
		if was.Status != run.Completed && is.Status == run.Completed {
			r.count.completions[is.ID]++
		}
		if is.QueueAttempts > 0 {
			r.w.violated("G5", "%s: batch %d was charged for what is not its own: %s", by, is.Number, is.LastQueueError)
		}
	}
	if late := r.onTakeOver; tookOver && late != nil {
		r.onTakeOver = nil
		late()
	}
}

// took is called for every claim of a batch.
func (r *runs) took(c run.Claimed) {
	if c.Answer == run.Taken && len(c.Open) == 0 && c.Batch.Total > 0 && !c.TookOver &&
		c.Batch.Attempt == run.FirstAttempt {
		r.w.violated("runs", "batch %d has no open document at its first claim", c.Batch.Number)
	}
}

// claimed is called for every claim of a run.
func (r *runs) claimed(i *instance, row run.Run) {
	r.count.runClaims++
	r.leases[i] = &lease{run: row, fresh: true}
}

// asked is called for every page that is asked for: a manager that claimed the run begins where its watermark is, and
// never asks for a page before it.
func (r *runs) asked(i *instance, continuation string) {
	r.count.pages++
	l := r.leases[i]
	if l == nil {
		return
	}
	stored := r.row(l.run.ID)
	if stored.Epoch != l.run.Epoch || stored.Owner == "" {
		return // a late one: its result is discarded
	}
	at, mark := pageOf(continuation), placeOf(stored.Watermark)
	if at.before(place{id: mark.id}) || l.fresh && at.id != mark.id {
		r.w.violated("runs", "run %s: the manager asks for the page after %q, and the watermark is after %q",
			l.run.ID, at.id, mark.id)
	}
	l.fresh = false
	if page := r.pagesOf[l.run.ID+" "+continuation]; len(page) > 0 {
		known, err := r.store.Known(context.Background(), l.run.ID, page)
		if err == nil && len(known) == len(page) {
			r.w.violated("runs",
				"run %s: the manager asks for the page after %q again, and has all of it", l.run.ID, at.id)
		}
	}
}

// given is called for every page that was given.
func (r *runs) given(i *instance, continuation string, found []invoice.Projection) {
	l := r.leases[i]
	if l == nil {
		return
	}
	key := l.run.ID + " " + continuation
	docs, err := commit.PendingDocs(found)
	if err != nil {
		panic(err)
	}
	for _, w := range docs { // one that another took meanwhile is missing from a later answer, and never gets a row
		if !slices.Contains(r.pagesOf[key], w.ID) {
			r.pagesOf[key] = append(r.pagesOf[key], w.ID)
		}
	}
}

// place is how far a run's documents were looked for.
type place struct {
	id string
	n  int
}

func (p place) before(other place) bool { return p.n < other.n || p.n == other.n && p.id < other.id }

// placeOf reads a watermark (run.Run).
func placeOf(watermark string) place {
	var m struct {
		Continuation string `json:"continuation"`
		At           int    `json:"at"`
		Done         bool   `json:"done"`
	}
	if watermark == "" {
		return place{}
	}
	if err := json.Unmarshal([]byte(watermark), &m); err != nil {
		panic(err)
	}
	if m.Done {
		return place{n: math.MaxInt}
	}
	p := pageOf(m.Continuation)
	p.n = m.At
	return p
}

// pageOf reads a continuation of inmem.Documents.
func pageOf(continuation string) place {
	_, digits, _ := strings.Cut(continuation, ":")
	id, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return place{id: string(id)}
}

// letterAudited asserts that what the audit log says of a message that was put aside can be looked at.
func (r *runs) letterAudited(a run.Audit) {
	if a.Action != run.CodeDeadLetter {
		return
	}
	var d struct {
		Evidence string `json:"evidence"`
	}
	files := r.w.evidence.Files()
	if json.Unmarshal(a.Detail, &d) != nil || files[d.Evidence+"/body"] == nil ||
		files[d.Evidence+"/message.json"] == nil {
		r.w.violated("G7", "a message was put aside, and its evidence %q is not whole", d.Evidence)
	}
	r.deadLetterSeen[d.Evidence] = true
}

// verify asserts what must hold when nothing is left to do.
func (r *runs) verify(clean bool) {
	r.w.numbering = false
	i := r.w.start()
	for range 4 { // open, half-open, closed
		r.w.advance(5 * time.Minute)
		r.tick(context.Background(), i)
	}
	r.w.advance(15 * time.Minute) // one more tick finds the dead workers
	r.tick(context.Background(), i)
	for _, b := range []*bus{r.runQ, r.batchQ} {
		if due, more := b.next(); more {
			r.w.violated("runs", "%s has something left, due %s: %s", b.name, due, r.restless())
		}
	}
	most := 4 // two faults, and a frozen process
	if r.w.scheduled {
		most = mostDeliveries - 1
	}
	if r.count.most > most {
		r.w.violated("G5", "a message was delivered %d times", r.count.most)
	}
	for _, row := range r.store.Workers() {
		if row.Status == run.WorkerRunning {
			r.w.violated("runs", "%s is still RUNNING", row.ID)
		}
	}
	for _, row := range r.all() {
		r.verifyRun(row, clean)
	}
	r.verifyDeadLetters()
	r.w.numbering = true
}

// verifyRun asserts that a run is completed, says so truthfully, and none of it is lost.
func (r *runs) verifyRun(row run.Run, clean bool) {
	ctx := context.Background()
	stats, err := r.store.Stats(ctx, row.ID)
	if err != nil {
		panic(err)
	}
	status := run.RunCompleted
	if stats.Failed() {
		status = run.RunCompletedWithFailures
	}
	if row.Status != status || row.Owner != "" || row.HandedOffAt.IsZero() || row.Error != "" {
		r.w.violated("G1", "run %s is %s (owner %q): %s", row.ID, row.Status, row.Owner, row.Error)
	}
	items, err := r.store.Items(ctx, row.ID, nil, "", 1000)
	if err != nil {
		panic(err)
	}
	r.verifyBatches(row, items)
	want := r.path.want[row.ID]
	for _, it := range items {
		normal, wanted := want[it.Document]
		switch {
		case it.Outcome == "":
			r.w.violated("G1", "%s has no outcome in run %s", it.Document, row.ID)
		case want == nil:
		case !wanted:
			r.w.violated("runs", "run %s has %s, which it was not to take", row.ID, it.Document)
		case it.Outcome != normal && (clean || !slices.Contains(instead(normal), it.Outcome)):
			r.w.violated("runs", "%s is %s in run %s: expected %s", it.Document, it.Outcome, row.ID, normal)
		}
		r.verifyOutcome(row, it)
	}
	for id := range want {
		found := slices.ContainsFunc(items, func(it run.ItemOutcome) bool { return it.Document == id })
		if at := r.ended[id]; !found && (clean || at.IsZero() || at.After(row.HandedOffAt)) {
			r.w.violated("G1", "run %s does not have %s, which waited until its hand-off had ended", row.ID, id)
		}
	}
}

// instead are the outcomes that a document may have after faults: its worker died when it was written and before that
// was told; the recovery timer was first; it failed like an outage by itself, while the database answered others, and
// was put off.
func instead(o invoice.Outcome) []invoice.Outcome {
	switch o {
	case invoice.OutcomeApplied, invoice.OutcomeUnchanged:
		return []invoice.Outcome{
			invoice.OutcomeApplied, invoice.OutcomeUnchanged, invoice.OutcomeSkipped, invoice.OutcomeRetryScheduled,
		}
	case invoice.OutcomeFailed:
		return []invoice.Outcome{invoice.OutcomeRetryScheduled, invoice.OutcomeSkipped}
	case invoice.OutcomeSuperseded:
		return []invoice.Outcome{invoice.OutcomeSkipped, invoice.OutcomeRetryScheduled}
	case invoice.OutcomeRetryScheduled: // the timer may have ended it between a worker that died and the next one
		return []invoice.Outcome{invoice.OutcomeSkipped, invoice.OutcomeFailed}
	case invoice.OutcomeSkipped: // what a worker that died might have finished counts as what it is
		return []invoice.Outcome{
			invoice.OutcomeApplied, invoice.OutcomeUnchanged, invoice.OutcomeSuperseded, invoice.OutcomeRetryScheduled,
		}
	default:
		return nil
	}
}

// verifyOutcome asserts that a document is what the run says of it.
func (r *runs) verifyOutcome(row run.Run, it run.ItemOutcome) {
	g := r.w.given[it.Document]
	if g == nil {
		if it.Outcome != invoice.OutcomeGone {
			r.w.violated("runs", "%s is not there, and run %s says %s", it.Document, row.ID, it.Outcome)
		}
		return
	}
	if r.w.scheduled { // it may have had other content then
		return
	}
	if it.Outcome.Success() && it.Outcome != invoice.OutcomeSkipped && it.Outcome != invoice.OutcomeSuperseded &&
		g.code != "" {
		r.w.violated("G2", "%s cannot be written, and run %s says %s", it.Document, row.ID, it.Outcome)
	}
	if it.Outcome == invoice.OutcomeFailed && g.code == "" || it.Outcome == invoice.OutcomeGone {
		r.w.violated("G5", "%s has no error of its own, and run %s says %s", it.Document, row.ID, it.Outcome)
	}
}

// verifyBatches asserts that each batch has ended once for each time that it was wanted, and that all numbers add up.
func (r *runs) verifyBatches(row run.Run, items []run.ItemOutcome) {
	stored, err := r.store.ListBatches(context.Background(), row.ID, "", "", 1000)
	if err != nil {
		panic(err)
	}
	if len(stored) != row.Batches || len(items) != row.Documents {
		r.w.violated("G1", "run %s says %d batches and %d documents, there are %d and %d", row.ID, row.Batches,
			row.Documents, len(stored), len(items))
	}
	audits := r.codes()
	for n, j := range stored {
		total, success := 0, 0
		for _, it := range items {
			if it.Number == j.Number {
				if total++; it.Outcome.Success() {
					success++
				}
			}
		}
		if j.Status != run.Completed || j.Number != n+1 || j.Total != total || j.Success != success ||
			j.Success+j.Failure != j.Total {
			r.w.violated("G1",
				"batch %d of run %s is %s: %d of %d documents, %d + %d; there are %d, %d of them done: %s",
				j.Number, row.ID, j.Status, j.Success+j.Failure, j.Total, j.Success, j.Failure, total, success, j.Error)
		}
		for code, expected := range map[string]int{
			run.CodeBatchCreated: 1, run.CodeBatchDone: r.count.completions[j.ID],
			run.CodeBatchStart: r.count.claims[j.ID],
		} {
			if found := audits[row.ID+" "+j.ID+" "+code]; found != expected {
				r.w.violated("G8", "batch %d of run %s has %d entries %s in the audit log: expected %d", j.Number,
					row.ID, found, code, expected)
			}
		}
		if r.count.completions[j.ID] == 0 {
			r.w.violated("runs", "batch %d of run %s was never seen to complete", j.Number, row.ID)
		}
	}
	ends := audits[row.ID+"  "+run.CodeRunDone] + audits[row.ID+"  "+run.CodeRunCancelled] +
		audits[row.ID+"  "+run.CodeRunFail] + audits[row.ID+"  ended by "+run.CodeDeadLetter]
	if ends != r.count.ends[row.ID] {
		r.w.violated("G8", "run %s ended %d times, and the audit log has %d entries about it", row.ID,
			r.count.ends[row.ID], ends)
	}
}

// codes counts the entries of the audit log by run, batch and code.
func (r *runs) codes() map[string]int {
	n := map[string]int{}
	for _, a := range r.store.Audits() {
		code := a.Action
		if a.Action == run.CodeDeadLetter && a.Batch == "" && a.Run != "" && a.Level == run.LevelError {
			code = "ended by " + code
		}
		n[a.Run+" "+a.Batch+" "+code]++
	}
	return n
}

// verifyDeadLetters asserts that only what is a message's own error put it aside.
func (r *runs) verifyDeadLetters() {
	folders := map[string]bool{}
	for name := range r.w.evidence.Files() {
		if folder, ok := strings.CutSuffix(name, "/message.json"); ok && strings.HasPrefix(name, "dead-letters/") {
			folders[folder] = true
		}
	}
	if len(folders) != r.path.deadLetters || len(r.deadLetterSeen) != r.path.deadLetters {
		r.w.violated("G5", "%d messages were put aside, the audit log names %d: expected %d", len(folders),
			len(r.deadLetterSeen), r.path.deadLetters)
	}
}

// begin takes the state of the run store before the first call.
func (r *runs) begin() {
	if r.path.seed != nil {
		r.path.seed(r)
	}
	r.watch("seed")
}

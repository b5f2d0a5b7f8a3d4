package commit

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxAge is the age of an invocation's snapshots at which the documents are read again (docs/requirements.md R17).
const maxAge = 30 * time.Second

// mostLagging is the number of offers of a batch that may end because reads lag: a minute at the host's pace. A
// difference after that is not a lag but the container's clock, and the feed must not wait for ever.
const mostLagging = 6

// healing is the largest difference in seconds between the _ts of a snapshot and of the committed state that is healed.
// Two contents of one second and the patch of one of them are that close. Beyond it, _ts orders them.
const healing = 60

// settled is the age from which every replica must show a snapshot. Replicas lag by far less.
const settled = 10 * time.Second

// codeWentBack is the code of a document of which the ledger knows a later _ts. It lasts until the document changes.
const codeWentBack = "clock_went_back"

// refresher is the third stage: it reads documents again whose snapshot must not decide (promise G1).
type refresher struct {
	selection
	reader invoice.Reader
	docs   Documents
	wait   func(ctx context.Context, d time.Duration) error
	tally  *tally
}

// refresh reads old snapshots and changed documents again. It drops and counts those that are gone, and those that the
// batch no longer takes. The error is of dependency scope; kept then has the changed documents that could be read.
func (f refresher) refresh(ctx context.Context, works []inflight) (kept []inflight, err error) {
	old := f.now().Sub(f.delivery.Received) > maxAge
	again := make([]bool, len(works))
	var ids []string
	races := 0
	for i, w := range works {
		if again[i] = w.step == changed || old || f.doubtful(w.doc); again[i] {
			ids = append(ids, w.doc.ID)
		}
		races = max(races, w.races)
	}
	if len(ids) == 0 {
		return works, nil
	}
	if races > 1 { // time for a lagging replica or another writer
		if err := f.wait(ctx, contentionWait<<(races-2)); err != nil {
			return nil,
				fault.Wrap(fault.Infrastructure, "commit: record", "cancelled",
					"stopped while waiting to read again", err)
		}
	}
	fresh, err := f.readMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	var unread error
	kept = make([]inflight, 0, len(works))
	for i, w := range works {
		keep, err := true, error(nil)
		now, found := fresh[w.doc.Identity()]
		if fault.CodeOf(w.doc.Problem) == CodeIDTwice { // the batch has it, and no document alone
			now.Problem = w.doc.Problem
		}
		switch {
		case !again[i]:
		case w.step == changed:
			keep, err = f.afterChange(ctx, &w, now, found)
		default:
			keep, err = f.replace(ctx, &w, now, found)
		}
		unread = cmp.Or(unread, err)
		if keep && err == nil {
			kept = append(kept, w)
		}
	}
	return kept, unread
}

// doubtful reports whether a snapshot may differ from its document. Only the feed brings old ones, and the host
// rewrites texts that look like times; the other callers have just read them. Without an etag no patch could be
// conditional.
func (f refresher) doubtful(d invoice.Snapshot) bool {
	return (f.delivery.Purpose == FromFeed && (f.delivery.RetryCount > 0 || d.RewrittenByHost)) || d.ETag == ""
}

// replace takes the document as it is now in place of an old snapshot.
func (f refresher) replace(ctx context.Context, w *inflight, now invoice.Snapshot, found bool) (keep bool, err error) {
	d := w.doc
	if !found || now.TS < d.TS {
		now, found, err = f.readSurely(ctx, d)
		if fault.IsDependency(err) {
			return false, err
		}
		if err != nil { // only this document fails: the others continue
			f.tally.leave(d, err)
			return false, nil
		}
	}
	switch {
	case !found && d.IDLooksLikeTime:
		f.tally.count(d.ID, invoice.OutcomeLeft, fault.Document)
		f.tally.log.Write(events.DocumentNotFound,
			events.Fields{Document: d.ID, Kind: fault.Document, Code: "id_looks_like_time"})
		return false, nil
	case !found:
		f.tally.count(d.ID, invoice.OutcomeGone, "")
		return false, nil
	}
	if f.passesOver(now, f.tally) { // marked since the snapshot
		return false, nil
	}
	w.doc = now
	if now.State.Status == invoice.Committed && now.Problem == nil && d.Problem == nil && !sameContent(d, now) &&
		now.TS-d.TS <= healing {
		w.heal = true
	}
	eligibility := f.eligibility(now)
	if eligibility == invoice.Eligible || (eligibility == invoice.Done && w.heal) {
		return true, nil
	}
	f.tally.skip(now, eligibility)
	return false, nil
}

// afterChange takes a changed document as it is now. Its result stays when it is about the present content. Other
// content is written whatever the status: two contents within one second of _ts have no order, and the older one may
// have been written last (docs/rules.md).
func (f refresher) afterChange(
	ctx context.Context, w *inflight, now invoice.Snapshot, found bool,
) (keep bool, err error) {
	if !found {
		now, found, err = f.readOne(ctx, w.doc)
		switch {
		case fault.IsDependency(err):
			return false, err
		case err != nil:
			f.tally.leave(w.doc, err)
			return false, nil
		case !found:
			f.tally.count(w.doc.ID, invoice.OutcomeGone, "")
			return false, nil
		}
	}
	outdated := w.done && supersededByItself(w.result)
	eligibility := f.eligibility(now)
	// ADR 0004
	setAside := eligibility == invoice.NotOurs || eligibility == invoice.NotOffered ||
		eligibility == invoice.UnknownStatus
	// marked since the snapshot
	if !w.done && f.passesOver(now, f.tally) {
		return false, nil
	}
	if setAside || (!w.done && !w.heal && eligibility != invoice.Eligible) {
		f.tally.count(now.ID, invoice.OutcomeSkipped, "")
		return false, nil
	}
	w.step = undecided
	same := now.ETag == w.doc.ETag
	lags := now.TS < w.doc.TS && w.races <= maxRaces/2 // after a clock change this lasts longer
	if lags || (same && !outdated) {                   // a replica lags, or nothing changed: the record is tried again
		return true, nil
	}
	w.doc = now
	switch {
	case !w.done: // its version could not be recorded, and nothing was written
	case now.Problem != nil:
		w.answer(result{err: now.Problem})
	case outdated && same:
		w.answer(result{err: fault.New(fault.Contention, "commit: record", codeWentBack,
			"document %s: its content is the newest, but the ledger knows a later _ts of it: the container's clock went back", now.ID)})
	case outdated || !sameContent(w.written, now) || putAgain(w.written, now, w.result):
		w.done, w.heal = false, true
	}
	return true, nil
}

// putAgain reports whether the same content was stored again after this write. Other content may have been there in
// between, and in SQL.
func putAgain(written, now invoice.Snapshot, r result) bool {
	return !r.failed() && now.TS > written.TS && now.State.Status != invoice.Committed
}

// readMany gives documents by their identity: several may have an id.
func (f refresher) readMany(ctx context.Context, ids []string) (map[string]invoice.Snapshot, error) {
	raws, err := f.docs.ReadMany(ctx, ids)
	if err != nil {
		return nil, asDependency(err)
	}
	fresh := make(map[string]invoice.Snapshot, len(raws))
	for _, raw := range raws {
		d, err := f.reader.ReadSnapshot(raw, f.now())
		if err != nil {
			return nil, asDependency(err)
		}
		fresh[d.Identity()] = d
	}
	return fresh, nil
}

// readOne reads a document; found is false when it does not exist.
func (f refresher) readOne(ctx context.Context, was invoice.Snapshot) (now invoice.Snapshot, found bool, err error) {
	now, err = reread(ctx, f.reader, f.docs, was, f.now())
	if fault.Has(err, fault.Gone) {
		return now, false, nil
	}
	return now, err == nil, err
}

// readSurely reads a document again whose read showed less than its snapshot. A replica may lag behind the change feed,
// and a document dropped for that would be lost. A read older than the snapshot is never accepted. Absence is accepted
// only for a document that every replica must have; until then the batch is offered again.
func (f refresher) readSurely(ctx context.Context, d invoice.Snapshot) (now invoice.Snapshot, found bool, err error) {
	now, found, err = f.readOne(ctx, d)
	mayLag := f.delivery.Purpose != FromFeed || f.delivery.RetryCount <= mostLagging // a run reads anew at each offer
	switch {
	case err != nil || !mayLag:
		return now, found, err
	case !found && f.now().Sub(time.Unix(d.TS, 0)) < settled && !d.IDLooksLikeTime:
		return d, false,
			fault.New(fault.Infrastructure, "commit: read", "not_caught_up",
				"document %s is on the change feed and cannot be read yet", d.ID)
	case found && now.TS < d.TS:
		return d, false,
			fault.New(fault.Infrastructure, "commit: read", "not_caught_up",
				"document %s reads older than the change feed showed it", d.ID)
	}
	return now, found, nil
}

// asDependency gives an error that stops a batch the dependency scope. An error of document scope here failed the whole
// read, and blames no document.
func asDependency(err error) error {
	if fault.IsDependency(err) {
		return err
	}
	return fault.Wrap(fault.Infrastructure, "commit: read", fault.CodeOf(err),
		"the documents could not be read again", err)
}

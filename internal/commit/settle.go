package commit

import (
	"context"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxRaces bounds how often one document is read again because it changed under us. A document that changes faster than
// that is left to the recovery timer, which sees it at rest.
const maxRaces = 8

// settle records what became of a document. After a 412 the document is read again (nothing is counted for that): other
// content is written in its turn, and then judged in the first one's place. The error is of dependency scope.
func (p *pass) settle(ctx context.Context, d invoice.Document, res result) error {
	cur := d // the document as it stands now; d is the content that res speaks of
	healing := p.heal[d.ID]
	for race := range maxRaces {
		if race > 1 { // a replica that lags needs a moment, and so does whoever else is at it
			if err := p.c.o.Wait(ctx, contentionWait<<(race-2)); err != nil {
				return fault.Wrap(fault.Infrastructure, "commit: record", "cancelled", "stopped while waiting to read again", err)
			}
		}
		outdated := supersededByItself(res)
		if !outdated {
			if done, err := p.tryRecord(ctx, d, cur, res, healing); done || err != nil {
				return err
			}
		}
		now, ok, err := p.readAgain(ctx, d.ID)
		if err != nil || !ok {
			return err
		}
		switch turn := p.turnOf(now); {
		case turn == invoice.NotOurs || turn == invoice.NotOffered || turn == invoice.UnknownStatus: // not ours any more, or put aside by a person (ADR 0005)
			p.count(d.ID, "skipped", "")
			return nil
		case !outdated && now.ETag == cur.ETag: // the very state that was just proven to be past: a replica lags
			continue
		case now.TS < cur.TS && race < maxRaces/2: // so does this one; a clock that went back shows it for longer
			continue
		case now.Problem != nil:
			d, res = now, result{err: now.Problem}
		case outdated && now.ETag == cur.ETag:
			res = result{err: fault.New(fault.Contention, "commit: record", "clock_went_back",
				"document %s: its content is the newest, but the ledger knows a later _ts of it: the container's clock went back", d.ID)}
		case outdated || !sameContent(d, now) || putAgain(d, now, res):
			if now, res, ok, err = p.applyOther(ctx, now); err != nil || !ok {
				return err
			}
			d, healing = now, true
		}
		cur = now
	}
	p.leave(d.ID, fault.New(fault.Contention, "commit: record", "412", "the document changed %d times while its outcome was recorded", maxRaces))
	return nil
}

// supersededByItself reports whether a line holds later content of the very document that was written. That is no end of
// the document, whatever its lines say: either the snapshot is old, or the container's clock went back.
func supersededByItself(r result) bool {
	for _, row := range r.outcome.Rows {
		if row.Verdict == Superseded && row.By == r.outcome.DocumentID {
			return true
		}
	}
	return false
}

// putAgain reports whether the same content was put into the container again after we wrote it: in between another one may
// have been there, and in SQL.
func putAgain(d, now invoice.Document, r result) bool {
	return !r.failed() && now.TS > d.TS && now.State.Status != invoice.Committed
}

// finished counts a document whose status needs no word of ours. When its content was written over older content of its own
// (healing), an operator should know, most of all when that failed: its lines may not hold what it says.
func (p *pass) finished(cur invoice.Document, res result, healing bool) {
	healing = healing && cur.State.Status == invoice.Committed
	switch {
	case healing && res.failed():
		p.leave(cur.ID, res.err)
		return
	case healing && res.outcome.Verdict == Applied:
		p.c.o.Log.Warn().Str("document", cur.ID).Msg("committed by somebody else, its lines held older content and were written again")
	}
	p.count(cur.ID, "skipped", "")
}

// rewritten counts a committed document whose lines a run has written again, or could not: what the document says stays true
// either way, so nothing is recorded.
func (p *pass) rewritten(cur invoice.Document, res result) {
	switch {
	case !res.failed():
		p.count(cur.ID, string(res.outcome.Verdict), "")
		return
	case fault.KindOf(res.err) == fault.Contention: // a lost race says nothing of the line: the batch comes again
		p.mu.Lock()
		defer p.mu.Unlock()
		p.contended = res.err
		return
	}
	told := resultOf(cur.ID, string(invoice.Failed), res.err)
	told.RetryCount = cur.State.RetryCount
	p.reportResult(told)
	p.c.o.Log.Warn().Str("document", cur.ID).Str("kind", string(told.Kind)).Str("code", told.Code).
		Msg("a committed document could not be written again: it stays committed")
}

// tryRecord records a result over what the document says now; done is false when the document changed again.
func (p *pass) tryRecord(ctx context.Context, d, cur invoice.Document, res result, healing bool) (done bool, err error) {
	if cur.State.Status == invoice.Committed && p.batch.takesOver(invoice.Committed) && (res.failed() || sameContent(d, cur)) {
		p.rewritten(cur, res)
		return true, nil
	}
	proven := false
	if res.failed() {
		res.err = alone(cur.State, res.err)
		proven = isOwn(res.err) && p.proven(ctx, cur)
		if p.eligibility(cur) && p.t.exhausted(cur.State, res.err, proven) {
			return p.poison(ctx, cur, res.err)
		}
	}
	next, allowed := p.next(d, cur, res, proven)
	if !allowed && healing && fault.IsDependency(res.err) {
		return true, res.err // its line may hold older content, and nobody else would look at a committed document
	}
	if !allowed {
		p.finished(cur, res, healing)
		return true, nil
	}
	return p.put(ctx, cur, next, res)
}

// proven reports whether others got through after the document's last failure.
func (p *pass) proven(ctx context.Context, cur invoice.Document) bool {
	at, known := lastFailure(p.t.begin(cur.State), p.c.o.Location)
	return known && p.c.breaker.Proven(ctx, at)
}

// put records a state; done is false when the document changed again.
func (p *pass) put(ctx context.Context, cur invoice.Document, next invoice.State, res result) (done bool, err error) {
	_, next, err = p.record(ctx, cur, next)
	switch {
	case err == nil:
		p.countResult(cur.ID, res, next)
		if isOwn(res.err) && p.t.begin(cur.State).RetryCount == 0 {
			p.c.breaker.BeganToFail(fault.CodeOf(res.err))
		}
		return true, nil
	case fault.Has(err, fault.Changed):
		return false, nil
	case fault.Has(err, fault.Gone) && !res.failed():
		p.c.o.Log.Warn().Str("document", cur.ID).Str("outcome", string(res.outcome.Verdict)).
			Msg("the document was deleted while it was written: its lines keep what it said")
	}
	return true, p.cannotRecord(cur, next, err)
}

// next is the state to record for a result, and whether it may be recorded over what the document says now. Right after
// the choice that is always so; after a 412 it depends: a verdict on the content that the document holds is true
// whatever its status says, everything else only changes a status that is ours to change. proven is of the document's last
// failure.
func (p *pass) next(d, cur invoice.Document, res result, proven bool) (invoice.State, bool) {
	was := cur.State
	if !cur.HasTime && was.Version == 0 {
		was.Version = d.Version.US // the one that the ledger has; a later _ts must not become another
	}
	if isOwn(res.err) {
		return p.t.failure(was, res.err, proven), p.eligibility(cur)
	}
	if res.failed() {
		return p.t.putOff(was, res.err), p.eligibility(cur)
	}
	evident := res.outcome.Verdict == Applied || res.outcome.Verdict == Unchanged
	if was.Status == invoice.Committed {
		return was, false // somebody recorded the same content already
	}
	mayChange := was.Status == invoice.RetryScheduled || p.eligibility(cur)
	return p.t.committed(was, res.outcome), mayChange || (evident && sameContent(d, cur))
}

// sameContent reports whether two snapshots of a document say the same to SQL.
func sameContent(a, b invoice.Document) bool {
	return a.Hash == b.Hash && (a.Problem == nil) == (b.Problem == nil)
}

// applyOther writes content that appeared while the outcome of older content was being recorded. It is written whatever
// the status says: two contents within one second of _ts are ordered by nothing, and ours may have come last (rules.md).
// ok is false when the document is finished with, and counted.
func (p *pass) applyOther(ctx context.Context, cur invoice.Document) (now invoice.Document, res result, ok bool, err error) {
	if cur.NeedsVersion {
		if cur, ok, err = p.keepVersion(ctx, cur); err != nil || !ok {
			return cur, res, false, err
		}
		if res = (result{err: cur.Problem}); res.failed() {
			return cur, res, true, nil
		}
	}
	results, _, err := p.apply(ctx, []Item{ItemOf(cur)})
	if err != nil {
		return cur, res, false, err
	}
	return cur, results[0], true, nil
}

// record is one conditional patch, and a second one with the shortest state when the first does not fit into the
// document. It answers the new etag and the state that was recorded.
func (p *pass) record(ctx context.Context, d invoice.Document, s invoice.State) (string, invoice.State, error) {
	etag, err := p.patch(ctx, d, s)
	if fault.Has(err, fault.TooLarge) {
		s = minimal(s)
		etag, err = p.patch(ctx, d, s)
	}
	return etag, s, err
}

func (p *pass) patch(ctx context.Context, d invoice.Document, s invoice.State) (string, error) {
	begin := p.c.o.Now()
	etag, err := p.c.docs.Record(ctx, d.ID, d.ETag, s)
	p.countWrite(p.c.o.Now().Sub(begin))
	return etag, err
}

// readAgain reads a document that changed; ok is false when it is gone or cannot be understood any more, and counted.
func (p *pass) readAgain(ctx context.Context, id string) (d invoice.Document, ok bool, err error) {
	begin := p.c.o.Now()
	raw, err := p.c.docs.Read(ctx, id)
	p.countRead(p.c.o.Now().Sub(begin))
	switch {
	case fault.Has(err, fault.Gone):
		p.count(id, "gone", "")
		return d, false, nil
	case fault.IsDependency(err):
		return d, false, err
	case err == nil:
		if d, err = invoice.Read(raw, p.c.o.Now()); err == nil {
			return d, true, nil
		}
	}
	p.leave(id, err)
	return d, false, nil
}

// cannotRecord handles an outcome that the document did not take (docs/requirements.md R19).
func (p *pass) cannotRecord(d invoice.Document, s invoice.State, err error) error {
	switch {
	case fault.IsDependency(err):
		return err
	case fault.Has(err, fault.Gone):
		p.count(d.ID, "gone", "")
	case fault.Has(err, fault.TooLarge):
		p.count(d.ID, "left", fault.KindOf(err))
		p.c.o.Log.Error().Str("document", d.ID).Str("status", string(s.Status)).Str("outcome", s.Outcome).
			Str("code", fault.CodeOf(err)).
			Msg("MANUAL REVIEW: the document is too large to take even the shortest outcome")
	default:
		p.leave(d.ID, err)
	}
	return nil
}

// leave lets the recovery timer finish a document and says so.
func (p *pass) leave(id string, err error) {
	p.reportResult(resultOf(id, "left", err))
	p.c.o.Log.Error().Str("document", id).Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).
		Msg("the outcome could not be recorded: left to the recovery timer")
}

// keepVersion records the version of one document; keep is false when it is no longer to be taken.
func (p *pass) keepVersion(ctx context.Context, d invoice.Document) (kept invoice.Document, keep bool, err error) {
	for range maxRaces {
		next := p.t.withVersion(d.State, d.Version.US)
		etag, recorded, err := p.record(ctx, d, next)
		if err == nil {
			d.ETag, d.State, d.NeedsVersion = etag, recorded, false
			return d, true, nil
		}
		if !fault.Has(err, fault.Changed) {
			return d, false, p.cannotRecord(d, next, err) // and without a version nothing may be written
		}
		now, ok, err := p.readAgain(ctx, d.ID)
		if err != nil || !ok {
			return d, false, err
		}
		if d = now; !p.eligibility(d) {
			p.count(d.ID, "skipped", "")
			return d, false, nil
		}
		if !d.NeedsVersion {
			return d, true, nil
		}
	}
	p.leave(d.ID, fault.New(fault.Contention, "commit: version", "412", "the document changed %d times while its version was recorded", maxRaces))
	return d, false, nil
}

// needsVersion reports whether a version must be recorded before the document is written. One that cannot be written
// needs none.
func needsVersion(d invoice.Document) bool { return d.NeedsVersion && d.Problem == nil }

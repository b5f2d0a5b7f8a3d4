package commit

import (
	"context"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxRaces bounds how often one document is read again because it changed. One that changes more often is left to the
// recovery timer, which finds it at rest.
const maxRaces = 8

// settle records a document's result. After a 412 it reads the document again, and counts no failure for that. It writes
// changed content first and then records the result of that. The error is of dependency scope.
func (p *pass) settle(ctx context.Context, d invoice.Document, res result) error {
	cur := d // the current document; d has the content of res
	healing := p.heal[d.ID]
	for race := range maxRaces {
		if race > 1 { // time for a lagging replica or another writer
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
		switch eligibility := p.eligibilityOf(now); {
		case eligibility == invoice.NotOurs || eligibility == invoice.NotOffered || eligibility == invoice.UnknownStatus: // another environment's, or set aside by a person (ADR 0005)
			p.count(d.ID, "skipped", "")
			return nil
		case !outdated && now.ETag == cur.ETag: // the 412 proved this state old: a replica lags
			continue
		case now.TS < cur.TS && race < maxRaces/2: // a replica lags; after a clock change this lasts longer
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

// supersededByItself reports whether a line has later content of the same document. The document is then not finished:
// either its snapshot is old, or the container's clock went back.
func supersededByItself(r result) bool {
	for _, row := range r.outcome.Rows {
		if row.Verdict == Superseded && row.By == r.outcome.DocumentID {
			return true
		}
	}
	return false
}

// putAgain reports whether the same content was stored again after this write. Other content may have been there in
// between, and in SQL.
func putAgain(d, now invoice.Document, r result) bool {
	return !r.failed() && now.TS > d.TS && now.State.Status != invoice.Committed
}

// finished counts a document whose status stays. After healing an operator should know about it, above all when it failed:
// the lines may differ from the document.
func (p *pass) finished(cur invoice.Document, res result, healing bool) {
	healing = healing && cur.State.Status == invoice.Committed
	switch {
	case healing && res.failed():
		p.leave(cur.ID, res.err)
		return
	case healing && res.outcome.Verdict == Applied:
		p.c.o.Log.Warn().Str("document", cur.ID).Msg("another writer committed the document; its lines had older content and were written again")
	}
	p.count(cur.ID, "skipped", "")
}

// rewritten counts a committed document that a run rewrote or failed to rewrite. Its state stays true in both cases, so
// nothing is recorded.
func (p *pass) rewritten(cur invoice.Document, res result) {
	switch {
	case !res.failed():
		p.count(cur.ID, string(res.outcome.Verdict), "")
		return
	case fault.KindOf(res.err) == fault.Contention: // a lost race is not final: the batch is offered again
		p.mu.Lock()
		defer p.mu.Unlock()
		p.contended = res.err
		return
	}
	result := resultOf(cur.ID, string(invoice.Failed), res.err)
	result.RetryCount = cur.State.RetryCount
	p.reportResult(result)
	p.c.o.Log.Warn().Str("document", cur.ID).Str("kind", string(result.Kind)).Str("code", result.Code).
		Msg("a committed document could not be written again: it stays committed")
}

// tryRecord records a result for the document's current state. done is false when the document changed again.
func (p *pass) tryRecord(ctx context.Context, d, cur invoice.Document, res result, healing bool) (done bool, err error) {
	if cur.State.Status == invoice.Committed && p.batch.takesOver(invoice.Committed) && (res.failed() || sameContent(d, cur)) {
		p.rewritten(cur, res)
		return true, nil
	}
	proven := false
	if res.failed() {
		res.err = alone(cur.State, res.err)
		proven = isOwn(res.err) && p.proven(ctx, cur)
		if p.eligible(cur) && p.t.exhausted(cur.State, res.err, proven) {
			return p.poison(ctx, cur, res.err)
		}
	}
	next, allowed := p.next(d, cur, res, proven)
	if !allowed && healing && fault.IsDependency(res.err) {
		return true, res.err // its line may have older content, and no other job reads a committed document
	}
	if !allowed {
		p.finished(cur, res, healing)
		return true, nil
	}
	return p.put(ctx, cur, next, res)
}

// proven reports whether others succeeded after the document's last failure.
func (p *pass) proven(ctx context.Context, cur invoice.Document) bool {
	at, known := lastFailure(p.t.begin(cur.State), p.c.o.Location)
	return known && p.c.breaker.Proven(ctx, at)
}

// put records a state. done is false when the document changed again.
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
			Msg("the document was deleted while it was written: its lines keep its content")
	}
	return true, p.cannotRecord(cur, next, err)
}

// next is the state to record for a result, and whether it may replace the current one. A verdict on the document's current
// content may always replace it. Any other result only replaces the state of an eligible document. proven is that of the
// document's last failure.
func (p *pass) next(d, cur invoice.Document, res result, proven bool) (invoice.State, bool) {
	was := cur.State
	if !cur.HasTime && was.Version == 0 {
		was.Version = d.Version.US // the version in the ledger; a later _ts must not give another
	}
	if isOwn(res.err) {
		return p.t.failure(was, res.err, proven), p.eligible(cur)
	}
	if res.failed() {
		return p.t.putOff(was, res.err), p.eligible(cur)
	}
	evident := res.outcome.Verdict == Applied || res.outcome.Verdict == Unchanged
	if was.Status == invoice.Committed {
		return was, false // another writer recorded the same content
	}
	mayChange := was.Status == invoice.RetryScheduled || p.eligible(cur)
	return p.t.committed(was, res.outcome), mayChange || (evident && sameContent(d, cur))
}

// sameContent reports whether two snapshots of a document have the same content for SQL.
func sameContent(a, b invoice.Document) bool {
	return a.Hash == b.Hash && (a.Problem == nil) == (b.Problem == nil)
}

// applyOther writes content that appeared while older content was recorded. It ignores the status: two contents within one
// second of _ts have no order, and the older one may have been written last (docs/rules.md). ok is false when the document
// is finished, and counted.
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

// record patches a document, and again with the minimal state when the first does not fit. It gives the new etag and the
// recorded state.
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

// readAgain reads a document that changed. ok is false when it is gone or unreadable, and counted.
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

// cannotRecord handles an outcome that cannot be recorded (docs/requirements.md R19).
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
			Msg("MANUAL REVIEW: the document is too large even for the minimal outcome")
	default:
		p.leave(d.ID, err)
	}
	return nil
}

// leave counts and logs a document that is left to the recovery timer.
func (p *pass) leave(id string, err error) {
	p.reportResult(resultOf(id, "left", err))
	p.c.o.Log.Error().Str("document", id).Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).
		Msg("the outcome could not be recorded: left to the recovery timer")
}

// keepVersion records the version of one document. keep is false when the document is no longer eligible.
func (p *pass) keepVersion(ctx context.Context, d invoice.Document) (kept invoice.Document, keep bool, err error) {
	for range maxRaces {
		next := p.t.withVersion(d.State, d.Version.US)
		etag, recorded, err := p.record(ctx, d, next)
		if err == nil {
			d.ETag, d.State, d.NeedsVersion = etag, recorded, false
			return d, true, nil
		}
		if !fault.Has(err, fault.Changed) {
			return d, false, p.cannotRecord(d, next, err) // without a version nothing may be written
		}
		now, ok, err := p.readAgain(ctx, d.ID)
		if err != nil || !ok {
			return d, false, err
		}
		if d = now; !p.eligible(d) {
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

// needsVersion reports whether a version must be recorded before the write. A document with a Problem is not written.
func needsVersion(d invoice.Document) bool { return d.NeedsVersion && d.Problem == nil }

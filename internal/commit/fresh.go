package commit

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxAge is the age of an invocation's snapshots at which the documents are read again (docs/requirements.md R17).
const maxAge = 30 * time.Second

// doubtful reports whether a snapshot may differ from its document. Only the feed brings old ones; the other callers have
// just read them. Without an etag no patch could be conditional.
func (p *pass) doubtful(d invoice.Document) bool {
	return (p.batch.Purpose == FromFeed && (p.batch.RetryCount > 0 || d.RewrittenByHost)) || d.ETag == ""
}

// freshen replaces the needed snapshots by a new read of the documents. An old snapshot must not decide (promise G1), and
// the host rewrites texts that look like times. Documents that are gone are done.
func (p *pass) freshen(ctx context.Context, docs []invoice.Document, needed func(invoice.Document) bool) ([]invoice.Document, error) {
	var ids []string
	again := make([]bool, len(docs))
	for i, d := range docs {
		if again[i] = needed(d) && p.eligible(d); again[i] {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	fresh, err := p.readMany(ctx, ids)
	if err != nil {
		return docs, err
	}
	kept := docs[:0]
	for i, d := range docs {
		if !again[i] {
			kept = append(kept, d)
			continue
		}
		now, found := fresh[d.ID]
		if !found || now.TS < d.TS {
			now, found, err = p.readSurely(ctx, d)
			if fault.IsDependency(err) {
				return docs, err
			}
			if err != nil { // only this document fails: the others continue
				p.leave(d.ID, err)
				continue
			}
		}
		switch {
		case found:
			if now.State.Status == invoice.Committed && now.Problem == nil && d.Problem == nil && !sameContent(d, now) && now.TS-d.TS <= healing {
				p.heal[d.ID] = true
			}
			kept = append(kept, now)
		case d.IDLooksLikeTime:
			p.count(d.ID, "left", fault.Document)
			p.c.o.Log.Error().Str("document", d.ID).Str("code", "id_looks_like_time").
				Msg("no document has this id, which the host may have rewritten: nothing was written, and only the recovery timer can find the document")
		default:
			p.count(d.ID, "gone", "")
		}
	}
	return kept, nil
}

func (p *pass) readMany(ctx context.Context, ids []string) (map[string]invoice.Document, error) {
	begin := p.c.o.Now()
	raws, err := p.c.docs.ReadMany(ctx, ids)
	p.countRead(p.c.o.Now().Sub(begin))
	if err != nil {
		return nil, asDependency(err)
	}
	fresh := make(map[string]invoice.Document, len(raws))
	for _, raw := range raws {
		d, err := invoice.Read(raw, p.c.o.Now())
		if err != nil {
			return nil, asDependency(err)
		}
		fresh[d.ID] = d
	}
	return fresh, nil
}

// mostLagging is the number of offers of a batch that may end because reads lag: a minute at the host's pace. A difference
// after that is not a lag but the container's clock, and the feed must not wait for ever.
const mostLagging = 6

// healing is the largest difference in seconds between the _ts of a snapshot and of the committed state that is healed. Two
// contents of one second and the patch of one of them are that close. Beyond it, _ts orders them.
const healing = 60

// settled is the age from which every replica must show a snapshot. Replicas lag by far less.
const settled = 10 * time.Second

// readSurely reads a document again whose read showed less than its snapshot. A replica may lag behind the change feed, and
// a document dropped for that would be lost. A read older than the snapshot is never accepted. Absence is accepted only for
// a document that every replica must have; until then the batch is offered again.
func (p *pass) readSurely(ctx context.Context, d invoice.Document) (now invoice.Document, found bool, err error) {
	begin := p.c.o.Now()
	raw, err := p.c.docs.Read(ctx, d.ID)
	p.countRead(p.c.o.Now().Sub(begin))
	mayLag := p.batch.RetryCount <= mostLagging
	switch {
	case fault.Has(err, fault.Gone):
		if mayLag && p.c.o.Now().Sub(time.Unix(d.TS, 0)) < settled && !d.IDLooksLikeTime {
			return d, false, fault.New(fault.Infrastructure, "commit: read", "not_caught_up", "document %s is on the change feed and cannot be read yet", d.ID)
		}
		return d, false, nil
	case err != nil:
		return d, false, err
	}
	if now, err = invoice.Read(raw, p.c.o.Now()); err != nil {
		return d, false, err
	}
	if mayLag && now.TS < d.TS {
		return d, false, fault.New(fault.Infrastructure, "commit: read", "not_caught_up", "document %s reads older than the change feed showed it", d.ID)
	}
	return now, true, nil
}

// asDependency gives an error that stops a pass the dependency scope. An error of document scope here failed the whole
// read, and blames no document.
func asDependency(err error) error {
	if fault.IsDependency(err) {
		return err
	}
	return fault.Wrap(fault.Infrastructure, "commit: read", fault.CodeOf(err), "the documents could not be read again", err)
}

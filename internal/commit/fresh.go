package commit

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxAge is how long an invocation may hold its snapshots before it reads the documents again (docs/requirements.md R17).
const maxAge = 30 * time.Second

// doubtful reports whether a snapshot may say something else than the document does. What others than the feed bring was read a
// moment ago; and without an etag no patch could be conditional.
func (p *pass) doubtful(d invoice.Document) bool {
	return (p.batch.Purpose == FromFeed && (p.batch.RetryCount > 0 || d.RewrittenByHost)) || d.ETag == ""
}

// freshen reads the documents that need it again and works on what they are now: an old snapshot must not decide
// (promise G1), and the host re-prints texts that look like times. Documents that are gone are done.
func (p *pass) freshen(ctx context.Context, docs []invoice.Document, needed func(invoice.Document) bool) ([]invoice.Document, error) {
	var ids []string
	again := make([]bool, len(docs))
	for i, d := range docs {
		if again[i] = needed(d) && p.eligibility(d); again[i] {
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
			if err != nil { // this one's own trouble: it must not hold the others
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
				Msg("no document has this id, which the host may have re-printed: nothing was written, and only the recovery timer can find the document")
		default:
			p.count(d.ID, "gone", "")
		}
	}
	return kept, nil
}

// readMany reads documents by id, in one call of the port.
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

// mostLagging is how many offers of a batch may end because reads lag: a minute at the host's pace. What is still shown then
// is no lag (the container's clock went back, or differs from ours), and the feed must not wait for it for ever.
const mostLagging = 6

// healing is how many seconds of _ts may lie between a snapshot and the committed state that is healed. Two contents of one
// second and the patch that committed one of them are that close; further apart _ts orders them, and nothing is to heal.
const healing = 60

// settled is the age from which a snapshot must be visible to every read. Replicas lag by far less.
const settled = 10 * time.Second

// readSurely looks again when a read showed less than the snapshot did: a replica may lag behind the change feed, and a
// document that is dropped on its word would be lost. What is older than its snapshot is never believed, absence only of a
// document that every replica must know by now; until then the batch is offered again.
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

// asDependency makes sure that what stops a pass is nobody's fault among the documents: an error of another scope here
// means that the whole read failed, and the batch must come again.
func asDependency(err error) error {
	if fault.IsDependency(err) {
		return err
	}
	return fault.Wrap(fault.Infrastructure, "commit: read", fault.CodeOf(err), "the documents could not be read again", err)
}

package commit

import (
	"context"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// commitAll commits documents in requests of bounded size, one after the other. It records the outcomes of each request
// before the next one. A dependency that fails therefore costs only the current request. After an error rest has the
// documents without a result.
func (p *pass) commitAll(ctx context.Context, docs []invoice.Document) (rest []invoice.Document, err error) {
	docs = p.choose(docs)
	for len(docs) > 0 {
		if p.undecided {
			return nil, p.putOffAll(ctx, docs, codeUndecided, fault.Contention, "put off: the time for finding bad documents was over before it was sent")
		}
		limit, err := p.c.breaker.MaxDocuments(ctx)
		if err != nil {
			p.sqlAway = true
			return docs, err
		}
		n := planDocuments(docs, min(limit, p.c.o.MaxDocuments), p.c.o.MaxRows)[0][1]
		chunk := slices.Clone(docs[:n])
		if p.c.o.Now().Sub(p.batch.Received) > maxAge {
			fresh, err := p.freshen(ctx, chunk, func(invoice.Document) bool { return true })
			if err != nil {
				return docs, err
			}
			chunk = p.choose(fresh)
		}
		if undone, err := p.commitChunk(ctx, chunk); err != nil {
			return append(undone, docs[n:]...), err
		}
		docs = docs[n:]
	}
	return nil, nil
}

// choose returns the eligible documents, and counts the others.
func (p *pass) choose(docs []invoice.Document) []invoice.Document {
	var taken []invoice.Document
	for _, d := range docs {
		switch p.eligibilityOf(d) {
		case invoice.Eligible:
			taken = append(taken, d)
		case invoice.Done:
			if p.heal[d.ID] {
				taken = append(taken, d)
				continue
			}
			p.count(d.ID, "skipped", "")
		case invoice.NotOffered:
			p.count(d.ID, string(invoice.NotOffered), "")
		case invoice.UnknownStatus:
			p.count(d.ID, "skipped", "")
			p.c.o.Log.Error().Str("document", d.ID).Str("status", fault.Truncate(d.State.StatusFound, fault.MaxForeign)).
				Msg("sql_writer.status is unknown: the document is not changed")
		default:
			p.count(d.ID, "skipped", "")
		}
	}
	return taken
}

// commitChunk writes one request's documents and records the results. After an error undone has the documents without a
// result.
func (p *pass) commitChunk(ctx context.Context, docs []invoice.Document) (undone []invoice.Document, err error) {
	kept, err := p.keepVersions(ctx, slices.Clone(docs))
	if err != nil {
		return docs, err
	}
	items, at := make([]Item, 0, len(kept)), make([]int, 0, len(kept))
	var known []verdict
	for i, d := range kept {
		if d.Problem == nil {
			items, at = append(items, ItemOf(d)), append(at, i)
		}
	}
	results, done, err := p.apply(ctx, items)
	for _, d := range kept {
		switch {
		case d.Problem == nil:
		case err == nil:
			known = append(known, verdict{d, result{err: d.Problem}})
		default: // while SQL fails these errors are not recorded: the next try finds them again
			undone = append(undone, d)
		}
	}
	for j, i := range at {
		if done[j] {
			known = append(known, verdict{kept[i], results[j]})
		} else {
			undone = append(undone, kept[i])
		}
	}
	p.c.breaker.Note(ctx, breaker.FeedLag{}) // an applied document proves the failures beside it
	if recordErr := p.recordAll(ctx, known); recordErr != nil {
		return undone, recordErr
	}
	p.sqlAway = err != nil
	return undone, err
}

// leaveToOthers puts documents off without a wait, because only this instance cannot reach SQL. The recovery timer of
// another instance takes them.
func (p *pass) leaveToOthers(ctx context.Context, docs []invoice.Document) error {
	docs, err := p.freshen(ctx, docs, p.doubtful)
	if err != nil {
		return err
	}
	return p.putOffAll(ctx, docs, codeCutOff, fault.Infrastructure, "this instance cannot reach SQL while other instances write: left to them")
}

// putOffAll puts documents off for the recovery timer. It counts no failure.
func (p *pass) putOffAll(ctx context.Context, docs []invoice.Document, code string, kind fault.Kind, why string) error {
	cause := fault.New(kind, "commit: apply", code, "%s", why)
	var all []verdict
	for _, d := range p.choose(docs) {
		all = append(all, verdict{d, result{err: cause}})
	}
	return p.recordAll(ctx, all)
}

// keepVersions records the version of documents whose id has no time, before the first write. A later snapshot has another
// _ts and would otherwise get another version.
func (p *pass) keepVersions(ctx context.Context, docs []invoice.Document) ([]invoice.Document, error) {
	keep := make([]bool, len(docs))
	var group errgroup.Group
	group.SetLimit(p.c.o.Parallel)
	for i, d := range docs {
		if !needsVersion(d) {
			keep[i] = true
			continue
		}
		group.Go(func() (err error) {
			defer p.guard(d.ID)
			docs[i], keep[i], err = p.keepVersion(ctx, d)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	kept := docs[:0]
	for i, d := range docs {
		if keep[i] {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// recordAll records all verdicts with bounded concurrency, and returns the first error of dependency scope.
func (p *pass) recordAll(ctx context.Context, all []verdict) error {
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(p.c.o.Parallel)
	for _, v := range all {
		group.Go(func() error {
			defer p.guard(v.doc.ID)
			return p.settle(ctx, v.doc, v.res)
		})
	}
	return group.Wait()
}

// guard recovers a panic that one document caused in a goroutine. Otherwise the process would end, with every other
// invocation. The document is left to the recovery timer.
func (p *pass) guard(id string) {
	if r := recover(); r != nil {
		p.count(id, "left", fault.Internal)
		p.c.o.Log.Error().Str("document", id).Str("kind", string(fault.Internal)).Str("panic", fault.Panic("", r).Reason).Bytes("stack", debug.Stack()).
			Msg("a panic while a document was recorded: left to the recovery timer")
	}
}

// panicked turns a panic into an internal error of the document.
func (p *pass) panicked(r any) error {
	err := fault.Panic("commit: apply", r)
	p.c.o.Log.Error().Str("kind", string(err.Kind)).Str("panic", err.Reason).Bytes("stack", debug.Stack()).Msg("a panic in a request")
	return err
}

package writer

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// commitAll takes the documents in requests of bounded size, one after the other, and records each request's outcomes
// before the next: a dependency that fails half-way costs what is under way and nothing that is done.
func (p *pass) commitAll(ctx context.Context, docs []invoice.Document) error {
	docs = p.choose(docs)
	for len(docs) > 0 {
		adm, err := p.admit(ctx, docs)
		if err != nil {
			return err
		}
		if adm.pending() {
			slices.SortStableFunc(docs, func(a, b invoice.Document) int { return p.worth(a, adm) - p.worth(b, adm) })
		}
		n := planDocuments(docs, p.limit(), p.c.o.MaxRows)[0][1]
		chunk := slices.Clone(docs[:n])
		docs = docs[n:]
		p.more = len(docs) > 0
		if p.c.o.Now().Sub(p.batch.Received) > maxAge {
			fresh, err := p.freshen(ctx, chunk, func(invoice.Document) bool { return true })
			if err != nil {
				return err
			}
			chunk = p.choose(fresh)
		}
		if err := p.commitChunk(ctx, chunk); err != nil {
			return err
		}
	}
	return p.recordHeld(ctx) // nothing was written since, and not enough failed to blame more than the documents
}

// admit asks the gate for leave. A probe that was answered and decided nothing goes on with the next document.
func (p *pass) admit(ctx context.Context, docs []invoice.Document) (*Admission, error) {
	if adm := p.admission(); adm != nil && adm.pending() {
		return adm, nil
	}
	if p.c.gate.othersFirst() && !slices.ContainsFunc(docs, func(d invoice.Document) bool { return !p.c.gate.tried(d.ID) }) {
		return nil, p.c.gate.refusal()
	}
	adm, err := p.c.gate.Admit(ctx, p.heartbeat)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adm = adm
	return adm, nil
}

// heartbeat asks whether the database does what this pass needs of it. A preview needs no right to write.
func (p *pass) heartbeat(ctx context.Context) error {
	if p.mode == Preview {
		_, err := p.c.sink.Apply(ctx, nil, Preview)
		return err
	}
	return p.c.sink.Heartbeat(ctx, p.c.o.SysName)
}

// worth orders the documents for a probe: what can be written and, for a systemic gate, was not seen to fail comes first.
func (p *pass) worth(d invoice.Document, adm *Admission) int {
	worth := 0
	if d.Problem != nil {
		worth = 2
	}
	if (adm.Systemic && p.c.gate.tried(d.ID)) || p.c.gate.failedProbe(d.ID) {
		worth++
	}
	return worth
}

// choose leaves the documents whose turn it is, and counts the others.
func (p *pass) choose(docs []invoice.Document) []invoice.Document {
	var taken []invoice.Document
	for _, d := range docs {
		switch p.turnOf(d) {
		case invoice.Take:
			taken = append(taken, d)
		case invoice.Done:
			if p.heal[d.ID] {
				taken = append(taken, d)
				continue
			}
			p.count(d.ID, "skipped", "")
		case invoice.UnknownStatus:
			p.count(d.ID, "skipped", "")
			p.c.o.Log.Error().Str("document", d.ID).Str("status", clipStatus(d.State.StatusFound)).
				Msg("sql_writer.status is none that we know: the document is left alone")
		default:
			p.count(d.ID, "skipped", "")
		}
	}
	return taken
}

// commitChunk writes one request's documents and records what became of each.
func (p *pass) commitChunk(ctx context.Context, docs []invoice.Document) error {
	docs, err := p.keepVersions(ctx, docs)
	if err != nil {
		return err
	}
	items, at := make([]Item, 0, len(docs)), make([]int, 0, len(docs))
	for i, d := range docs {
		if d.Problem == nil {
			items, at = append(items, ItemOf(d)), append(at, i)
		}
	}
	results, done, err := p.apply(ctx, items)
	all := make(map[int]result, len(docs))
	applied := false
	for j, i := range at {
		if done[j] {
			all[i] = results[j]
			applied = applied || results[j].outcome.Verdict == Applied
		}
	}
	if err == nil { // while SQL is unwell nobody is told of errors: a redelivery will find them again
		err = p.problems(ctx, docs, all, applied)
	}
	if err == nil {
		err = p.probed(ctx, docs, all, len(items))
	}
	if told := p.tell(ctx, docs, all, applied); told != nil {
		return told
	}
	return err
}

// problems adds the documents that cannot be written as they are. A build that misreads every document looks like many bad
// ones, so they are under suspicion like those that SQL refuses.
func (p *pass) problems(ctx context.Context, docs []invoice.Document, all map[int]result, applied bool) error {
	for i, d := range docs {
		if d.Problem == nil {
			continue
		}
		known, enough := applied, false
		if !applied {
			known, enough = p.suspect(d.ID, d.Problem)
		}
		all[i] = result{err: d.Problem, contrasted: known}
		if enough && !p.more {
			return p.c.gate.systemic(ctx, p.admission(), fault.CodeOf(d.Problem))
		}
	}
	return nil
}

// probed ends a probe that no request has ended: a systemic one in which nothing was written has failed again, another one
// that had nothing to write was answered by the neutral statement.
func (p *pass) probed(ctx context.Context, docs []invoice.Document, all map[int]result, items int) error {
	adm := p.admission()
	switch {
	case !adm.pending():
		return nil
	case !adm.Systemic:
		if items == 0 {
			p.c.gate.answered(ctx, adm, false)
		}
		return nil
	}
	for i := range docs {
		if r, ok := all[i]; ok && own(r) {
			return p.c.gate.systemic(ctx, adm, fault.CodeOf(r.err))
		}
	}
	return p.c.gate.refusal()
}

// own reports whether a result is a failure that spends the document's own budget.
func own(r result) bool {
	return r.failed() && fault.ScopeOf(fault.KindOf(r.err)) == fault.ScopeDocument
}

// suspect notes a document that failed by itself. known and enough: see Gate.suspect.
func (p *pass) suspect(id string, err error) (known, enough bool) {
	if p.mode == Preview || !own(result{err: err}) {
		return false, false
	}
	return p.c.gate.suspect(fault.CodeOf(err), id)
}

// tell records the results. Failures are held back while nothing was applied after them: the next requests of the batch
// decide whether the documents are to blame.
func (p *pass) tell(ctx context.Context, docs []invoice.Document, all map[int]result, applied bool) error {
	var now []verdict
	if applied {
		now, p.held = p.held, nil
	}
	for i, d := range docs {
		r, ok := all[i]
		switch {
		case !ok:
		case own(r) && !r.contrasted:
			p.held = append(p.held, verdict{d, r})
		default:
			now = append(now, verdict{d, r})
		}
	}
	return p.recordAll(ctx, now)
}

// recordHeld records what was held back to the end.
func (p *pass) recordHeld(ctx context.Context) error {
	held := p.held
	p.held = nil
	return p.recordAll(ctx, held)
}

// keepVersions records the version of documents whose id has no time, before they are first written: a later snapshot
// has another _ts and would otherwise be another version.
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

// recordAll records verdicts with bounded concurrency, every one of them even when some fail, and answers the first
// error of dependency scope.
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

// guard ends a panic that one document caused in a goroutine of ours: nobody above could, and the process would die with
// every other invocation. The document is left to the recovery timer.
func (p *pass) guard(id string) {
	if r := recover(); r != nil {
		p.count(id, "left", fault.Internal)
		p.c.o.Log.Error().Str("document", id).Str("kind", string(fault.Internal)).Str("panic", panicText(r)).Bytes("stack", debug.Stack()).
			Msg("a panic while a document was recorded: left to the recovery timer")
	}
}

// codePanic is the code of a failure that was a panic of ours.
const codePanic = "panic"

// panicked is a panic as an error: ours, and the document's that brings it about.
func (p *pass) panicked(r any) error {
	what := panicText(r)
	p.c.o.Log.Error().Str("kind", string(fault.Internal)).Str("panic", what).Bytes("stack", debug.Stack()).Msg("a panic in a request")
	return fault.New(fault.Internal, "writer: apply", codePanic, "a panic of ours: %s", what)
}

// panicText says what a panic was, without content.
func panicText(r any) string {
	if e, ok := r.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", r) // its text may hold content
}

package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Compare orders keys as Findings.List does.
func (k Key) Compare(o Key) int {
	if c := cmp.Or(cmp.Compare(k.Class, o.Class), cmp.Compare(k.Line, o.Line)); c != 0 || k.Document == o.Document {
		return c
	}
	return cmp.Compare(run.DocumentKey(k.Document), run.DocumentKey(o.Document))
}

// take counts what fits, and gives the rest as suspects. These are counted when they are looked at again.
func (l *look) take(ctx context.Context, all []verdict) stepped {
	done := stepped{counts: map[Class]int{}}
	for _, v := range all {
		if isFinding(v.class) {
			done.put = append(done.put, v.seen)
			continue
		}
		l.tellImpossible(ctx, v)
		done.counts[v.class]++
	}
	return done
}

// documents compares the next documents that changed since an hour before the last comparison began; all for a whole
// one and for the first; only those that the comparison names, if it names some.
func (w *oneStep) documents(ctx context.Context) (stepped, error) {
	at, err := w.window(ctx)
	if err != nil {
		return stepped{}, err
	}
	docs, next, err := w.page(ctx, at)
	if fault.CodeOf(err) == "continuation" && at.Again < restarts {
		taken := map[Class]int{}
		for class, n := range at.Counted {
			taken[class] = -n
		}
		return stepped{next: &position{From: at.From, To: at.To, Again: at.Again + 1}, counts: taken}, nil
	}
	if err != nil {
		return stepped{}, err
	}
	all, err := w.judgeDocuments(ctx, docs)
	if err != nil {
		return stepped{}, err
	}
	if w.names() { // the pass over the ledger compares none
		lines, err := w.judgeLines(ctx, linesOf(docs))
		if err != nil {
			return stepped{}, err
		}
		all = append(all,
			slices.DeleteFunc(lines, func(v verdict) bool { return !slices.Contains(w.IDs, v.seen.Document) })...)
		left, err := w.judgeAllLeft(ctx, linesOf(docs), true)
		if err != nil {
			return stepped{}, err
		}
		all = append(all, left...)
	}
	done := w.take(ctx, all)
	if done.next = next; next != nil {
		next.Counted = maps.Clone(done.counts)
		for class, n := range at.Counted {
			next.Counted[class] += n
		}
	}
	return done, nil
}

// window is the position with the bounds of _ts.
func (w *oneStep) window(ctx context.Context) (position, error) {
	at := w.at
	if w.names() || at.To > 0 {
		return at, nil
	}
	at.To = w.BegunAt.Unix()
	if w.Whole {
		return at, nil
	}
	var err error
	at.From, err = w.since(ctx)
	return at, err
}

// since is the _ts from which on documents count as changed since the comparison before; 0 for the first one.
func (w *oneStep) since(ctx context.Context) (from int64, err error) {
	last, compared, err := w.p.Findings.Last(ctx)
	if compared {
		from = max(0, last.BegunAt.Add(-overlap).Unix())
	}
	return from, err
}

// page reads the next documents of the pass, and gives the position after them; nil at the end.
func (w *oneStep) page(ctx context.Context, at position) (docs []invoice.Document, next *position, err error) {
	if w.names() {
		begin := min(at.Index, len(w.IDs))
		end := min(begin+documentsAStep, len(w.IDs))
		if end < len(w.IDs) {
			next = &position{Index: end}
		}
		found, err := w.read(ctx, w.IDs[begin:end])
		return slices.Collect(maps.Values(found)), next, err
	}
	found, err := w.p.Finder.Find(ctx, commit.Query{
		SysName: w.o.SysName, From: at.From, To: at.To, Members: w.Reader.Mapping.Members(), Size: documentsAStep,
	}, at.Continuation)
	if err != nil {
		return nil, nil, err
	}
	for _, raw := range found.Documents {
		if doc, ok := w.document(raw); ok {
			docs = append(docs, doc)
		}
	}
	if found.Next != "" {
		next = &position{From: at.From, To: at.To, Again: at.Again, Continuation: found.Next}
	}
	return docs, next, w.pace.Spend(ctx, found.Charge)
}

// rows compares the next lines of the ledger with both tables. Those that differ, and those that their document
// may not name any more, are looked at with their documents.
func (w *oneStep) rows(ctx context.Context) (stepped, error) {
	if w.names() {
		return stepped{}, nil
	}
	scanned, dropped, err := w.scan(ctx, MaxScan)
	// a step that reads more documents may not end within a tick, and then none does
	if len(scanned.Differ)+len(dropped) > documentsAStep {
		scanned, dropped, err = w.scan(ctx, documentsAStep)
	}
	if err != nil {
		return stepped{}, err
	}
	all, err := w.judgeLines(ctx, scanned.Differ)
	if err != nil {
		return stepped{}, err
	}
	left, err := w.judgeAllLeft(ctx, dropped, false)
	if err != nil {
		return stepped{}, err
	}
	all = append(all, left...)
	done := w.take(ctx, all)
	done.counts[Consistent] += scanned.Same
	done.counts[Reviewed] += scanned.Reviewed
	for version, n := range scanned.NotComparable {
		if done.counts[NotComparable] += n; version != 0 {
			done.counts[notComparableOf(version)] += n
		}
	}
	done.counts[Archived] += scanned.Archived
	if scanned.More {
		done.next = &position{After: scanned.Last}
	}
	return done, nil
}

// scan reads the next lines of the ledger. dropped are those that their document may not name any more.
func (w *oneStep) scan(ctx context.Context, limit int) (scanned Scanned, dropped []int64, err error) {
	if scanned, err = w.p.Rows.Scan(ctx, w.at.After, limit); err == nil {
		dropped, err = w.droppedLines(ctx, scanned.Documents)
	}
	return scanned, dropped, err
}

// suspects looks again at the next suspects and findings, a quarter of an hour after the first look: of the documents
// that the comparison names, if it names some, and of their lines that others have which do not name them.
func (w *oneStep) suspects(ctx context.Context) (stepped, error) {
	known, err := w.p.Findings.List(ctx, Query{Suspects: true}, w.at.Key, findingsAStep)
	switch begins := time.Unix(w.at.Looked, 0).Add(settled); {
	case err != nil:
		return stepped{}, err
	case len(known) == 0:
		return stepped{}, nil
	case w.at.Looked == 0:
		return stepped{next: &position{Looked: w.ReadAt.Unix() + 1}, wait: settled}, nil
	case w.ReadAt.Before(begins):
		return stepped{next: &w.at, wait: begins.Sub(w.ReadAt)}, nil
	}
	var next *position
	if len(known) == findingsAStep {
		next = &position{Key: &known[len(known)-1].Key, Looked: w.at.Looked}
	}
	// the second look saw it first
	known = slices.DeleteFunc(known, func(f Finding) bool { return !f.Sure && f.LastSeen.Unix() > w.at.Looked })
	if w.names() {
		docs, err := w.read(ctx, w.IDs)
		if err != nil {
			return stepped{}, err
		}
		lines := linesOf(slices.Collect(maps.Values(docs)))
		known = slices.DeleteFunc(known, func(f Finding) bool {
			return !slices.Contains(w.IDs, f.Document) && (!f.Class.ofLeft() || !slices.Contains(lines, f.Line))
		})
	}
	done, err := w.again(ctx, known)
	done.next = next
	return done, err
}

// mend starts the run of the night that writes again what nobody edited.
func (w *oneStep) mend(ctx context.Context) (stepped, error) {
	if !w.Night {
		return stepped{}, nil
	}
	return stepped{}, w.p.Mend(ctx, w.ID)
}

// clock writes a time for people.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// seconds writes a _ts for people.
func seconds(ts int64) string { return clock(time.Unix(ts, 0)) }

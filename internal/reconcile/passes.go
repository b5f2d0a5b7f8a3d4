package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// compare orders keys as Findings.List does.
func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Class, o.Class), cmp.Compare(k.Line, o.Line), cmp.Compare(run.DocumentKey(k.Document), run.DocumentKey(o.Document)))
}

// findings looks again at open findings, then at accepted ones. Those that are true are saved as seen, the others are gone.
func (w *work) findings(ctx context.Context) (stepped, error) {
	at := w.at
	if at.State == "" {
		at.State = Open
	}
	known, err := w.p.Findings.List(ctx, Query{State: at.State}, at.Key, findingsAStep)
	if err != nil {
		return stepped{}, err
	}
	l, err := w.look(ctx)
	if err != nil {
		return stepped{}, err
	}
	keys := make([]Key, 0, len(known))
	for _, f := range known {
		if !w.names() || slices.Contains(w.filter.IDs, f.Document) {
			keys = append(keys, f.Key)
		}
	}
	if err := l.again(ctx, keys); err != nil {
		return stepped{}, err
	}
	var gone []Key
	for _, key := range keys {
		if _, is := l.seen[key]; !is && l.decided(key) {
			gone = append(gone, key)
		}
	}
	seen := slices.SortedFunc(maps.Values(l.seen), func(a, b Seen) int { return a.compare(b.Key) })
	_, closed, err := w.p.Findings.Save(ctx, w.run.ID, seen, gone)
	if err != nil {
		return stepped{}, err
	}
	done := stepped{counts: map[Class]int{GoneNow: closed}}
	switch {
	case len(known) == findingsAStep:
		done.next = &position{State: at.State, Key: &known[len(known)-1].Key}
	case at.State == Open:
		done.next = &position{State: Accepted}
	}
	return done, nil
}

// again looks at what findings are about, by the functions of the passes that found them.
func (l *look) again(ctx context.Context, keys []Key) error {
	var lines []int64
	var documents []string
	var evidence []Key
	locks := false
	for _, key := range keys {
		switch key.Class {
		case RowMissing, TrackingMissing, Edited:
			lines = append(lines, key.Line)
		case LeftBehind:
			locks = true
		case EvidenceWithoutFailed:
			evidence = append(evidence, key)
		default:
			documents = append(documents, key.Document)
		}
	}
	slices.Sort(lines)
	if err := l.lines(ctx, slices.Compact(lines)); err != nil {
		return err
	}
	slices.Sort(documents)
	docs, err := l.readAgain(ctx, slices.Compact(documents))
	if err != nil {
		return err
	}
	if err := l.documents(ctx, docs); err != nil {
		return err
	}
	var episodes []Episode
	for _, key := range evidence {
		d := invoice.Document{ID: key.Document, Main: key.Line, Version: invoice.Version{Key: invoice.Key(key.Document)}}
		newest, there, err := l.p.Evidence.Newest(ctx, d)
		if err != nil {
			return err
		}
		if there {
			episodes = append(episodes, newest)
		}
	}
	if err := l.episodes(ctx, episodes); err != nil || !locks {
		return err
	}
	return l.locks(ctx)
}

// decided reports whether a finding that was looked at again and not seen is gone. While the flow does not run, nobody knows what has
// waited for too long.
func (l *look) decided(key Key) bool {
	if key.Class == PendingTooLong && (l.FlowSince.IsZero() || l.Now.Sub(l.FlowSince) < TooLong) {
		return false
	}
	return !l.undecidedLines[key.Line] && !l.undecidedDocuments[key.Document]
}

// rows compares the next lines of the ledger with both tables. Only those that differ are looked at with their documents.
func (w *work) rows(ctx context.Context) (stepped, error) {
	if w.names() {
		return stepped{}, nil
	}
	scanned, err := w.p.Rows.Scan(ctx, w.at.After, MaxScan)
	if err != nil {
		return stepped{}, err
	}
	l, err := w.look(ctx)
	if err != nil {
		return stepped{}, err
	}
	if err := l.lines(ctx, scanned.Differ); err != nil {
		return stepped{}, err
	}
	if err := w.save(ctx, l.seen); err != nil {
		return stepped{}, err
	}
	l.counts[Consistent] += scanned.Same
	l.counts[Reviewed] += scanned.Reviewed
	l.counts[NotComparable] += scanned.NotComparable
	done := stepped{counts: l.counts}
	if scanned.More {
		done.next = &position{After: scanned.Last}
	}
	return done, nil
}

// documents compares the next documents that changed since three hours before the last comparison began; all with Filter.Whole and in the
// first comparison; only those that the run names, if it names some.
func (w *work) documents(ctx context.Context) (stepped, error) {
	at, err := w.window(ctx)
	if err != nil {
		return stepped{}, err
	}
	l, err := w.look(ctx)
	if err != nil {
		return stepped{}, err
	}
	docs, next, err := w.page(ctx, l, at)
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
	if err := l.documents(ctx, docs); err != nil {
		return stepped{}, err
	}
	if w.names() { // no pass over rows has looked at their lines
		if err := l.lines(ctx, linesOf(docs)); err != nil {
			return stepped{}, err
		}
	}
	if err := w.save(ctx, l.seen); err != nil {
		return stepped{}, err
	}
	if next != nil {
		next.Counted = maps.Clone(at.Counted)
		if next.Counted == nil {
			next.Counted = map[Class]int{}
		}
		for class, n := range l.counts {
			next.Counted[class] += n
		}
	}
	return stepped{next: next, counts: l.counts}, nil
}

// window is the position with the bounds of _ts.
func (w *work) window(ctx context.Context) (position, error) {
	at := w.at
	if w.names() || at.To > 0 {
		return at, nil
	}
	at.To = w.run.StartedAt.Unix()
	if w.filter.Whole {
		return at, nil
	}
	_, began, compared, err := w.p.Findings.LastCompleted(ctx, w.run.Kind)
	if compared {
		at.From = max(0, began.Add(-overlap).Unix())
	}
	return at, err
}

// page reads the next documents of the pass, and gives the position after them; nil at the end.
func (w *work) page(ctx context.Context, l *look, at position) (docs []snapshot, next *position, err error) {
	if w.names() {
		begin := min(at.Index, len(w.filter.IDs))
		end := min(begin+documentsAStep, len(w.filter.IDs))
		if end < len(w.filter.IDs) {
			next = &position{Index: end}
		}
		docs, err = l.readAgain(ctx, w.filter.IDs[begin:end])
		return docs, next, err
	}
	raws, continuation, charge, err := w.p.Documents.Changed(ctx, at.From, at.To, documentsAStep, at.Continuation)
	if err != nil {
		return nil, nil, err
	}
	for _, raw := range raws {
		if s, ok := l.snapshotOf(raw); ok {
			docs = append(docs, s)
		}
	}
	if continuation != "" {
		next = &position{From: at.From, To: at.To, Again: at.Again, Continuation: continuation}
	}
	return docs, next, w.pace.Spend(ctx, charge)
}

// linesOf lists the lines of documents.
func linesOf(docs []snapshot) []int64 {
	var ids []int64
	for _, s := range docs {
		if s.doc.Main > 0 {
			ids = append(ids, s.doc.Main)
		}
		ids = append(ids, s.doc.Duplicates...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// evidence compares the newest episodes with their documents.
func (w *work) evidence(ctx context.Context) (stepped, error) {
	if w.names() {
		return stepped{}, nil
	}
	page, next, err := w.p.Evidence.Episodes(ctx, w.at.Continuation)
	if err != nil {
		return stepped{}, err
	}
	l, err := w.look(ctx)
	if err != nil {
		return stepped{}, err
	}
	if err := l.episodes(ctx, page); err != nil {
		return stepped{}, err
	}
	if err := w.save(ctx, l.seen); err != nil {
		return stepped{}, err
	}
	done := stepped{counts: l.counts}
	if next != "" {
		done.next = &position{Continuation: next}
	}
	return done, nil
}

// leases looks for locks that a start of the host left behind.
func (w *work) leases(ctx context.Context) (stepped, error) {
	if w.names() {
		return stepped{}, nil
	}
	l, err := w.look(ctx)
	if err != nil {
		return stepped{}, err
	}
	if err := l.locks(ctx); err != nil {
		return stepped{}, err
	}
	return stepped{counts: l.counts}, w.save(ctx, l.seen)
}

func (l *look) locks(ctx context.Context) error {
	locks, err := l.p.Leases.Locks(ctx)
	for _, lock := range locks {
		if l.Now.Sub(lock.At) <= leftBehindAfter {
			continue
		}
		key := Key{Class: LeftBehind, Document: lock.ID}
		l.counts[LeftBehind]++
		l.seen[key] = Seen{Key: key, Detail: "written at " + clock(lock.At)}
	}
	return err
}

// ledger counts the lines whose document does not exist any more. Only a comparison of everything does.
func (w *work) ledger(ctx context.Context) (stepped, error) {
	if !w.filter.Whole || w.names() {
		return stepped{}, nil
	}
	page, err := w.p.Rows.Names(ctx, w.at.After, MaxScan)
	if err != nil {
		return stepped{}, err
	}
	l := look{Reconcile: w.Reconcile, Circumstances: Circumstances{Now: w.o.Now()}}
	var ids []string
	for _, line := range page.Lines {
		ids = append(ids, line.DocumentID)
	}
	slices.Sort(ids)
	heads, err := l.heads(ctx, slices.Compact(ids))
	if err != nil {
		return stepped{}, err
	}
	done := stepped{counts: map[Class]int{}}
	for _, line := range page.Lines {
		if _, there := heads[line.DocumentID]; !there {
			done.counts[DocumentGone]++
		}
	}
	if page.More {
		done.next = &position{After: page.Last}
	}
	return done, nil
}

// clock writes a time for people.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// seconds writes a _ts for people.
func seconds(ts int64) string { return clock(time.Unix(ts, 0)) }

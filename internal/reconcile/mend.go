package reconcile

import (
	"context"
	"fmt"
	"slices"
)

// ways are the ways to mend in their order, with the end of the run's id.
func ways() []struct {
	mend Mend
	name string
} {
	return []struct {
		mend Mend
		name string
	}{{WithRewrite, "rewrite"}, {WithWrite, "write"}}
}

// mend starts the runs that mend what needs no person: one run for each way, for at most mendedAtOnce findings in all.
//
// A step first chooses findings and keeps the last one as its position. The next starts the run for those up to there, then marks them. So
// a step that is repeated after it marked them finds none, and starts nothing new; one that is repeated before starts the same run.
func (w *work) mend(ctx context.Context) (stepped, error) {
	at := w.at
	if !w.filter.Mend || at.Mending == len(ways()) {
		return stepped{}, nil
	}
	way := ways()[at.Mending]
	chosen, err := w.p.Findings.List(ctx, Query{Classes: mendedBy(way.mend), State: Open, Unqueued: true, Mend: way.mend}, nil, mendedAtOnce-at.Queued)
	if err != nil {
		return stepped{}, err
	}
	if at.UpTo == nil && len(chosen) > 0 {
		at.UpTo = &chosen[len(chosen)-1].Key
		return stepped{next: &at}, nil
	}
	var keys []Key
	for _, f := range chosen {
		if f.compare(*at.UpTo) <= 0 {
			keys = append(keys, f.Key)
		}
	}
	if err := w.start(ctx, way.mend, fmt.Sprintf("%s-%s", w.run.ID, way.name), keys); err != nil {
		return stepped{}, err
	}
	next := position{Mending: at.Mending + 1, Queued: at.Queued + len(keys)}
	if next.Mending == len(ways()) || next.Queued >= mendedAtOnce {
		return stepped{}, nil
	}
	return stepped{next: &next}, nil
}

// mendedBy are the classes that have findings of a way to mend.
func mendedBy(mend Mend) (classes []Class) {
	for _, rule := range Rules() {
		if rule.Mend == mend && !slices.Contains(classes, rule.Class) {
			classes = append(classes, rule.Class)
		}
	}
	return classes
}

// start starts a run for findings, and marks them.
func (w *work) start(ctx context.Context, mend Mend, id string, keys []Key) error {
	var documents []string
	var err error
	if mend == WithWrite {
		if documents, err = w.ofLines(ctx, keys); err == nil {
			documents, err = w.withoutPeoples(ctx, documents)
		}
	} else {
		for _, key := range keys {
			documents = append(documents, key.Document)
		}
	}
	if err != nil {
		return err
	}
	slices.Sort(documents)
	documents = slices.Compact(documents)
	if len(documents) == 0 {
		return nil
	}
	why := fmt.Sprintf("%d findings of %s", len(keys), w.run.ID)
	if err := w.p.Mender.Mend(ctx, id, mend, documents, why); err != nil {
		return err
	}
	return w.p.Findings.MarkQueued(ctx, id, keys)
}

// ofLines lists all documents of the lines: only together they say which is the newest.
func (w *work) ofLines(ctx context.Context, keys []Key) (documents []string, err error) {
	var lines []int64
	for _, key := range keys {
		lines = append(lines, key.Line)
	}
	slices.Sort(lines)
	for chunk := range slices.Chunk(slices.Compact(lines), linesOfOne) {
		ids, charge, err := w.p.Documents.OfLines(ctx, chunk)
		if err != nil {
			return nil, err
		}
		documents = append(documents, ids...)
		if err := w.pace.Spend(ctx, charge); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// withoutPeoples leaves out documents that have a line for people. They come with the documents of a line that they share with another
// document, and a write of them would write the other line, too.
func (w *work) withoutPeoples(ctx context.Context, documents []string) ([]string, error) {
	for after := (*Key)(nil); ; {
		open, err := w.p.Findings.List(ctx, Query{Classes: []Class{NotInLedger, Stale}, State: Open}, after, savedAtOnce)
		if err != nil {
			return nil, err
		}
		for _, f := range open {
			if f.Mend == ByPeople {
				documents = slices.DeleteFunc(documents, func(id string) bool { return id == f.Document })
			}
		}
		if len(open) < savedAtOnce {
			return documents, nil
		}
		after = &open[len(open)-1].Key
	}
}

package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Two nights of comparison and the runs that mend: every call of a port is a step.

// reconcilePath plants one of each corruption that the timer mends, and some that it leaves to people. The first night finds them and
// starts the runs that mend; the second finds that what was mended is gone.
func reconcilePath() *path {
	const written = `"status":"committed","outcome":"applied","committed_at":"2025-12-18 08:00:00.000000-06:00"`
	of := func(name string, line int64, says string, duplicates ...int64) want {
		id := at(int(line%60), name)
		return want{id: id, json: doc(id, line, says, written, duplicates...), end: invoice.Committed}
	}
	r := &runsPath{batch: 2, chunk: 3, page: 2, want: map[string]map[string]run.Outcome{}, compares: true, wishes: []wish{compared("night-1"), compared("night-2")}}
	p := runPath("reconcile", r, linesOf(801, 12), func(w *world) {
		w.advance(-10 * time.Hour) // no night's window has them but the first's
		for _, d := range []want{
			of("same", 801, "same", 802), of("edited", 803, "edited"), of("lost", 804, "lost"), of("tracking", 805, "tracking", 806),
			of("reviewed", 807, "reviewed"), of("changed", 808, "before"), of("both", 810, "before", 811), of("evidence", 812, "evidence"),
		} {
			w.put(d)
			w.wroteBefore(d)
		}
		w.advance(8*time.Hour + 30*time.Minute)
		w.evidenceBefore(of("evidence", 812, "evidence"))
		w.leases.Set(reconcile.Lock{ID: "web-lock", At: w.now()})
		w.advance(time.Hour)
		w.put(of("changed", 808, "after"))
		w.put(of("both", 810, "after", 811))
		w.edit(803, "CLN_MFR_AI_NM")
		w.edit(807, invoice.StatusColumn)
		w.edit(811, "CLN_MFR_AI_NM")
		w.sink.DeleteLine(804)
		w.loseTracking(805)
		w.advance(30 * time.Minute) // every night's window has them, also if the first begins late
		w.shown()
	})
	p.byPeople = []int64{803, 807, 810, 811}
	return p
}

// edit is a person who changes a value of a line.
func (w *world) edit(line int64, column string) {
	l, _ := w.sink.Line(line)
	l.Values = slices.Clone(l.Values)
	for n, c := range invoice.Columns() {
		if c.Table == invoice.Detail && c.Name == column {
			l.Values[n] = invoice.Of("by hand")
		}
	}
	w.sink.SetLine(line, l)
}

// loseTracking deletes the tracking row of a line.
func (w *world) loseTracking(line int64) {
	l, _ := w.sink.Line(line)
	l.Tracking, l.Values = false, slices.Clone(l.Values)
	for n, c := range invoice.Columns() {
		if c.Table == invoice.Tracking {
			l.Values[n] = invoice.Null()
		}
	}
	w.sink.SetLine(line, l)
}

// compared is the wish for a comparison that mends. The timer starts it when every other run has ended, and carries it on.
func compared(id string) wish {
	r := request(run.Run{ID: id, Kind: run.Reconcile}, run.Filter{Mend: true})
	return wish{
		what: "compare " + id,
		due: func(rs *runs) bool {
			return !slices.ContainsFunc(rs.all(), func(r run.Run) bool { return r.Status == run.RunRunning })
		},
		done: func(rs *runs) bool { return rs.row(id).ID != "" },
		do: func(ctx context.Context, _ *runs, i *instance) {
			_ = runStore{i}.StartRun(ctx, r, audit(run.CodeRunStart, id, "")) // asked for again until it is there
		},
	}
}

// reconciler compares by the ports of an instance.
func (r *runs) reconciler(i *instance) *reconcile.Reconcile {
	return reconcile.New(reconcile.Ports{
		Rows: rows{i}, Findings: findings{i}, Documents: documentsToCompare{i}, Evidence: episodes{i}, Leases: leases{i}, Mender: mender{i}, Breaker: i.breaker,
	}, reconcile.Options{SysName: sysName, Log: r.w.log, Now: r.w.now, Wait: i.wait})
}

// found lists what comparisons found, as it is in the end.
func (r *runs) found() (found []string) {
	list, err := r.findings.List(context.Background(), reconcile.Query{}, nil, 1000)
	if err != nil {
		panic(err)
	}
	for _, f := range list {
		found = append(found, fmt.Sprintf("%s %d %s: %s, %s, queued by %q", f.Class, f.Line, f.Document, f.State, f.Detail, f.QueuedBy))
	}
	return found
}

// compared gives what comparisons counted. A step that is repeated may not count what it closed before.
func (r *runs) compared() map[string]map[string]int {
	counts := map[string]map[string]int{}
	for _, row := range r.all() {
		if row.Kind == run.Reconcile {
			counts[row.ID] = row.Counts
			delete(counts[row.ID], string(reconcile.GoneNow))
		}
	}
	return counts
}

// The ports of a comparison.

type rows struct{ i *instance }

func (p rows) Scan(ctx context.Context, after int64, limit int) (reconcile.Scanned, error) {
	return call(ctx, p.i, "rows.Scan", fmt.Sprint(after), func() (reconcile.Scanned, error) { return p.real().Scan(ctx, after, limit) })
}

func (p rows) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	return call(ctx, p.i, "rows.Lines", fmt.Sprint(ids), func() ([]reconcile.Line, error) { return p.real().Lines(ctx, ids) })
}

func (p rows) Names(ctx context.Context, after int64, limit int) (reconcile.NamesPage, error) {
	return call(ctx, p.i, "rows.Names", fmt.Sprint(after), func() (reconcile.NamesPage, error) { return p.real().Names(ctx, after, limit) })
}

func (p rows) real() reconcile.Rows { return p.i.w.sink.ReconcileRows(sysName) }

type findings struct{ i *instance }

func (p findings) Save(ctx context.Context, id string, seen []reconcile.Seen, gone []reconcile.Key) (opened, closed int, err error) {
	a, err := call(ctx, p.i, "findings.Save", id, func() (n pair[int, int], err error) {
		n.a, n.b, err = p.real().Save(ctx, id, seen, gone)
		return n, err
	})
	return a.a, a.b, err
}

func (p findings) List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) ([]reconcile.Finding, error) {
	return call(ctx, p.i, "findings.List", string(q.State), func() ([]reconcile.Finding, error) { return p.real().List(ctx, q, after, limit) })
}

func (p findings) Counts(ctx context.Context) ([]reconcile.Count, error) {
	return call(ctx, p.i, "findings.Counts", "", func() ([]reconcile.Count, error) { return p.real().Counts(ctx) })
}

func (p findings) MarkQueued(ctx context.Context, by string, keys []reconcile.Key) error {
	_, err := call(ctx, p.i, "findings.MarkQueued", by, only(func() error { return p.real().MarkQueued(ctx, by, keys) }))
	return err
}

func (p findings) LastCompleted(ctx context.Context, kind run.Kind) (id string, began time.Time, ok bool, err error) {
	a, err := call(ctx, p.i, "findings.LastCompleted", "", func() (last triple[string, time.Time, bool], err error) {
		last.a, last.b, last.c, err = p.real().LastCompleted(ctx, kind)
		return last, err
	})
	return a.a, a.b, a.c, err
}

func (p findings) Waits(ctx context.Context, r run.Run, follows string) (bool, error) {
	return call(ctx, p.i, "findings.Waits", r.ID, func() (bool, error) { return p.real().Waits(ctx, r, follows) })
}

func (p findings) AdoptedAt(ctx context.Context) (time.Time, error) {
	return call(ctx, p.i, "findings.AdoptedAt", "", func() (time.Time, error) { return p.real().AdoptedAt(ctx) })
}

func (p findings) real() reconcile.Findings { return p.i.w.runs.findings }

type documentsToCompare struct{ i *instance }

func (p documentsToCompare) Changed(ctx context.Context, from, to int64, size int, continuation string) ([]invoice.Projection, string, float64, error) {
	a, err := call(ctx, p.i, "compared.Changed", "", func() (page triple[[]invoice.Projection, string, float64], err error) {
		page.a, page.b, page.c, err = p.real().Changed(ctx, from, to, size, continuation)
		return page, err
	})
	return a.a, a.b, a.c, err
}

func (p documentsToCompare) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, float64, error) {
	return answer(ctx, p, "ReadMany", strings.Join(ids, " "), func() ([]json.RawMessage, float64, error) { return p.real().ReadMany(ctx, ids) })
}

func (p documentsToCompare) Heads(ctx context.Context, ids []string) ([]invoice.Projection, float64, error) {
	return answer(ctx, p, "Heads", strings.Join(ids, " "), func() ([]invoice.Projection, float64, error) { return p.real().Heads(ctx, ids) })
}

func (p documentsToCompare) OfLines(ctx context.Context, lines []int64) ([]string, float64, error) {
	a, err := call(ctx, p.i, "compared.OfLines", fmt.Sprint(lines), func() (ids pair[[]string, float64], err error) {
		ids.a, ids.b, err = p.real().OfLines(ctx, lines)
		return ids, err
	})
	return a.a, a.b, err
}

// answer gives documents with their charge.
func answer[T any](ctx context.Context, p documentsToCompare, method, about string, do func() ([]T, float64, error)) ([]T, float64, error) {
	a, err := call(ctx, p.i, "compared."+method, about, func() (docs pair[[]T, float64], err error) {
		docs.a, docs.b, err = do()
		return docs, err
	})
	return a.a, a.b, err
}

func (p documentsToCompare) real() reconcile.Documents { return p.i.w.docs.Reconcile(sysName) }

type episodes struct{ i *instance }

func (p episodes) Episodes(ctx context.Context, at string) ([]reconcile.Episode, string, error) {
	a, err := call(ctx, p.i, "evidence.Episodes", at, func() (page pair[[]reconcile.Episode, string], err error) {
		page.a, page.b, err = p.i.w.evidence.Episodes(ctx, at)
		return page, err
	})
	return a.a, a.b, err
}

func (p episodes) Newest(ctx context.Context, d invoice.Document) (reconcile.Episode, bool, error) {
	a, err := call(ctx, p.i, "evidence.Newest", d.ID, func() (newest pair[reconcile.Episode, bool], err error) {
		newest.a, newest.b, err = p.i.w.evidence.Newest(ctx, d)
		return newest, err
	})
	return a.a, a.b, err
}

func (p episodes) KeepReport(ctx context.Context, name string, content []byte, contentType string) error {
	_, err := call(ctx, p.i, "evidence.KeepReport", name, only(func() error { return p.i.w.evidence.KeepReport(ctx, name, content, contentType) }))
	return err
}

type leases struct{ i *instance }

func (p leases) Locks(ctx context.Context) ([]reconcile.Lock, error) {
	return call(ctx, p.i, "leases.Locks", "", func() ([]reconcile.Lock, error) { return p.i.w.leases.Locks(ctx) })
}

// mender starts runs as an operator does.
type mender struct{ i *instance }

func (p mender) Mend(ctx context.Context, id string, mend reconcile.Mend, documents []string, _ string) error {
	r := request(run.Run{ID: id, Kind: run.Reapply, Pattern: run.TwoPhase}, run.Filter{IDs: documents})
	if mend == reconcile.WithRewrite {
		r.Kind = run.Reindex
	}
	err := runStore(p).StartRun(ctx, r, audit(run.CodeRunStart, id, ""))
	if err == nil || fault.CodeOf(err) == "run_exists" {
		p.i.notify(ctx, r)
		return nil
	}
	return err
}

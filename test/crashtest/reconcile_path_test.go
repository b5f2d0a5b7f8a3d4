package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/mapping"
)

// Two nights of comparison and the runs that mend: every call of a port is a step.

// reconcilePath plants one of each corruption that the timer mends, and some that it leaves to people. The first night
// finds them and starts the run that mends; the second no longer finds what was mended.
func reconcilePath() *path {
	const written = `"status":"committed","outcome":"applied","committed_at":"2025-12-18 08:00:00.000000-06:00"`
	of := func(name string, line int64, says string, duplicates ...int64) want {
		id := at(int(line%60), name)
		return want{id: id, json: doc(id, line, says, written, duplicates...), end: invoice.Committed}
	}
	r := &runsPath{
		batch: 2, chunk: 3, page: 2, want: map[string]map[string]invoice.Outcome{}, compares: true,
		wishes: []wish{compared("night-1"), compared("night-2")},
	}
	p := runPath("reconcile", r, linesOf(801, 14), func(w *world) {
		w.advance(-10 * time.Hour) // no night's window has them but the first's
		for _, d := range []want{
			of("same", 801, "same", 802), of("edited", 803, "edited"), of("lost", 804, "lost"),
			of("tracking", 805, "tracking", 806),
			of("reviewed", 807, "reviewed"), of("changed", 808, "before"), of("both", 810, "before", 811),
			of("own", 813, "own"), of("taker", 814, "taker", 813),
		} {
			w.put(d)
			w.wroteBefore(d)
		}
		w.advance(9*time.Hour + 30*time.Minute)
		w.put(of("changed", 808, "after"))
		w.put(of("both", 810, "after", 811))
		w.put(of("taker", 814, "taker")) // it drops line 813
		w.edit(803, "CLN_MFR_AI_NM")
		w.edit(807, mapping.InUse().Status(invoice.Detail))
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
	for n, c := range mapping.InUse().Columns() {
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
	for n, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Tracking {
			l.Values[n] = invoice.Null()
		}
	}
	w.sink.SetLine(line, l)
}

// compared is the wish for a night's comparison. It begins when every run and every other comparison has ended, and
// ticks carry it on.
func compared(id string) wish {
	return wish{
		what: "compare " + id,
		due: func(rs *runs) bool {
			_, goesOn, _ := rs.findings.Next(context.Background())
			return !goesOn && !slices.ContainsFunc(rs.all(), func(r run.Run) bool {
				return r.Status == run.RunRunning
			})
		},
		done: func(rs *runs) bool { _, there := rs.store.Comparison(id); return there },
		do: func(ctx context.Context, _ *runs, i *instance) {
			// asked for again until it is there
			_, _ = findings{i}.Begin(ctx, reconcile.Comparison{ID: id, Night: true, By: "ann", Why: "x"})
		},
	}
}

// reconciler compares by the ports of an instance.
func (r *runs) reconciler(i *instance) *reconcile.Reconcile {
	return reconcile.New(reconcile.Ports{
		Rows: rows{i}, Findings: findings{i}, Finder: documentsToCompare{i}, Mend: mender{i}.mend, Breaker: i.breaker,
	}, reconcile.Options{SysName: sysName, Log: r.w.log, Now: r.w.now, Wait: i.wait})
}

// found lists what comparisons found, as it is in the end, suspects too.
func (r *runs) found() (found []string) {
	list, err := r.findings.List(context.Background(), reconcile.Query{Suspects: true}, nil, 1000)
	if err != nil {
		panic(err)
	}
	for _, f := range list {
		found = append(found, fmt.Sprintf("%s %d %s: %t, %s", f.Class, f.Line, f.Document, f.Sure, f.Detail))
	}
	return found
}

// compared gives what comparisons counted.
func (r *runs) compared() map[string]map[reconcile.Class]int {
	counts := map[string]map[reconcile.Class]int{}
	for _, id := range []string{"night-1", "night-2"} {
		if c, there := r.store.Comparison(id); there {
			counts[id] = c.Counts
		}
	}
	return counts
}

// The ports of a comparison.

type rows struct{ i *instance }

func (p rows) Scan(ctx context.Context, after int64, limit int) (reconcile.Scanned, error) {
	return call(ctx, p.i, "rows.Scan", fmt.Sprint(after), func() (reconcile.Scanned, error) {
		return p.real().Scan(ctx, after, limit)
	})
}

func (p rows) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	return call(ctx, p.i, "rows.Lines", fmt.Sprint(ids), func() ([]reconcile.Line, error) {
		return p.real().Lines(ctx, ids)
	})
}

func (p rows) real() reconcile.Rows { return p.i.w.sink.ReconcileRows(sysName, 0) }

type findings struct{ i *instance }

// Begin begins what a wish asks for: the nights of the clock are none of this path.
func (p findings) Begin(ctx context.Context, c reconcile.Comparison) (bool, error) {
	if c.By == reconcile.ByTimer {
		return false, nil
	}
	return call(ctx, p.i, "findings.Begin", c.ID, func() (bool, error) { return p.real().Begin(ctx, c) })
}

func (p findings) Next(ctx context.Context) (reconcile.Comparison, bool, error) {
	return call2(ctx, p.i, "findings.Next", "", func() (reconcile.Comparison, bool, error) {
		return p.real().Next(ctx)
	})
}

func (p findings) Last(ctx context.Context) (reconcile.Comparison, bool, error) {
	return call2(ctx, p.i, "findings.Last", "", func() (reconcile.Comparison, bool, error) {
		return p.real().Last(ctx)
	})
}

func (p findings) Save(ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key) error {
	_, err := call(ctx, p.i, "findings.Save", fmt.Sprint(c.ID, " ", c.Step),
		only(func() error { return p.real().Save(ctx, c, put, drop) }))
	return err
}

func (p findings) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) ([]reconcile.Finding, error) {
	return call(ctx, p.i, "findings.List", "", func() ([]reconcile.Finding, error) {
		return p.real().List(ctx, q, after, limit)
	})
}

func (p findings) Counts(ctx context.Context) ([]reconcile.Count, error) {
	return call(ctx, p.i, "findings.Counts", "", func() ([]reconcile.Count, error) { return p.real().Counts(ctx) })
}

func (p findings) AdoptedAt(ctx context.Context) (time.Time, error) {
	return call(ctx, p.i, "findings.AdoptedAt", "", func() (time.Time, error) { return p.real().AdoptedAt(ctx) })
}

func (p findings) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	return call(ctx, p.i, "findings.Marks", "", func() (map[run.Mark]run.Audit, error) {
		return p.real().Marks(ctx, documents)
	})
}

func (p findings) real() reconcile.Findings { return p.i.w.runs.findings }

type documentsToCompare struct{ i *instance }

func (p documentsToCompare) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	method := "Changed"
	if len(q.IDs) > 0 {
		method = "ReadMany"
	}
	return call(ctx, p.i, "compared."+method, strings.Join(q.IDs, " "), func() (commit.Page, error) {
		return p.i.w.docs.Paged(100).Find(ctx, q, continuation)
	})
}

// mender starts runs as an operator does.
type mender struct{ i *instance }

func (p mender) mend(ctx context.Context, comparison string) error {
	found, err := findings(p).List(ctx, reconcile.Query{Mends: true}, nil, 1000)
	if err != nil || len(found) == 0 {
		return err
	}
	var filter run.Filter
	for _, f := range found {
		if f.Class != reconcile.NotNamed {
			filter.IDs = append(filter.IDs, f.Document)
			continue
		}
		release, err := p.release(ctx, f)
		if err != nil {
			return err
		}
		filter.IDs, filter.Releases = append(filter.IDs, release.Document), append(filter.Releases, release)
	}
	r := request(run.Run{ID: comparison + "-mend", Kind: run.Reindex}, filter)
	err = p.i.store().StartRun(ctx, r, audit(run.CodeRunStart, r.ID, ""))
	if err == nil || fault.CodeOf(err) == "run_exists" {
		p.i.notify(ctx, r)
		return nil
	}
	return err
}

// release is that of a line which its document dropped.
func (p mender) release(ctx context.Context, f reconcile.Finding) (commit.Release, error) {
	lines, err := rows(p).Lines(ctx, []int64{f.Line})
	if err != nil {
		return commit.Release{}, err
	}
	adopted, err := findings(p).AdoptedAt(ctx)
	if err != nil {
		return commit.Release{}, err
	}
	documents := documentsToCompare(p)
	page, err := documents.Find(ctx, commit.Query{IDs: []string{f.Document}, Size: commit.MaxPage}, "")
	if err != nil {
		return commit.Release{}, err
	}
	now := p.i.w.now()
	dropped, err := invoice.Reader{}.Read(json.RawMessage(page.Documents[0]), now)
	if err != nil {
		return commit.Release{}, err
	}
	c := reconcile.Circumstances{SysName: sysName, Now: now, AdoptedAt: adopted}
	left, _, err := c.Left(ctx, documents, lines[0], dropped)
	return left.Release(), err
}

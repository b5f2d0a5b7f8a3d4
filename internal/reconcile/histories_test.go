package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/inmem"
	"sqlwriter/test/seeds"
)

// comparison is a Reconcile in a history. Each call of a port is a step, before which anything may happen; its process
// may die, and then another one goes on at the position that was stored.
type comparison struct {
	h        *history
	a        *actor
	store    *inmem.RunStore
	findings *inmem.Findings
	rows     reconcile.Rows
	lag      time.Duration
	asked    int
	// going: the process of the last comparison lives, or another goes on for it.
	going bool
	// counts are those of all comparisons. suspected is how many suspects were saved.
	counts    map[reconcile.Class]int
	suspected int
	// left counts lines whose committed document does not name them, when all is over.
	left int
	// excused: a comparison found what is wrong because the product left it so.
	excused bool
}

func newComparison(h *history, lag time.Duration) *comparison {
	return &comparison{
		h: h, store: h.store, findings: h.store.Findings(h.sink), rows: h.sink.ReconcileRows(sysName, 0), lag: lag,
		counts: map[reconcile.Class]int{},
	}
}

func (c *comparison) id() string { return fmt.Sprint("asked-", c.asked) }

// begin begins a comparison beside everything else.
func (c *comparison) begin(whole bool) {
	c.asked++
	c.going = true
	_, err := c.findings.Begin(c.h.t.Context(), reconcile.Comparison{ID: c.id(), Whole: whole, By: "ann", Why: "x"})
	require.NoError(c.h.t, err)
	c.goOn()
}

// goOn ticks until the comparison has ended.
func (c *comparison) goOn() {
	c.h.start(func() { c.goOn() }, func(a *actor) {
		c.a = a
		skew := c.h.skews[c.h.r.IntN(3)]
		r := reconcile.New(reconcile.Ports{
			Rows: c, Findings: compared{c.findings, c}, Finder: c, Breaker: c,
			Mend: func(context.Context, string) error { return nil },
		}, reconcile.Options{
			SysName: sysName, Log: zerolog.Nop(), Now: func() time.Time { return c.h.clock.Add(skew) },
			Wait: func(_ context.Context, d time.Duration) error { return c.wait(d) },
		})
		for !a.dead && c.running() {
			if _, err := r.Tick(context.Background()); err != nil && !a.dead {
				require.True(c.h.t, fault.IsDependency(err), "%v", err)
			}
			_ = c.wait(time.Minute) // the next tick; a dead one ends the loop
		}
		if done, there := c.store.Comparison(c.id()); !a.dead && there {
			c.going = false
			for class, n := range done.Counts {
				c.counts[class] += n
			}
		}
	})
}

// wait parks until a time has passed: other things happen, and bring it.
func (c *comparison) wait(d time.Duration) error {
	until := c.h.clock.Add(d)
	for {
		if err := c.a.park(); err != nil || !c.h.clock.Before(until) {
			return err
		}
		if len(c.h.actors) == 1 && until.After(c.h.clock) { // nothing else happens meanwhile
			c.h.clock = until
		}
	}
}

// running reports whether a comparison is not over.
func (c *comparison) running() bool {
	_, there, err := c.findings.Next(context.Background())
	return err == nil && there
}

// found lists the findings.
func (c *comparison) found() []string {
	list, err := c.findings.List(context.Background(), reconcile.Query{}, nil, 1000)
	require.NoError(c.h.t, err)
	found := []string{}
	for _, f := range list {
		if f.Class == reconcile.Stale && (c.h.left[f.Document] || c.h.torn[f.Document]) {
			c.excused = true // the one inconsistency of the product itself
			continue
		}
		if left := f.Class == reconcile.NotNamed ||
			f.Class == reconcile.NoDocument; left && c.h.dropped(f.Document, f.Line) {
			continue
		}
		found = append(found, fmt.Sprintf("%s: %s", name(f.Key), f.Detail))
	}
	return found
}

// dropped reports whether a document was gone once, or did not name a line. The finding of it is true.
func (h *history) dropped(id string, line int64) bool {
	return slices.ContainsFunc(h.past[id], func(s snapshot) bool {
		return s.raw == nil || !slices.Contains(namedBy(h.read(s.raw)), line)
	})
}

// newerNames reports whether a committed document with a newer version names a line.
func (h *history) newerNames(line int64, than invoice.Version) bool {
	for n := range historyDocs {
		if raw := h.now(documentID(n)); raw != nil {
			if d := h.read(raw); d.State.Status == invoice.Committed && slices.Contains(namedBy(d), line) &&
				d.Version.Compare(than) > 0 {
				return true
			}
		}
	}
	return false
}

func namedBy(d invoice.Document) []int64 { return append([]int64{d.Main}, d.Duplicates...) }

// requireLeft asserts that each line is found that the committed document in its ledger row does not name.
func (c *comparison) requireLeft(seed uint64) {
	list, err := c.findings.List(context.Background(), reconcile.Query{}, nil, 1000)
	require.NoError(c.h.t, err)
	for line := range int64(historyLines) {
		e, _ := c.h.sink.Entry(line + 1)
		raw := c.h.now(e.DocumentID)
		if raw == nil {
			continue
		}
		if d := c.h.read(raw); d.State.Status != invoice.Committed || slices.Contains(namedBy(d), line+1) {
			continue
		}
		if c.h.newerNames(line+1, e.Version) { // its word counts, also that of a person who marked it
			continue
		}
		c.left++
		require.True(c.h.t, slices.ContainsFunc(list, func(f reconcile.Finding) bool { return f.Line == line+1 }),
			"seed %d: line %d has the content of %s, which does not name it", seed, line+1, e.DocumentID)
	}
}

func (c *comparison) classes() []string {
	classes := []string{}
	for _, f := range c.found() {
		class, _, _ := strings.Cut(f, " ")
		classes = append(classes, class)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

func (c *comparison) Permit(context.Context) error { return nil }

func (c *comparison) Scan(ctx context.Context, after int64, _ int) (reconcile.Scanned, error) {
	if err := c.a.park(); err != nil {
		return reconcile.Scanned{}, err
	}
	return c.rows.Scan(ctx, after, 2)
}

func (c *comparison) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	if err := c.a.park(); err != nil {
		return nil, err
	}
	return c.rows.Lines(ctx, ids)
}

func (c *comparison) seen(ids []string) (docs []json.RawMessage) {
	at := c.h.clock
	if c.lag > 0 {
		at = at.Add(-time.Duration(c.h.r.Int64N(int64(c.lag))))
	}
	for _, id := range ids {
		if raw := c.h.at(id, at); raw != nil {
			docs = append(docs, raw)
		}
	}
	return docs
}

func (c *comparison) Find(_ context.Context, q commit.Query, continuation string) (page commit.Page, err error) {
	if err := c.a.park(); err != nil {
		return page, err
	}
	page.Charge = 1
	if len(q.IDs) > 0 {
		for _, raw := range c.seen(q.IDs) {
			page.Documents = append(page.Documents, invoice.Projection(raw))
		}
		return page, nil
	}
	begin, _ := strconv.Atoi(continuation)
	end := min(begin+2, historyDocs)
	var ids []string
	for n := begin; n < end; n++ {
		ids = append(ids, documentID(n))
	}
	for _, raw := range c.seen(ids) {
		// the database's clock is ahead
		d := c.h.read(raw)
		if q.Line > 0 && d.Main != q.Line && !slices.Contains(d.Duplicates, q.Line) {
			continue
		}
		if d.TS >= q.From && d.TS < q.To+int64(invoice.ClockSkew.Seconds()) {
			page.Documents = append(page.Documents, invoice.Projection(raw))
		}
	}

	if end < historyDocs {
		page.Next = strconv.Itoa(end)
	}
	return page, nil
}

// compared are the findings of a comparison. What they say of the adoption is the comparison's, and no night begins.
type compared struct {
	*inmem.Findings
	c *comparison
}

func (f compared) Begin(context.Context, reconcile.Comparison) (bool, error) { return false, nil }

func (f compared) Save(ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key) error {
	if err := f.c.a.park(); err != nil {
		return err
	}
	for _, s := range put {
		if !s.Sure {
			f.c.suspected++
		}
	}
	return f.Findings.Save(ctx, c, put, drop)
}

func (f compared) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) ([]reconcile.Finding, error) {
	if err := f.c.a.park(); err != nil {
		return nil, err
	}
	return f.Findings.List(ctx, q, after, limit)
}

func (f compared) AdoptedAt(context.Context) (time.Time, error) {
	return f.c.h.clock.Add(-72 * time.Hour), nil
}

// play lets everything happen beside comparisons. It returns what they found, which is nothing.
func (c *comparison) play() (found []string) {
	h := c.h
	for range 600 {
		h.pass()
		switch {
		case len(h.actors) < 3 || len(h.actors) < 8 && h.r.IntN(3) == 0:
			h.act()
		case h.r.IntN(3) == 0 && slices.Contains(h.actors, c.a): // more often than one of many
			h.step(slices.Index(h.actors, c.a))
		default:
			h.step(h.r.IntN(len(h.actors)))
		}
		found = append(found, c.found()...)
		if !c.going {
			c.begin(h.r.IntN(2) == 0)
		}
	}
	h.settle()
	h.clock = h.clock.Add(time.Hour)
	c.rest()
	return append(found, c.found()...)
}

// rest is a comparison of everything while nothing happens.
func (c *comparison) rest() {
	c.drain()
	c.begin(true)
	c.drain()
	require.False(c.h.t, c.running())
}

func (c *comparison) drain() {
	for len(c.h.actors) > 0 {
		c.h.clock = c.h.clock.Add(time.Second)
		c.h.step(0)
	}
}

// Documents are written, fail, are replayed and reset between any two calls of a comparison, whose process dies now and
// then. Nothing is wrong, and nothing is found. Then one corruption is planted, and found: that and nothing else.
func TestHistoriesOfAComparison(t *testing.T) {
	t.Parallel()
	number := histories()
	met, counted, suspected, left := map[string]int{}, map[reconcile.Class]int{}, 0, 0
	first := uint64(seeds.First(t))
	for seed := first; seed < first+number; seed++ {
		h := newHistory(t, seed)
		c := newComparison(h, time.Duration(seed%2)*5*time.Minute)
		require.Empty(t, c.play(), "seed %d", seed)
		for class, n := range c.counts {
			counted[class] += n
		}
		c.requireLeft(seed)
		left += c.left
		suspected += c.suspected
		if len(h.left) > 0 || c.excused { // what it left may be stale, and true
			continue
		}
		clear(h.torn)
		all := plants()
		slices.SortStableFunc(all, func(a, b plant) int { return met[a.name] - met[b.name] })
		for _, p := range all {
			n := slices.IndexFunc(h.own(), func(o own) bool {
				return o.state.Status == p.of && (p.of != invoice.Failed || !o.applied)
			})
			if n < 0 {
				continue
			}
			p.plant(h, h.own()[n])
			h.clock = h.clock.Add(time.Second)
			c.lag = 0
			c.rest()
			require.Equal(t, p.want, c.classes(), "seed %d: %s: %v", seed, p.name, c.found())
			met[p.name]++
			break
		}
	}
	for _, p := range plants() {
		if p.of != invoice.Failed || number >= 1000 { // one history of fifty has one
			require.NotZero(t, met[p.name], p.name)
		}
	}
	require.NotZero(t, left, "no document dropped a line")
	t.Logf("from seed %d: counted: %v; suspected: %d; left: %d; planted: %v", first, counted, suspected, left, met)
}

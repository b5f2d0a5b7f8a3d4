package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// comparison is a run of Reconcile in a history. Each call of a port is a step, before which anything may happen; its process may die, and
// then another one goes on at the position that was stored.
type comparison struct {
	h        *history
	a        *actor
	findings *inmem.Findings
	rows     reconcile.Rows
	lag      time.Duration
	// last is when the last one began.
	last  time.Time
	began time.Time
	// pass and at are the position, counts those of all runs.
	pass   int
	at     string
	counts map[string]int
	runs   int
}

func newComparison(h *history, lag time.Duration) *comparison {
	store := inmem.NewRunStore(func() time.Time { return h.clock }, sysName)
	return &comparison{h: h, findings: store.Findings(h.sink), rows: h.sink.ReconcileRows(sysName), lag: lag, counts: map[string]int{}}
}

// begin begins a run beside everything else.
func (c *comparison) begin(f run.Filter) {
	c.runs++
	c.began, c.pass, c.at = c.h.clock, 0, ""
	text, err := json.Marshal(f)
	require.NoError(c.h.t, err)
	row := run.Run{ID: fmt.Sprint("night-", c.runs), SysName: sysName, Kind: run.Reconcile, Filter: text, StartedAt: c.began}
	c.goOn(row)
}

func (c *comparison) goOn(row run.Run) {
	c.h.start(func() { c.goOn(row) }, func(a *actor) {
		c.a = a
		r := reconcile.New(reconcile.Ports{Rows: c, Findings: compared{c.findings, c}, Documents: c, Evidence: c, Leases: c, Mender: c, Breaker: c}, reconcile.Options{
			SysName: sysName, Log: zerolog.Nop(), Now: func() time.Time { return c.h.clock }, Wait: func(context.Context, time.Duration) error { return a.park() },
		})
		kind, _ := run.Kinds().Find(run.Reconcile)
		for c.pass < len(kind.Passes) && !a.dead {
			done, err := r.Step(context.Background(), row, kind.Passes[c.pass], c.at)
			if err != nil {
				if !a.dead {
					require.True(c.h.t, fault.IsDependency(err), "%v", err)
				}
				continue
			}
			for o, n := range done.Counts {
				c.counts[string(o)] += n
			}
			if c.at = done.Next; done.Done {
				c.pass, c.at = c.pass+1, ""
			}
		}
		if !a.dead {
			c.last = c.began
		}
	})
}

// running reports whether a run is not over.
func (c *comparison) running() bool { return c.runs > 0 && !c.last.Equal(c.began) }

// open lists the open findings.
func (c *comparison) open() []string {
	list, err := c.findings.List(c.h.t.Context(), reconcile.Query{State: reconcile.Open}, nil, 1000)
	require.NoError(c.h.t, err)
	found := []string{}
	for _, f := range list {
		found = append(found, fmt.Sprintf("%s: %s", name(f.Key), f.Detail))
	}
	return found
}

func (c *comparison) classes() []string {
	list, err := c.findings.Counts(c.h.t.Context())
	require.NoError(c.h.t, err)
	classes := []string{}
	for _, n := range list {
		if n.Open > 0 {
			classes = append(classes, string(n.Class))
		}
	}
	return classes
}

func (c *comparison) Permit(context.Context) error { return nil }

func (c *comparison) ClosedSince(context.Context) (time.Time, bool) {
	return c.h.clock.Add(-24 * time.Hour), true
}

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
	lines, err := c.rows.Lines(ctx, ids)
	for i, line := range lines {
		lines[i].Ledger.WrittenAt = c.h.written[line.ID]
	}
	return lines, err
}

func (c *comparison) Names(ctx context.Context, after int64, limit int) (reconcile.NamesPage, error) {
	if err := c.a.park(); err != nil {
		return reconcile.NamesPage{}, err
	}
	return c.rows.Names(ctx, after, limit)
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

func (c *comparison) Changed(_ context.Context, from, to int64, _ int, continuation string) (docs []invoice.Projection, next string, charge float64, err error) {
	if err := c.a.park(); err != nil {
		return nil, "", 0, err
	}
	begin, _ := strconv.Atoi(continuation)
	end := min(begin+2, historyDocs)
	var ids []string
	for n := begin; n < end; n++ {
		ids = append(ids, documentID(n))
	}
	for _, raw := range c.seen(ids) {
		if d := c.h.read(raw); d.TS >= from && d.TS < to {
			docs = append(docs, invoice.Projection(raw))
		}
	}
	if end < historyDocs {
		next = strconv.Itoa(end)
	}
	return docs, next, 1, nil
}

func (c *comparison) ReadMany(_ context.Context, ids []string) ([]json.RawMessage, float64, error) {
	if err := c.a.park(); err != nil {
		return nil, 0, err
	}
	return c.seen(ids), 1, nil
}

func (c *comparison) Heads(_ context.Context, ids []string) (heads []invoice.Projection, charge float64, err error) {
	if err := c.a.park(); err != nil {
		return nil, 0, err
	}
	for _, raw := range c.seen(ids) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, 0, err
		}
		maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
			return !slices.Contains([]string{"id", "_ts", "_etag", "request_details", "sql_writer"}, name)
		})
		var own map[string]json.RawMessage
		if json.Unmarshal(members["sql_writer"], &own) == nil {
			delete(own, "attempts")
			if members["sql_writer"], err = json.Marshal(own); err != nil {
				return nil, 0, err
			}
		}
		head, err := json.Marshal(members)
		if err != nil {
			return nil, 0, err
		}
		heads = append(heads, head)
	}
	return heads, 1, nil
}

func (c *comparison) OfLines(context.Context, []int64) ([]string, float64, error) { return nil, 0, nil }

func (c *comparison) Episodes(context.Context, string) (page []reconcile.Episode, next string, err error) {
	if err := c.a.park(); err != nil {
		return nil, "", err
	}
	for id, all := range c.h.episodes {
		for _, e := range all {
			page = append(page, reconcile.Episode{DocumentID: id, Folder: e.folder, At: e.at})
		}
	}
	return page, "", nil
}

func (c *comparison) Newest(_ context.Context, d invoice.Document) (reconcile.Episode, bool, error) {
	if err := c.a.park(); err != nil {
		return reconcile.Episode{}, false, err
	}
	newest, there := c.h.newest(d.ID)
	return newest, there, nil
}

func (c *comparison) KeepReport(context.Context, string, []byte, string) error { return c.a.park() }

func (c *comparison) Locks(context.Context) ([]reconcile.Lock, error) { return nil, c.a.park() }

func (c *comparison) Mend(context.Context, string, reconcile.Mend, []string, string) error {
	return nil
}

// compared are the findings of a comparison. What they say of runs and of the adoption is the comparison's.
type compared struct {
	*inmem.Findings
	c *comparison
}

func (f compared) Save(ctx context.Context, id string, seen []reconcile.Seen, gone []reconcile.Key) (opened, closed int, err error) {
	if err := f.c.a.park(); err != nil {
		return 0, 0, err
	}
	return f.Findings.Save(ctx, id, seen, gone)
}

func (f compared) List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) ([]reconcile.Finding, error) {
	if err := f.c.a.park(); err != nil {
		return nil, err
	}
	return f.Findings.List(ctx, q, after, limit)
}

func (f compared) LastCompleted(context.Context, run.Kind) (string, time.Time, bool, error) {
	return "", f.c.last, !f.c.last.IsZero(), nil
}

func (f compared) Waits(context.Context, run.Run, string) (bool, error) { return false, nil }

func (f compared) AdoptedAt(context.Context) (time.Time, error) {
	return f.c.h.clock.Add(-72 * time.Hour), nil
}

// play lets everything happen beside comparisons, which find nothing.
func (c *comparison) play() {
	h := c.h
	for range 400 {
		h.pass()
		switch {
		case len(h.actors) < 3 || len(h.actors) < 8 && h.r.IntN(3) == 0:
			h.act()
		default:
			h.step(h.r.IntN(len(h.actors)))
		}
		if !c.running() {
			require.Empty(h.t, c.open())
			c.begin(run.Filter{Whole: h.r.IntN(2) == 0})
		}
	}
	h.settle()
	require.Empty(h.t, c.open())
	h.clock = h.clock.Add(time.Hour)
	c.rest()
	require.Empty(h.t, c.open())
}

// rest is a comparison of everything while nothing happens.
func (c *comparison) rest() {
	c.begin(run.Filter{Whole: true})
	for len(c.h.actors) > 0 {
		c.h.clock = c.h.clock.Add(time.Millisecond)
		c.h.step(0)
	}
	require.False(c.h.t, c.running())
}

// Documents are written, fail, are replayed and reset between any two calls of a comparison, whose process dies now and then. Nothing is
// wrong, and nothing is found. Then one corruption is planted, and found: that and nothing else.
func TestHistoriesOfAComparison(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	met, counted := map[string]int{}, map[string]int{}
	for seed := range seeds {
		h := newHistory(t, 10_000+seed)
		c := newComparison(h, time.Duration(seed%2)*10*time.Second)
		c.play()
		for class, n := range c.counts {
			counted[class] += n
		}
		all := plants()
		slices.SortStableFunc(all, func(a, b plant) int { return met[a.name] - met[b.name] })
		for _, p := range all {
			n := slices.IndexFunc(h.own(), func(o own) bool { return o.state.Status == p.of })
			if n < 0 {
				continue
			}
			p.plant(h, h.own()[n])
			h.clock = h.clock.Add(time.Second)
			c.lag = 0
			c.rest()
			require.Equal(t, p.want, c.classes(), "seed %d: %s: %v", seed, p.name, c.open())
			met[p.name]++
			break
		}
	}
	for _, p := range plants() {
		require.NotZero(t, met[p.name], p.name)
	}
	t.Logf("counted: %v; planted: %v", counted, met)
}

package crashtest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/seeds"
)

var (
	runSeedFlag  = flag.Int64("runseed", 0, "TestInterleavedRuns: this seed alone, with its steps")
	runSeedsFlag = flag.Int("runseeds", 0, "TestInterleavedRuns: how many seeds; 0 is as many as go test has")
)

// crew is a world of runs: two managers, three workers and the timer, each a process of its own, an operator who
// starts, cancels, resumes and requeues, and the program that goes on writing results. All of them are under the
// scheduler.
type crew struct {
	*shuffled
	processes map[string]*instance
}

// interleavedRuns runs the world of one seed until nothing is left to do. Then the operator resumes every run, and each
// must end.
func interleavedRuns(seed int64) *world {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	p := &path{name: "interleaved-runs", runs: &runsPath{
		batch: 1 + rng.IntN(3), chunk: 1 + rng.IntN(5), page: 1 + rng.IntN(4), outstanding: 1 + rng.IntN(6),
	}}
	for n := range shuffledLines {
		p.lines = append(p.lines, 601+int64(n))
	}
	w := newWorld(p, nil, nil)
	w.scheduled, w.seed, w.renames = true, seed, true
	c := &crew{shuffled: &shuffled{w: w, rng: rng}, processes: map[string]*instance{}}
	p.seed = func(w *world) { c.results(8 + rng.IntN(6)); w.shown() }
	for n := range 1 + rng.IntN(3) {
		p.runs.wishes = append(p.runs.wishes,
			started(run.Run{ID: fmt.Sprint("run-", n+1), Kind: run.Drain}, run.Filter{}))
	}
	w.runs.wishes = p.runs.wishes
	w.begin()
	w.draw = func(_ *instance, port string) kind {
		if rng.IntN(25) > 0 {
			return ""
		}
		at := p.kindsAt(port)
		return at[rng.IntN(len(at))]
	}
	s := newScheduler(w, rng)
	for _, name := range []string{"manager 1", "manager 2"} {
		s.add(func(ctx context.Context) { c.take(ctx, name, w.runs.runQ) })
	}
	for _, name := range []string{"worker 1", "worker 2", "worker 3"} {
		s.add(func(ctx context.Context) { c.take(ctx, name, w.runs.batchQ) })
	}
	s.add(c.time)
	s.add(c.operate)
	s.add(c.write)
	s.run()
	w.draw = nil
	w.runs.wishes = append(w.runs.wishes, wish{
		what: "everything goes on", due: func(*runs) bool { return true },
		done: func(r *runs) bool { return len(r.givenUp()) == 0 },
		do:   func(ctx context.Context, r *runs, i *instance) { r.goOn(ctx, i) },
	})
	w.settleDown()
	w.verify(nil)
	return w
}

// process is a process that is alive.
func (c *crew) process(name string) *instance {
	i := c.processes[name]
	if i == nil || i.dead {
		i = c.w.start()
		c.processes[name] = i
	}
	return i
}

// take is a process that takes messages of a queue, or its dead letters.
func (c *crew) take(ctx context.Context, name string, b *bus) {
	for range 14 {
		yield(ctx)
		did, _ := c.w.runs.serve(ctx, b, c.process(name))
		if !did {
			did, _ = c.w.runs.serveLetter(ctx, b, c.process(name))
		}
		if !did {
			c.w.advance(time.Duration(c.rng.IntN(20)) * time.Second)
		}
	}
}

func (c *crew) time(ctx context.Context) {
	for range 6 {
		for range c.rng.IntN(10) {
			yield(ctx)
		}
		c.w.runs.tick(ctx, c.process("timer"))
	}
}

// operate starts the runs, and now and then cancels, resumes or requeues something.
func (c *crew) operate(ctx context.Context) {
	r := c.w.runs
	for range 12 {
		yield(ctx)
		i := c.process("operator")
		if did, _ := r.operate(ctx, i); did {
			continue
		}
		for range c.rng.IntN(25) {
			yield(ctx)
		}
		rows := r.all()
		if len(rows) == 0 {
			continue
		}
		row := rows[c.rng.IntN(len(rows))]
		r.invoke(ctx, i, func(ctx context.Context) {
			if c.rng.IntN(4) == 0 {
				// an operator sees what becomes of it
				_, _ = i.store().CancelRun(ctx, row.ID, audit(run.CodeRunCancel, row.ID, ""))
				return
			}
			r.goOn(ctx, i)
		})
	}
}

// givenUp are runs and batches that an operator can have go on.
func (r *runs) givenUp() (found []string) {
	for _, row := range r.all() {
		if row.Status == run.RunCancelled || row.Status == run.RunFailed || row.Cancel && row.Status == run.RunRunning {
			found = append(found, row.ID)
		}
	}
	for _, j := range r.store.AllBatches() {
		if j.Status == run.Failed {
			found = append(found, j.ID)
		}
	}
	return found
}

// goOn has the operator resume what was cancelled or failed, and requeue what was given up.
func (r *runs) goOn(ctx context.Context, i *instance) {
	for _, row := range r.all() {
		if row.Status != run.RunCancelled && row.Status != run.RunFailed {
			continue
		}
		if ok, err := i.store().ResumeRun(ctx, row.ID, audit(run.CodeRunResume, row.ID, "")); ok && err == nil {
			i.notify(ctx, r.row(row.ID))
		}
	}
	for _, j := range r.store.AllBatches() {
		if j.Status == run.Failed {
			// asked for again until it is done
			_, _ = i.store().RequeueBatch(ctx, j.ID, audit(run.CodeBatchRequeue, j.Run, j.ID))
		}
	}
}

// TestInterleavedRuns: managers, workers, the timer, an operator and the program that writes results, in the order that
// a seed draws, with faults.
func TestInterleavedRuns(t *testing.T) {
	t.Parallel()
	if *runSeedFlag != 0 {
		w := interleavedRuns(*runSeedFlag)
		for _, s := range w.steps {
			t.Log(s)
		}
		require.Empty(t, w.report())
		return
	}
	drawn := make([]int64, cmp.Or(*runSeedsFlag, size().runHistories))
	for n := range drawn {
		drawn[n] = seeds.First(t) + int64(n)
	}
	steps, faults := 0, 0
	var seen counted
	var reports []string
	for _, h := range eachSeed(drawn, runHistoryOf) {
		steps += h.steps
		faults += h.faults
		if h.report != "" {
			reports = append(reports, h.report)
		}
		seen.lost += h.seen.lost
		seen.redelivered += h.seen.redelivered
		seen.runClaims += h.seen.runClaims
		seen.most = max(seen.most, h.seen.most)
	}
	slices.SortFunc(reports, func(a, b string) int { return len(a) - len(b) })
	if len(reports) > 0 {
		t.Fatalf("%d of %d histories: %s", len(reports), len(drawn), reports[0])
	}
	t.Logf(
		"%d histories: %d steps, %d faults, %d claims of runs, %d locks lost, %d redeliveries (at most %d of one message), 0 violations",
		len(drawn), steps, faults, seen.runClaims, seen.lost, seen.redelivered, seen.most)
	require.Positive(t, faults)
	require.Positive(t, seen.lost)
}

type runHistory struct {
	history
	seen counted
}

func runHistoryOf(seed int64) runHistory {
	w := interleavedRuns(seed)
	h := runHistory{history: history{steps: len(w.steps)}, seen: w.runs.count}
	for _, s := range w.steps {
		if s.kind != "" {
			h.faults++
		}
	}
	if len(w.seen) > 0 {
		h.report = w.report()
	}
	return h
}

// TestTheSameSeedGivesTheSameRuns: what a failure prints can be believed.
func TestTheSameSeedGivesTheSameRuns(t *testing.T) {
	t.Parallel()
	trace := func(seed int64) string {
		var b strings.Builder
		for _, s := range interleavedRuns(seed).steps {
			fmt.Fprintln(&b, s)
		}
		return b.String()
	}
	for seed := int64(1); seed <= 3; seed++ {
		first := trace(seed)
		require.Equal(t, first, trace(seed), "seed %d", seed)
		require.NotEqual(t, first, trace(seed+1), "another seed is another history")
	}
}

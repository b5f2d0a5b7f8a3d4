package crashtest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/seeds"
)

var (
	seedFlag     = flag.Int64("seed", 0, "TestInterleaved: this seed alone, with its steps")
	seedsFlag    = flag.Int("seeds", 0, "TestInterleaved: how many seeds; 0 is as many as go test has")
	durationFlag = flag.Duration("duration", 0, "TestInterleaved: new seeds for so long")
)

// shuffled is a world of a few lines that many documents want, two workers, the timer, and a program that goes on
// writing results meanwhile.
type shuffled struct {
	w   *world
	rng *rand.Rand
	// processes are the two instances of the app; the timer runs in the first.
	processes [2]*instance
	// checkpoints are those of the two ranges of the feed.
	checkpoints [2]int
	minute      int
}

const shuffledLines = 12

// interleaved runs the world of one seed until nothing is left to do.
func interleaved(seed int64, broken *mistake) *world {
	w := newWorld(&path{name: "interleaved"}, nil, broken)
	w.scheduled, w.seed = true, seed
	for n := range shuffledLines {
		w.path.lines = append(w.path.lines, 601+int64(n))
	}
	x := &shuffled{w: w, rng: rand.New(rand.NewPCG(uint64(seed), 0))}
	w.path.seed = func(w *world) {
		w.advance(-time.Hour)
		x.results(6) // orphans when the timer looks
		x.checkpoints = [2]int{x.rng.IntN(7), x.rng.IntN(7)}
		w.advance(time.Hour)
		x.results(6)
	}
	w.begin()
	w.draw = func(*instance, string) kind {
		if x.rng.IntN(25) > 0 {
			return ""
		}
		return kinds()[x.rng.IntN(len(kinds()))]
	}
	s := newScheduler(w, x.rng)
	s.add(func(ctx context.Context) { x.work(ctx, 0) })
	s.add(func(ctx context.Context) { x.work(ctx, 1) })
	s.add(x.time)
	s.add(x.write)
	s.run()
	w.draw = nil
	w.checkpoint = min(x.checkpoints[0], x.checkpoints[1])
	w.settleDown()
	w.verify(nil)
	return w
}

// process is an instance that is alive.
func (x *shuffled) process(n int) *instance {
	if x.processes[n] == nil || x.processes[n].dead {
		x.processes[n] = x.w.start()
	}
	return x.processes[n]
}

// work is one worker on its range of the feed, and sometimes on the other's: a lease that moved.
func (x *shuffled) work(ctx context.Context, n int) {
	for range 5 {
		yield(ctx)
		mine := n
		if x.rng.IntN(4) == 0 {
			mine = 1 - n
		}
		since := x.checkpoints[mine]
		batch, upTo := x.w.feed(since, func(id string) bool { return len(id)%2 == mine })
		for retry := 0; len(batch) > 0 && retry < 4; retry++ {
			i := x.process(n)
			err := x.w.offer(ctx, i, batch, retry)
			if i.dead {
				break
			}
			if err == nil {
				x.checkpoints[mine] = max(x.checkpoints[mine], upTo)
				break
			}
			x.w.advance(hostPause)
			yield(ctx)
		}
	}
}

// time is the timer.
func (x *shuffled) time(ctx context.Context) {
	for range 4 {
		yield(ctx)
		x.w.tick(ctx, x.process(0))
	}
}

// write is the program that produces results: new ones, and other contents of those that are there.
func (x *shuffled) write(ctx context.Context) {
	for range 6 {
		for range x.rng.IntN(15) {
			yield(ctx)
		}
		x.w.advance(time.Second) // within one second two contents are ordered by nothing (docs/rules.md)
		if x.rng.IntN(2) == 0 {
			x.results(1)
			continue
		}
		id := x.w.ids[x.rng.IntN(len(x.w.ids))]
		if x.rng.IntN(3) == 0 {
			x.w.touch(id)
			continue
		}
		x.result(id, x.w.history[id][x.anyContent(id)].lines)
	}
}

// anyContent names a content of a document: all of them have the same lines.
func (x *shuffled) anyContent(id string) string {
	d, _ := x.w.document(id)
	return d.Hash
}

// results puts new documents on a few lines that others have too.
func (x *shuffled) results(n int) {
	for range n {
		x.minute++
		id := fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-%s", x.rng.IntN(60), strings.Repeat("x", x.minute))
		if x.rng.IntN(6) == 0 {
			id = "timeless-" + strings.Repeat("x", x.minute)
		}
		var lines []int64
		for _, at := range x.rng.Perm(shuffledLines)[:1+x.rng.IntN(3)] {
			lines = append(lines, 601+int64(at))
		}
		x.result(id, lines)
	}
}

// result puts a document, good or bad.
func (x *shuffled) result(id string, lines []int64) {
	d := want{id: id, end: invoice.Committed}
	says, duplicates := fmt.Sprintf("content %d", x.rng.IntN(1_000_000)), lines[1:]
	switch x.rng.IntN(10) {
	case 0:
		says, d.end, d.code = refused, "", refusedCode
	case 1:
		says, d.end, d.code = "UNREADABLE", "", unreadableCode
	}
	d.json = doc(id, lines[0], says, "", duplicates...)
	x.w.put(d)
}

// TestInterleaved: two workers, the timer and the program that writes results, in the order that a seed draws, with
// faults.
func TestInterleaved(t *testing.T) {
	if *seedFlag != 0 {
		w := interleaved(*seedFlag, nil)
		for _, s := range w.steps {
			t.Log(s)
		}
		require.Empty(t, w.report())
		return
	}
	var drawn []int64
	first := seeds.First(t)
	if *durationFlag > 0 {
		first = time.Now().UnixNano()
	}
	for n := range cmp.Or(*seedsFlag, size().histories) {
		drawn = append(drawn, first+int64(n))
	}
	steps, faults, runs := 0, 0, 0
	for begin := time.Now(); ; {
		for _, h := range eachSeed(drawn, historyOf) {
			runs++
			steps += h.steps
			faults += h.faults
			if h.report != "" {
				t.Fatal(h.report)
			}
		}
		if time.Since(begin) >= *durationFlag {
			break
		}
		for n := range drawn {
			drawn[n] += int64(len(drawn))
		}
		parses.Clear() // the next histories have documents of their own
	}
	t.Logf("%d histories from seed %d: %d steps, %d faults, 0 violations", runs, first, steps, faults)
	require.Positive(t, faults)
}

// history is the summary of a finished world: hours of them must fit into memory.
type history struct {
	steps, faults int
	// report is empty when nothing was violated.
	report string
}

func historyOf(seed int64) history {
	w := interleaved(seed, nil)
	h := history{steps: len(w.steps)}
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

// eachSeed runs as many at once as there are processors.
func eachSeed[T any](seeds []int64, run func(seed int64) T) []T {
	all := make([]T, len(seeds))
	var at []plan
	for n := range seeds {
		at = append(at, plan{{step: n}})
	}
	each(at, func(p plan) { all[p[0].step] = run(seeds[p[0].step]) })
	return all
}

// TestTheSameSeedGivesTheSameTrace: what a failure prints can be believed.
func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	trace := func(seed int64) string {
		var b strings.Builder
		for _, s := range interleaved(seed, nil).steps {
			fmt.Fprintln(&b, s)
		}
		return b.String()
	}
	different := 0
	for seed := int64(1); seed <= 10; seed++ {
		first := trace(seed)
		require.Equal(t, first, trace(seed), "seed %d", seed)
		require.NotEmpty(t, first)
		if trace(seed+1) != first {
			different++
		}
	}
	require.Equal(t, 10, different, "another seed is another history")
}

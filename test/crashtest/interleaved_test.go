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

const (
	shuffledLines = 12
	// mostSkew is how far a clock is off at most, in half of the histories.
	mostSkew = 10 * time.Minute
)

// interleaved runs the world of one seed until nothing is left to do.
func interleaved(seed int64, broken *mistake) *world {
	w := newWorld(&path{name: "interleaved"}, nil, broken)
	w.scheduled, w.seed, w.renames = true, seed, true
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
	if x.rng.IntN(2) == 0 {
		w.apart = 2 * mostSkew
		w.skews = func() time.Duration { return time.Duration(x.rng.Int64N(int64(2*mostSkew))) - mostSkew }
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
	w.draw, w.skews = nil, nil
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

// write is the program that produces results, and who corrects them: new ones, and other contents of those that are
// there, whose duplicates may shrink and whose key may change. Some are deleted, and some of these are made anew.
func (x *shuffled) write(ctx context.Context) {
	for range 9 {
		for range x.rng.IntN(15) {
			yield(ctx)
		}
		x.w.advance(time.Second) // within one second two contents are ordered by nothing (docs/rules.md)
		if x.rng.IntN(2) == 0 {
			x.results(1)
			continue
		}
		id := x.w.ids[x.rng.IntN(len(x.w.ids))]
		if x.w.deleted[id] {
			x.result(id, x.lines())
			continue
		}
		d, _ := x.w.document(id)
		lines := x.w.history[id][d.Hash].lines
		switch x.rng.IntN(8) {
		case 0, 1:
			x.w.touch(id)
		case 2:
			x.corrects(d, lines[:1+x.rng.IntN(len(lines))])
		case 3:
			x.corrects(d, x.lines())
		case 4, 5:
			x.w.remove(id)
		default:
			x.result(id, lines)
		}
	}
}

// corrects puts a document with other lines, and the content that it has.
func (x *shuffled) corrects(d invoice.Document, lines []int64) {
	if g := x.w.given[d.ID]; g.code == "" {
		x.w.put(want{id: d.ID, end: g.end, json: doc(d.ID, lines[0], d.Values[0].Text, "", lines[1:]...)})
		return
	}
	x.result(d.ID, lines)
}

// lines draws a few lines, the main one first.
func (x *shuffled) lines() (lines []int64) {
	for _, at := range x.rng.Perm(shuffledLines)[:1+x.rng.IntN(3)] {
		lines = append(lines, 601+int64(at))
	}
	return lines
}

// results puts new documents on a few lines that others have too.
func (x *shuffled) results(n int) {
	for range n {
		x.minute++
		id := fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-%s", x.rng.IntN(60), strings.Repeat("x", x.minute))
		if x.rng.IntN(6) == 0 {
			id = "timeless-" + strings.Repeat("x", x.minute)
		}
		x.result(id, x.lines())
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
	runs, sum := 0, history{}
	for begin := time.Now(); ; {
		for _, h := range eachSeed(drawn, historyOf) {
			runs++
			sum.add(h)
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
	t.Logf("%d histories from seed %d: %d steps, %d faults, 0 violations; %d documents deleted, %d made anew, "+
		"%d lines left", runs, first, sum.steps, sum.faults, sum.deleted, sum.remade, sum.left)
	require.Positive(t, min(sum.faults, sum.deleted, sum.remade, sum.left))
}

// history is the summary of a finished world: hours of them must fit into memory.
type history struct {
	steps, faults int
	// deleted and remade count documents; left counts lines that their document names no more.
	deleted, remade, left int
	// report is empty when nothing was violated.
	report string
}

func (h *history) add(o history) {
	h.steps, h.faults = h.steps+o.steps, h.faults+o.faults
	h.deleted, h.remade, h.left = h.deleted+o.deleted, h.remade+o.remade, h.left+o.left
}

func historyOf(seed int64) history {
	w := interleaved(seed, nil)
	h := history{steps: len(w.steps), deleted: w.removed, remade: w.removed - len(w.deleted)}
	for line, r := range w.rows(w.allLines()) {
		if r.entry.Outcome != "" && w.left(r.entry.DocumentID, line) {
			h.left++
		}
	}
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

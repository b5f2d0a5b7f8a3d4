package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kind is what the documents of a call are to the rows that they meet.
type kind string

// The kinds.
const (
	// first: no tracking row and no ledger row is there yet.
	first kind = "first"
	// repeat: a newer result for lines that have one.
	repeat kind = "repeat"
	// unchanged: the same documents again.
	unchanged kind = "unchanged"
	// stale: older results than those that are there.
	stale kind = "stale"
	// oneBad: first results, and the database refuses one of them.
	oneBad kind = "one bad"
)

// turn is which of a line's results a kind takes; higher is newer.
func (k kind) turn() int {
	switch k {
	case stale:
		return 1
	case first, oneBad:
		return 2
	case repeat, unchanged:
		return 3
	}
	return 0
}

// role is what a way is in the comparison. Of several ways with one role the fastest counts.
type role string

// The roles.
const (
	rowByRow role = "a"
	bare     role = "b"
	merge    role = "c"
	ours     role = "d"
)

// way is one way to write documents.
type way struct {
	role role
	name string
	// call is how many documents one call of write takes.
	call int
	// kinds are measured one after the other on the same lines, except oneBad, which has its own.
	kinds []kind
	// write writes documents; an error is one of the bench, or of the database.
	write func(ctx context.Context, docs []doc, k kind) error
}

// lane is an engine at a distance.
type lane struct {
	distance time.Duration
	// trip is how long a round trip of the smallest request took, measured.
	trip time.Duration
	ways []way
	// requests counts what went to the database so far.
	requests func() int64
}

// cell names one figure of a table.
type cell struct {
	way  string
	kind kind
}

// figures are what was measured for a cell, one entry per round.
type figures struct {
	rate, allocs []float64
	// requests are per 100 documents.
	requests float64
}

// effort bounds a measurement.
type effort struct {
	rounds int
	// slice is how long one way is measured at a stretch; it makes at least one call.
	slice time.Duration
	// most is how many documents a slice takes at the most.
	most int
}

// runner measures ways on lines that nobody has written before.
type runner struct {
	// lines makes n new detail rows and answers the first one's id.
	lines func(n int) int64
	effort
}

// measure makes the rounds over the ways of a lane. They are interleaved, in an order that changes from round to round,
// because a machine is not equally fast all the time. Where slices have a length, a round before them warms up, and says
// how many calls fit.
func (r runner) measure(t testing.TB, l lane) map[cell]*figures {
	t.Helper()
	out, last := map[cell]*figures{}, map[string]time.Duration{}
	for round := range r.rounds + 1 {
		if round == 0 && r.slice == 0 {
			continue
		}
		for _, i := range rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(l.ways)) {
			w := l.ways[i]
			calls := 1
			if took := last[w.name]; took > 0 {
				calls = max(1, min(int(r.slice/took), r.most/w.call))
			}
			for k, f := range r.slices(t, w, calls) {
				last[w.name] = max(last[w.name], time.Duration(float64(w.call)/f.rate[0]*float64(time.Second)))
				if round == 0 {
					continue
				}
				c := cell{w.name, k}
				if out[c] == nil {
					out[c] = &figures{}
				}
				out[c].rate, out[c].allocs = append(out[c].rate, f.rate...), append(out[c].allocs, f.allocs...)
			}
		}
	}
	return out
}

// slices measures the kinds of one way with a number of calls each.
func (r runner) slices(t testing.TB, w way, calls int) map[kind]figures {
	t.Helper()
	out, shared := map[kind]figures{}, int64(0)
	for _, k := range w.kinds {
		from := shared
		if k == first || k == oneBad {
			from = r.lines(calls * w.call * linesOf)
			shared = from
		}
		batches := make([][]doc, calls)
		for i := range batches {
			batches[i] = makeDocs(t, from+int64(i*w.call*linesOf), w.call, k.turn())
			if k == oneBad {
				spoil(t, batches[i], badPlace, k.turn())
			}
		}
		out[k] = timed(t, w, k, batches)
	}
	return out
}

// badPlace is where the bad document stands among a hundred.
const badPlace = 37

// timed makes the calls of one slice.
func timed(t testing.TB, w way, k kind, batches [][]doc) figures {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	for _, docs := range batches {
		require.NoError(t, w.write(t.Context(), docs, k), "%s, %s", w.name, k)
	}
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	n := float64(len(batches) * w.call)
	return figures{rate: []float64{n / took.Seconds()}, allocs: []float64{float64(after.Mallocs-before.Mallocs) / n}}
}

// count makes one call of each kind and counts the requests, per 100 documents. It has nothing to do with time.
func (r runner) count(t testing.TB, l lane) map[cell]float64 {
	t.Helper()
	out := map[cell]float64{}
	for _, w := range l.ways {
		shared := int64(0)
		for _, k := range w.kinds {
			from := shared
			if k == first || k == oneBad {
				from = r.lines(w.call * linesOf)
				shared = from
			}
			docs := makeDocs(t, from, w.call, k.turn())
			if k == oneBad {
				spoil(t, docs, badPlace, k.turn())
			}
			before := l.requests()
			require.NoError(t, w.write(t.Context(), docs, k), "%s, %s", w.name, k)
			out[cell{w.name, k}] = float64(l.requests()-before) * 100 / float64(w.call)
		}
	}
	return out
}

// fastest answers the ways with only the fastest one left of each role that has several, by the time for a first and a
// repeated result together.
func fastest(ways []way, found map[cell]*figures) []way {
	best, per := map[role]string{}, map[string]float64{}
	for _, w := range ways {
		for _, k := range []kind{first, repeat} {
			if f := found[cell{w.name, k}]; f != nil {
				per[w.name] += 1 / median(f.rate)
			}
		}
		if b, ok := best[w.role]; w.role != ours && (!ok || per[w.name] < per[b]) {
			best[w.role] = w.name
		}
	}
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w.role != ours && best[w.role] != w.name })
}

// median is the middle of some figures.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// chunks divides documents into calls of at most n.
func chunks(docs []doc, n int, write func(docs []doc) error) error {
	for part := range slices.Chunk(docs, n) {
		if err := write(part); err != nil {
			return fmt.Errorf("a request of %d: %w", len(part), err)
		}
	}
	return nil
}

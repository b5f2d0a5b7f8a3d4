package bench

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kind is what the documents of a call are to the rows that they meet.
type kind string

// The kinds: first results meet lines without a tracking row and a ledger row, repeat ones are newer results for the
// same lines.
const (
	first  kind = "first"
	repeat kind = "repeat"
)

// turn is which of a line's results a kind takes; higher is newer.
func (k kind) turn() int { return map[kind]int{first: 1, repeat: 2}[k] }

// way is one way to write documents. Its name begins with what it is in the comparison: (a), (b) or (c).
type way struct {
	name string
	// call is how many documents one call of write takes.
	call int
	// oneBad has the database refuse one document of each call; there are then first results only.
	oneBad bool
	// write writes documents; an error is one of the bench, or of the database.
	write func(ctx context.Context, docs []doc) error
}

// The names of the ways.
const (
	rowByRow = "(a) row at a time"
	bare     = "(b) bare, 100 documents a request"
	ours1    = "(c) ours, 1 document a call"
	ours100  = "(c) ours, 100"
	oursBad  = "(c) ours, 100, one of them bad"
	oursBad4 = "(c) ours, 100, one of them bad, four parts at once"
)

// kinds are measured one after the other on the same lines.
func (w way) kinds() []kind {
	if w.oneBad {
		return []kind{first}
	}
	return []kind{first, repeat}
}

// lane is an engine at a distance.
type lane struct {
	distance time.Duration
	// trip is how long a round trip of the smallest request took, measured.
	trip time.Duration
	ways []way
	// requests counts what went to the database so far; a direct connection counts nothing.
	requests *atomic.Int64
}

// cell names one figure of a table.
type cell struct {
	way  string
	kind kind
}

// figures are what was measured for a cell.
type figures struct {
	// rates are documents a second, one entry per round.
	rates []float64
	// requests are per 100 documents.
	requests float64
}

// effort bounds a measurement.
type effort struct {
	rounds int
	// slice is how long one way is measured at a stretch; 0 means one call, and no round to warm up.
	slice time.Duration
}

// mostDocuments is how many documents a slice takes at the most.
const mostDocuments = 1000

// measure makes the rounds over the ways of a lane. They are interleaved, in an order that changes from round to round,
// because a machine is not equally fast all the time. A round before them warms up; each says how many calls fit the
// next one's slices.
func measure(t testing.TB, e *engine, l lane, f effort) map[cell]*figures {
	t.Helper()
	out, calls := map[cell]*figures{}, map[string]int{}
	for round := range f.rounds + 1 {
		if round == 0 && f.slice == 0 {
			continue
		}
		for _, i := range rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(l.ways)) {
			w := l.ways[i]
			n := max(1, calls[w.name])
			from := e.lines(t, n*w.call*linesOf)
			for _, k := range w.kinds() {
				rate, requests := timed(t, l, w, k, from, n)
				calls[w.name] = min(int(rate*f.slice.Seconds()), mostDocuments) / w.call
				if round == 0 {
					continue
				}
				c := cell{w.name, k}
				if out[c] == nil {
					out[c] = &figures{}
				}
				out[c].rates, out[c].requests = append(out[c].rates, rate), requests
			}
		}
	}
	return out
}

// badPlace is where the bad document stands among a hundred.
const badPlace = 37

// timed makes the calls of one slice; it answers documents a second, and requests per 100 documents.
func timed(t testing.TB, l lane, w way, k kind, from int64, calls int) (rate, requests float64) {
	t.Helper()
	batches := make([][]doc, calls)
	for i := range batches {
		batches[i] = makeDocs(t, from+int64(i*w.call*linesOf), w.call, k.turn())
		if w.oneBad {
			batches[i][badPlace] = makeDoc(t, batches[i][badPlace].item.Main, k.turn(), refusedCode)
		}
	}
	runtime.GC()
	before, begin := l.requests.Load(), time.Now()
	for _, docs := range batches {
		require.NoError(t, w.write(t.Context(), docs), "%s, %s", w.name, k)
	}
	n := float64(calls * w.call)
	return n / time.Since(begin).Seconds(), float64(l.requests.Load()-before) * 100 / n
}

// median is the middle of some figures.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

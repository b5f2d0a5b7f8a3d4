package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
)

// Row 4: the schema, or the build, refuses everything for eight hours; then it is mended and one more document arrives.
func TestRow04(t *testing.T) {
	const mended = 8 * time.Hour
	schema := func(w *world) {
		w.rule(w.schema(span{0, mended}, 100))
		w.host(max(2, len(w.feed)))
	}
	// A hundred bad documents are some 112 requests: the whole, three times four parts at once, and each alone (ADR
	// 0001).
	const most = 6300
	// The hours in which most is asked are the second to the fourth.
	if !large() && !testing.Short() {
		each(t, "schema, the first three hours of 5,000", one(1), func(w *world) {
			w.arrive(5000, good())
			schema(w)
			w.until(3*time.Hour + 30*time.Minute)
			w.figures()
			w.noneFailed(w.of(""), commit.MaxRetries)
			w.requestsPerHour(most, 2)
		})
	}
	atOnce := func(n int) func(w *world) { return func(w *world) { w.arrive(n, good()) } }
	judge := func(w *world) {
		w.until(mended + 7*time.Minute)
		w.arrive(1, good())
		w.until(mended + 36*time.Minute) // the fifth retry comes 32 to 38 min after the last failure, at a tick
		w.figures()
		w.noneFailed(w.of(""), commit.MaxRetries)
		w.requestsPerHour(most, 2)
		w.allCommitted(w.of(""))
		w.pass(time.Hour)
		w.noneFailed(w.of(""), commit.MaxRetries)
		w.check()
	}
	for _, c := range []struct {
		name     string
		variants []options
		arrive   func(w *world)
		host     func(w *world)
	}{
		{"schema", daily(one(1)), atOnce(less(5000)), schema},
		{"schema", one(2), atOnce(less(5000)), schema},
		{"schema, spread over the time", daily(one(2)), func(w *world) {
			w.every(time.Minute, mended, func() { w.arrive(less(10), good()) })
		}, schema},
		{"schema", []options{{ranges: 2, sqlite: true}}, atOnce(300), schema},
		{"clock 30 s ahead", one(2), atOnce(less(2500)), func(w *world) {
			w.rule(w.schema(span{0, mended}, 100))
			w.start("ahead", process{feed: []int{0}, ticks: true, ahead: 30 * time.Second})
			w.start("b", process{feed: rest(w)})
		}},
		{"clock 30 s behind", daily(one(2)), atOnce(less(2500)), func(w *world) {
			w.rule(w.schema(span{0, mended}, 100))
			w.start("behind", process{feed: rest(w), ahead: -30 * time.Second})
			w.start("b", process{feed: []int{0}, ticks: true})
		}},
		{"build", one(2), atOnce(less(5000)), func(w *world) {
			broken := w.hostOf(2, build{version: "v1", misreads: true})
			w.at(mended, func() {
				for _, i := range broken {
					i.end()
				}
				w.hostOf(2, build{version: "v2"})
			})
		}},
	} {
		each(t, c.name, c.variants, func(w *world) {
			c.arrive(w)
			c.host(w)
			judge(w)
		})
	}
	// Hostile: the broken build runs beside the good one for eight hours, as a deploy in slots does, and owns a range.
	each(t, "broken build beside a good one", []options{{ranges: 2}}, func(w *world) {
		broken := w.start("broken", process{build: build{version: "v2", misreads: true}, feed: []int{0}})
		w.start("good", process{feed: []int{1}, ticks: true})
		w.every(time.Minute, mended, func() { w.arrive(2, good()) })
		w.until(mended)
		broken.end()
		w.start("good too", process{feed: []int{0}})
		judge(w)
	})
}

// less is a fifth of a number, with -short a twentieth, unless the large sizes are asked for.
func less(n int) int {
	switch {
	case large():
		return n
	case testing.Short():
		return max(1, n/20)
	}
	return n / 5
}

// rest are all ranges but the first.
func rest(w *world) (found []int) {
	for n := 1; n < len(w.feed); n++ {
		found = append(found, n)
	}
	return found
}

// requestsPerHour asserts how many requests for documents an hour has at most, and how many more for each document that
// arrives in it.
func (w *world) requestsPerHour(most, perDocument int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	asks, allowed := map[time.Time]int{}, map[time.Time]int{}
	for _, q := range w.requests {
		asks[q.at.Truncate(time.Hour)]++
	}
	for _, d := range w.all {
		allowed[d.arrived.Truncate(time.Hour)] += perDocument
	}
	for hour, n := range asks {
		assert.LessOrEqual(w.t, n, most+allowed[hour], "requests for documents in the hour from %s", hour.Sub(w.began))
	}
}

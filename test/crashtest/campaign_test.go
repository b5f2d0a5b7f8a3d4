package crashtest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

var (
	pathFlag   = flag.String("path", "", "TestReplay: the path of a failure")
	faultsFlag = flag.String("faults", "", "TestReplay: the faults of a failure, STEP:KIND,STEP:KIND")
	pairsFlag  = flag.Int("pairs", 0,
		"TestPairsOfFaults: one in how many pairs is run; 1 is all of them, 0 the share of go test")
)

// without runs a path without faults.
func without(t *testing.T, p *path) (*world, *end) {
	t.Helper()
	w := newWorld(p, nil, nil)
	w.run()
	e := w.verify(nil)
	require.Empty(t, w.report(), "%s without faults", p.name)
	return w, e
}

// report says what was found broken, how to see it again, and the steps.
func (w *world) report() string {
	if len(w.seen) == 0 {
		return ""
	}
	var b strings.Builder
	for _, v := range w.seen {
		fmt.Fprintf(&b, "%s: %s\n", v.promise, v.what)
	}
	again := fmt.Sprintf("TestReplay -path=%s -faults=%s", w.path.name, w.plan)
	if w.scheduled {
		again = fmt.Sprintf("TestInterleaved -seed=%d", w.seed)
		if w.runs != nil {
			again = fmt.Sprintf("TestInterleavedRuns -runseed=%d", w.seed)
		}
	}
	fmt.Fprintf(&b, "see it again: go test ./test/crashtest -v -run %s\n", again)
	for _, s := range w.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// try runs a path with faults.
func try(p *path, faults plan, same *end, broken *mistake) *world {
	w := newWorld(p, faults, broken)
	w.run()
	w.verify(same)
	return w
}

// campaignCounts counts the cases of a campaign and keeps the shortest report.
type campaignCounts struct {
	mu     sync.Mutex
	cases  int
	fired  map[kind]int
	failed int
	first  string
}

func (c *campaignCounts) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cases++
	for f, in := range w.plan {
		if w.fired[f] {
			c.fired[in.kind]++
		}
	}
	if len(w.seen) > 0 {
		if c.failed++; c.first == "" || len(w.report()) < len(c.first) {
			c.first = w.report()
		}
	}
}

// enough reports that so many cases failed that more would show nothing new.
func (c *campaignCounts) enough() bool {
	const most = 20
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed >= most
}

func (c *campaignCounts) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c.fired)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c.fired[k]))
	}
	return fmt.Sprintf("%d runs, %d with violations; fired: %s", c.cases, c.failed, strings.Join(parts, ", "))
}

// each runs something for many plans, as many at once as there are processors.
func each(plans []plan, run func(plan)) {
	next := make(chan plan)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for p := range next {
				run(p)
			}
		})
	}
	for _, p := range plans {
		next <- p
	}
	close(next)
	group.Wait()
}

// singles are the plans of every fault at every step.
func singles(steps int) []plan { return someSingles(steps, 1) }

// someSingles are those of one in share of the kinds of faults, others at each step.
func someSingles(steps, share int) []plan {
	var plans []plan
	for n := range steps {
		for m, k := range kinds() {
			if (n+m)%share == 0 {
				plans = append(plans, plan{{n + 1, k}})
			}
		}
	}
	return plans
}

// shortageSingles are the plans of shortages: at every call that documents go by, and at one in share of the others
// that they hit.
func (p *path) shortageSingles(steps []step, share int) []plan {
	var plans []plan
	for n, s := range steps {
		for m, k := range p.kindsAt(s.port)[len(kinds()):] {
			if s.port == "sink.Apply" || (n+m)%share == 0 {
				plans = append(plans, plan{{n + 1, k}})
			}
		}
	}
	return plans
}

// shares are one in how many kinds of faults a step of a path meets, and one in how many pairs is run.
func (p *path) shares() (kinds, pairs int) {
	kinds, pairs = size().kinds, size().pairs
	if p.runs != nil {
		kinds, pairs = size().runKinds, size().runPairs
	}
	if *pairsFlag > 0 { // the long campaign
		kinds = 1
	}
	return kinds, pairs
}

// single is a run with one fault.
type single struct {
	fault injection
	// down says for each step whether it fell into an outage, ports what it was.
	down  []bool
	ports []string
}

// campaign is a path without faults and with every single one. It is run once, for both tests that want it.
type campaign struct {
	steps   []step
	same    *end
	report  string
	plans   []plan
	singles []single
	counts  campaignCounts
}

var campaigns sync.Map

func campaignOf(p *path) *campaign {
	once, _ := campaigns.LoadOrStore(p.name, sync.OnceValue(func() *campaign {
		clean := newWorld(p, nil, nil)
		clean.run()
		c := &campaign{steps: clean.steps, counts: campaignCounts{fired: map[kind]int{}}}
		c.same = clean.verify(nil)
		c.report = clean.report()
		var mu sync.Mutex
		if c.report != "" { // what is broken without faults is not looked for with them
			return c
		}
		share, _ := p.shares()
		c.plans = append(someSingles(len(c.steps), share), p.shortageSingles(c.steps, shareOfShortages*share)...)
		each(c.plans, func(faults plan) {
			if c.counts.enough() {
				return
			}
			w := try(p, faults, c.same, nil)
			c.counts.add(w)
			mu.Lock()
			defer mu.Unlock()
			s := single{fault: faults[0]}
			for _, step := range w.steps {
				s.down, s.ports = append(s.down, step.kind == down), append(s.ports, step.port)
			}
			c.singles = append(c.singles, s)
		})
		slices.SortFunc(c.singles, func(a, b single) int {
			return cmp.Or(cmp.Compare(a.fault.step, b.fault.step), cmp.Compare(a.fault.kind, b.fault.kind))
		})
		return c
	}))
	return once.(func() *campaign)()
}

// TestEverySingleFault: every fault at every step of every path, restart and recovery included.
func TestEverySingleFault(t *testing.T) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := campaignOf(p)
			require.Empty(t, c.report, "without faults")
			ports := map[string]int{}
			for _, s := range c.steps {
				ports[s.port]++
			}
			t.Logf("%s: %d steps %v; %s", p.name, len(c.steps), ports, &c.counts)
			require.Empty(t, c.counts.first)
			planned := map[kind]int{}
			for _, faults := range c.plans {
				planned[faults[0].kind]++
			}
			require.Equal(t, planned, c.counts.fired)
			if share, _ := p.shares(); share == 1 {
				for _, k := range kinds() {
					require.Equal(t, len(c.steps), planned[k], "%s at every step", k)
				}
			}
		})
	}
}

// TestPairsOfFaults: after every fault at every step, every fault at every later step of the run that this makes,
// restarts and recovery included.
func TestPairsOfFaults(t *testing.T) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			every, seed := *pairsFlag, uint64(time.Now().UnixNano())
			if every == 0 {
				_, every = p.shares()
				seed = 1
			}
			c := campaignOf(p)
			rng := rand.New(rand.NewPCG(seed, 0))
			total := 0
			var pairs []plan
			for _, first := range c.singles {
				for n := first.fault.step; n < len(first.down); n++ {
					for _, k := range p.kindsAt(first.ports[n]) {
						if first.down[n] && k == outage {
							continue // it is down already
						}
						if total++; rng.IntN(every) == 0 {
							pairs = append(pairs, plan{first.fault, {n + 1, k}})
						}
					}
				}
			}
			done := &campaignCounts{fired: map[kind]int{}}
			each(pairs, func(faults plan) { done.add(try(p, faults, c.same, nil)) })
			t.Logf("%s: %d of %d pairs (one in %d, seed %d); %s", p.name, len(pairs), total, every, seed, done)
			require.Empty(t, done.first)
			fired := 0
			for _, n := range done.fired {
				fired += n
			}
			require.Equal(t, 2*len(pairs), fired, "both faults of every pair")
		})
	}
}

// TestReplay shows one failure again: -path and -faults are in its report.
func TestReplay(t *testing.T) {
	if *pathFlag == "" {
		t.Skip("set -path and -faults, as a failure says them")
	}
	p := pathOf(*pathFlag)
	require.NotNil(t, p, "-path")
	var faults plan
	if *faultsFlag != "" {
		var err error
		faults, err = parsePlan(*faultsFlag)
		require.NoError(t, err, "-faults")
	}
	_, same := without(t, p)
	w := newWorld(p, faults, nil)
	w.log = zerolog.New(os.Stdout)
	w.run()
	w.verify(same)
	for _, s := range w.steps {
		t.Log(s)
	}
	for _, id := range w.ids {
		_, raw := w.document(id)
		t.Logf("%s", raw)
	}
	require.Empty(t, w.report())
}

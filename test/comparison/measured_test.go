package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlite"
)

// comparedVariable names the largest environment, in documents. Without it the sizes and rounds are those of the daily
// tests.
const comparedVariable = "SQLWRITER_COMPARED"

// task is a night for another process.
type task struct {
	Connection string        `json:"connection"`
	File       string        `json:"file"`
	Ahead      time.Duration `json:"ahead"`
	Run        string        `json:"run"`
}

// taskVariable has a task as JSON.
const taskVariable = "SQLWRITER_COMPARISON_TASK"

// used is what a night used.
type used struct {
	// Calls are those of ports that ask the database, Units request units.
	Calls int     `json:"calls"`
	Units float64 `json:"units"`
	// RSS is the most memory of the process, Heap the most in use of Go's heap, in bytes.
	RSS  int64         `json:"rss"`
	Heap uint64        `json:"heap"`
	Took time.Duration `json:"took"`
	// Cosmos are requests to the container.
	Cosmos int                     `json:"-"`
	Counts map[reconcile.Class]int `json:"-"`
}

// TestANightOfAnotherProcess is not a test by itself: TestMemoryAndRequestsAreFlat has it execute one run.
func TestANightOfAnotherProcess(t *testing.T) {
	text := os.Getenv(taskVariable)
	if text == "" {
		t.Skip("it is a part of TestMemoryAndRequestsAreFlat")
	}
	var job task
	require.NoError(t, json.Unmarshal([]byte(text), &job))
	var u used
	w := newWorld(t, func(t testing.TB, _ func() time.Time) database {
		t.Helper()
		s, err := sqlite.Open(t.Context(), job.File, sqlite.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return sqliteOf(s)
	}, func(t testing.TB, _ func() time.Time) container {
		t.Helper()
		c, err := cosmos.Open(
			cosmos.Options{Connection: job.Connection, Database: cosmosDatabase, Container: cosmosContainer})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return container{documents: c, finder: c}
	})
	w.pass(job.Ahead)
	w.db.rows, w.db.Findings = countedRows{w.db.rows, &u}, countedFindings{w.db.Findings, &u}
	w.container.finder = countedFinder{w.container.finder, &u}
	stop := watchHeap(&u.Heap)
	began := time.Now()
	w.finish(job.Run)
	u.Took = time.Since(began)
	stop()
	u.RSS = peakRSS(t)
	answer, err := json.Marshal(u)
	require.NoError(t, err)
	fmt.Printf("used %s\n", answer) //nolint:forbidigo // the parent reads it
}

// watchHeap keeps the largest heap in use until stop.
func watchHeap(most *uint64) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*most = max(*most, m.HeapInuse)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done); <-over }
}

// peakRSS is the most memory of this process in bytes; 0 where /proc has it not.
func peakRSS(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			require.NoError(t, err)
			return kb << 10
		}
	}
	return 0
}

// The ports of a night that ask the database, counted.

type countedRows struct {
	reconcile.Rows
	u *used
}

func (c countedRows) Scan(ctx context.Context, after int64, limit int) (reconcile.Scanned, error) {
	c.u.Calls++
	return c.Rows.Scan(ctx, after, limit)
}

func (c countedRows) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	c.u.Calls++
	return c.Rows.Lines(ctx, ids)
}

type countedFindings struct {
	reconcile.Findings
	u *used
}

func (c countedFindings) Next(ctx context.Context) (reconcile.Comparison, bool, error) {
	c.u.Calls++
	return c.Findings.Next(ctx)
}

func (c countedFindings) Last(ctx context.Context) (reconcile.Comparison, bool, error) {
	c.u.Calls++
	return c.Findings.Last(ctx)
}

func (c countedFindings) Save(
	ctx context.Context, of reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key,
) error {
	c.u.Calls++
	return c.Findings.Save(ctx, of, put, drop)
}

func (c countedFindings) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) ([]reconcile.Finding, error) {
	c.u.Calls++
	return c.Findings.List(ctx, q, after, limit)
}

func (c countedFindings) AdoptedAt(ctx context.Context) (time.Time, error) {
	c.u.Calls++
	return c.Findings.AdoptedAt(ctx)
}

type countedFinder struct {
	commit.Finder
	u *used
}

func (c countedFinder) Find(ctx context.Context, q commit.Query, at string) (commit.Page, error) {
	page, err := c.Finder.Find(ctx, q, at)
	c.u.Units += page.Charge
	return page, err
}

// elsewhere has another process execute a comparison.
func (w *world) elsewhere(file string, whole bool) used {
	w.Helper()
	id := w.begin(whole)
	text, err := json.Marshal(
		task{Connection: w.container.connection, File: file, Ahead: time.Duration(w.ahead.Load()), Run: id})
	require.NoError(w, err)
	before := w.container.requests()
	cmd := exec.CommandContext(w.Context(), os.Args[0], "-test.run=^TestANightOfAnotherProcess$", "-test.v") //nolint:gosec // this test itself
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "%s", out)
	_, answer, found := bytes.Cut(out, []byte("used "))
	require.True(w, found, "%s", out)
	var u used
	require.NoError(w, json.NewDecoder(bytes.NewReader(answer)).Decode(&u))
	u.Cosmos = w.container.requests() - before
	c, _, err := w.db.Last(w.Context())
	require.NoError(w, err)
	require.Equal(w, id, c.ID)
	u.Counts = c.Counts
	return u
}

// TestMemoryAndRequestsAreFlat: a night of an environment that is many times larger needs no more memory, and no more
// requests for a thousand lines.
func TestMemoryAndRequestsAreFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("it commits tens of thousands of documents")
	}
	const changed = 500
	sizes := []int64{5000, 20_000}
	if most, err := strconv.ParseInt(os.Getenv(comparedVariable), 10, 64); err == nil {
		sizes = append(sizes, most)
	}
	file := filepath.Join(t.TempDir(), "comparison.db")
	w := newWorld(t, func(t testing.TB, _ func() time.Time) database { t.Helper(); return sqliteIn(t, file) }, emulated)
	var ids []string
	var whole, nightly []used
	w.padding = 4096 - len(document(1))
	for _, size := range sizes {
		for from := int64(len(ids)) + 1; from <= size; from += 1000 {
			more := w.consistent(from, min(1000, size-from+1))
			w.offer(more...)
			ids = append(ids, more...)
		}
		lines := len(w.links)
		w.pass(day)
		all := w.elsewhere(file, true)
		require.Equal(t, map[reconcile.Class]int{reconcile.Consistent: 2 * lines}, nonzero(all.Counts),
			"lines, and documents with lines")
		w.pass(20 * time.Hour)
		w.touch(ids[:changed]...)
		w.pass(4 * time.Hour)
		night := w.elsewhere(file, false)
		require.Equal(t,
			map[reconcile.Class]int{reconcile.Consistent: lines + changed + changed/3}, nonzero(night.Counts))
		whole, nightly = append(whole, all), append(nightly, night)
		for name, u := range map[string]used{"everything": all, "500 changed": night} {
			t.Logf(
				"%d documents, %d lines, %s: %.1f calls and %.2f Cosmos DB requests for 1,000 lines (%d, %d), %.0f request units, peak RSS %.0f MB, heap %.1f MB, %.1f s",
				size, lines, name, per1000(u.Calls, lines), per1000(u.Cosmos, lines), u.Calls, u.Cosmos, u.Units,
				float64(u.RSS)/1e6, float64(u.Heap)/1e6, u.Took.Seconds())
		}
	}
	for i := range whole {
		for _, u := range [][]used{whole, nightly} {
			const slack = 16 << 20
			require.LessOrEqual(t, u[i].RSS, u[0].RSS+slack, "memory at %d documents", sizes[i])
			require.LessOrEqual(t, float64(u[i].Calls)/float64(sizes[i]), 1.05*float64(u[0].Calls)/float64(sizes[0]),
				"calls at %d documents", sizes[i])
			require.LessOrEqual(t, float64(u[i].Cosmos)/float64(sizes[i]), 1.05*float64(u[0].Cosmos)/float64(sizes[0]),
				"requests at %d documents", sizes[i])
		}
		require.InDelta(t, nightly[0].Units, nightly[i].Units, 0.1*nightly[0].Units, "a night costs what changed")
	}
}

func per1000(n, lines int) float64 { return 1000 * float64(n) / float64(lines) }

func nonzero(counts map[reconcile.Class]int) map[reconcile.Class]int {
	found := map[reconcile.Class]int{}
	for class, n := range counts {
		if n != 0 {
			found[class] = n
		}
	}
	return found
}

// TestAThousandLinesCostTheSame measures a pass over the ledger, where nothing differs: a thousand lines take the same
// time however many there are.
func TestAThousandLinesCostTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	sizes := []int64{3000, 60_000}
	if most, err := strconv.ParseInt(os.Getenv(comparedVariable), 10, 64); err == nil {
		sizes = []int64{most / 10, 3 * most / 10, most}
	}
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open, inMemoryContainer)
			w.offer(w.consistent(1, 1)...)
			var fastest []time.Duration
			made := int64(0)
			for _, size := range sizes {
				for _, table := range []string{"IVCE_DTL", "IVCE_TRKG_MSTR", ledgerTable} {
					w.db.copies(t, table, 1, duplicateOf+made, size-made)
				}
				made = size
				var took []time.Duration
				const pages = 100 // spread over all lines
				for i := range int64(pages) {
					began := time.Now()
					page, err := w.db.rows.Scan(t.Context(), duplicateOf+(size-reconcile.MaxScan)*i/pages,
						reconcile.MaxScan)
					require.NoError(t, err)
					require.Equal(t, reconcile.MaxScan, page.Same)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				fastest = append(fastest, took[0])
				t.Logf("%s: %d lines, 1,000 lines of both tables in %v, median; 99 of 100 in %v, the slowest in %v",
					name, size, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
			}
			for _, d := range fastest { // what else the machine does slows the others
				const mistake = 3 // docs/figures.md has what was measured
				require.Less(t, d, mistake*fastest[0])
			}
		})
	}
}

// TestADrainBesideAComparison measures by what a comparison slows a drain, in one process. Each round drains twice:
// alone, and beside a comparison at the rates of the nightly one.
func TestADrainBesideAComparison(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open, inMemoryContainer) // an emulator would share the processors
			w.options.RequestUnits, w.options.Wait = requestUnits, nil
			w.offer(w.consistent(1, 5000)...)
			b := &beside{world: w, next: 10_001}
			b.drain()
			rounds := 4
			if os.Getenv(comparedVariable) != "" {
				rounds = 16
			}
			var alone, both []time.Duration
			for round := range rounds {
				measured := []func(){func() { alone = append(alone, b.drain()) }, func() {
					both = append(both, b.drainBeside())
				}}
				if round%2 == 1 {
					slices.Reverse(measured)
				}
				measured[0]()
				measured[1]()
			}
			var ratios []float64
			for i := range rounds {
				ratios = append(ratios, both[i].Seconds()/alone[i].Seconds())
			}
			slices.Sort(ratios)
			median := (ratios[rounds/2-1] + ratios[rounds/2]) / 2
			t.Logf(
				"%s: %d rounds of %d documents, alone %.0f a second, beside a comparison %.0f, in which it made %d steps; median of the ratios of the times %.2f, from %.2f to %.2f",
				name, rounds, drained, perSecond(alone), perSecond(both), b.steps.Load(), median,
				ratios[0], ratios[rounds-1])
			const mistake = 4 // docs/figures.md has what was measured
			require.Less(t, median, float64(mistake))
		})
	}
}

const (
	// drained is how many documents a drain has.
	drained = 3000
	// requestUnits is the rate of the nightly comparison.
	requestUnits = 200
)

func perSecond(took []time.Duration) float64 {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return float64(len(took)*drained) / sum.Seconds()
}

// beside is a world with drains, and comparisons that are left when a drain is over.
type beside struct {
	*world

	next  int64
	steps atomic.Int64
}

// drain makes documents, and gives the time in which a run commits them.
func (b *beside) drain() time.Duration {
	b.Helper()
	b.consistent(b.next, drained)
	b.next += drained
	started, err := b.ops.StartRun(b.operator(), ops.StartRequest{Kind: run.Drain, Why: "a measurement"})
	require.NoError(b, err)
	began := time.Now()
	done, err := b.executor().Execute(b.Context(), started.Run)
	took := time.Since(began)
	require.NoError(b, err)
	require.Equal(b, run.Executed{}, done)
	stats, err := b.db.runs.Stats(b.Context(), started.Run)
	require.NoError(b, err)
	require.Equal(b, map[invoice.Outcome]int{invoice.OutcomeApplied: drained}, stats.Outcomes)
	return took
}

// drainBeside is a drain beside comparisons of everything.
func (b *beside) drainBeside() (took time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	begun, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	compares := reconcile.New(reconcile.Ports{
		Rows: b.db.rows, Findings: asked{b.db.Findings}, Finder: b.container.finder, Breaker: b.breaker,
		Mend: func(context.Context, string) error { return nil },
	}, reconcile.Options{SysName: sysName, Log: zerolog.Nop(), Now: b.now, RequestUnits: requestUnits})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			if _, goesOn, err := b.db.Next(ctx); err == nil && !goesOn {
				b.nights++
				if _, err := b.db.Begin(ctx,
					reconcile.Comparison{
						ID: fmt.Sprint("measured-", b.nights), Whole: true, By: "ann", Why: "a measurement",
					}); err != nil {
					return
				}
			}
			once.Do(func() { close(begun) })
			steps, _ := compares.Tick(ctx) // the next round goes on
			b.steps.Add(int64(steps))
		}
	}()
	select {
	case <-begun:
	case <-over:
		require.Fail(b, "the comparison could not be started")
	}
	took = b.drain()
	cancel()
	<-over
	return took
}

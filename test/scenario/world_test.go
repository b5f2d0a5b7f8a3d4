package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/spies"
)

const (
	sysName   = "web"
	maxPoison = 100
)

// world is what outlives every process: container, database, control document, blobs, the feed, and the clock of a
// synctest bubble. Spies (spies_test.go, store_spy_test.go) stand between it and the product and see every request.
type world struct {
	t        *testing.T
	zone     *time.Location
	docs     *inmem.Documents
	base     database
	evidence *inmem.Evidence
	store    *inmem.RunStore
	// runs and batches are the queues of managers and workers.
	runs, batches *spies.Bus
	log           zerolog.Logger
	logs          *logRecorder
	began         time.Time

	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup

	// feed are the ranges of the feed; cost is how long a request takes.
	feed []*feedRange
	cost time.Duration
	// patchCost is how long a patch of a document takes, batchCost what a batch of the feed costs the host.
	patchCost, batchCost time.Duration

	mu sync.Mutex
	// control is the store of the control document; a test puts another one here when it is lost.
	control *inmem.Control
	// controlDown says that the control document can be neither read nor written.
	controlDown bool
	serial      int64
	docOf       map[string]*doc
	byLine      map[int64]*doc
	all         []*doc
	rules       []rule
	// requests are the requests for documents that write, heartbeats the heartbeats, applied the times at which
	// something was applied.
	requests, heartbeats []asked
	applied              []time.Time
	flow                 []change
	poison               map[time.Time]int // by hour, as the control document counts them
	instances            []*instance
	invocations          []invocation
	ticks                []tick
	// rewritten is how often a document was rewritten.
	rewritten map[string]int
	shadow    *shadow
	// stuck are ranges whose lease is stuck.
	stuck map[int]bool
}

// asked is one request to SQL.
type asked struct {
	at       time.Time
	instance string
	n        int
}

// change is a change of the breaker in the control document.
type change struct {
	at time.Time
	is flow
	// why is the kind and code of the failure that opened it.
	why string
}

// flow is what the breaker lets pass.
type flow string

const (
	closed   flow = "closed"
	halfOpen flow = "half-open"
	opened   flow = "open"
)

// options are what a test wants otherwise.
type options struct {
	ranges int
	sqlite bool
	cost   time.Duration
	// daily leaves it out with -short: make e2e plays it.
	daily bool
}

func (o options) String() string {
	name := "memory"
	if o.sqlite {
		name = "sqlite"
	}
	if o.ranges == 1 {
		return name + "/1 range"
	}
	return fmt.Sprintf("%s/%d ranges", name, o.ranges)
}

// memory is what most variants run on: the in-memory sink with one and with two feed ranges.
func memory() []options { return []options{{ranges: 1}, {ranges: 2}} }

// both adds SQLite with two ranges. Few scenarios do: a file costs ten times the time of memory.
func both() []options { return append(memory(), options{ranges: 2, sqlite: true}) }

// one is the in-memory sink with as many ranges.
func one(ranges int) []options { return []options{{ranges: ranges}} }

// daily are variants that take long, or that say nearly what another one of the row says.
func daily(variants []options) []options {
	for i := range variants {
		variants[i].daily = true
	}
	return variants
}

// large reports whether the large sizes are asked for: SQLWRITER_SCENARIOS=full.
func large() bool { return os.Getenv("SQLWRITER_SCENARIOS") == "full" }

// each plays a scenario in a bubble of its own for each of the options; with -short for one of them only, in
// memory with two ranges when it is there.
func each(t *testing.T, name string, variants []options, play func(w *world)) {
	t.Helper()
	if testing.Short() {
		variants = variants[min(1, len(variants)-1):][:1]
	}
	for _, o := range variants {
		if o.daily && testing.Short() {
			continue
		}
		t.Run(strings.TrimSpace(name+" "+o.String()), func(t *testing.T) {
			t.Parallel()
			simulate(t, o, play)
		})
	}
}

// simulate plays one scenario.
func simulate(t *testing.T, o options, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.close()
		play(w)
	})
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	zone, err := time.LoadLocation("America/Chicago")
	require.NoError(t, err)
	// Six in the evening in Chicago.
	time.Sleep(time.Until(time.Date(2025, 12, 19, 0, 0, 0, 0, time.UTC)))
	w := &world{
		t: t, zone: zone, docs: inmem.NewDocuments(time.Now), control: inmem.NewControl(),
		evidence: inmem.NewEvidence(),
		store:    inmem.NewRunStore(time.Now, sysName), runs: spies.NewBus(), batches: spies.NewBus(),
		rewritten: map[string]int{},
		logs:      newLogRecorder(), docOf: map[string]*doc{}, byLine: map[int64]*doc{}, poison: map[time.Time]int{},
		began: time.Now(), cost: o.cost,
	}
	if w.cost == 0 {
		w.cost = 2 * time.Millisecond
	}
	w.log = zerolog.New(w.logs).Level(zerolog.InfoLevel)
	w.base = openDatabase(t, o.sqlite)
	w.ctx, w.stop = context.WithCancel(context.Background())
	for range max(1, o.ranges) {
		w.feed = append(w.feed, newFeedRange())
	}
	return w
}

func (w *world) close() {
	w.stop()
	w.group.Wait()
	w.base.close()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { time.Sleep(d) }

// until lets time pass until a moment after the beginning.
func (w *world) until(d time.Duration) { time.Sleep(time.Until(w.began.Add(d))) }

// at does something at a moment after the beginning.
func (w *world) at(d time.Duration, f func()) {
	w.group.Go(func() {
		if pause(w.ctx, time.Until(w.began.Add(d))) == nil {
			f()
		}
	})
}

// every does something again and again until a moment after the beginning.
func (w *world) every(d, until time.Duration, f func()) {
	w.group.Go(func() {
		for time.Since(w.began) < until {
			f()
			if pause(w.ctx, d) != nil {
				return
			}
		}
	})
}

// pause sleeps unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// doc is a document and what was seen of it. The world's lock guards what changes.
type doc struct {
	id, kind, maker string
	line            int64
	rng             int
	behaves         behaviour
	arrived         time.Time
	// deep says that it has 64 levels: its range of the feed stops at it.
	deep bool

	// The rest is what was seen: in patches of the document, and in requests.
	committed, failed time.Time
	outcome           invoice.Outcome
	maxRetries        int
	failures          []failure
	tries             []time.Time
	// brought says that an invocation of the feed has ended that was the first to bring it; broughtDone that it was
	// committed then.
	brought, broughtDone bool
}

// failure is a document's own failure, from its patch.
type failure struct {
	at         time.Time
	kind, code string
	retries    int
}

// like is how the next documents are.
type like struct {
	kind string
	// rng pins them to a feed range; anyRange spreads them.
	rng int
	// missing says that the line is not there until addLines.
	missing bool
	deep    bool
	behaves behaviour
}

// anyRange spreads documents over the ranges.
const anyRange = -1

func good() like { return like{kind: "good", rng: anyRange} }

// arrive puts n documents into the container, as the API does.
func (w *world) arrive(n int, l like) []*doc {
	w.t.Helper()
	docs := make([]*doc, n)
	for k := range docs {
		w.mu.Lock()
		w.serial++
		line := w.serial
		d := &doc{
			id: fmt.Sprintf("%s-%04d-%d",
				time.Now().In(w.zone).Format("2006-01-02 15:04:05.000000-07:00"), line%10000, line),
			kind: l.kind, maker: fmt.Sprint("maker ", line), line: line, rng: l.rng, deep: l.deep,
			behaves: l.behaves, arrived: time.Now(),
		}
		if d.rng == anyRange {
			d.rng = int(line) % len(w.feed)
		}
		w.docOf[d.id], w.byLine[line] = d, d
		w.all = append(w.all, d)
		docs[k] = d
		w.mu.Unlock()
	}
	if !l.missing {
		w.addLines(docs)
	}
	for _, d := range docs {
		w.put(d)
	}
	return docs
}

// put writes a document as the API does, and the feed has it.
func (w *world) put(d *doc) {
	levels := 1
	if d.deep {
		levels = 63
	}
	raw := fmt.Sprintf(`{"id":%q,"notes":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+
		`,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":[]},"sql_writer":{"status":"pending","retry_count":0}}`, d.id, d.line, d.maker)
	if err := w.docs.Put(json.RawMessage(raw)); err != nil {
		panic(err)
	}
	w.changed(d.rng, d.id)
}

// addLines makes the lines of documents.
func (w *world) addLines(docs []*doc) {
	lines := make([]int64, len(docs))
	for i, d := range docs {
		lines[i] = d.line
	}
	w.base.addLines(lines...)
}

// of lists the documents of a kind; "" is all.
func (w *world) of(kind string) []*doc {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*doc
	for _, d := range w.all {
		if kind == "" || d.kind == kind {
			found = append(found, d)
		}
	}
	return found
}

// state reads sql_writer of a document.
func (w *world) state(d *doc) invoice.State {
	raw, err := w.docs.Read(context.Background(), d.id)
	require.NoError(w.t, err)
	var found struct {
		State invoice.State `json:"sql_writer"`
	}
	require.NoError(w.t, json.Unmarshal(raw, &found))
	return found.State
}

// recorded takes in a patch of a document that was done.
func (w *world) recorded(id string, s invoice.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docOf[id]
	if d == nil {
		return
	}
	now := time.Now()
	switch s.Status {
	case invoice.Committed:
		if d.committed.IsZero() {
			d.committed, d.outcome = now, s.Outcome
		}
	case invoice.Failed:
		if d.failed.IsZero() {
			d.failed = now
		}
	case invoice.Pending, invoice.RetryScheduled, invoice.Processing:
	}
	d.maxRetries = max(d.maxRetries, s.RetryCount)
	if s.Status == invoice.RetryScheduled || s.Status == invoice.Failed {
		d.failures = append(d.failures, failure{now, s.LastErrorKind, s.LastErrorCode, s.RetryCount})
	}
}

// check asserts the invariants that hold after every scenario: each committed document's line has its content, no
// document is gone, and every failure has its evidence.
func (w *world) check() {
	w.t.Helper()
	evidence, failed := 0, 0
	for name := range w.evidence.Files() {
		if strings.HasSuffix(name, "/metadata.json") { // it comes last: the evidence is whole
			evidence++
		}
	}
	for _, d := range w.of("") {
		s := w.state(d)
		if s.Status == invoice.Committed && d.outcome != "superseded" {
			require.Equal(w.t, d.maker, w.base.maker(d.line), "%s is committed and its line holds something else", d.id)
		}
		if s.Status == invoice.Failed {
			failed++
		}
	}
	require.GreaterOrEqual(w.t, evidence, failed, "every poison message has its evidence")
}

// uncommitted are those of a kind that are not committed.
func (w *world) uncommitted(docs []*doc) []*doc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(docs), func(d *doc) bool { return !d.committed.IsZero() })
}

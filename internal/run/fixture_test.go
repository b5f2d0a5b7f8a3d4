package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
	"sqlwriter/test/logcheck"
)

const sysName = "web"

// world is an app over in-memory ports, on the clock of a synctest bubble: time advances when every goroutine waits.
// Instances receive messages of two queues as the host delivers them. An unhandled message returns at once, and after
// ten deliveries it is a dead letter. After the death of its process a message returns when its lock expires.
type world struct {
	t        testingT
	docs     *inmem.Documents
	sink     *inmem.Sink
	control  *inmem.Control
	evidence *inmem.Evidence
	store    *inmem.RunStore
	runs     *bus
	batches  *bus

	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup

	mu sync.Mutex
	// hook is called before each use of a port; an error prevents the use.
	hook func(ctx context.Context, i *instance, op string) error
	// asked are the times at which SQL was used.
	asked   []time.Time
	sqlDown bool
	// calls are the completed invocations.
	calls []call
	// seen are the batches after the last use of the store. maxOutstanding and maxLost are the most outstanding
	// batches, and the most workers lost with one batch.
	seen                    map[string]run.Batch
	maxOutstanding, maxLost int
	// invalid are changes of batches that the table of transitions lacks.
	invalid []string
	// unsavedIDs counts ids that the selection returned and no chunk has stored yet.
	unsavedIDs, maxUnsavedIDs int
	// killed says that an instance died: its heartbeats end a moment later.
	killed bool
	// fake replaces documents and Commit.
	fake *fakeWrites
	// pages is the size of the container's pages, outstanding the limit of outstanding batches.
	pages, outstanding int
	// batchSize and chunkSize replace the defaults unless 0.
	batchSize, chunkSize int
	// kinds replaces the kinds of the product unless nil.
	kinds run.KindTable
	// skews are how far the clocks of instances are off.
	skews map[string]time.Duration
	// breaks is a document whose requests fail like an outage.
	breaks string
	// log is that of the instances to come.
	log zerolog.Logger
	// frozen lets uses of the store arrive however late they are.
	frozen bool
}

// testingT is the part of testing.T that world needs.
type testingT interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

// call is a completed invocation.
type call struct {
	function, instance string
	begin, end         time.Time
	count              int
	done               run.Handled
	err                error
}

// simulate runs a test in a bubble.
func simulate(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		f(t, w)
	})
}

func newWorld(t testingT) *world {
	w := &world{
		t: t, docs: inmem.NewDocuments(time.Now), sink: inmem.NewSink(), control: inmem.NewControl(),
		evidence: inmem.NewEvidence(),
		store:    inmem.NewRunStore(time.Now, "web"), runs: newBus(), batches: newBus(), seen: map[string]run.Batch{},
		log: zerolog.New(logcheck.Writer(t)),
	}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

func (w *world) close() {
	w.stop()
	w.mu.Lock()
	killed := w.killed
	w.mu.Unlock()
	if killed {
		time.Sleep(2 * time.Minute) // the heartbeats of the dead notice it at their next beat
	}
	w.group.Wait()
}

func (w *world) onUse(hook func(ctx context.Context, i *instance, op string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

// asks counts the uses of SQL so far.
func (w *world) asks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// maxOnTheWay is the most outstanding batches at one time.
func (w *world) maxOnTheWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxOutstanding
}

// lostWorkers is the most workers lost with one batch.
func (w *world) lostWorkers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxLost
}

func (w *world) maxIDs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxUnsavedIDs
}

// sql makes SQL reachable or not.
func (w *world) sql(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sqlDown = !up
}

// fill adds pending documents and returns their ids in order.
func (w *world) fill(n int) []string {
	w.t.Helper()
	ids := make([]string, n)
	for k := range n {
		ids[k] = w.put(k+1, fmt.Sprint("maker ", k+1), `{"status":"pending","retry_count":0}`)
	}
	return ids
}

// put adds a document for a line.
func (w *world) put(line int, maker, state string) (id string) {
	return w.putOn(line, maker, state, int64(line))
}

// putOn is put for a document that names other lines, the main one first.
func (w *world) putOn(number int, maker, state string, lines ...int64) (id string) {
	w.t.Helper()
	id = docID(number)
	w.sink.AddLines(lines...)
	duplicates, err := json.Marshal(lines[1:])
	require.NoError(w.t, err)
	doc := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":%s},"sql_writer":%s}`, id, lines[0], maker, duplicates, state)
	require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	return id
}

// docID has a time a few hours before the bubble's clock starts.
func docID(line int) string {
	return fmt.Sprintf("1999-12-31 10:00:00.%06d-06:00-0001-%d", line, line)
}

// state reads sql_writer.
func (w *world) state(id string) invoice.State {
	w.t.Helper()
	raw, err := w.docs.Read(context.Background(), id)
	require.NoError(w.t, err)
	var d struct {
		State invoice.State `json:"sql_writer"`
	}
	require.NoError(w.t, json.Unmarshal(raw, &d))
	return d.State
}

// maker reads the column that documents of fill write.
func (w *world) maker(line int) string {
	w.t.Helper()
	l, ok := w.sink.Line(int64(line))
	require.True(w.t, ok)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == invoice.Detail && c.Name == "CLN_MFR_AI_NM" {
			return l.Values[i].Text
		}
	}
	require.Fail(w.t, "no such column")
	return ""
}

// start starts a run and sends its first message.
func (w *world) start(r run.Run, f run.Filter) run.Run {
	w.t.Helper()
	r = w.startHere(r, f)
	w.notify(r.ID)
	return r
}

// startHere starts a run without a message.
func (w *world) startHere(r run.Run, f run.Filter) run.Run {
	w.t.Helper()
	raw, err := json.Marshal(f)
	require.NoError(w.t, err)
	if r.ID == "" {
		r.ID = "run-1"
	}
	if r.Kind == "" {
		r.Kind = run.Drain
	}
	r.SysName, r.Filter, r.RequestedBy, r.Why = sysName, raw, "ann", "a test"
	require.NoError(w.t,
		w.store.StartRun(w.ctx, r,
			run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "a test", Run: r.ID}))
	return r
}

// notify sends a message about a run.
func (w *world) notify(id string) {
	w.t.Helper()
	r, ok, err := w.store.Run(w.ctx, id)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	require.NoError(w.t, w.runs.Send(w.ctx, []run.Outgoing{run.RunPayload(r).Outgoing(0)})[0])
}

func (w *world) run(id string) run.Run {
	r, _, err := w.store.Run(context.Background(), id)
	require.NoError(w.t, err)
	return r
}

func (w *world) stats(id string) run.Stats {
	s, err := w.store.Stats(context.Background(), id)
	require.NoError(w.t, err)
	return s
}

// until waits for a condition.
func (w *world) until(most time.Duration, what string, so func() bool) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for !so() {
		if time.Since(begin) > most {
			w.explain()
			require.Fail(w.t, "not within "+most.String(), what)
		}
		time.Sleep(time.Second)
	}
	synctest.Wait() // the goroutine that changed it is done, too
	return time.Since(begin)
}

// explain logs runs and invocations.
func (w *world) explain() {
	w.t.Helper()
	for _, r := range []string{"run-1", "run-2"} {
		if row := w.run(r); row.ID != "" {
			w.t.Logf("%s at %s: %+v %+v", r, time.Now().Format(time.TimeOnly), row, w.stats(r))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls[max(0, len(w.calls)-30):] {
		w.t.Logf("%s %s %s-%s count %d %+v %v", c.instance, c.function, c.begin.Format(time.TimeOnly),
			c.end.Format(time.TimeOnly), c.count, c.done, c.err)
	}
}

// waitForEnd waits for a run's end.
func (w *world) waitForEnd(id string, most time.Duration) time.Duration {
	w.t.Helper()
	return w.until(most, id+" is over", func() bool { return w.run(id).Status != run.RunRunning })
}

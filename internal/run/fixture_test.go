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
)

const sysName = "web"

// world is an app over ports in memory, on the clock of a synctest bubble: time moves when everybody waits. Instances take
// messages of two queues, as the host brings them: a message that is not handled is there again at once, after ten times it
// is a dead letter, and one whose process died comes again when its lock is over.
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
	// hook sees each use of a port before it is made; an error stops it.
	hook func(ctx context.Context, i *instance, op string) error
	// asked are the times at which SQL was asked, by whatever.
	asked []time.Time
	// sqlDown says that SQL cannot be reached.
	sqlDown bool
	// calls are the invocations that have ended.
	calls []call
	// seen are the batches as they were after the last use of the books; most counts those on their way at once, mostLost the
	// workers that were lost with one of them.
	seen                    map[string]run.Batch
	maxOutstanding, maxLost int
	// unlawful are changes of batches that are not in the table.
	invalid []string
	// held is how many ids were given by the selection and not yet kept by a chunk; mostHeld is the most.
	unsavedIDs, maxUnsavedIDs int
	// killed says that an instance died: its heartbeats end a moment later.
	killed bool
	// light replaces what takes documents to SQL.
	fake *fakeWrites
	// pages is the size of the container's pages, outstanding how many batches may be on their way.
	pages, outstanding int
	// batchSize and chunkSize are smaller than usual where every step is broken; 0 means as usual.
	batchSize, chunkSize int
	// log is that of the instances to come.
	log zerolog.Logger
	// frozen says that uses of the books arrive however late they are.
	frozen bool
}

// testingT is what the world needs of a test.
type testingT interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

// call is an invocation that has ended.
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
		t: t, docs: inmem.NewDocuments(time.Now), sink: inmem.NewSink(), control: inmem.NewControl(), evidence: inmem.NewEvidence(),
		store: inmem.NewRunStore(time.Now, "web"), runs: newBus(), batches: newBus(), seen: map[string]run.Batch{},
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

// onUse sets the hook.
func (w *world) onUse(hook func(ctx context.Context, i *instance, op string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

// asks is how often SQL was asked so far.
func (w *world) asks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// mostOnTheWay is how many batches were on their way at once, mostIDs how many ids were found and not kept yet.
func (w *world) maxOnTheWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxOutstanding
}

// lost is how many workers were lost with one batch at most.
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

// sql says whether SQL can be reached.
func (w *world) sql(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sqlDown = !up
}

// fill puts pending documents into the container and answers their ids, in their order.
func (w *world) fill(n int) []string {
	w.t.Helper()
	ids := make([]string, n)
	for k := range n {
		ids[k] = w.put(k+1, fmt.Sprint("maker ", k+1), `{"status":"pending","retry_count":0}`)
	}
	return ids
}

// put puts a document for a line into the container.
func (w *world) put(line int, maker, state string) (id string) {
	w.t.Helper()
	id = docID(line)
	w.sink.AddLines(int64(line))
	doc := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},"sql_writer":%s}`, id, line, maker, state)
	require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	return id
}

// docID has a time a few hours before the bubble's clock begins.
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

// maker reads the column of a line that documents of fill write.
func (w *world) maker(line int) string {
	w.t.Helper()
	l, ok := w.sink.Line(int64(line))
	require.True(w.t, ok)
	for i, c := range invoice.Columns() {
		if c.Table == invoice.Detail && c.Name == "CLN_MFR_AI_NM" {
			return l.Values[i].Text
		}
	}
	require.Fail(w.t, "no such column")
	return ""
}

// start asks for a run and sends its first message.
func (w *world) start(r run.Run, f run.Filter) run.Run {
	w.t.Helper()
	raw, err := json.Marshal(f)
	require.NoError(w.t, err)
	if r.ID == "" {
		r.ID = "run-1"
	}
	if r.Kind == "" {
		r.Kind = run.Drain
	}
	if r.Pattern == "" {
		r.Pattern = run.Checkpoint
	}
	r.SysName, r.Filter, r.RequestedBy, r.Why = sysName, raw, "ann", "a test"
	require.NoError(w.t, w.store.StartRun(w.ctx, r, run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "a test", Run: r.ID}))
	w.notify(r.ID)
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

// until lets time pass until something is so.
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
	synctest.Wait() // whoever made it so is done, too
	return time.Since(begin)
}

// explain logs how things stand.
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
		w.t.Logf("%s %s %s-%s count %d %+v %v", c.instance, c.function, c.begin.Format(time.TimeOnly), c.end.Format(time.TimeOnly), c.count, c.done, c.err)
	}
}

// over waits for a run's end.
func (w *world) waitForEnd(id string, most time.Duration) time.Duration {
	w.t.Helper()
	return w.until(most, id+" is over", func() bool { return w.run(id).Status != run.RunRunning })
}

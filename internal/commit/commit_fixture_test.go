package commit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/logcheck"
)

// start is the time at which every test begins.
func start() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

// world is one container, one database and one Commit, on a clock that only the test moves.
type world struct {
	t      *testing.T
	clock  time.Time
	docs   *inmem.Documents
	sink   *inmem.Sink
	faulty *faulty
	// All instances of the app share control and evidence; breaker and commit belong to one instance.
	control  *inmem.Control
	evidence *inmem.Evidence
	breaker  *breaker.Breaker
	commit   *commit.Commit
	log      bytes.Buffer

	applied int
	// mapping is that of the build; nil means the default. The old writer has it, too.
	mapping *invoice.Mapping
}

// maps lets the next instance or shadow have a mapping, of which each column is one of the default's.
func (w *world) maps(m *invoice.Mapping) { w.mapping, w.faulty.sink = m, w.sink.Under(m) }

func newWorld(t *testing.T, lines ...int64) *world {
	t.Helper()
	w := &world{t: t, clock: start()}
	t.Cleanup(func() { logcheck.Lines(t, w.log.Bytes()) })
	now := func() time.Time { return w.clock }
	w.docs, w.sink = inmem.NewDocuments(now), inmem.NewSinkOn(now)
	w.sink.AddLines(lines...)
	w.faulty = &faulty{docs: w.docs, sink: w.sink}
	w.control, w.evidence = inmem.NewControl(), inmem.NewEvidence()
	w.use(w.faulty)
	return w
}

// instance makes another instance of the app over the same container and control document. change, if given, changes
// its options.
func (w *world) instance(
	name, build string, sink commit.Sink, change func(*commit.Options),
) (*breaker.Breaker, *commit.Commit) {
	w.t.Helper()
	now, log, draw := func() time.Time {
		return w.clock
	}, zerolog.New(zerolog.SyncWriter(&w.log)), func() float64 { return 0.5 }
	b := breaker.New(w.control, breaker.Options{
		Instance: name, Build: build, Log: log, Now: now, Draw: draw,
		SysName: "web", Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
		Wait: func(_ context.Context, d time.Duration) error { w.clock = w.clock.Add(d); return nil },
	})
	o := commit.Options{
		SysName: "web", Location: chicago(w.t), Now: now, Draw: draw, Parallel: 1, Log: log,
		Wait:    func(context.Context, time.Duration) error { return nil },
		Breaker: b, Evidence: w.evidence, Container: "AI_PROCESS_LOGS", AppVersion: build,
		Reader: invoice.Reader{Mapping: w.mapping},
	}
	if change != nil {
		change(&o)
	}
	return b, commit.NewCommit(w.faulty, sink, o)
}

// use replaces the world's instance by one over another sink.
func (w *world) use(sink commit.Sink) {
	w.t.Helper()
	w.breaker, w.commit = w.instance("a", "v1", sink, nil)
}

// othersApply writes another document a minute later, which proves the failures before it.
func (w *world) othersApply() {
	w.t.Helper()
	const line = 9_999
	w.sink.AddLines(line)
	w.applied++
	w.clock = w.clock.Add(time.Minute)
	doc := result(w.applied%60, line, fmt.Sprint("other ", w.applied), "")
	require.Equal(w.t, 1, w.run(w.put(doc)...).Outcomes["applied"])
}

// put writes documents as the API does, and gives their snapshots as the feed shows them.
func (w *world) put(docs ...string) []json.RawMessage {
	w.t.Helper()
	var ids []string
	for _, d := range docs {
		require.NoError(w.t, w.docs.Put(json.RawMessage(d)))
		ids = append(ids, idOf(w.t, d))
	}
	return w.snapshots(ids...)
}

func (w *world) snapshots(ids ...string) []json.RawMessage {
	w.t.Helper()
	raws := make([]json.RawMessage, len(ids))
	for i, id := range ids {
		raw, err := w.docs.Read(w.t.Context(), id)
		require.NoError(w.t, err)
		raws[i] = raw
	}
	return raws
}

func (w *world) run(snapshots ...json.RawMessage) commit.Report {
	w.t.Helper()
	report, err := w.offer(0, snapshots...)
	require.NoError(w.t, err)
	return report
}

func (w *world) offer(retry int, snapshots ...json.RawMessage) (commit.Report, error) {
	w.t.Helper()
	return w.batch(commit.Delivery{Documents: snapshots, RetryCount: retry})
}

// retry commits the current documents as the recovery timer does.
func (w *world) retry(ids ...string) commit.Report {
	w.t.Helper()
	report, err := w.batch(commit.Delivery{Documents: w.snapshots(ids...), Purpose: commit.FromTimer})
	require.NoError(w.t, err)
	return report
}

// again puts documents and commits them as the recovery timer does.
func (w *world) again(docs ...string) commit.Report {
	w.t.Helper()
	var ids []string
	for _, d := range docs {
		ids = append(ids, idOf(w.t, d))
	}
	w.put(docs...)
	return w.retry(ids...)
}

func (w *world) batch(b commit.Delivery) (commit.Report, error) {
	w.t.Helper()
	b.Received = w.clock
	report, err := w.commit.Run(w.t.Context(), b)
	total := 0
	for _, n := range report.Outcomes {
		total += n
	}
	require.Equal(w.t, len(b.Documents), total, "every document is counted once: %v", report.Outcomes)
	return report, err
}

// away makes SQL unreachable, with its heartbeat, or reachable again.
func (w *world) away(away bool) {
	w.faulty.onApply, w.faulty.onHeartbeat = nil, nil
	if away {
		w.faulty.onApply = func(int) error { return down("sql: apply") }
		w.faulty.onHeartbeat = func(int) error { return down("sql: heartbeat") }
	}
}

// opened reports whether the breaker is open.
func (w *world) opened() bool { return w.breaker.View(w.t.Context()).Control.Breaker.Stopped() }

// state reads sql_writer as plain JSON, as other readers do.
func (w *world) state(id string) map[string]any {
	w.t.Helper()
	var doc struct {
		State map[string]any `json:"sql_writer"`
	}
	require.NoError(w.t, json.Unmarshal(w.snapshots(id)[0], &doc))
	return doc.State
}

// value reads one column of a line.
func (w *world) value(line int64, table invoice.Table, column string) string {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok, "line %d", line)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == table && c.Name == column {
			if l.Values[i].Null {
				return "NULL"
			}
			return l.Values[i].Text
		}
	}
	require.Fail(w.t, "no such column", column)
	return ""
}

func (w *world) status(id string) string {
	w.t.Helper()
	return w.state(id)["status"].(string)
}

func chicago(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("America/Chicago")
	require.NoError(t, err)
	return zone
}

func idOf(t *testing.T, doc string) string {
	t.Helper()
	var d struct {
		ID string `json:"id"`
	}
	require.NoError(t, json.Unmarshal([]byte(doc), &d))
	return d.ID
}

// result makes a document: minute is in its id, line is its main line, and the rest is content.
func result(minute int, line int64, manufacturer, state string, duplicates ...int64) string {
	id := fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-0001-%d", minute, line)
	return document(id, line, manufacturer, state, duplicates...)
}

func document(id string, line int64, manufacturer, state string, duplicates ...int64) string {
	dup, _ := json.Marshal(append([]int64{}, duplicates...))
	if state == "" {
		state = `{"status":"pending","retry_count":0}`
	}
	return fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":%s},"sql_writer":%s}`, id, line, manufacturer, dup, state)
}

// tooLong is a manufacturer name that fits no column: an own error of its document.
func tooLong() string { return strings.Repeat("x", 256) }

// faulty wraps the two in-memory implementations, and counts, fails or interrupts calls.
type faulty struct {
	docs *inmem.Documents
	sink *inmem.Sink

	mu                            sync.Mutex
	reads, records, writes, beats int
	// Each hook gets the call's number from 1. An error ends the call before it does anything.
	onRead, onRecord, onApply, onHeartbeat func(n int) error
	// afterRecord fails a call after it was done: a lost acknowledgement.
	afterRecord, afterApply func(n int) error
}

func hook(n int, f func(int) error) error {
	if f == nil {
		return nil
	}
	return f(n)
}

// begin counts a call and asks its hook.
func (f *faulty) begin(calls *int, on func(n int) error) (n int, err error) {
	f.mu.Lock()
	*calls++
	n = *calls
	f.mu.Unlock()
	return n, hook(n, on)
}

func (f *faulty) Read(ctx context.Context, id string) (json.RawMessage, error) {
	if _, err := f.begin(&f.reads, f.onRead); err != nil {
		return nil, err
	}
	return f.docs.Read(ctx, id)
}

func (f *faulty) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	if _, err := f.begin(&f.reads, f.onRead); err != nil {
		return nil, err
	}
	return f.docs.ReadMany(ctx, ids)
}

func (f *faulty) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (string, error) {
	n, err := f.begin(&f.records, f.onRecord)
	if err != nil {
		return "", err
	}
	etag, err := f.docs.Record(ctx, doc, s)
	if err != nil {
		return "", err
	}
	return etag, hook(n, f.afterRecord)
}

func (f *faulty) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	n, err := f.begin(&f.writes, f.onApply)
	if err != nil {
		return nil, err
	}
	out, err := f.sink.Apply(ctx, items, mode, known)
	if err == nil {
		err = hook(n, f.afterApply)
	}
	return out, err
}

func (f *faulty) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	if _, err := f.begin(&f.beats, f.onHeartbeat); err != nil {
		return breaker.Heartbeat{}, err
	}
	return f.sink.Heartbeat(ctx, known)
}

func (f *faulty) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return f.sink.TakeOver(ctx, known)
}

func down(op string) error {
	return fault.New(fault.Infrastructure, op, "eof", "the connection was cut")
}

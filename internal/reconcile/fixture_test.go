package reconcile_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/fill"
	"sqlwriter/test/inmem"
)

// start is the time at which every test begins.
func start() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

const sysName = "web"

// world is an environment with its container, database and evidence in memory, on a clock that only the test moves. Documents are written
// by the real commit.Commit.
type world struct {
	t        *testing.T
	clock    time.Time
	docs     *inmem.Documents
	sink     *inmem.Sink
	evidence *inmem.Evidence
	store    *inmem.RunStore
	findings *inmem.Findings
	// adoptedAt is when the ledger was adopted.
	adoptedAt time.Time
	breaker   *breaker.Breaker
	commit    *commit.Commit
	options   reconcile.Options
	leases    inmem.Leases
	mended    map[string]mended
	// writtenAt is when each line was written last.
	writtenAt map[int64]time.Time
	flowSince time.Time
	flowOff   bool
	log       io.Writer
	// spoil changes a line that was read.
	spoil func(line *reconcile.Line)
	// before and after are called around each call of a port of Reconcile. An error is the call's.
	before, after func(call string) error
	calls         map[string]int
	waited        time.Duration
	runs          int
	kept          map[int64]kept
}

type mended struct {
	mend      reconcile.Mend
	documents []string
	why       string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, clock: start(), sink: inmem.NewSink(), mended: map[string]mended{},
		writtenAt: map[int64]time.Time{}, calls: map[string]int{}, kept: map[int64]kept{}, flowSince: start().Add(-48 * time.Hour), log: io.Discard,
	}
	now := w.now
	w.evidence, w.docs, w.store = inmem.NewEvidenceOn(now), inmem.NewDocuments(now), inmem.NewRunStore(now, sysName)
	w.findings, w.adoptedAt = w.store.Findings(w.sink), start().Add(-time.Hour)
	b := breaker.New(inmem.NewControl(), breaker.Options{
		Log: zerolog.Nop(), Now: now, Draw: func() float64 { return 0.5 }, SysName: sysName, Heartbeat: w.sink.Heartbeat, TakeOver: w.sink.TakeOver,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	w.breaker = b
	w.commit = commit.NewCommit(w.docs, applying{w}, commit.Options{
		SysName: sysName, Log: zerolog.Nop(), Now: now, Draw: func() float64 { return 0.5 }, Parallel: 1, Breaker: b, Evidence: w.evidence, Container: "docs",
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	w.options = reconcile.Options{SysName: sysName, Log: zerolog.Nop(), Now: now, Wait: func(_ context.Context, d time.Duration) error {
		w.waited += d
		return nil
	}}
	return w
}

// applying notes when lines are written.
type applying struct{ w *world }

func (a applying) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	if known.SysName == "" {
		known.SysName = sysName
	}
	out, err := a.w.sink.Apply(ctx, items, mode, known)
	for _, o := range out {
		for _, r := range o.Rows {
			if r.Verdict == commit.Applied {
				a.w.writtenAt[r.DetailID] = a.w.clock
			}
		}
	}
	return out, err
}

func (a applying) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.w.sink.Heartbeat(ctx, known)
}

func (a applying) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.w.sink.TakeOver(ctx, known)
}

// document is the text of a document of the environment. Its id has the minute; state is its sql_writer, pending if empty.
func document(minute int, line int64, manufacturer, state string, duplicates ...int64) string {
	return documentOf(idOf(minute, line), line, manufacturer, state, duplicates...)
}

func idOf(minute int, line int64) string {
	return fmt.Sprintf("2025-12-17 %02d:%02d:00.000000-06:00-0001-%d", 8+minute/60, minute%60, line)
}

func documentOf(id string, line int64, manufacturer, state string, duplicates ...int64) string {
	doc := filled()
	for marker, value := range parts(id, line, manufacturer, state, duplicates) {
		doc = strings.Replace(doc, marker, value, 1)
	}
	return doc
}

const template = `{"id":"@id","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"@line"},
	"process_output":{"manufacturer_name":"@manufacturer","part_number":"425","unspsc":"39131711","invoice_line_status":"DS1"},
	"post-processing":{"duplicate_detail_uids":"@duplicates"},"sql_writer":"@state"}`

// filled is the template with every member, filled once.
var filled = sync.OnceValue(func() string { return fill.Document(template) })

func parts(id string, line int64, manufacturer, state string, duplicates []int64) map[string]string {
	dup, err := json.Marshal(append([]int64{}, duplicates...))
	if err != nil {
		panic(err)
	}
	return map[string]string{
		`"@id"`: strconv.Quote(id), `"@line"`: strconv.FormatInt(line, 10), `"@manufacturer"`: strconv.Quote(manufacturer), `"@duplicates"`: string(dup),
		`"@state"`: cmp.Or(state, `{"status":"pending","retry_count":0}`),
	}
}

// put stores a document and makes its lines.
func (w *world) put(doc string) string {
	w.t.Helper()
	require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	d, err := invoice.Read(json.RawMessage(doc), w.clock)
	require.NoError(w.t, err)
	return d.ID
}

func (w *world) addLines(ids ...int64) { w.sink.AddLines(ids...) }

// offer offers documents to Commit as they are now.
func (w *world) offer(ids ...string) commit.Report {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	report, err := w.commit.Run(w.t.Context(), commit.Batch{Documents: raws, Received: w.clock})
	require.NoError(w.t, err)
	return report
}

// consistent makes n documents, each with a line of its own, a third of them with a duplicate, and commits them. Lines are 1 to n, and
// duplicates 1,000,001 on.
func (w *world) consistent(n int) {
	w.t.Helper()
	var ids []string
	for i := 1; i <= n; i++ {
		w.addLines(int64(i))
		var dup []int64
		if i%3 == 0 {
			dup = []int64{1_000_000 + int64(i)}
			w.addLines(dup...)
		}
		ids = append(ids, w.put(document(i%600, int64(i), "ACME", "", dup...)))
		if len(ids) == 100 || i == n {
			w.offer(ids...)
			ids = nil
		}
	}
	w.pass(time.Hour)
}

func (w *world) now() time.Time { return w.clock }

func (w *world) pass(d time.Duration) { w.clock = w.clock.Add(d) }

func (w *world) doc(id string) invoice.Document { return w.whole(id).Document }

func (w *world) whole(id string) invoice.Snapshot {
	w.t.Helper()
	raw, err := w.docs.Read(w.t.Context(), id)
	require.NoError(w.t, err)
	d, err := invoice.ReadSnapshot(raw, w.clock)
	require.NoError(w.t, err)
	return d
}

// record replaces a document's sql_writer, as another program would.
func (w *world) record(id string, change func(*invoice.State)) {
	w.t.Helper()
	d := w.whole(id)
	change(&d.State)
	_, err := w.docs.Record(w.t.Context(), d, d.State)
	require.NoError(w.t, err)
}

// edit replaces a value of a line, as a person does.
func (w *world) edit(line int64, column, value string) {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok)
	l.Values = slices.Clone(l.Values)
	for i, c := range invoice.Columns() {
		if c.Table == invoice.Detail && c.Name == column {
			l.Values[i] = invoice.Of(value)
		}
	}
	w.sink.SetLine(line, l)
}

func (w *world) call(name string, do func() error) error {
	w.calls[name]++
	if w.before != nil {
		if err := w.before(name); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if w.after != nil {
		return w.after(name)
	}
	return nil
}

func (w *world) reconciler() *reconcile.Reconcile {
	p := ports{w, w.sink.ReconcileRows(sysName), w.docs.Reconcile(sysName)}
	return reconcile.New(reconcile.Ports{Rows: rowsOf{p}, Findings: findingsOf{p}, Documents: documentsOf{p}, Evidence: p, Leases: p, Mender: p, Breaker: p}, w.options)
}

// killed ends a call before or after it was done: the process is gone. The step is repeated, as a later tick does.
func killed() error {
	return fault.New(fault.Infrastructure, "test", "killed", "the process was killed")
}

// begin begins a run.
func (w *world) begin(filter run.Filter) run.Run {
	w.t.Helper()
	w.runs++
	text, err := json.Marshal(filter)
	require.NoError(w.t, err)
	row := run.Run{ID: fmt.Sprint("night-", w.runs), SysName: sysName, Kind: run.Reconcile, Filter: text, Pattern: run.InPasses, RequestedBy: "ann"}
	require.NoError(w.t, w.store.StartRun(w.t.Context(), row, run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "x", Run: row.ID}))
	row, _, err = w.store.Run(w.t.Context(), row.ID)
	require.NoError(w.t, err)
	return row
}

// end ends the oldest run that is running.
func (w *world) end() {
	w.t.Helper()
	open, err := w.store.OpenRuns(w.t.Context(), sysName, 1)
	require.NoError(w.t, err)
	_, err = w.store.CancelRun(w.t.Context(), open[0].ID, run.Audit{Code: run.CodeRunCancel, Level: run.LevelInfo, By: "ann", Why: "x"})
	require.NoError(w.t, err)
	ended, err := w.store.CompleteRun(w.t.Context(), open[0].ID, time.Hour, func(run.RunStatus, run.Stats) run.Audit {
		return run.Audit{Code: run.CodeRunCancelled, Level: run.LevelInfo, By: "x", Why: "x"}
	})
	require.NoError(w.t, err)
	require.True(w.t, ended)
}

// night is a whole run.
func (w *world) night(filter run.Filter) run.Run {
	w.t.Helper()
	row := w.begin(filter)
	p := ports{w, w.sink.ReconcileRows(sysName), w.docs.Reconcile(sysName)}
	done, err := run.NewExecutor(run.Ports{Store: w.store, Breaker: p, Passes: map[run.Kind]run.Step{run.Reconcile: w.reconciler().Step}}, run.Options{
		SysName: sysName, Instance: "test", Log: zerolog.Nop(), Now: w.now, Draw: func() float64 { return 0.5 },
		Wait:  func(_ context.Context, d time.Duration) error { w.pass(d); return nil },
		Every: func(time.Duration, func()) (stop func()) { return func() {} },
	}).Execute(w.t.Context(), row.ID)
	require.NoError(w.t, err)
	require.Equal(w.t, run.Executed{}, done)
	row, _, err = w.store.Run(w.t.Context(), row.ID)
	require.NoError(w.t, err)
	require.Equal(w.t, run.RunCompleted, row.Status)
	return row
}

// counted are the counts of a run that are not 0.
func counted(row run.Run) map[string]int {
	counts := maps.Clone(row.Counts)
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// open lists the open findings as "class line document".
func (w *world) open() []string { return w.inState(reconcile.Open) }

func (w *world) inState(state reconcile.State) []string {
	list := []string{}
	for _, f := range w.all(reconcile.Query{State: state}) {
		list = append(list, name(f.Key))
	}
	slices.Sort(list)
	return list
}

// all lists findings.
func (w *world) all(q reconcile.Query) []reconcile.Finding {
	w.t.Helper()
	list, err := w.findings.List(w.t.Context(), q, nil, 1<<20)
	require.NoError(w.t, err)
	return list
}

// accept accepts the open findings of a class.
func (w *world) accept(class reconcile.Class) {
	w.t.Helper()
	for _, f := range w.all(reconcile.Query{Classes: []reconcile.Class{class}, State: reconcile.Open}) {
		a := run.Audit{Code: run.CodeFindingAccept, Level: run.LevelInfo, By: "ann", Why: "right"}
		require.NoError(w.t, w.findings.Accept(w.t.Context(), []reconcile.Key{f.Key}, a))
	}
}

func name(key reconcile.Key) string {
	return fmt.Sprintf("%s %d %s", key.Class, key.Line, key.Document)
}

// ports are the ports of Reconcile: each call is counted, and may be interrupted.
type ports struct {
	w         *world
	rows      reconcile.Rows
	documents reconcile.Documents
}

type (
	rowsOf      struct{ ports }
	documentsOf struct{ ports }
	findingsOf  struct{ ports }
)

func (p ports) Permit(context.Context) error {
	return p.w.call("Permit", func() error {
		if p.w.flowOff {
			return fault.New(fault.Infrastructure, "test", "breaker_open", "the breaker is open")
		}
		return nil
	})
}

func (p ports) ClosedSince(context.Context) (time.Time, bool) { return p.w.flowSince, !p.w.flowOff }

func (p rowsOf) Scan(ctx context.Context, after int64, limit int) (s reconcile.Scanned, err error) {
	require.LessOrEqual(p.w.t, limit, reconcile.MaxScan)
	err = p.w.call("Scan", func() error { s, err = p.rows.Scan(ctx, after, limit); return err })
	return s, err
}

func (p rowsOf) Lines(ctx context.Context, ids []int64) (lines []reconcile.Line, err error) {
	require.LessOrEqual(p.w.t, len(ids), reconcile.MaxLines)
	err = p.w.call("Lines", func() error { lines, err = p.rows.Lines(ctx, ids); return err })
	for i, line := range lines {
		if line.Ledger.Outcome != "" {
			lines[i].Ledger.WrittenAt = p.w.writtenAt[line.ID]
		}
		if p.w.spoil != nil {
			p.w.spoil(&lines[i])
		}
	}
	return lines, err
}

func (p rowsOf) Names(ctx context.Context, after int64, limit int) (page reconcile.NamesPage, err error) {
	err = p.w.call("Names", func() error { page, err = p.rows.Names(ctx, after, limit); return err })
	return page, err
}

func (p documentsOf) Changed(ctx context.Context, from, to int64, size int, continuation string) (docs []json.RawMessage, next string, charge float64, err error) {
	err = p.w.call("Changed", func() error {
		docs, next, charge, err = p.documents.Changed(ctx, from, to, size, continuation)
		return err
	})
	return docs, next, charge, err
}

func (p documentsOf) ReadMany(ctx context.Context, ids []string) (docs []json.RawMessage, charge float64, err error) {
	require.LessOrEqual(p.w.t, len(ids), 100)
	err = p.w.call("ReadMany", func() error { docs, charge, err = p.documents.ReadMany(ctx, ids); return err })
	return docs, charge, err
}

func (p documentsOf) Heads(ctx context.Context, ids []string) (docs []invoice.Projection, charge float64, err error) {
	require.LessOrEqual(p.w.t, len(ids), 1000)
	err = p.w.call("Heads", func() error { docs, charge, err = p.documents.Heads(ctx, ids); return err })
	return docs, charge, err
}

func (p documentsOf) OfLines(ctx context.Context, lines []int64) (ids []string, charge float64, err error) {
	require.LessOrEqual(p.w.t, len(lines), 100)
	err = p.w.call("OfLines", func() error { ids, charge, err = p.documents.OfLines(ctx, lines); return err })
	return ids, charge, err
}

func (p ports) Episodes(ctx context.Context, at string) (page []reconcile.Episode, next string, err error) {
	err = p.w.call("Episodes", func() error { page, next, err = p.w.evidence.Episodes(ctx, at); return err })
	return page, next, err
}

func (p ports) Newest(ctx context.Context, d invoice.Document) (newest reconcile.Episode, there bool, err error) {
	err = p.w.call("Newest", func() error { newest, there, err = p.w.evidence.Newest(ctx, d); return err })
	return newest, there, err
}

func (p ports) KeepReport(ctx context.Context, name string, content []byte, contentType string) error {
	return p.w.call("KeepReport", func() error { return p.w.evidence.KeepReport(ctx, name, content, contentType) })
}

func (p ports) Locks(ctx context.Context) (locks []reconcile.Lock, err error) {
	err = p.w.call("Locks", func() error { locks, err = p.w.leases.Locks(ctx); return err })
	return locks, err
}

func (p ports) Mend(_ context.Context, id string, mend reconcile.Mend, documents []string, why string) error {
	return p.w.call("Mend", func() error {
		if _, there := p.w.mended[id]; !there {
			p.w.mended[id] = mended{mend, slices.Clone(documents), why}
		}
		return nil
	})
}

func (p findingsOf) Save(ctx context.Context, id string, seen []reconcile.Seen, gone []reconcile.Key) (opened, closed int, err error) {
	require.LessOrEqual(p.w.t, len(seen), 1000)
	err = p.w.call("Save", func() error { opened, closed, err = p.w.findings.Save(ctx, id, seen, gone); return err })
	return opened, closed, err
}

func (p findingsOf) List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) (list []reconcile.Finding, err error) {
	require.LessOrEqual(p.w.t, limit, 1000)
	err = p.w.call("List", func() error { list, err = p.w.findings.List(ctx, q, after, limit); return err })
	return list, err
}

func (p findingsOf) Counts(ctx context.Context) (counts []reconcile.Count, err error) {
	err = p.w.call("Counts", func() error { counts, err = p.w.findings.Counts(ctx); return err })
	return counts, err
}

func (p findingsOf) MarkQueued(ctx context.Context, by string, keys []reconcile.Key) error {
	return p.w.call("MarkQueued", func() error { return p.w.findings.MarkQueued(ctx, by, keys) })
}

func (p findingsOf) LastCompleted(ctx context.Context, kind run.Kind) (id string, began time.Time, ok bool, err error) {
	err = p.w.call("LastCompleted", func() error { id, began, ok, err = p.w.findings.LastCompleted(ctx, kind); return err })
	return id, began, ok, err
}

func (p findingsOf) Waits(ctx context.Context, r run.Run, follows string) (waits bool, err error) {
	err = p.w.call("Waits", func() error { waits, err = p.w.findings.Waits(ctx, r, follows); return err })
	return waits, err
}

func (p findingsOf) AdoptedAt(context.Context) (at time.Time, err error) {
	err = p.w.call("AdoptedAt", func() error { at = p.w.adoptedAt; return nil })
	return at, err
}

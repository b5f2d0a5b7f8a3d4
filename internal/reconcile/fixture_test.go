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

// world is an environment with its container, database and evidence in memory, on a clock that only the test moves.
// Documents are written by the real commit.Commit.
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
	// mended are the comparisons that asked for a run that mends.
	mended  []string
	flowOff bool
	// spoil changes a line that was read. unreadable is the id of a document that cannot be read.
	spoil      func(line *reconcile.Line)
	unreadable string
	// before and after are called around each call of a port of Reconcile. An error is the call's.
	before, after func(call string) error
	calls         map[string]int
	waited        time.Duration
	asked         int
	kept          map[int64]kept
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, clock: start(), sink: inmem.NewSink(), calls: map[string]int{}, kept: map[int64]kept{},
	}
	now := w.now
	w.evidence, w.docs, w.store = inmem.NewEvidenceOn(now), inmem.NewDocuments(now), inmem.NewRunStore(now, sysName)
	w.findings, w.adoptedAt = w.store.Findings(w.sink), start().Add(-time.Hour)
	b := breaker.New(inmem.NewControl(), breaker.Options{
		Log: zerolog.Nop(), Now: now, Draw: func() float64 { return 0.5 }, SysName: sysName,
		Heartbeat: w.sink.Heartbeat, TakeOver: w.sink.TakeOver,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	w.breaker = b
	w.commit = commit.NewCommit(w.docs, w.sink, commit.Options{
		SysName: sysName, Log: zerolog.Nop(), Now: now, Draw: func() float64 { return 0.5 }, Parallel: 1, Breaker: b,
		Evidence: w.evidence, Container: "docs",
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	w.options = reconcile.Options{
		SysName: sysName, At: 2 * time.Hour, Log: zerolog.Nop(), Now: now,
		Wait: func(_ context.Context, d time.Duration) error {
			w.waited += d
			w.pass(d)
			return nil
		},
	}
	w.finish() // the night before has nothing to compare
	w.clock, w.mended, w.calls, w.waited = start(), nil, map[string]int{}, 0
	return w
}

// document is the text of a document of the environment. Its id has the minute; state is its sql_writer, pending if
// empty.
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
		`"@id"`: strconv.Quote(id), `"@line"`: strconv.FormatInt(line, 10),
		`"@manufacturer"`: strconv.Quote(manufacturer), `"@duplicates"`: string(dup),
		`"@state"`: cmp.Or(state, `{"status":"pending","retry_count":0}`),
	}
}

// put stores a document and makes its lines.
func (w *world) put(doc string) string {
	w.t.Helper()
	require.NoError(w.t, w.docs.Put(json.RawMessage(doc)))
	d, err := invoice.Reader{}.Read(json.RawMessage(doc), w.clock)
	require.NoError(w.t, err)
	return d.ID
}

func (w *world) addLines(ids ...int64) { w.sink.AddLines(ids...) }

// offer offers documents to Commit as they are now.
func (w *world) offer(ids ...string) commit.Report {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), ids)
	require.NoError(w.t, err)
	report, err := w.commit.Run(w.t.Context(), commit.Delivery{Documents: raws, Received: w.clock})
	require.NoError(w.t, err)
	return report
}

// consistent makes n documents, each with a line of its own, a third of them with a duplicate, and commits them. Lines
// are 1 to n, and duplicates 1,000,001 on.
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
	d, err := invoice.Reader{}.ReadSnapshot(raw, w.clock)
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
	for i, c := range invoice.DefaultMapping().Columns() {
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
	p := ports{w, w.sink.ReconcileRows(sysName, 0), w.docs.Paged(100)}
	return reconcile.New(
		reconcile.Ports{
			Rows: rowsOf{p}, Findings: findingsOf{p}, Finder: documentsOf{p}, Mend: p.mend, Breaker: p,
		}, w.options)
}

// logTo sends the log of comparisons to a writer.
func (w *world) logTo(to io.Writer) { w.options.Log = zerolog.New(to) }

// killed ends a call before or after it was done: the process is gone. A later tick goes on.
func killed() error {
	return fault.New(fault.Infrastructure, "test", "killed", "the process was killed")
}

// tick is a tick of the recovery timer, and the five minutes after it.
func (w *world) tick() error {
	w.t.Helper()
	_, err := w.reconciler().Tick(w.t.Context())
	w.pass(5 * time.Minute)
	return err
}

// finish ticks until no comparison goes on.
func (w *world) finish() {
	w.t.Helper()
	for range 1000 {
		if err := w.tick(); err != nil {
			require.True(w.t, fault.IsDependency(err), "%v", err)
		}
		if _, there, err := w.findings.Next(w.t.Context()); err == nil && !there {
			return
		}
	}
	w.t.Fatal("a comparison does not end")
}

// night lets the next night come and its comparison end.
func (w *world) night() reconcile.Comparison {
	w.t.Helper()
	w.toTheNight()
	id := w.clock.Format(time.DateOnly)
	for range 1000 {
		if err := w.tick(); err != nil {
			require.True(w.t, fault.IsDependency(err), "%v", err)
		}
		if c, there := w.store.Comparison(id); there && c.Ended {
			require.Empty(w.t, c.Error)
			return c
		}
	}
	w.t.Fatal("the night does not end")
	return reconcile.Comparison{}
}

// toTheNight lets time pass until the next night begins.
func (w *world) toTheNight() {
	day := 24 * time.Hour
	w.clock = w.clock.Truncate(day).Add(day).Add(w.options.At)
}

// compare is a comparison that a person asked for, of everything or of some documents.
func (w *world) compare(whole bool, ids ...string) reconcile.Comparison {
	w.t.Helper()
	id := w.ask(whole, ids...)
	w.finish()
	c, there := w.store.Comparison(id)
	require.True(w.t, there)
	require.Empty(w.t, c.Error)
	return c
}

// ask begins a comparison that a person asks for. The night of the day was begun before.
func (w *world) ask(whole bool, ids ...string) (id string) {
	w.t.Helper()
	w.pass(time.Minute)
	w.asked++
	id = fmt.Sprint("asked-", w.asked)
	began, err := w.findings.Begin(w.t.Context(),
		reconcile.Comparison{ID: id, IDs: ids, Whole: whole, By: "ann", Why: "x"})
	require.NoError(w.t, err)
	require.True(w.t, began)
	return id
}

// last is the last comparison that ended.
func (w *world) last() reconcile.Comparison {
	w.t.Helper()
	c, there, err := w.findings.Last(w.t.Context())
	require.NoError(w.t, err)
	require.True(w.t, there)
	return c
}

// counted are the counts that are not 0.
func counted(c reconcile.Comparison) map[reconcile.Class]int {
	counts := maps.Clone(c.Counts)
	maps.DeleteFunc(counts, func(_ reconcile.Class, n int) bool { return n == 0 })
	return counts
}

// found lists the findings as "class line document".
func (w *world) found() []string {
	list := []string{}
	for _, f := range w.all(reconcile.Query{}) {
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

func name(key reconcile.Key) string {
	return fmt.Sprintf("%s %d %s", key.Class, key.Line, key.Document)
}

// ports are the ports of Reconcile: each call is counted, and may be interrupted.
type ports struct {
	w         *world
	rows      reconcile.Rows
	documents commit.Finder
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

func (p rowsOf) Scan(ctx context.Context, after int64, limit int) (s reconcile.Scanned, err error) {
	require.LessOrEqual(p.w.t, limit, reconcile.MaxScan)
	err = p.w.call("Scan", func() error { s, err = p.rows.Scan(ctx, after, limit); return err })
	return s, err
}

func (p rowsOf) Lines(ctx context.Context, ids []int64) (lines []reconcile.Line, err error) {
	require.LessOrEqual(p.w.t, len(ids), reconcile.MaxLines)
	err = p.w.call("Lines", func() error { lines, err = p.rows.Lines(ctx, ids); return err })
	for i := range lines {
		if p.w.spoil != nil {
			p.w.spoil(&lines[i])
		}
	}
	return lines, err
}

func (p documentsOf) Find(ctx context.Context, q commit.Query, continuation string) (page commit.Page, err error) {
	require.LessOrEqual(p.w.t, len(q.IDs), 100)
	name := "Changed"
	if len(q.IDs) > 0 {
		name = "ReadMany"
	}
	err = p.w.call(name, func() error { page, err = p.documents.Find(ctx, q, continuation); return err })
	for i, raw := range page.Documents {
		if p.w.unreadable != "" && strings.Contains(string(raw), p.w.unreadable) {
			page.Documents[i] = invoice.Projection(`{"id":""}`)
		}
	}
	return page, err
}

func (p ports) mend(_ context.Context, comparison string) error {
	return p.w.call("Mend", func() error {
		if !slices.Contains(p.w.mended, comparison) {
			p.w.mended = append(p.w.mended, comparison)
		}
		return nil
	})
}

func (p findingsOf) Begin(ctx context.Context, c reconcile.Comparison) (began bool, err error) {
	err = p.w.call("Begin", func() error { began, err = p.w.findings.Begin(ctx, c); return err })
	return began, err
}

func (p findingsOf) Next(ctx context.Context) (c reconcile.Comparison, there bool, err error) {
	err = p.w.call("Next", func() error { c, there, err = p.w.findings.Next(ctx); return err })
	return c, there, err
}

func (p findingsOf) Last(ctx context.Context) (c reconcile.Comparison, there bool, err error) {
	err = p.w.call("Last", func() error { c, there, err = p.w.findings.Last(ctx); return err })
	return c, there, err
}

func (p findingsOf) Save(
	ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key,
) error {
	return p.w.call("Save", func() error { return p.w.findings.Save(ctx, c, put, drop) })
}

func (p findingsOf) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) (list []reconcile.Finding, err error) {
	require.LessOrEqual(p.w.t, limit, 1000)
	err = p.w.call("List", func() error { list, err = p.w.findings.List(ctx, q, after, limit); return err })
	return list, err
}

func (p findingsOf) Counts(ctx context.Context) (counts []reconcile.Count, err error) {
	err = p.w.call("Counts", func() error { counts, err = p.w.findings.Counts(ctx); return err })
	return counts, err
}

func (p findingsOf) AdoptedAt(context.Context) (at time.Time, err error) {
	err = p.w.call("AdoptedAt", func() error { at = p.w.adoptedAt; return nil })
	return at, err
}

func (p findingsOf) Marks(ctx context.Context, documents []string) (marks map[run.Mark]run.Audit, err error) {
	err = p.w.call("Marks", func() error { marks, err = p.w.findings.Marks(ctx, documents); return err })
	return marks, err
}

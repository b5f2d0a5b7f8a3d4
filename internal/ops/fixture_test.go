package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// by is a context in which somebody asks.
func by(t testing.TB, who string) context.Context { return ops.WithActor(t.Context(), who) }

// start is the first instant of every test: ten in the morning in Chicago.
func start() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

// world is one app over in-memory adapters, on one clock that only the test advances.
type world struct {
	t        *testing.T
	compares int
	clock    time.Time
	docs     *spyDocuments
	sink     *spySink
	control  *inmem.Control
	counts   ops.CountsStore
	evidence *inmem.Evidence
	// adoptedAt is when the ledger was adopted.
	adoptedAt time.Time
	// store and audit share their tables.
	store   *inmem.RunStore
	queue   *inmem.Queue
	audit   *fakeAuditLog
	breaker *breaker.Breaker
	commit  *commit.Commit
	ops     *ops.Ops
	others  int64
	// log has the lines of breaker and commit. limited lets no document become a poison message.
	log     bytes.Buffer
	limited bool
}

// tick counts as the recovery timer does, and shows the status.
func (w *world) tick() ops.Status {
	w.t.Helper()
	require.NoError(w.t, w.ops.SaveCounts(w.t.Context()))
	s := must(w.ops.Status(w.t.Context(), ops.StatusQuery{}))(w.t)
	return s
}

func newWorld(t *testing.T, lines ...int64) *world {
	t.Helper()
	w := &world{t: t, clock: start()}
	now := func() time.Time { return w.clock }
	zone := must(time.LoadLocation("America/Chicago"))(t)
	w.docs = &spyDocuments{Documents: inmem.NewDocuments(now)}
	w.sink = &spySink{Sink: inmem.NewSinkOn(now)}
	w.sink.AddLines(lines...)
	w.control, w.evidence, w.store = inmem.NewControl(), inmem.NewEvidenceOn(now), inmem.NewRunStore(now, "web")
	w.counts, w.queue = &inmem.Counts{}, inmem.NewQueue(now)
	w.audit = &fakeAuditLog{AuditLog: w.store.AuditLog()}
	w.breaker = w.newBreaker("a")
	w.commit = w.newCommit()
	w.ops = ops.New(ops.Ports{
		Documents: w.docs, Finder: w.docs, Breaker: w.breaker, Counts: w.counts,
		Queues: []ops.NamedQueue{{Name: "runs", Messages: w.queue}, {Name: "batches", Messages: inmem.NewQueue(now)}},
		Stores: w.stores, ReportNames: fakeReports{}.Names(), RunQueue: w.queue,
		Evidence: w.evidence, Creator: w.docs,
	}, ops.Options{
		SysName: "web", Location: zone, AppVersion: "v1", Now: now,
	})
	return w
}

func (w *world) newCommit() *commit.Commit {
	zone := must(time.LoadLocation("America/Chicago"))(w.t)
	return commit.NewCommit(w.docs, w.sink, commit.Options{
		SysName: "web", Location: zone, Now: func() time.Time {
			return w.clock
		}, Draw: func() float64 { return 0 }, Parallel: 1,
		Wait: func(context.Context, time.Duration) error { return nil }, Log: zerolog.New(&w.log),
		Breaker: w.breaker, Evidence: w.evidence, Container: "AI_PROCESS_LOGS", AppVersion: "v1",
		AdoptedAt: func() time.Time { return w.adoptedAt },
	})
}

func (w *world) newBreaker(instance string) *breaker.Breaker {
	most := 0 // the default
	if w.limited {
		most = -1
	}
	return breaker.New(w.control, breaker.Options{
		Instance: instance, Build: "v1", Log: zerolog.New(&w.log), MaxPoisonPerHour: most, Now: func() time.Time {
			return w.clock
		},
		SysName: "web", Heartbeat: w.sink.Heartbeat, TakeOver: w.sink.TakeOver,
		Draw: func() float64 { return 0 },
		Wait: func(_ context.Context, d time.Duration) error {
			w.clock = w.clock.Add(d)
			return nil
		},
	})
}

func (w *world) stores(context.Context) (ops.Stores, error) {
	return ops.Stores{
		Audit: w.audit, Runs: w.store, Reports: fakeReports{}, Ledger: fakeLedger{w.sink},
		Findings: w.store.Findings(nil), Preview: w.preview, Check: func(context.Context) error { return nil },
	}, nil
}

// flow is the breaker's state in the control document.
func (w *world) flow() breaker.State {
	w.t.Helper()
	c, _, err := w.control.Load(w.t.Context())
	require.NoError(w.t, err)
	return c.Breaker
}

// put writes documents as the API does.
func (w *world) put(docs ...string) {
	w.t.Helper()
	for _, d := range docs {
		require.NoError(w.t, w.docs.Put(json.RawMessage(d)))
	}
}

// fill adds n failed documents that can be written now.
func (w *world) fill(n int) {
	w.t.Helper()
	for line := range int64(n) {
		w.sink.AddLines(1 + line)
		w.put(result(1+line, "ok", failed(int(line)%60, fault.Document, "2628")))
	}
}

// run commits documents as the recovery timer does.
func (w *world) run(ids ...string) commit.Report {
	w.t.Helper()
	raws := must(w.docs.Documents.ReadMany(w.t.Context(), ids))(w.t)
	require.Len(w.t, raws, len(ids))
	report, err := w.commit.Run(w.t.Context(),
		commit.Delivery{Documents: raws, Received: w.clock, Purpose: commit.FromTimer})
	require.NoError(w.t, err)
	return report
}

// applyOther commits another document, as in a container that is in use.
func (w *world) applyOther() {
	w.t.Helper()
	w.others++
	line := 900_000 + w.others
	w.sink.AddLines(line)
	w.put(result(line, "other", ""))
	require.Equal(w.t, 1, w.run(id(line)).Outcomes["applied"])
}

// poison makes a document fail until it is a poison message. Another document is applied after each failure, so that it
// counts.
func (w *world) poison(line int64) {
	w.t.Helper()
	for range 7 {
		w.run(id(line))
		w.clock = w.clock.Add(2 * time.Hour)
		w.applyOther()
	}
	require.Equal(w.t, invoice.Failed, w.state(line).Status)
}

// state reads sql_writer of a line's document.
func (w *world) state(line int64) invoice.State {
	w.t.Helper()
	raw := must(w.docs.Read(w.t.Context(), id(line)))(w.t)
	doc := must(invoice.Reader{}.Read(raw, w.clock))(w.t)
	return doc.State
}

// status is IVCE_LNE_STAT of a line.
func (w *world) status(line int64) string {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == invoice.Detail && c.Status {
			return l.Values[i].Text
		}
	}
	require.Fail(w.t, "no such column")
	return ""
}

// snapshot is all state that an action could change.
func (w *world) snapshot() map[string]any {
	w.t.Helper()
	all := map[string]any{"evidence": w.evidence.Files(), "writes": w.sink.applies, "states": len(w.docs.states)}
	audits := must(w.audit.Audits(w.t.Context(), ops.AuditQuery{All: true, Limit: 1000}))(w.t)
	runs := must(w.store.ListRuns(w.t.Context(), "", 1000))(w.t)
	all["audits"], all["runs"] = audits, runs
	control, etag, err := w.control.Load(w.t.Context())
	require.NoError(w.t, err)
	all["control"], all["etag"] = control, etag
	return all
}

func (w *world) audits() []run.Audit {
	w.t.Helper()
	audits := must(w.audit.Audits(w.t.Context(), ops.AuditQuery{All: true, Limit: 1000}))(w.t)
	return audits
}

// open opens the breaker, as another instance does.
func (w *world) open(kind fault.Kind, code string) {
	w.t.Helper()
	w.set(breaker.State{
		Name: breaker.Open, Kind: kind, Code: code, Reason: "set by the test", Since: w.clock, ChangedAt: w.clock,
		OpenUntil: w.clock.Add(time.Minute), HeldBy: "b",
	})
	w.clock = w.clock.Add(6 * time.Second) // a loaded state is cached for five
}

// set replaces the breaker's state.
func (w *world) set(s breaker.State) {
	w.t.Helper()
	w.note(func(c *breaker.Control) { c.Breaker = s })
}

func id(line int64) string { return fmt.Sprintf("2025-12-17 10:00:00.000000-06:00-0001-%d", line) }

// result makes a document of one line; state is sql_writer.
func result(line int64, manufacturer, state string) string {
	return documentOf(id(line), "web", line, manufacturer, state)
}

func documentOf(id, sysName string, line int64, manufacturer, state string) string {
	if state == "" {
		state = `{"status":"pending","retry_count":0}`
	}
	return fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":%q},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":[]},"sql_writer":%s}`, id, sysName, line, manufacturer, state)
}

// failed is sql_writer of a document that failed at a minute after nine in Chicago.
func failed(minute int, kind fault.Kind, code string) string {
	return fmt.Sprintf(
		`{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:%02d:00.000000-06:00","last_error":"set by the test",
		"last_error_kind":%q,"last_error_code":%q,"last_error_at":"2025-12-18 09:%02d:00.000000-06:00"}`, minute, kind, code, minute)
}

// tooLong is a manufacturer's name that fits no column.
func tooLong() string { return strings.Repeat("x", 256) }

// spyDocuments records every state that is written.
type spyDocuments struct {
	*inmem.Documents

	mu     sync.Mutex
	states []record
	// before is called before each write; an error prevents it.
	before func(id string) error
	reads  int
	// creates is called before each Submit; an error prevents it.
	creates func(doc json.RawMessage) error
}

type record struct {
	id    string
	state invoice.State
}

func (d *spyDocuments) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (string, error) {
	d.mu.Lock()
	d.states = append(d.states, record{doc.ID, s})
	d.mu.Unlock()
	if d.before != nil {
		if err := d.before(doc.ID); err != nil {
			return "", err
		}
	}
	return d.Documents.Record(ctx, doc, s)
}

func (d *spyDocuments) Submit(ctx context.Context, doc json.RawMessage, replace bool) error {
	if d.creates != nil {
		if err := d.creates(doc); err != nil {
			return err
		}
	}
	return d.Documents.Submit(ctx, doc, replace)
}

func (d *spyDocuments) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	d.reads++
	return d.Documents.ReadMany(ctx, ids)
}

// spySink counts requests and can fail.
type spySink struct {
	*inmem.Sink
	applies, heartbeats int
	fails               error
	// marks is the error of marking.
	marks   error
	largest int
	// applied is called after each request that succeeded.
	applied func()
}

func (s *spySink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	s.applies++
	s.largest = max(s.largest, len(items))
	if s.fails != nil {
		return nil, s.fails
	}
	if s.marks != nil && len(items) > 0 && items[0].FailureMark {
		return nil, s.marks
	}
	outcomes, err := s.Sink.Apply(ctx, items, mode, known)
	if err == nil && s.applied != nil {
		s.applied()
	}
	return outcomes, err
}

func (s *spySink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	s.heartbeats++
	if s.fails != nil {
		return breaker.Heartbeat{}, s.fails
	}
	return s.Sink.Heartbeat(ctx, known)
}

// fakeLedger reads the sink's ledger, and fails with it.
type fakeLedger struct{ sink *spySink }

func (l fakeLedger) LedgerLines(ctx context.Context, lines []int64) ([]ops.LedgerLine, error) {
	if l.sink.fails != nil {
		return nil, l.sink.fails
	}
	rows, err := l.sink.Rows(ctx, lines)
	return ledgerLines(rows), err
}

func (l fakeLedger) LedgerOf(ctx context.Context, document string) ([]ops.LedgerLine, error) {
	if l.sink.fails != nil {
		return nil, l.sink.fails
	}
	rows, err := l.sink.RowsOf(ctx, document)
	return ledgerLines(rows), err
}

func ledgerLines(rows []adopt.Row) (all []ops.LedgerLine) {
	for _, r := range rows {
		all = append(all,
			ops.LedgerLine{
				Line: r.Line, Document: r.DocumentID, SysName: r.SysName,
				Outcome: string(r.Outcome), SourceTS: r.SourceTS,
			})
	}
	return all
}

// fakeAuditLog counts calls and can fail.
type fakeAuditLog struct {
	*inmem.AuditLog
	calls int
	fails error
	// failsAfter is how many entries are accepted before the log fails; 0 means all.
	failsAfter int
	written    int
}

func (j *fakeAuditLog) Write(ctx context.Context, a run.Audit) error {
	j.calls++
	if j.fails != nil {
		return j.fails
	}
	if j.failsAfter > 0 && j.written >= j.failsAfter {
		return down()
	}
	j.written++
	return j.AuditLog.Write(ctx, a)
}

func (j *fakeAuditLog) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	if j.fails != nil {
		return nil, j.fails
	}
	return j.AuditLog.Marks(ctx, documents)
}

func down() error {
	return fault.New(fault.Infrastructure, "test: audit log", "refused", "set by the test")
}

// until is a context whose deadline is on the test's clock and never ends it.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

// refusal is the Refusal of a *RequestError; empty for other errors.
func refusal(err error) ops.Refusal {
	var r *ops.RequestError
	if errors.As(err, &r) {
		return r.Refusal
	}
	return ""
}

// must is the answer of a call that succeeds.
func must[T any](answer T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return answer
	}
}

// errOf is the error of a call alone.
func errOf[T any](_ T, err error) error { return err }

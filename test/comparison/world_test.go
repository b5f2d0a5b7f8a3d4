package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/fill"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

const (
	sysName   = "web"
	otherName = "dev1"
	day       = 24 * time.Hour
)

// world is an environment with its container, database and evidence. Its clock is ahead of the machine's by what has
// passed here; a database server keeps the machine's.
type world struct {
	testing.TB

	ahead     atomic.Int64
	db        database
	container container
	evidence  *inmem.Evidence
	breaker   *breaker.Breaker
	commit    *commit.Commit
	// ops is what operators do, and the timer that starts nights.
	ops     *ops.Ops
	options reconcile.Options
	// reader has the mapping of the build, mappings are those that migrations chose.
	reader   invoice.Reader
	mappings func(ctx context.Context) ([]invoice.Recorded, error)
	adoption adopt.Ledger
	// padding makes the documents of consistent longer, by as many bytes.
	padding int
	// changed are the documents that changed since the last night began.
	changed map[string]bool
	// links are the lines of documents of the environment that were put.
	links map[string]int
	// nights counts the comparisons.
	nights int
}

func newWorld(
	t testing.TB, open func(testing.TB, func() time.Time) database,
	contain func(testing.TB, func() time.Time) container,
) *world {
	t.Helper()
	w := &world{TB: t, changed: map[string]bool{}, links: map[string]int{}}
	w.db, w.container, w.evidence = open(t, w.now), contain(t, w.now), inmem.NewEvidenceOn(w.now)
	w.db.Findings = worldsClock{w.db.Findings, w.now}
	w.breaker = breaker.New(inmem.NewControl(), breaker.Options{
		Log: zerolog.Nop(), Now: w.now, Wait: w.wait, SysName: sysName, Heartbeat: w.db.sink.Heartbeat,
		TakeOver: w.db.sink.TakeOver, MaxPoisonPerHour: 10_000,
	})
	w.commit = commit.NewCommit(w.container.documents, w.db.sink, w.committing())
	w.options = reconcile.Options{SysName: sysName, Log: zerolog.Nop(), Now: w.now, Wait: w.wait}
	w.opens()
	require.NoError(t, w.db.empty(t.Context(), "a test"))
	return w
}

// committing are the options of Commit.
func (w *world) committing() commit.Options {
	return commit.Options{
		SysName: sysName, Log: zerolog.Nop(), Now: w.now, Wait: w.wait, Breaker: w.breaker, Evidence: w.evidence,
		Container: "AI_PROCESS_LOGS", Reader: w.reader,
	}
}

// opens makes what operators use.
func (w *world) opens() {
	w.ops = ops.New(ops.Ports{
		Documents: w.container.documents, Breaker: w.breaker, RunQueue: inmem.NewQueue(w.now),
		Finder: w.container.finder, Counts: &inmem.Counts{},
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{
				Runs: w.db.runs, Findings: w.db, Rows: w.db.rows, Executor: w.executor(),
				Check:   func(context.Context) error { return nil },
				Mapping: w.reader.Mapping, Mappings: w.mappings,
				Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
					return w.db.sink.Apply(ctx, items, commit.Preview, breaker.Heartbeat{SysName: sysName})
				},
			}, nil
		},
	}, ops.Options{SysName: sysName, Now: w.now, Reader: w.reader})
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

// wait passes time instead of sleeping.
func (w *world) wait(ctx context.Context, d time.Duration) error {
	w.pass(d)
	return ctx.Err()
}

// document is the text of a document of the environment with a line of its own and duplicates.
func document(line int64, duplicates ...int64) string {
	return documentOf(idOf(line), line, "ACME", `{"status":"pending","retry_count":0}`, duplicates...)
}

// idOf is the id of a line's document; of several documents of a line they differ in the number.
func idOf(line int64) string { return idAt(line, 8) }

func idAt(line int64, hour int) string {
	return fmt.Sprintf("2025-12-17 %02d:%02d:%02d.%06d-06:00-0001-%d", hour, line/60%60, line%60, line%1_000_000, line)
}

func documentOf(id string, line int64, manufacturer, state string, duplicates ...int64) string {
	list, err := json.Marshal(append([]int64{}, duplicates...))
	if err != nil {
		panic(err)
	}
	return fill.Document(
		fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":%q},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"DS1"},
		"post-processing":{"duplicate_detail_uids":%s},"sql_writer":%s}`, id, sysName, line, manufacturer, list, state))
}

// committedAt is the state of a document that another program made committed.
func (w *world) committedAt(at time.Time) string {
	return fmt.Sprintf(`{"status":"committed","outcome":"applied","retry_count":0,"committed_at":%q}`,
		invoice.Stamp(at, time.UTC))
}

func (w *world) put(doc string) string {
	w.Helper()
	w.container.put(w, json.RawMessage(doc))
	d, err := invoice.Reader{}.Read(json.RawMessage(doc), w.now())
	require.NoError(w, err)
	w.changed[d.ID] = true
	for _, line := range append(d.Duplicates, d.Main) {
		w.links[fmt.Sprint(d.ID, line)]++
	}
	return d.ID
}

// read is a document as it is now.
func (w *world) read(id string) (invoice.Document, json.RawMessage) {
	w.Helper()
	raw, err := w.container.documents.Read(w.Context(), id)
	require.NoError(w, err)
	d, err := invoice.Reader{}.Read(raw, w.now())
	require.NoError(w, err)
	return d, raw
}

// rewrite is another program that changes a document.
func (w *world) rewrite(id string, change func(members map[string]any)) {
	w.Helper()
	_, raw := w.read(id)
	members := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(w, d.Decode(&members))
	for name := range members {
		if name[0] == '_' {
			delete(members, name)
		}
	}
	change(members)
	text, err := json.Marshal(members)
	require.NoError(w, err)
	w.put(string(text))
}

// setState replaces the state of a document, as a person does.
func (w *world) setState(id string, change func(state map[string]any)) {
	w.Helper()
	w.rewrite(id, func(members map[string]any) { change(members["sql_writer"].(map[string]any)) })
}

// touch is another program that changes a member of its own.
func (w *world) touch(ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.rewrite(id, func(members map[string]any) { members["seen_by"] = "another program" })
	}
}

// offer offers documents to Commit as they are now.
func (w *world) offer(ids ...string) {
	w.Helper()
	w.commitAs(commit.FromFeed, ids...)
}

func (w *world) commitAs(purpose commit.Purpose, ids ...string) {
	w.Helper()
	for part := range slices.Chunk(ids, 100) {
		raws, err := w.container.documents.ReadMany(w.Context(), part)
		require.NoError(w, err)
		_, err = w.commit.Run(w.Context(), commit.Delivery{Documents: raws, Purpose: purpose, Received: w.now()})
		require.NoError(w, err)
	}
}

// consistent puts n documents with a line each, a third of them with a duplicate. Lines are from to from+n-1, and
// duplicates those plus duplicateOf.
func (w *world) consistent(from, n int64) (ids []string) {
	w.Helper()
	var lines []int64
	for line := from; line < from+n; line++ {
		lines = append(lines, line)
		duplicates := duplicatesOf(line)
		lines = append(lines, duplicates...)
		text := strings.Replace(document(line, duplicates...), `{"id":`,
			fmt.Sprintf(`{"padding":%q,"id":`, strings.Repeat("x", w.padding)), 1)
		ids = append(ids, w.put(text))
	}
	w.db.addLines(w, lines...)
	return ids
}

const duplicateOf = 1_000_000

func duplicatesOf(line int64) []int64 {
	if line%3 == 0 {
		return []int64{duplicateOf + line}
	}
	return nil
}

// linesOf are the lines of a document that consistent made.
func linesOf(line int64) []int64 { return append([]int64{line}, duplicatesOf(line)...) }

// lines reads lines past all comparisons.
func (w *world) lines(ids ...int64) map[int64]reconcile.Line {
	w.Helper()
	found := map[int64]reconcile.Line{}
	for part := range slices.Chunk(ids, reconcile.MaxLines) {
		lines, err := w.db.rows.Lines(w.Context(), part)
		require.NoError(w, err)
		for _, line := range lines {
			found[line.ID] = line
		}
	}
	return found
}

// value is a column of a line.
func value(l reconcile.Line, table invoice.Table, column string) string {
	for i, c := range mapping.InUse().Columns() {
		if c.Table == table && c.Name == column && i < len(l.Values) {
			return l.Values[i].Text
		}
	}
	return ""
}

func (w *world) reconciler() *reconcile.Reconcile {
	return reconcile.New(reconcile.Ports{
		Rows: w.db.rows, Findings: asked{w.db.Findings}, Finder: w.container.finder,
		Mend: w.ops.MendFindings, Breaker: w.breaker,
	}, w.options)
}

// asked are findings of comparisons that the test begins: the nights of the clock are none.
type asked struct{ reconcile.Findings }

func (a asked) Begin(context.Context, reconcile.Comparison) (bool, error) { return false, nil }

func (w *world) executor() *run.Executor {
	return run.NewExecutor(run.Ports{
		Store: w.db.runs, Finder: w.container.finder, Documents: w.container.documents, Commit: w.commit,
		Breaker: w.breaker, Evidence: w.evidence,
	}, run.Options{SysName: sysName, Log: zerolog.Nop(), Now: w.now, Wait: w.wait, Reader: w.reader})
}

// operator is somebody who asks for something.
func (w *world) operator() context.Context { return ops.WithActor(w.Context(), "ann") }

// execute executes a run to its end.
func (w *world) execute(id string) run.Run {
	w.Helper()
	done, err := w.executor().Execute(w.Context(), id)
	require.NoError(w, err)
	require.Equal(w, run.Executed{}, done)
	r, there, err := w.db.runs.Run(w.Context(), id)
	require.NoError(w, err)
	require.True(w, there)
	require.Equal(w, run.RunCompleted, r.Status, "%s: %s", id, r.Error)
	return r
}

// night is what one night compared and mended.
type night struct {
	compared reconcile.Comparison
	// mended is the run that it started; none or one.
	mended []run.Run
}

// compare is one night: the comparison, and the run that it starts.
func (w *world) compare(whole bool) night {
	w.Helper()
	n := w.compareAlone(whole)
	for i, r := range n.mended {
		n.mended[i] = w.execute(r.ID)
	}
	return n
}

// compareAlone is a night in which nobody executes the run that it starts.
func (w *world) compareAlone(whole bool) night {
	w.Helper()
	id := w.begin(whole)
	n := night{compared: w.finish(id)}
	r, there, err := w.db.runs.Run(w.Context(), fmt.Sprintf("%s-mend-%08x", id, crc32.ChecksumIEEE([]byte(sysName))))
	require.NoError(w, err)
	if there {
		n.mended = append(n.mended, r)
	}
	return n
}

// worldsClock says that a comparison was read by the world's clock: a database has no other one than the machine's.
type worldsClock struct {
	reconcile.Findings

	now func() time.Time
}

func (f worldsClock) Next(ctx context.Context) (reconcile.Comparison, bool, error) {
	c, there, err := f.Findings.Next(ctx)
	c.ReadAt = f.now()
	return c, there, err
}

// begin begins a night's comparison: of what changed, or of everything.
func (w *world) begin(whole bool) (id string) {
	w.Helper()
	w.nights++
	id = fmt.Sprintf("night-%s-%08x", w.now().UTC().Format("20060102-150405"), w.nights)
	began, err := w.db.Begin(w.Context(),
		reconcile.Comparison{ID: id, Night: true, Whole: whole, By: "ann", Why: "a test"})
	require.NoError(w, err)
	require.True(w, began)
	w.db.began(w, id, w.now())
	w.changed = map[string]bool{}
	return id
}

// finish ticks until a comparison has ended.
func (w *world) finish(id string) reconcile.Comparison {
	w.Helper()
	for range 10_000 {
		_, err := w.reconciler().Tick(w.Context())
		require.NoError(w, err)
		if _, goesOn, err := w.db.Next(w.Context()); err == nil && !goesOn {
			break
		}
		w.pass(5 * time.Minute)
	}
	c, there, err := w.db.Last(w.Context())
	require.NoError(w, err)
	require.True(w, there)
	require.Equal(w, id, c.ID)
	return c
}

// startHere starts a run of an operator and executes it to its end, as managers and workers do.
func (w *world) startHere(request ops.StartRequest) map[invoice.Outcome]int {
	w.Helper()
	started, err := w.ops.StartRun(w.operator(), request)
	require.NoError(w, err)
	_, err = w.executor().Execute(w.Context(), started.Run)
	require.NoError(w, err)
	stats, err := w.db.runs.Stats(w.Context(), started.Run)
	require.NoError(w, err)
	return stats.Outcomes
}

// counts are those of a night that are not 0.
func (n night) counts() map[reconcile.Class]int {
	return nonzero(n.compared.Counts)
}

// found lists the findings.
func (w *world) found() []reconcile.Finding {
	w.Helper()
	var all []reconcile.Finding
	var after *reconcile.Key
	for {
		const page = 500
		found, err := w.db.List(w.Context(), reconcile.Query{}, after, page)
		require.NoError(w, err)
		all = append(all, found...)
		if len(found) < page {
			return all
		}
		after = &found[page-1].Key
	}
}

// keys are findings as a set.
func keys(list []reconcile.Finding) map[reconcile.Key]bool {
	set := map[reconcile.Key]bool{}
	for _, f := range list {
		set[f.Key] = true
	}
	return set
}

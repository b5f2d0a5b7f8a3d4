package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// history is one container, one database and some instances of the app. Everything that they ask of one another is a
// step, and one step happens at a time. A seed decides which is next, and how much time passes before it.
type history struct {
	t     *testing.T
	r     *rand.Rand
	clock time.Time

	docs     *inmem.Documents
	sink     *inmem.Sink
	store    *inmem.RunStore
	control  *inmem.Control
	episodes map[string][]episode

	// past has each document's states by time, nil for deleted.
	past map[string][]snapshot
	// named are the lines that each document names, the main one first; by default those of its number.
	named map[int][]int64
	// written is when a line's ledger row was last written, writes its number.
	written map[int64]time.Time
	writes  map[int64]int64
	// left are documents that an instance gave up with an error line. If their content is of the second of an older
	// one, it may have been overwritten by that: the one inconsistency of the product itself.
	left map[string]bool
	// torn are documents of which an instance wrote a content when they had another one of the same second: the same,
	// if nobody was left to see it. A process may die, and a run that writes committed documents again records nothing.
	torn map[string]bool
	// skews are how far the clocks of the three instances are off, up to ten minutes; those of half of the histories
	// are right.
	skews [3]time.Duration
	// refusing: the database refuses some content for now.
	refusing bool

	actors []*actor
	parked chan struct{}
	serial int
}

type snapshot struct {
	at  time.Time
	raw json.RawMessage
}

type episode struct {
	folder string
	at     time.Time
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		t: t, r: rand.New(rand.NewPCG(seed, 19)), clock: time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC),
		sink: inmem.NewSink(), control: inmem.NewControl(), episodes: map[string][]episode{},
		past: map[string][]snapshot{}, named: map[int][]int64{}, written: map[int64]time.Time{},
		writes: map[int64]int64{},
		left:   map[string]bool{}, torn: map[string]bool{},
		parked: make(chan struct{}),
	}
	if seed/2%2 == 1 {
		for i := range h.skews {
			h.skews[i] = time.Duration(h.r.Int64N(int64(20*time.Minute))) - 10*time.Minute
		}
	}
	now := func() time.Time { return h.clock }
	h.docs, h.store = inmem.NewDocuments(now), inmem.NewRunStore(now, sysName)
	for line := range int64(historyLines) {
		h.sink.AddLines(line + 1)
	}
	return h
}

const (
	historyLines = 3
	historyDocs  = 5
	// lifetime is when the host ends an invocation.
	lifetime = 10 * time.Minute
)

// actor is an invocation: it parks before each step until the history lets it go on.
type actor struct {
	h      *history
	began  time.Time
	resume chan struct{}
	dead   bool // the process is gone: nothing that it asks for happens
	ended  bool
	// again repeats it after its process died.
	again func()
}

// start begins an invocation that runs as soon as it is chosen.
func (h *history) start(again func(), run func(a *actor)) {
	a := &actor{h: h, began: h.clock, resume: make(chan struct{}), again: again}
	h.actors = append(h.actors, a)
	go func() {
		<-a.resume
		defer func() { a.ended = true; h.parked <- struct{}{} }()
		run(a)
	}()
}

// step lets an invocation do one step.
func (h *history) step(i int) {
	a := h.actors[i]
	if h.clock.Sub(a.began) >= lifetime || a.again != nil && h.r.IntN(150) == 0 {
		a.dead = true
	}
	a.resume <- struct{}{}
	<-h.parked
	if a.ended {
		h.actors = append(h.actors[:i], h.actors[i+1:]...)
		if a.dead && a.again != nil {
			a.again()
		}
	}
}

// park waits for the actor's turn. An error means that its process is gone.
func (a *actor) park() error {
	if !a.dead {
		a.h.parked <- struct{}{}
		<-a.resume
	}
	if a.dead {
		return fault.New(fault.Infrastructure, "test", "killed", "the process is gone")
	}
	return nil
}

// lost ends some calls without their answer.
func (a *actor) lost() error {
	if a.h.r.IntN(40) > 0 {
		return nil
	}
	return fault.New(fault.Infrastructure, "test", "lost", "the answer was lost")
}

// Read and the others are the ports of an invocation.
func (a *actor) Read(ctx context.Context, id string) (json.RawMessage, error) {
	if err := a.park(); err != nil {
		return nil, err
	}
	if a.h.now(id) == nil {
		return nil, &fault.Error{Kind: fault.Document, Condition: fault.Gone, Code: "404"}
	}
	return a.h.docs.Read(ctx, id)
}

func (a *actor) ReadMany(_ context.Context, ids []string) (all []json.RawMessage, err error) {
	if err := a.park(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if raw := a.h.now(id); raw != nil {
			all = append(all, raw)
		}
	}
	return all, nil
}

func (a *actor) Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	if err := a.park(); err != nil {
		return "", err
	}
	if a.h.now(doc.ID) == nil {
		return "", &fault.Error{Kind: fault.Document, Condition: fault.Gone, Code: "404"}
	}
	next, err := a.h.docs.Record(ctx, doc, state)
	if err == nil {
		a.h.note(doc.ID)
		err = a.lost()
	}
	return next, err
}

func (a *actor) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := a.park(); err != nil {
		return nil, err
	}
	for _, it := range items {
		for _, v := range it.Values {
			if !it.FailureMark &&
				(strings.HasPrefix(v.Text, "bad") || a.h.refusing && strings.HasPrefix(v.Text, "moody")) {
				return nil, fault.New(fault.Document, "test", "515", "the database refuses the value")
			}
		}
	}
	for _, it := range items {
		for _, then := range a.h.past[it.DocumentID] {
			if then.raw == nil {
				continue
			}
			if d := a.h.read(then.raw); d.TS == it.SourceTS && d.Hash != it.Hash {
				a.h.torn[it.DocumentID] = true
			}
		}
	}
	out, err := a.h.sink.Apply(ctx, items, mode, known)
	for line := range int64(historyLines) {
		if e, ok := a.h.sink.Entry(line + 1); ok && e.Write != a.h.writes[line+1] {
			a.h.writes[line+1], a.h.written[line+1] = e.Write, a.h.clock
		}
	}
	if err == nil && len(items) > 0 {
		err = a.lost()
	}
	return out, err
}

func (a *actor) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.h.sink.Heartbeat(ctx, known)
}

func (a *actor) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.h.sink.TakeOver(ctx, known)
}

func (a *actor) Keep(_ context.Context, name string, content []byte) error {
	if err := a.park(); err != nil {
		return err
	}
	folder, complete := strings.CutSuffix(name, "/metadata.json")
	if !complete {
		return nil
	}
	var of struct {
		DocumentID string `json:"document_id"`
	}
	if err := json.Unmarshal(content, &of); err != nil {
		return err
	}
	for _, e := range a.h.episodes[of.DocumentID] {
		if e.folder == folder {
			return nil
		}
	}
	a.h.episodes[of.DocumentID] = append(a.h.episodes[of.DocumentID], episode{folder, a.h.clock})
	return nil
}

// now is a document as the container has it; nil for none.
func (h *history) now(id string) json.RawMessage { return h.at(id, h.clock) }

// at is a document as the container had it.
func (h *history) at(id string, at time.Time) (raw json.RawMessage) {
	for _, s := range h.past[id] {
		if !s.at.After(at) {
			raw = s.raw
		}
	}
	return raw
}

func (h *history) note(id string) {
	raw, err := h.docs.Read(context.Background(), id)
	require.NoError(h.t, err)
	h.past[id] = append(h.past[id], snapshot{h.clock, raw})
}

func documentID(n int) string {
	line := n%historyLines + 1
	return fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-0001-%d", n, line)
}

// lines are those that a document names now.
func (h *history) lines(n int) []int64 {
	if named, there := h.named[n]; there {
		return named
	}
	line := int64(n%historyLines + 1)
	if n < historyLines {
		return []int64{line}
	}
	return []int64{line, line%historyLines + 1}
}

// renames is a person who corrects the key or the duplicates of a document: it drops a line, takes one, or both.
func (h *history) renames(n int) {
	all := []int64{1, 2, 3}
	h.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	h.named[n] = all[:1+h.r.IntN(2)]
}

// offer puts a document with new content, or the content it had, and a state.
func (h *history) offer(n int, content string, state any) {
	named := h.lines(n)
	raw, err := json.Marshal(map[string]any{
		"id": documentID(n), "request_details": map[string]any{"sys_name": "web"},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": named[0]},
		"process_output": map[string]any{
			"manufacturer_name": content, "part_number": "425", "unspsc": "39131711", "invoice_line_status": "RC-AI",
		},
		"post-processing": map[string]any{"duplicate_detail_uids": named[1:]}, "sql_writer": state,
	})
	require.NoError(h.t, err)
	require.NoError(h.t, h.docs.Put(raw))
	h.note(documentID(n))
}

func (h *history) read(raw json.RawMessage) invoice.Document {
	d, err := invoice.Reader{}.Read(raw, h.clock)
	require.NoError(h.t, err)
	return d
}

// invocation starts one instance's work on documents.
func (h *history) invocation(b func() commit.Delivery) {
	h.start(func() { h.invocation(b) }, func(a *actor) {
		skew := h.skews[h.serial%3]
		now := func() time.Time { return h.clock.Add(skew) }
		nap := func(context.Context, time.Duration) error { return a.park() }
		br := breaker.New(h.control, breaker.Options{
			Instance: fmt.Sprint("i", h.serial%3), Build: "v1", Log: zerolog.New(io.Discard), Now: now,
			Draw: h.r.Float64, Wait: nap,
			SysName: "web", Heartbeat: a.Heartbeat, TakeOver: a.TakeOver,
		})
		h.serial++
		c := commit.NewCommit(a, a, commit.Options{
			SysName: "web", Log: zerolog.New(io.Discard), Breaker: br, Evidence: a, Container: "c", Parallel: 1,
			Now: now, Draw: h.r.Float64, Wait: nap,
		})
		batch := b()
		batch.Received = batch.Received.Add(skew)
		batch.OnResult = func(r commit.DocumentResult) {
			if r.Outcome == "left" {
				h.left[r.ID] = true
			}
		}
		_, _ = c.Run(context.Background(), batch)
	})
}

// act is what programs and people do at once, or an invocation that begins.
func (h *history) act() {
	n := h.r.IntN(historyDocs)
	raw := h.now(documentID(n))
	content := []string{"a", "b", "moody", "moody", "moody", "bad"}[h.r.IntN(6)]
	pending := map[string]any{"status": "pending", "retry_count": 0}
	stamp := func(ago time.Duration) string { return invoice.Stamp(h.clock.Add(-ago), time.UTC) }
	lastTry := map[string]any{
		"status": "retry_scheduled", "retry_count": 5, "postponed": true,
		"retry_after": h.clock.Add(-time.Second).Unix(), "last_error_kind": "document",
		"last_error_code": "515", "last_error_at": stamp(10 * time.Minute),
		"attempts": []any{map[string]any{"at": stamp(10 * time.Minute), "kind": "document", "error": "x"}},
	}
	if raw == nil {
		h.offer(n, content, pending)
		return
	}
	d := h.read(raw)
	was := d.Values[0].Text
	if d.State.Status == invoice.Failed && h.r.IntN(2) == 0 {
		h.refusing = false
		h.begin(n, replay)
		return
	}
	switch h.r.IntN(20) {
	case 0:
		h.offer(n, content, pending)
	case 1, 2, 7:
		h.offer(n, content, lastTry)
	case 3: // a person resets it
		if s := d.State; s.Status == invoice.Failed {
			s.Status = invoice.Pending
			h.offer(n, []string{was, content}[h.r.IntN(2)], s)
		}
	case 4:
		if s := d.State; s.Status == invoice.Failed || s.Status == invoice.RetryScheduled {
			require.NoError(h.t, h.store.Write(h.t.Context(), markOf(d.ID, stamp(0))))
			s.Status, s.Outcome, s.CommittedAt = invoice.Committed, invoice.OutcomeManual, stamp(0)
			h.offer(n, was, s)
		}
	case 5, 8:
		h.refusing = !h.refusing
	case 6:
		if h.r.IntN(4) == 0 {
			h.past[documentID(n)] = append(h.past[documentID(n)], snapshot{h.clock, nil})
		}
	case 9:
		h.renames(n)
		h.offer(n, []string{was, content}[h.r.IntN(2)], pending)
	default:
		h.begin(n, h.r.IntN(5))
	}
}

// replay is one of the ways to begin.
const replay = 2

// begin starts an invocation on one or two documents.
func (h *history) begin(n, way int) {
	var ids []string
	for _, n := range []int{n, h.r.IntN(historyDocs)}[:1+h.r.IntN(2)] {
		ids = append(ids, documentID(n))
	}
	snapshots := func(ago time.Duration) (all []json.RawMessage) {
		for _, id := range ids {
			if raw := h.at(id, h.clock.Add(-ago)); raw != nil {
				all = append(all, raw)
			}
		}
		return all
	}
	b := commit.Delivery{}
	switch way {
	case 0: // the feed, which may be behind
		behind, began := time.Duration(h.r.IntN(40))*time.Second, h.clock
		b.Documents, b.RetryCount = snapshots(behind), h.r.IntN(2)
		h.invocation(func() commit.Delivery {
			again := b
			if again.Received = h.clock; h.clock.After(began) {
				again.RetryCount++
			}
			return again
		})
		return
	case 1:
		b.Purpose = commit.FromTimer
	case replay:
		b.Purpose, b.TakeOver = commit.ForRun, []invoice.Status{invoice.Failed, invoice.RetryScheduled}
	case 3:
		b.Purpose, b.TakeOver = commit.ForRun, []invoice.Status{invoice.Failed, invoice.Committed}
	case 4:
		b.Purpose, b.TakeOver, b.Rewrite = commit.ForRun, []invoice.Status{invoice.Committed}, true
	}
	h.invocation(func() commit.Delivery {
		again := b
		again.Received, again.Documents = h.clock, snapshots(0)
		return again
	})
}

// pass lets time go by: often none, so that much happens within one second of _ts.
func (h *history) pass() {
	switch h.r.IntN(10) {
	case 0:
		h.clock = h.clock.Add(time.Duration(h.r.IntN(90)) * time.Second)
	case 1:
		h.clock = h.clock.Add(time.Duration(h.r.IntN(1500)) * time.Millisecond)
	default:
		h.clock = h.clock.Add(time.Duration(h.r.IntN(30)) * time.Millisecond)
	}
}

// settle lets all invocations end, and then those that the timer and the feed begin until nothing waits.
func (h *history) settle() {
	h.refusing = false
	for range 40 {
		for len(h.actors) > 0 {
			h.step(h.r.IntN(len(h.actors)))
		}
		waits := false
		h.clock = h.clock.Add(2 * time.Minute)
		for n := range historyDocs {
			raw := h.now(documentID(n))
			if raw == nil {
				continue
			}
			d := h.read(raw)
			if d.State.Status == invoice.Committed || d.State.Status == invoice.Failed {
				continue
			}
			if waits = true; d.Values[0].Text == "bad" {
				h.offer(n, "corrected", map[string]any{"status": "pending"})
			}
			h.invocation(func() commit.Delivery {
				return commit.Delivery{
					Documents: []json.RawMessage{h.now(documentID(n))}, Purpose: commit.FromTimer, Received: h.clock,
				}
			})
		}
		if !waits {
			return
		}
		h.clock = h.clock.Add(30 * time.Minute)
	}
}

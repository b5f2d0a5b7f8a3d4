package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// refusedName is a manufacturer's name that validation lets pass and the database refuses.
const refusedName = "refused by the database"

// bisect is the use case at work: documents in memory, the sink under test, a clock that only the case moves.
type bisect struct {
	*sinkTest
	clock    time.Time
	docs     *inmem.Documents
	requests *countedSink
	commit   *commit.Commit
}

// newBisect puts commit.Commit over the sink under test. Lines 1 to lines exist.
func newBisect(s *sinkTest, lines int) *bisect {
	s.Helper()
	s.h.AddLines(s, span(1, lines)...)
	b := &bisect{
		sinkTest: s, clock: time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC), requests: &countedSink{Sink: s.h.Sink},
	}
	now := func() time.Time { return b.clock }
	b.docs = inmem.NewDocuments(now)
	b.commit = commit.NewCommit(b.docs, b.requests, commit.Options{
		SysName: "web", Reader: mapping.Reader(), PartsAtOnce: s.partsAtOnce, Now: now,
		Draw: func() float64 { return 0.5 },
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	return b
}

// countedSink counts the requests that the use case makes.
type countedSink struct {
	commit.Sink
	mu sync.Mutex
	n  int
}

// Apply implements commit.Sink.
func (c *countedSink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Sink.Apply(ctx, items, mode, known)
}

// taken answers the requests since it was last asked.
func (c *countedSink) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}

// paper is a document as the programs that produce results write it. Minute orders versions.
type paper struct {
	minute     int
	line       int64
	name, code string
	duplicates []int64
}

func (p paper) id() string {
	return fmt.Sprintf("2025-12-17 %02d:%02d:00.000000-06:00-%d", 10+p.minute/60, p.minute%60, p.line)
}

// papers makes n documents with a line of their own each.
func papers(n int) []paper {
	list := make([]paper, n)
	for i := range list {
		list[i] = paper{minute: i, line: int64(i + 1), name: fmt.Sprint("maker ", i), code: AllowedCode}
	}
	return list
}

// put writes documents into the container, new and pending.
func (b *bisect) put(list ...paper) {
	b.Helper()
	for _, p := range list {
		text, err := json.Marshal(map[string]any{
			"id": p.id(), "request_details": map[string]any{"sys_name": "web"},
			"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": p.line},
			"post-processing":          map[string]any{"duplicate_detail_uids": p.duplicates},
			"process_output": map[string]any{
				"manufacturer_name": p.name, "part_number": "425", "unspsc": p.code, "invoice_line_status": "RC-AI",
			},
			"sql_writer": map[string]any{"status": "pending", "retry_count": 0},
		})
		require.NoError(b, err)
		require.NoError(b, b.docs.Put(text))
	}
}

// offer gives documents to the use case as the feed does, as they now stand, and answers its error.
func (b *bisect) offer(retry int, list ...paper) error {
	b.Helper()
	return b.commitBatch(commit.Delivery{RetryCount: retry}, list...)
}

// offerAs gives documents to the use case as another instance does.
func (b *bisect) offerAs(purpose commit.Purpose, list ...paper) error {
	b.Helper()
	return b.commitBatch(commit.Delivery{Purpose: purpose}, list...)
}

func (b *bisect) commitBatch(batch commit.Delivery, list ...paper) error {
	b.Helper()
	batch.Received = b.clock
	for _, p := range list {
		batch.Documents = append(batch.Documents, b.raw(p))
	}
	report, err := b.commit.Run(b.Context(), batch)
	counted := 0
	for _, n := range report.Outcomes {
		counted += n
	}
	require.Equal(b, len(list), counted, "every document is counted once: %v", report.Outcomes)
	return err
}

// run puts documents and offers them in one batch that must end well; it answers the requests it took.
func (b *bisect) run(list ...paper) int {
	b.Helper()
	b.put(list...)
	require.NoError(b, b.offer(0, list...))
	return b.requests.taken()
}

func (b *bisect) raw(p paper) json.RawMessage {
	b.Helper()
	raw, err := b.docs.Read(b.Context(), p.id())
	require.NoError(b, err)
	return raw
}

// texts is what the documents say, all of it.
func (b *bisect) texts(list []paper) []string {
	b.Helper()
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = string(b.raw(p))
	}
	return texts
}

func (b *bisect) read(p paper) invoice.Document {
	b.Helper()
	d, err := mapping.Reader().Read(b.raw(p), b.clock)
	require.NoError(b, err)
	require.Nil(b, d.Problem, "validation lets it pass")
	return d
}

// committed requires that a document is committed without a retry, and that its lines have its content.
func (b *bisect) committed(p paper, outcome invoice.Outcome) {
	b.Helper()
	d := b.read(p)
	require.Equal(b, []any{invoice.Committed, outcome, 0, ""},
		[]any{d.State.Status, d.State.Outcome, d.State.RetryCount, d.State.LastError}, "%s", p.id())
	if outcome == invoice.OutcomeSuperseded {
		return
	}
	it := commit.ItemOf(d)
	l, _ := b.h.Ledger(b, p.line)
	it.SourceTS = l.SourceTS // recording the outcome has given the document a later one
	b.holds(it)
}

// supersededBy requires that a document is committed with nothing written, and names the document that owns its lines.
func (b *bisect) supersededBy(p, newer paper) {
	b.Helper()
	b.committed(p, invoice.OutcomeSuperseded)
	require.Equal(b, newer.id(), b.read(p).State.SupersededBy)
}

// blamed requires that a document waits for another try with one retry spent, and that nothing of it was written.
func (b *bisect) blamed(p paper) invoice.State {
	b.Helper()
	st := b.read(p).State
	require.Equal(b, []any{invoice.RetryScheduled, 1, string(fault.Document), 1},
		[]any{st.Status, st.RetryCount, st.LastErrorKind, len(st.Attempts)}, "%s: %s", p.id(), st.LastError)
	require.Greater(b, st.RetryAfter, b.clock.Unix())
	require.NotEmpty(b, st.LastError)
	b.unwritten(p)
	return st
}

// unwritten requires that no line has content of a document.
func (b *bisect) unwritten(p paper) {
	b.Helper()
	for _, line := range append([]int64{p.line}, p.duplicates...) {
		l, _ := b.h.Ledger(b, line)
		require.NotEqual(b, p.id(), l.DocumentID, "line %d", line)
	}
}

// mostRequests is what finding k bad documents among n may cost: the tree of halves has at most k refused requests on
// each level, and fewer than k above the level that has room for k. When k is large it is every node of the tree.
func mostRequests(n, k int) int {
	if k == 0 {
		return 1
	}
	levels := int(math.Ceil(math.Log2(float64(n))) - math.Floor(math.Log2(float64(k))))
	return min(2*(k*levels+k-1)+1, 2*n-1)
}

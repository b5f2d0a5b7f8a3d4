package writer

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// recordTimeout bounds the bookkeeping after a write. It does not inherit the invocation's deadline: rows that are in
// SQL should be named in their documents even when the invocation's time is over.
const recordTimeout = time.Minute

// The escape from a batch that fails for ever although its dependencies answer others.
const escapeRetries = 20

// Options configure Commit. Zero values mean the defaults that are named.
type Options struct {
	// SysName is the environment whose documents are ours; others are left alone.
	SysName string
	// Location is the zone of the stamps in documents; UTC by default.
	Location *time.Location
	// Log gets what an operator must see of single documents: ids, kinds and codes, never content.
	Log zerolog.Logger
	// MaxDocuments and MaxRows bound one SQL request: 100 and 1,000. The gate may allow less.
	MaxDocuments, MaxRows int
	// Gate stands before the sink; by default one of this Commit's own.
	Gate *Gate
	// Evidence keeps poison pills. Without it no document becomes one: it is tried hourly instead.
	Evidence Evidence
	// Container and AppVersion are named in a poison pill's evidence.
	Container, AppVersion string
	// Parallel bounds the Cosmos writes under way at once: 16.
	Parallel int
	// Now is the clock, Draw gives jitter in [0,1), Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
}

// Commit takes documents to SQL and records what became of them. It is safe for concurrent use.
type Commit struct {
	docs Documents
	sink Sink
	gate *Gate
	o    Options
}

// NewCommit makes a Commit over the two ports.
func NewCommit(docs Documents, sink Sink, o Options) *Commit {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 100
	}
	if o.MaxRows == 0 {
		o.MaxRows = 1000
	}
	if o.Parallel == 0 {
		o.Parallel = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Draw == nil {
		o.Draw = rand.Float64
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Gate == nil {
		o.Gate = NewGate(nil, GateOptions{Log: o.Log, Now: o.Now})
	}
	return &Commit{docs: docs, sink: sink, gate: o.Gate, o: o}
}

// Run takes one batch through: read, choose, write to SQL, record. The error is nil when every outcome is recorded or
// left to the recovery timer on purpose; otherwise it is of dependency scope, and the same batch should be offered
// again: what SQL answered about is recorded and stays, nothing else was told or counted, and writing again changes nothing.
func (c *Commit) Run(ctx context.Context, b Batch) (Report, error) {
	mode := Write
	if b.Rewrite && b.Purpose == ForRun {
		mode = Rewrite
	}
	p := c.begin(b, mode)
	docs := p.read(b.Documents)
	err := c.gate.refuses(ctx) // it may for hours, and the documents need not be read again every ten seconds to learn that
	if err == nil {
		docs, err = p.freshen(ctx, docs, func(d invoice.Document) bool {
			// What others bring was read a moment ago; and without an etag no patch could be conditional.
			return (b.Purpose == FromFeed && (b.RetryCount > 0 || d.RewrittenByHost)) || d.ETag == ""
		})
	}
	if err == nil {
		err = p.commitAll(ctx, docs)
	}
	p.report.Lag = p.lag()
	c.gate.note(context.WithoutCancel(ctx), p.feedLag())
	if err == nil {
		return p.report, nil
	}
	if p.escapes(err) {
		p.countRest("left")
		c.o.Log.Error().Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).Int("retry_count", b.RetryCount).
			Msg("this batch fails again and again while its dependencies answer others: what is left of it is left to the recovery timer")
		return p.report, nil
	}
	p.countRest("waiting")
	return p.report, err
}

// escapes reports whether a batch has been offered so often that it must not hold the feed any longer. While the gate is
// open it may: then everything waits, and for a reason.
func (p *pass) escapes(err error) bool {
	return p.batch.Purpose == FromFeed && p.batch.RetryCount > escapeRetries && !IsGate(err) && !p.c.gate.Seen().State().Open()
}

// feedLag is what this batch tells of the change feed: nothing unless it came from there, and for the first time. One that is
// offered again and again tells nothing: what waits behind it may be an orphan.
func (p *pass) feedLag() FeedLag {
	if p.batch.Purpose != FromFeed || p.batch.RetryCount > 0 || p.oldest == 0 {
		return FeedLag{}
	}
	return FeedLag{Seconds: int64(p.report.Lag / time.Second), At: p.c.o.Now()}
}

// begin makes the pass of one Run.
func (c *Commit) begin(b Batch, mode Mode) *pass {
	return &pass{
		c: c, batch: b, mode: mode,
		t:      transitions{now: c.o.Now, loc: c.o.Location, draw: c.o.Draw, reprocess: b.takesOver(invoice.Failed)},
		report: Report{Documents: len(b.Documents), Outcomes: map[string]int{}, Kinds: map[string]int{}},
		heal:   map[string]bool{},
	}
}

// pass is one Run under way.
type pass struct {
	c     *Commit
	batch Batch
	// mode is how the sink is asked.
	mode Mode
	t    transitions
	// heal names documents that somebody committed with other content than the snapshot we were offered before. We may have
	// written that snapshot over it (two contents within one second of _ts are ordered by nothing), so it is written once
	// more; normally the answer is unchanged.
	heal map[string]bool

	mu      sync.Mutex
	report  Report
	oldest  int64
	counted int
	// contention is the time that lost races took.
	contention time.Duration
	// adm is the leave that the gate gave for the request under way; more says that there are documents behind it.
	adm  *Admission
	more bool
	// held are failures that are not told yet: no document was written since the first of them.
	held []verdict
	// evidenceDown says that the store of evidence failed in this pass: it is not asked for every document again.
	evidenceDown bool
}

// verdict is a document and what became of it.
type verdict struct {
	doc invoice.Document
	res result
}

// admission is the leave to use SQL.
func (p *pass) admission() *Admission {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.adm
}

// hostPause is how long the host waits before it offers a batch again (functions/CommitResults/function.json).
const hostPause = 10 * time.Second

// reoffered is how often the batch was offered before and failed by itself. What it was offered while the gate was open says
// nothing about it.
func (p *pass) reoffered() int {
	closed := p.c.gate.Seen().Control.Gate.Since
	if since := p.c.o.Now().Sub(closed); !closed.IsZero() && since < time.Duration(p.batch.RetryCount)*hostPause {
		return int(since / hostPause)
	}
	return p.batch.RetryCount
}

// limit is the most documents of one request: what the gate allows, and less for a batch that comes again and again,
// because one of its documents may be what makes it fail.
func (p *pass) limit() int {
	most := p.c.o.MaxDocuments
	if adm := p.admission(); adm != nil && adm.Systemic && adm.pending() {
		return min(most, adm.Limit) // one document of these few decides; it must not be the one that is bad by itself
	}
	for range min(max(0, p.reoffered()-1), 8) {
		most /= divided
	}
	if adm := p.admission(); adm != nil {
		most = min(most, adm.Limit)
	}
	return max(1, most)
}

// understand reads one snapshot. A panic about it must not keep the others of its batch from being written.
func (p *pass) understand(raw json.RawMessage) (d invoice.Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.panicked(r)
		}
	}()
	return invoice.Read(raw, p.c.o.Now())
}

// read parses the batch. What has no id cannot be recorded by anybody: it is named in the log by its place and let go,
// so that it blocks no one. A document that stands in the batch twice is taken once, by its newest snapshot.
func (p *pass) read(raws []json.RawMessage) []invoice.Document {
	docs := make([]invoice.Document, 0, len(raws))
	at := make(map[string]int, len(raws))
	for i, raw := range raws {
		d, err := p.understand(raw)
		if err != nil {
			p.count("", "unreadable", fault.KindOf(err))
			event := p.c.o.Log.Error().Int("index", i).Str("code", fault.CodeOf(err))
			if e := fault.As(err); e != nil {
				event.Str("reason", e.Reason)
			}
			event.Msg("an element of the batch is no document that an outcome can be recorded for: it is left alone")
			continue
		}
		if d.TS > 0 && (p.oldest == 0 || d.TS < p.oldest) {
			p.oldest = d.TS
		}
		if j, twice := at[d.ID]; twice {
			p.count("", "skipped", "") // it will be told of the one that is taken
			if d.TS >= docs[j].TS {
				docs[j] = d
			}
			continue
		}
		at[d.ID] = len(docs)
		docs = append(docs, d)
	}
	return docs
}

// turn reports whether a document is ours to take now.
func (p *pass) turn(d invoice.Document) bool { return p.turnOf(d) == invoice.Take }

// turnOf is the document's turn, as the purpose of the batch sees it.
func (p *pass) turnOf(d invoice.Document) invoice.Turn {
	turn := d.Turn(p.c.o.Now(), p.c.o.SysName)
	if (turn == invoice.NotDue || turn == invoice.Done) && p.batch.takesOver(d.State.Status) {
		return invoice.Take
	}
	return turn
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// planDocuments is plan for documents that may not all become items.
func planDocuments(docs []invoice.Document, maxDocuments, maxRows int) [][2]int {
	items := make([]Item, len(docs))
	for i, d := range docs {
		items[i] = Item{Duplicates: d.Duplicates}
	}
	return plan(items, maxDocuments, maxRows)
}

// idList names lines for people, the first ten of them.
func idList(ids []int64) string {
	const most = 10
	var b strings.Builder
	for i, id := range ids {
		if i == most {
			b.WriteString(" and " + strconv.Itoa(len(ids)-most) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

// clipStatus bounds a foreign status for a log line.
func clipStatus(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}

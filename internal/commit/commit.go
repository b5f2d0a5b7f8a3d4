package commit

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
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
	// MaxDocuments and MaxRows bound one SQL request: 100 and 1,000. The breaker may allow less.
	MaxDocuments, MaxRows int
	// Breaker stands before the sink; by default one of this Commit's own.
	Breaker *breaker.Breaker
	// Evidence keeps poison messages. Without it no document becomes one: it is tried hourly instead.
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
	docs    Documents
	sink    Sink
	breaker *breaker.Breaker
	o       Options
	// capLogged is the hour for which it was said that enough poison messages were made.
	capLogged atomic.Int64
	// ranOut is when a batch of the feed last ran out of time for dividing, in epoch seconds.
	ranOut atomic.Int64
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
		o.Wait = timer.Wait
	}
	if o.Breaker == nil {
		o.Breaker = breaker.New(nil, breaker.Options{
			Log: o.Log, Now: o.Now, Draw: o.Draw, Wait: o.Wait,
			SysName: o.SysName, Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
		})
	}
	return &Commit{docs: docs, sink: sink, breaker: o.Breaker, o: o}
}

// Run takes one batch through: read, choose, write to SQL, record. The error is nil when every outcome is recorded or
// left to the recovery timer on purpose; otherwise it is of dependency scope, and the same batch should be offered
// again: what SQL answered about is recorded and stays, nothing else was told or counted, and writing again changes nothing.
// A rewrite that lost races answers an error of kind contention instead: it is offered again, too.
func (c *Commit) Run(ctx context.Context, b Batch) (Report, error) {
	mode := Write
	if b.Rewrite && b.Purpose == ForRun {
		mode = Rewrite
	}
	p := c.begin(ctx, b, mode)
	docs := p.read(b.Documents)
	rest, err := docs, error(nil)
	cutOff := b.Purpose == FromFeed && c.breaker.CutOff(ctx)
	if !cutOff {
		rest, err = p.run(ctx, docs)
		cutOff = err != nil && p.sqlAway && b.Purpose == FromFeed && c.breaker.CutOff(ctx)
	}
	if cutOff {
		err = p.leaveToOthers(ctx, rest)
	}
	p.report.Lag = p.lag()
	c.breaker.Note(ctx, p.feedLag())
	switch {
	case err == nil:
		p.countRest("waiting") // what lost a race, or had no turn
		return p.report, p.contended
	case p.escapes(err):
		p.countRest("left")
		c.o.Log.Error().Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).Int("retry_count", b.RetryCount).
			Msg("this batch fails again and again while its dependencies answer others: what is left of it is left to the recovery timer")
		return p.report, nil
	}
	p.countRest("waiting")
	return p.report, err
}

// run is the work of Run. After an error rest has the documents that nothing was found out about.
func (p *pass) run(ctx context.Context, docs []invoice.Document) (rest []invoice.Document, err error) {
	if slices.ContainsFunc(docs, p.eligibility) { // what asks nothing of SQL does not wait for it
		if err := p.c.breaker.Permit(ctx); err != nil {
			p.sqlAway = true
			return docs, err
		}
	}
	fresh, err := p.freshen(ctx, docs, p.doubtful)
	if err != nil {
		return docs, err
	}
	return p.commitAll(ctx, fresh)
}

// escapes reports whether a batch has been offered so often that it must not hold the feed any longer. While the breaker is
// open it may: then everything waits, and for a reason.
func (p *pass) escapes(err error) bool {
	return p.batch.Purpose == FromFeed && p.batch.RetryCount > escapeRetries && !breaker.IsRefusal(err) &&
		!p.c.breaker.Seen().Control.Breaker.Stopped()
}

// feedLag is what this batch tells of the change feed: nothing unless it came from there, and for the first time. One that is
// offered again and again tells nothing: what waits behind it may be an orphan.
func (p *pass) feedLag() breaker.FeedLag {
	if p.batch.Purpose != FromFeed || p.batch.RetryCount > 0 || p.oldest == 0 {
		return breaker.FeedLag{}
	}
	return breaker.FeedLag{Seconds: int64(p.report.Lag / time.Second), At: p.c.o.Now()}
}

// begin makes the pass of one Run.
func (c *Commit) begin(ctx context.Context, b Batch, mode Mode) *pass {
	divideUntil := c.o.Now().Add(divideFor)
	if b.Purpose == FromFeed && c.hurries() {
		divideUntil = c.o.Now().Add(divideInHurry)
	}
	return &pass{
		c: c, batch: b, mode: mode,
		t:           transitions{now: c.o.Now, loc: c.o.Location, draw: c.o.Draw, reprocess: b.takesOver(invoice.Failed)},
		report:      Report{Documents: len(b.Documents), Outcomes: map[string]int{}, Kinds: map[string]int{}},
		heal:        map[string]bool{},
		dueBefore:   c.dueBefore(ctx),
		divideUntil: earlier(divideUntil, b.DivideUntil),
	}
}

// dueBefore is the _ts up to which postponed documents are due; zero while nothing got through.
func (c *Commit) dueBefore(ctx context.Context) int64 {
	if due := c.breaker.DueBefore(ctx); !due.IsZero() {
		return due.Unix()
	}
	return 0
}

// hurries reports whether a batch of the feed ran out of time for dividing a short while ago: those behind it waited long
// enough.
func (c *Commit) hurries() bool {
	at := c.ranOut.Load()
	return at > 0 && c.o.Now().Sub(time.Unix(at, 0)) < hurryFor
}

// earlier is the earlier of two times; zero is no time.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
	// dueBefore is the _ts up to which postponed documents are due.
	dueBefore int64
	// divideUntil is when dividing ends.
	divideUntil time.Time
	// partTimeout bounds the requests after one that failed like an outage while others were answered; zero until then. Marks are
	// made side by side.
	partTimeout atomic.Int64
	// undecided says that the time for finding bad documents ran out.
	undecided bool
	// sqlAway says that what stopped the pass is SQL's, and not another dependency's.
	sqlAway bool
	// contended is the error of a rewrite that lost races: it is never final.
	contended error
	// evidenceDown says that the store of evidence failed in this pass: it is not asked for every document again.
	evidenceDown bool
}

// verdict is a document and what became of it.
type verdict struct {
	doc invoice.Document
	res result
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

// eligibility reports whether a document is ours to take now.
func (p *pass) eligibility(d invoice.Document) bool { return p.turnOf(d) == invoice.Eligible }

// turnOf is the document's turn, as the purpose of the batch sees it.
func (p *pass) turnOf(d invoice.Document) invoice.Eligibility {
	turn := d.Eligibility(p.c.o.Now(), p.c.o.SysName)
	switch {
	case (turn == invoice.NotDue || turn == invoice.Done) && p.batch.takesOver(d.State.Status):
		return invoice.Eligible
	case turn == invoice.NotDue && p.batch.Purpose == FromTimer && d.State.Postponed && d.TS <= p.dueBefore:
		return invoice.Eligible // others got through since it failed
	case turn == invoice.Eligible && p.batch.Purpose == FromFeed && d.State.Status == invoice.RetryScheduled:
		return invoice.NotDue // retries are the timer's: here one would come back by its own patch, before the new ones
	}
	return turn
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

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

// recordTimeout bounds the records after a write. It does not inherit the invocation's deadline, because documents should
// name the lines in SQL even when the invocation's time is over.
const recordTimeout = time.Minute

// escapeRetries is the number of offers of a batch after which its documents are left to the recovery timer, when its
// dependencies answer others.
const escapeRetries = 20

// Options configure Commit. A zero field means its default.
type Options struct {
	// SysName is the environment of the documents; those of other environments are skipped.
	SysName string
	// Location is the time zone of the stamps in documents; UTC by default.
	Location *time.Location
	// Log gets ids, kinds and codes of single documents, never content.
	Log zerolog.Logger
	// MaxDocuments and MaxRows bound one SQL request, by default to 100 and 1,000. The breaker may lower them.
	MaxDocuments, MaxRows int
	// Breaker protects the sink; nil means a breaker of this Commit alone.
	Breaker *breaker.Breaker
	// Evidence keeps poison pills. Without it no document becomes one: it is tried hourly instead.
	Evidence Evidence
	// Container and AppVersion go into a poison pill's evidence.
	Container, AppVersion string
	// Parallel bounds the concurrent writes to Cosmos DB; 16 by default.
	Parallel int
	// Now is the clock. Draw gives jitter in [0,1). Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
}

// Commit writes documents to SQL and records the outcomes in them. It is safe for concurrent use.
type Commit struct {
	docs    Documents
	sink    Sink
	breaker *breaker.Breaker
	o       Options
	// capLogged is the last hour in which the bound on poison pills was logged.
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

// Run commits one batch: read, choose, write to SQL, record. The error is nil when every outcome is recorded, or left to
// the recovery timer on purpose.
//
// An error means that the same batch should be offered again. What SQL answered is recorded and stays; the other
// documents are neither recorded nor counted, and a second write changes nothing. Errors by kind: those of dependency
// scope; contention for a rewrite that lost races.
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
		p.countRest("waiting") // documents that lost a race or were not sent
		return p.report, p.contended
	case p.escapes(err):
		p.countRest("left")
		c.o.Log.Error().Str("kind", string(fault.KindOf(err))).Str("code", fault.CodeOf(err)).Int("retry_count", b.RetryCount).
			Msg("this batch fails again and again while its dependencies answer others: its remaining documents are left to the recovery timer")
		return p.report, nil
	}
	p.countRest("waiting")
	return p.report, err
}

// run does the work of Run. After an error rest has the documents without a result.
func (p *pass) run(ctx context.Context, docs []invoice.Document) (rest []invoice.Document, err error) {
	if slices.ContainsFunc(docs, p.eligible) { // documents that need no SQL do not wait for it
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

// escapes reports whether a batch was offered so often that it must no longer stop the feed. While the breaker is open it
// never does: everything waits then.
func (p *pass) escapes(err error) bool {
	return p.batch.Purpose == FromFeed && p.batch.RetryCount > escapeRetries && !breaker.IsRefusal(err) &&
		!p.c.breaker.Seen().Control.Breaker.Stopped()
}

// feedLag is this batch's measurement of the change feed. Only the first offer of a batch of the feed measures it:
// documents behind a repeated batch may be orphans.
func (p *pass) feedLag() breaker.FeedLag {
	if p.batch.Purpose != FromFeed || p.batch.RetryCount > 0 || p.oldest == 0 {
		return breaker.FeedLag{}
	}
	return breaker.FeedLag{Seconds: int64(p.report.Lag / time.Second), At: p.c.o.Now()}
}

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

// dueBefore is the _ts up to which postponed documents are due; zero before the first success.
func (c *Commit) dueBefore(ctx context.Context) int64 {
	if due := c.breaker.DueBefore(ctx); !due.IsZero() {
		return due.Unix()
	}
	return 0
}

// hurries reports whether a batch of the feed recently ran out of time for dividing. The batches behind it have waited long
// enough.
func (c *Commit) hurries() bool {
	at := c.ranOut.Load()
	return at > 0 && c.o.Now().Sub(time.Unix(at, 0)) < hurryFor
}

// earlier is the earlier of two times; a zero b is ignored.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// pass is the state of one Run.
type pass struct {
	c     *Commit
	batch Batch
	mode  Mode
	t     transitions
	// heal names documents that another writer committed with content other than the snapshot of the earlier offer. This
	// instance may have written that snapshot over it, because two contents within one second of _ts have no order. They
	// are written once more; normally the outcome is unchanged.
	heal map[string]bool

	mu      sync.Mutex
	report  Report
	oldest  int64
	counted int
	// dueBefore is the _ts up to which postponed documents are due.
	dueBefore   int64
	divideUntil time.Time
	// partTimeout bounds the requests after one that failed like an outage while others succeeded; zero until then. It is
	// atomic because marks are made concurrently.
	partTimeout atomic.Int64
	// undecided is true after the time for finding bad documents ran out.
	undecided bool
	// sqlAway is true when the error that ended the pass came from SQL, and not from another dependency.
	sqlAway bool
	// contended is the error of a rewrite that lost races. Such an error is never final.
	contended error
	// evidenceDown is true after the evidence store failed in this pass. It is then not called for every document.
	evidenceDown bool
}

// verdict is a document and its result.
type verdict struct {
	doc invoice.Document
	res result
}

// understand reads one snapshot. A panic in it must not stop the other documents of the batch.
func (p *pass) understand(raw json.RawMessage) (d invoice.Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.panicked(r)
		}
	}()
	return invoice.Read(raw, p.c.o.Now())
}

// read parses the batch. An element without an id cannot be recorded: its place is logged and it is skipped. A document
// that occurs twice is taken once, with its newest snapshot.
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
			event.Msg("an element of the batch has no id to record an outcome for: it is skipped")
			continue
		}
		if d.TS > 0 && (p.oldest == 0 || d.TS < p.oldest) {
			p.oldest = d.TS
		}
		if j, twice := at[d.ID]; twice {
			p.count("", "skipped", "") // OnResult is called for the snapshot that is taken
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

// eligible reports whether the batch takes a document now.
func (p *pass) eligible(d invoice.Document) bool { return p.eligibilityOf(d) == invoice.Eligible }

// eligibilityOf is the document's eligibility for a batch of this purpose.
func (p *pass) eligibilityOf(d invoice.Document) invoice.Eligibility {
	eligibility := d.Eligibility(p.c.o.Now(), p.c.o.SysName)
	switch {
	case (eligibility == invoice.NotDue || eligibility == invoice.Done) && p.batch.takesOver(d.State.Status):
		return invoice.Eligible
	case eligibility == invoice.NotDue && p.batch.Purpose == FromTimer && d.State.Postponed && d.TS <= p.dueBefore:
		return invoice.Eligible // others succeeded since it failed
	case eligibility == invoice.Eligible && p.batch.Purpose == FromFeed && d.State.Status == invoice.RetryScheduled:
		return invoice.NotDue // retries belong to the timer: on the feed a document's own patch would bring it back before newer ones
	}
	return eligibility
}

// planDocuments is plan for documents, some of which may not become items.
func planDocuments(docs []invoice.Document, maxDocuments, maxRows int) [][2]int {
	items := make([]Item, len(docs))
	for i, d := range docs {
		items[i] = Item{Duplicates: d.Duplicates}
	}
	return plan(items, maxDocuments, maxRows)
}

// idList lists at most ten ids in a text.
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

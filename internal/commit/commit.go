package commit

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

// recordTimeout bounds the records after a write. It does not inherit the invocation's deadline, because documents
// should name the lines in SQL even when the invocation's time is over.
const recordTimeout = time.Minute

// escapeRetries is how often the host offers a batch again, after which its documents are left to the recovery timer,
// when the breaker is not open. A committed document of a run has failed then.
const escapeRetries = 20

// maxRaces bounds how often one document is read again because it changed. One that changes more often is left to the
// recovery timer, which finds it at rest.
const maxRaces = 8

// Options configure Commit. A zero field means its default.
type Options struct {
	// SysName is the environment of the documents; those of other environments are skipped.
	SysName string
	// Reader reads the documents.
	Reader invoice.Reader
	// Location is the time zone of the stamps in documents; UTC by default.
	Location *time.Location
	// Log gets ids, kinds and codes of single documents, never content.
	Log zerolog.Logger
	// MaxDocuments bounds the documents of one SQL request, by default to 100. The breaker may lower it.
	MaxDocuments int
	// Breaker protects the sink; nil means a breaker of this Commit alone.
	Breaker *breaker.Breaker
	// Evidence keeps poison messages. Without it no document becomes one: it is tried hourly instead.
	Evidence Evidence
	// AdoptedAt returns when the ledger was adopted, or the zero time. Documents that another program finished later
	// are told.
	AdoptedAt func() time.Time
	// Container and AppVersion go into a poison message's evidence.
	Container, AppVersion string
	// MarkSeen writes Seen into a canary, if it still has the snapshot's etag; Instance is in it. Errors as
	// Documents.Record. Without it none is marked.
	MarkSeen func(ctx context.Context, canary invoice.Snapshot, seen Seen) error
	Instance string
	// Parallel bounds the concurrent writes to Cosmos DB; 16 by default.
	Parallel int
	// PartsAtOnce bounds the parts of a refused request that are sent at once; 1 by default. Batches of one Commit
	// share the connections for it: together they use PartsAtOnce-1 more than one each.
	PartsAtOnce int
	// Now is the clock. Draw gives jitter in [0,1). Wait sleeps unless the context ends first.
	Now  func() time.Time
	Draw func() float64
	Wait func(ctx context.Context, d time.Duration) error
}

// maxRows is the most detail rows of one SQL request, but for a document that alone has more. Each has a row in three
// tables, and SQL Server may lock a whole table for a statement that locks 5,000 rows of it.
const maxRows = 1000

// Commit writes documents to SQL and records the outcomes in them. It is safe for concurrent use.
type Commit struct {
	docs    Documents
	sink    Sink
	breaker *breaker.Breaker
	o       Options
	// capLogged is the last hour in which the bound on poison messages was logged.
	capLogged atomic.Int64
	// ranOut is when a batch of the feed last ran out of time for dividing, in epoch seconds.
	ranOut atomic.Int64
	// spare has a place for each connection beside one for each batch (Options.PartsAtOnce).
	spare chan struct{}
}

// NewCommit makes a Commit over the two ports.
func NewCommit(docs Documents, sink Sink, o Options) *Commit {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 100
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
	if o.AdoptedAt == nil {
		o.AdoptedAt = func() time.Time { return time.Time{} }
	}
	if o.Breaker == nil {
		o.Breaker = breaker.New(nil, breaker.Options{
			Log: o.Log, Now: o.Now, Draw: o.Draw, Wait: o.Wait,
			SysName: o.SysName, Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
		})
	}
	return &Commit{
		docs: docs, sink: sink, breaker: o.Breaker, o: o, spare: make(chan struct{}, max(0, o.PartsAtOnce-1)),
	}
}

// Run commits one batch in stages, each in a file of its name: parse, select, refresh, version, write, judge, poison,
// record. The error is nil when every outcome is recorded, or left to the recovery timer on purpose.
//
// An error means that the same batch should be offered again. What SQL answered is recorded and stays; the other
// documents are neither recorded nor counted, and a second write changes nothing. Errors by kind: those of dependency
// scope; contention for committed documents of a run that lost races.
func (c *Commit) Run(ctx context.Context, in Delivery) (Report, error) {
	s := c.stages(ctx, in, in.mode())
	docs, oldest := s.parser.parse(in.Documents)
	works := s.selector.choose(docs)
	err := s.commit(ctx, works)
	report := s.tally.done(oldest)
	c.breaker.Committed(s.tally.committed)
	c.breaker.Note(ctx, s.feedLag(oldest))
	if n := s.tally.others; n > 0 {
		s.tally.log.Write(events.SecondWriter, events.Fields{Documents: n, Document: s.tally.other})
	}
	c.breaker.NoteSkipped(ctx, slices.Collect(maps.Values(s.tally.foreign)))
	switch {
	case err == nil:
		c.markSeen(ctx, s.tally, in.Received)
		s.tally.rest(invoice.OutcomeWaiting) // documents that lost a race or were not sent
		return report, s.tally.offerAgain
	case s.escapes(err):
		s.tally.rest(invoice.OutcomeLeft)
		s.tally.log.Write(events.BatchLeft, events.Fields{RetryCount: in.RetryCount}.Of(err))
		return report, nil
	}
	s.tally.rest(invoice.OutcomeWaiting)
	return report, err
}

// stages are the stages of one batch, in the order of its way. A stage calls no other.
type stages struct {
	c        *Commit
	delivery Delivery
	tally    *tally
	parser   parser
	selector selector
	refresh  refresher
	version  versioner
	writer   *writer
	judge    judge
	poison   *poisoner
	record   recorder
}

func (c *Commit) stages(ctx context.Context, in Delivery, mode Mode) *stages {
	o, t := &c.o, newTally(in, events.For(ctx, c.o.Log), c.o.Now, c.o.AdoptedAt())
	docs := measured{Documents: c.docs, tally: t, now: o.Now}
	chosen := selection{delivery: in, sysName: o.SysName, now: o.Now, appliedBefore: c.appliedBefore(ctx)}
	next := transitions{now: o.Now, loc: o.Location, draw: o.Draw, reprocess: in.takesOver(invoice.Failed)}
	patch := patcher{docs: docs, tally: t}
	request := &requester{
		sink: c.sink, breaker: c.breaker, mode: mode, oneByOne: in.OneByOne, now: o.Now,
		draw: o.Draw, wait: o.Wait, tally: t,
	}
	divide := divideFor
	if in.Purpose == FromFeed && c.hurries() {
		divide = divideInHurry
	}
	return &stages{
		c: c, delivery: in, tally: t,
		parser:   parser{reader: o.Reader, now: o.Now, delivery: in, sysName: o.SysName, tally: t},
		selector: selector{selection: chosen, tally: t},
		refresh:  refresher{selection: chosen, reader: o.Reader, docs: docs, wait: o.Wait, tally: t},
		version:  versioner{patcher: patch, transitions: next, parallel: o.Parallel, tally: t},
		writer: &writer{
			requester: request, purpose: in.Purpose, maxDocuments: o.MaxDocuments, maxRows: maxRows,
			overwrite: in.Overwrite, notComparable: in.NotComparable, releases: in.Releases,
			takesCommitted: in.takesOver(invoice.Committed),
			divideUntil:    earlier(o.Now().Add(divide), in.DivideUntil), ranOut: &c.ranOut, spare: c.spare,
		},
		judge: judge{selection: chosen, transitions: next, breaker: c.breaker, tally: t},
		poison: &poisoner{
			requester: request, reader: o.Reader, docs: docs, patcher: patch, transitions: next, breaker: c.breaker,
			evidence: o.Evidence, container: o.Container, appVersion: o.AppVersion, runID: in.RunID,
			invocationID: in.InvocationID, capLogged: &c.capLogged,
			parallel: o.Parallel, now: o.Now, tally: t,
		},
		record: recorder{patcher: patch, transitions: next, breaker: c.breaker, parallel: o.Parallel, tally: t},
	}
}

// commit commits the documents in requests of bounded size, one after the other. It records the outcomes of each
// request before the next one, so a dependency that fails costs only the current request. When this instance alone
// cannot reach SQL, the recovery timer of another instance takes the rest at once. The error is of dependency scope.
func (s *stages) commit(ctx context.Context, works []inflight) error {
	cutOff := func() bool { return s.delivery.Purpose == FromFeed && s.c.breaker.CutOff(ctx) }
	if !cutOff() {
		rest, sqlAway, err := s.commitAll(ctx, works)
		if !sqlAway || !cutOff() {
			return err
		}
		works = rest
	}
	_, _, err := s.process(ctx, works, allFail(fault.New(fault.Infrastructure, "commit: apply", codeCutOff,
		"this instance cannot reach SQL while other instances write: left to them")))
	return err
}

// commitAll gives the documents without a result after an error, and whether that error is SQL's.
func (s *stages) commitAll(ctx context.Context, works []inflight) (rest []inflight, sqlAway bool, err error) {
	if len(works) == 0 { // documents that need no SQL do not wait for it
		return nil, false, nil
	}
	if err := s.c.breaker.Permit(ctx); err != nil {
		return works, true, err
	}
	for len(works) > 0 {
		if s.writer.undecided {
			return s.process(ctx, works, allFail(fault.New(fault.Contention, "commit: apply", codeUndecided,
				"put off: the time for finding bad documents was over before it was sent")))
		}
		n, err := s.writer.size(ctx, works)
		if err != nil {
			return works, true, err
		}
		undone, sqlAway, err := s.process(ctx, slices.Clone(works[:n]), s.writer.write)
		if works = works[n:]; err != nil {
			return append(undone, works...), sqlAway, err
		}
	}
	return nil, false, nil
}

// process takes the documents of one request through the stages, and those that change meanwhile once more, also beside
// one whose outcome cannot be recorded: no other job reads a committed document that is to be healed. After an error
// undone has the documents without a result. sqlAway says that the error is the write's.
func (s *stages) process(
	ctx context.Context, works []inflight, write func(context.Context, []inflight) error,
) (undone []inflight, sqlAway bool, err error) {
	var away, unrecorded error
	for round := 0; len(works) > 0; round++ {
		fresh, unread := s.refresh.refresh(ctx, works)
		if unread != nil && round == 0 {
			return works, false, unread
		}
		works, unrecorded = fresh, cmp.Or(unrecorded, unread)
		unversioned := s.version.version(ctx, works)
		if unversioned != nil && round == 0 {
			return works, false, unversioned
		}
		unrecorded = cmp.Or(unrecorded, unversioned)
		if away == nil {
			away = write(ctx, works)
		}
		if round == 0 { // what was written is recorded, even when the invocation's time is over
			detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
			defer cancel()
			ctx = detached
		}
		for _, stage := range []func(context.Context, []inflight) error{
			s.judge.judge, s.poison.poison, s.record.record,
		} {
			if err := stage(ctx, works); unrecorded == nil {
				unrecorded = err
			}
		}
		var again []inflight
		for _, w := range works {
			switch {
			case w.step == changed && w.races+1 == maxRaces:
				s.tally.leave(w.doc,
					fault.New(fault.Contention, "commit: record", "412",
						"the document changed %d times while its outcome was recorded", maxRaces))
			case w.step == changed:
				w.races++
				again = append(again, w)
			case w.needsResult():
				undone = append(undone, w)
			}
		}
		works = again
	}
	return undone, away != nil && unrecorded == nil, cmp.Or(unrecorded, away)
}

// allFail gives each document that waits the error as its result, without a request.
func allFail(cause error) func(context.Context, []inflight) error {
	return func(_ context.Context, works []inflight) error {
		for i := range works {
			if works[i].needsResult() {
				works[i].answer(result{err: cause})
			}
		}
		return nil
	}
}

// escapes reports whether a batch was offered so often that it must no longer stop the feed. While the breaker is open
// it never does: everything waits then.
func (s *stages) escapes(err error) bool {
	return s.delivery.Purpose == FromFeed && s.delivery.RetryCount > escapeRetries && !breaker.IsRefusal(err) &&
		!s.c.breaker.Seen().Control.Breaker.Stopped()
}

// feedLag is this batch's measurement of the change feed. Only the first offer of a batch of the feed measures it:
// documents behind a repeated batch may be orphans.
func (s *stages) feedLag(oldest int64) breaker.FeedLag {
	if s.delivery.Purpose != FromFeed || s.delivery.RetryCount > 0 || oldest == 0 {
		return breaker.FeedLag{}
	}
	now := s.c.o.Now()
	return breaker.FeedLag{Seconds: int64(age(oldest, now) / time.Second), At: now}
}

// appliedBefore is the _ts before which postponed documents are due early; zero when none is.
func (c *Commit) appliedBefore(ctx context.Context) int64 {
	if before := c.breaker.EarlyBefore(ctx); !before.IsZero() {
		return before.Unix()
	}
	return 0
}

// hurries reports whether a batch of the feed recently ran out of time for dividing. The batches behind it have waited
// long enough.
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

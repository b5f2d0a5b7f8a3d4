package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// statuses are those that a kind of run looks for.
func (kind Kind) statuses() []invoice.Status {
	switch kind {
	case Replay:
		return []invoice.Status{invoice.Failed}
	case Reindex:
		return []invoice.Status{invoice.Committed}
	default:
		return []invoice.Status{invoice.Pending, invoice.RetryScheduled}
	}
}

// Known reports whether there is such a kind.
func (kind Kind) Known() bool { return kind == Drain || kind == Replay || kind == Reindex }

// query is what the filter asks the container for. A replay's times are those at which documents failed: their _ts is never
// before that.
func (f Filter) query(sysName string, kind Kind, began time.Time) Query {
	q := Query{SysName: sysName, Statuses: kind.statuses(), To: began.Add(invoice.ClockSkew).Unix()}
	switch {
	case kind == Replay:
		q.From = invoice.EarliestTS(f.From)
	case !f.From.IsZero():
		q.From = max(0, f.From.Unix())
	}
	if !f.To.IsZero() && kind != Replay {
		q.To = f.To.Unix()
	}
	return q
}

// fits reports whether a document that was found is one that the run takes.
func (f Filter) accepts(kind Kind, doc commit.PendingDoc, now time.Time) bool {
	switch {
	case f.ErrorKind != "" && f.ErrorKind != doc.Kind,
		f.Code != "" && !strings.EqualFold(f.Code, doc.Code):
		return false
	case kind == Drain:
		return doc.Status != invoice.RetryScheduled || invoice.Due(doc.RetryAfter, now)
	case kind == Replay:
		at := FailedAt(doc)
		return (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To))
	}
	return true
}

// FailedAt is when a document failed, or was last changed where it does not say.
func FailedAt(doc commit.PendingDoc) time.Time {
	if us, ok := invoice.TimeOfID(doc.FailedAt); ok { // an id begins with a time in the same layout
		return time.UnixMicro(us)
	}
	return time.Unix(doc.TS, 0)
}

// mark is how far a run's documents were looked for: Run.Watermark.
type watermark struct {
	// Continuation is the page that is not used up yet; At is the same for a list of ids.
	Continuation string `json:"continuation,omitempty"`
	At           int    `json:"at,omitempty"`
	// Again says that the container refused a continuation and the search began anew.
	Restarts int `json:"again,omitempty"`
	// Done says that there are no more.
	Done bool `json:"done,omitempty"`
}

func readWatermark(text string) (watermark, error) {
	var m watermark
	if text == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, fault.Wrap(fault.Internal, "run: watermark", "watermark", "the run's watermark is none", err)
	}
	return m, nil
}

func (m watermark) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic("run: a watermark cannot be written as JSON: " + err.Error()) // texts and numbers always can
	}
	return string(text)
}

// source gives a run's documents, from where its watermark is.
type source struct {
	base
	run       Run
	filter    Filter
	watermark watermark
	// rest are documents of the page at mark.Continuation that were found and not taken yet; next is the page after it.
	rest   []string
	next   string
	loaded bool
}

// newSource begins at the run's watermark.
func newSource(b base, r Run) (*source, error) {
	s := &source{base: b, run: r}
	var err error
	if s.filter, err = r.filter(); err != nil {
		return nil, err
	}
	s.watermark, err = readWatermark(r.Watermark)
	return s, err
}

// filter reads what was asked for.
func (r Run) filter() (Filter, error) {
	var f Filter
	if len(r.Filter) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(r.Filter, &f); err != nil {
		return f, fault.Wrap(fault.Internal, "run: filter", "filter", "the run's filter is none", err)
	}
	return f, nil
}

// itemsOf is the part of Jobs that reads what became of a run's documents.
type itemReader interface {
	Items(ctx context.Context, run string, outcomes []Outcome, afterKey string, limit int) ([]ItemOutcome, error)
}

// left gives documents that failed or were deferred in the filter's run, from a key on, and the key to go on with; "" at the end.
func (f Filter) left(ctx context.Context, s itemReader, afterKey string, limit int) (found []string, next string, err error) {
	items, err := s.Items(ctx, f.Run, []Outcome{DocFailed, DocDeferred}, afterKey, limit)
	if err != nil {
		return nil, "", err
	}
	for _, it := range items {
		if f.Code == "" || strings.EqualFold(f.Code, it.Code) {
			found = append(found, it.Document)
		}
	}
	if len(items) == limit {
		next = DocumentKey(items[limit-1].Document)
	}
	return found, next, nil
}

// maxAgain bounds how often a search begins anew.
const maxRestarts = 3

// take gives up to n documents that the run does not have yet, and the watermark after them; fewer when there are no more or the
// time is nearly over. What it gives must be kept together with that watermark, or the source be forgotten.
func (s *source) take(ctx context.Context, n int) (ids []string, m watermark, err error) {
	for len(ids) < n && !s.watermark.Done && !s.nearDeadline(ctx) {
		if len(s.rest) == 0 {
			if s.loaded {
				s.nextPage()
				continue
			}
			if err := s.load(ctx, ids); err != nil {
				return nil, s.watermark, err
			}
			continue
		}
		more := min(n-len(ids), len(s.rest))
		ids, s.rest = append(ids, s.rest[:more]...), s.rest[more:]
	}
	if len(s.rest) == 0 && s.loaded && !s.watermark.Done {
		s.nextPage()
	}
	return ids, s.watermark, nil
}

// turn goes on to the next page.
func (s *source) nextPage() {
	s.loaded = false
	if len(s.filter.IDs) > 0 {
		s.watermark.At += min(s.o.ChunkSize, len(s.filter.IDs)-s.watermark.At)
		s.watermark.Done = s.watermark.At >= len(s.filter.IDs)
		return
	}
	s.watermark.Continuation = s.next
	s.watermark.Done = s.next == ""
}

// load reads the page at the watermark. Documents that the run has already are left out: a manager died after it kept a part
// of the page, or the document changed and came twice. taken are those that are given and may not be kept yet.
func (s *source) load(ctx context.Context, taken []string) error {
	var found []string
	if len(s.filter.IDs) > 0 {
		at := min(s.watermark.At, len(s.filter.IDs))
		found = s.filter.IDs[at:min(len(s.filter.IDs), at+s.o.ChunkSize)]
	} else if s.filter.Run != "" {
		err := s.withStore(ctx, func(ctx context.Context) (err error) {
			found, s.next, err = s.filter.left(ctx, s.p.Store, s.watermark.Continuation, s.o.ChunkSize)
			return err
		})
		if err != nil {
			return err
		}
	} else {
		page, next, err := s.p.Selection.Page(ctx, s.filter.query(s.o.SysName, s.run.Kind, s.run.StartedAt), s.watermark.Continuation)
		if fault.CodeOf(err) == "continuation" && s.watermark.Restarts < maxRestarts {
			s.watermark = watermark{Restarts: s.watermark.Restarts + 1}
			return nil
		}
		if err != nil {
			return err
		}
		s.next = next
		for _, doc := range page {
			if s.filter.accepts(s.run.Kind, doc, s.o.Now()) {
				found = append(found, doc.ID)
			}
		}
	}
	known := map[string]bool{}
	for _, id := range taken {
		known[id] = true
	}
	for ids := range slices.Chunk(found, BatchSize) {
		err := s.withStore(ctx, func(ctx context.Context) error {
			have, err := s.p.Store.Known(ctx, s.run.ID, ids)
			for id, yes := range have {
				if yes {
					known[id] = true
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	s.rest, s.loaded = nil, true
	for _, id := range found {
		if !known[id] {
			known[id] = true // a list may name a document twice
			s.rest = append(s.rest, id)
		}
	}
	return nil
}

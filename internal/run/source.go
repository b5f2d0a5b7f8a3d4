package run

import (
	"context"
	"encoding/json"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// watermark is the position of the search for a run's documents, stored in Run.Watermark.
type watermark struct {
	// Continuation is the page in progress; At is the position in a list of ids.
	Continuation string `json:"continuation,omitempty"`
	At           int    `json:"at,omitempty"`
	// Restarts counts how often the container refused a continuation and the search restarted.
	Restarts int  `json:"again,omitempty"`
	Done     bool `json:"done,omitempty"`
}

func readWatermark(text string) (watermark, error) {
	var m watermark
	if text == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m,
			fault.Wrap(fault.Internal, "run: watermark", "watermark", "the run's watermark is not valid JSON", err)
	}
	return m, nil
}

func (m watermark) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic("run: a watermark cannot be written as JSON: " + err.Error()) // cannot happen: it is texts and numbers
	}
	return string(text)
}

// source yields a run's documents from its watermark on.
type source struct {
	base
	run       Run
	kind      KindRow
	filter    Filter
	watermark watermark
	// rest are the documents of the current page that are not taken yet; next is the page after it.
	rest   []string
	next   string
	loaded bool
}

func newSource(b base, r Run) (*source, error) {
	s := &source{base: b, run: r}
	var err error
	if s.kind, err = b.kindOf(r); err != nil {
		return nil, err
	}
	if s.filter, err = r.filter(); err != nil {
		return nil, err
	}
	s.watermark, err = readWatermark(r.Watermark)
	return s, err
}

func (r Run) filter() (Filter, error) {
	var f Filter
	if len(r.Filter) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(r.Filter, &f); err != nil {
		return f, fault.Wrap(fault.Internal, "run: filter", "filter", "the run's filter is not valid JSON", err)
	}
	return f, nil
}

// left returns documents that the filter's run left undone, after a key, and the key to continue with; "" at the end.
//
// Retention leaves a run alone that a running run names. It may have begun before this one did, so the status is read
// after the documents.
func (s *source) left(ctx context.Context, afterKey string, limit int) (found []string, next string, err error) {
	of := s.filter.Run
	items, err := s.p.Store.Items(ctx, of, invoice.Unfinished(), afterKey, limit)
	if err != nil {
		return nil, "", err
	}
	row, there, err := s.p.Store.Run(ctx, of)
	if err != nil {
		return nil, "", err
	}
	if !there || row.Status == RunPurged {
		return nil, "",
			fault.New(fault.Internal, "run: left", "run_purged",
				"run %s was deleted by retention: what it left is not known any more", of)
	}
	for _, it := range items {
		found = append(found, it.Document)
	}
	if len(items) == limit {
		next = DocumentKey(items[limit-1].Document)
	}
	return found, next, nil
}

// maxRestarts bounds how often a search restarts.
const maxRestarts = 3

// take returns up to n documents that the run does not have yet, and the watermark after them. It returns fewer at the
// end, or when the time is nearly over. The caller stores them together with that watermark, or drops the source.
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

// load reads the page at the watermark. It leaves out documents that the run already has: a manager died after it
// stored part of the page, or a document was found twice. taken are documents that may not be stored yet.
func (s *source) load(ctx context.Context, taken []string) error {
	var found []string
	if len(s.filter.IDs) > 0 {
		at := min(s.watermark.At, len(s.filter.IDs))
		found = s.filter.IDs[at:min(len(s.filter.IDs), at+s.o.ChunkSize)]
	} else if s.filter.Run != "" {
		err := s.withStore(ctx, func(ctx context.Context) (err error) {
			found, s.next, err = s.left(ctx, s.watermark.Continuation, s.o.ChunkSize)
			return err
		})
		if err != nil {
			return err
		}
	} else {
		page, err := s.p.Finder.Find(ctx, s.kind.query(s.filter, s.o.SysName, s.run.StartedAt),
			s.watermark.Continuation)
		if fault.CodeOf(err) == "continuation" && s.watermark.Restarts < maxRestarts {
			s.watermark = watermark{Restarts: s.watermark.Restarts + 1}
			return nil
		}
		if err != nil {
			return err
		}
		s.next = page.Next
		docs, err := commit.PendingDocs(page.Documents)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if s.kind.takes(s.filter, doc, s.o.Now()) {
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

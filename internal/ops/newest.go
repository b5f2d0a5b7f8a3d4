package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// The bounds of a list (ADR 0036).
const (
	// searchWithin bounds the search of one list; a client waits for a minute.
	searchWithin = 20 * time.Second
	// maxTS is after every _ts.
	maxTS = 253_402_300_800
)

// newest are the latest of the documents that a search finds.
type newest struct {
	docs []found
	// matched counts the documents that were read. From is the begin of the windows that were read, in seconds.
	matched int
	from    int64
	// cut says that the time was over within a window: later documents than docs may be left out. more says that
	// earlier ones may match.
	cut, more bool
	// values are those that the documents have, by the filter that would select them.
	values map[string]map[string]bool
}

// newest reads the documents of the last hour, of the week before it and of all time before that, until a window has
// brought enough. A window comes in no order, so it is read whole, and sorted. A search for few documents, by a line or
// a request, has one window. Errors:
// *RequestError (conflict when the container dropped the search); infrastructure, throttled.
func (o *Ops) newest(ctx context.Context, s commit.Query, limit int) (n newest, err error) {
	now, late := o.o.Now(), o.late(searchWithin)
	windows := []int64{now.Add(-time.Hour).Unix(), now.AddDate(0, 0, -7).Unix(), s.From}
	if s.Line > 0 || s.Request != "" {
		windows = windows[2:]
	}
	n.values = map[string]map[string]bool{}
	for _, from := range windows {
		window := s
		window.From = max(s.From, from)
		if window.From >= window.To { // the filter ends before
			continue
		}
		err := o.each(ctx, window, func(page []found) bool {
			n.add(page, limit)
			n.cut = late()
			return !n.cut
		})
		if err != nil {
			return n, err
		}
		s.To, n.from, n.more = window.From, window.From, window.From > s.From
		if n.cut || n.matched >= limit || !n.more {
			break
		}
	}
	n.docs = newestFirst(n.docs, limit)
	return n, nil
}

// add counts documents, and keeps the latest.
func (n *newest) add(page []found, limit int) {
	n.matched += len(page)
	for _, d := range page {
		n.note("status", string(d.State.Status))
		n.note("kind", d.State.LastErrorKind)
		n.note("error_code", d.State.LastErrorCode)
		n.note("request", d.request)
	}
	if n.docs = append(n.docs, page...); len(n.docs) > limit+commit.MaxPage {
		n.docs = newestFirst(n.docs, limit)
	}
}

func (n *newest) note(filter, value string) {
	if n.values[filter] == nil {
		n.values[filter] = map[string]bool{}
	}
	n.values[filter][value] = true
}

// narrowBy are the filters that would leave documents out, in the order of DocumentFilter.
func (n *newest) narrowBy() []string {
	names := []string{"since"}
	for _, filter := range []string{"status", "kind", "error_code", "request"} {
		if len(n.values[filter]) > 1 {
			names = append(names, filter)
		}
	}
	return names
}

// newestFirst sorts documents and keeps the first. One that changed between two pages comes twice, and its last _ts
// counts.
func newestFirst(docs []found, limit int) []found {
	slices.SortFunc(docs, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.TS, a.TS), cmp.Compare(a.Version.Key, b.Version.Key))
	})
	seen := map[string]bool{}
	docs = slices.DeleteFunc(docs, func(d found) bool {
		again := seen[d.ID]
		seen[d.ID] = true
		return again
	})
	return docs[:min(len(docs), limit)]
}

// each reads the documents of a search, page by page in no order, until a function returns false.
func (o *Ops) each(ctx context.Context, s commit.Query, take func(page []found) bool) error {
	s.Members, s.Size = listed(), commit.MaxPage
	if s.Request != "" { // who asks for a request counts its lines
		s.Members = append(s.Members, "post-processing")
	}
	err := commit.Each(ctx, o.p.Finder, s, func(read commit.Page) (more bool, err error) {
		page := make([]found, len(read.Documents))
		for i, raw := range read.Documents {
			if page[i], err = o.foundOf(raw); err != nil {
				return false, err
			}
		}
		return take(page), nil
	})
	if fault.CodeOf(err) == "continuation" {
		return refuse(Conflict, "the container dropped the search: ask again")
	}
	return err
}

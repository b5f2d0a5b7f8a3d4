package ops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// The bounds of a list (ADR 0036).
const (
	// windowMost bounds the documents of a window, which is sorted in memory.
	windowMost = 1000
	// searchMost bounds the requests of one call. The last window may need some more: one for each physical partition.
	searchMost   = 50
	searchWithin = 20 * time.Second
	// firstWidth is the width of the first window in seconds; widthFactor is by how much a window grows or shrinks.
	firstWidth  = 3600
	widthFactor = 4
	// maxTS is after every _ts.
	maxTS = 253_402_300_800
)

// position is where a list goes on. All documents with a _ts of To or later were given. Of the second before To those up to After were
// given, in the order of document keys.
type position struct {
	// Query identifies the search.
	Query string `json:"q"`
	From  int64  `json:"f"`
	To    int64  `json:"t"`
	// Width is that of the next window, in seconds.
	Width int64  `json:"w"`
	After string `json:"a,omitempty"`
	// Crowded: the second before To has too many documents to sort. They come in the container's own order, from Place on.
	Crowded bool   `json:"c,omitempty"`
	Place   string `json:"p,omitempty"`
}

// positionOf begins a list, or reads a continuation.
func positionOf(s Search, page string) (p position, err error) {
	from, to := s.From, s.To
	s.From, s.To = 0, 0 // a continuation keeps its own: "the last day" is later with each page
	text, err := json.Marshal(s)
	if err != nil {
		return p, fault.Wrap(fault.Internal, "ops: documents", "encode", "the search cannot be written as JSON", err)
	}
	sum := sha256.Sum256(text)
	mark := hex.EncodeToString(sum[:8])
	if page == "" {
		p = position{Query: mark, From: from, To: to, Width: firstWidth}
		if s.Line > 0 || s.Request != "" { // few documents match: one window for all
			p.Width = to - from
		}
		return p, nil
	}
	text, err = base64.RawURLEncoding.DecodeString(page)
	if err != nil || json.Unmarshal(text, &p) != nil || p.Query != mark || p.Width < 1 || p.From < 0 || p.To > maxTS {
		return p, refuse(Usage, "page: expected the next page of a list with the same filters")
	}
	return p, nil
}

// String is the continuation: about 100 bytes, and for a crowded second the container's own, which it keeps short.
func (p position) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("ops: a position cannot be written as JSON: " + err.Error()) // cannot happen: it is texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func (p position) over() bool { return p.To <= p.From }

// list collects documents, newest first.
type list struct {
	o      *Ops
	search Search
	limit  int
	position
	requests int
	// tight: the last window had too many documents.
	tight bool
	docs  []found
}

// collect goes on until it has limit documents, or there are no more, or its requests or its time are used up. Each call finishes at
// least one window, or a page of a crowded second.
func (l *list) collect(ctx context.Context) error {
	began, finished := l.o.o.Now(), false
	for len(l.docs) < l.limit && !l.over() {
		if finished && (l.requests >= searchMost || l.o.o.Now().Sub(began) >= searchWithin) {
			return nil
		}
		step := l.window
		if l.Crowded {
			step = l.crowd
		}
		done, err := step(ctx)
		if err != nil {
			return err
		}
		finished = finished || done
	}
	return nil
}

// window takes the documents of the next window; false when it has too many, so that a smaller one is next.
func (l *list) window(ctx context.Context) (done bool, err error) {
	from := max(l.From, l.To-l.Width)
	var docs []found
	for place := ""; ; {
		page, next, err := l.page(ctx, from, windowMost, place)
		if err != nil {
			return false, err
		}
		docs = append(docs, page...)
		if len(docs) > windowMost || (len(docs) == windowMost && next != "") {
			l.shrink(from, docs)
			return false, nil
		}
		if place = next; next == "" {
			break
		}
	}
	docs = newestFirst(docs)
	room := l.limit - len(l.docs)
	if len(docs) > room {
		last := docs[room-1]
		l.docs = append(l.docs, docs[:room]...)
		l.Width = max(1, (l.To-from)*int64(room)/int64(len(docs)))
		l.To, l.After = last.TS+1, last.Version.Key
		return true, nil
	}
	l.docs = append(l.docs, docs...)
	l.tight = false
	l.To, l.After = from, ""
	if len(docs) < room/2 {
		l.Width = min(l.Width*widthFactor, maxTS)
	}
	return true, nil
}

// shrink makes the next window smaller. The documents that were read are a sample of this one: those of them that are new enough for
// the page show where to cut. They may also be its oldest, so a second time in a row it is cut to a quarter at least.
func (l *list) shrink(from int64, sample []found) {
	sample = newestFirst(sample)
	enough := sample[min(l.limit-len(l.docs), len(sample))-1]
	width := l.To - from
	l.Crowded = width == 1
	l.Width = l.To - enough.TS - 1
	if l.tight {
		l.Width = min(l.Width, width/widthFactor)
	}
	l.Width, l.tight = max(1, l.Width), true
}

// newestFirst sorts documents. One that changed between two pages comes twice, and its last _ts counts.
func newestFirst(docs []found) []found {
	slices.SortFunc(docs, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.TS, a.TS), cmp.Compare(a.Version.Key, b.Version.Key))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(docs, func(d found) bool {
		again := seen[d.ID]
		seen[d.ID] = true
		return again
	})
}

// crowd takes a page of a second that has too many documents to sort.
func (l *list) crowd(ctx context.Context) (done bool, err error) {
	docs, next, err := l.page(ctx, l.To-1, l.limit-len(l.docs), l.Place)
	if err != nil {
		return false, err
	}
	l.docs = append(l.docs, docs...)
	if l.Place = next; next == "" {
		l.To, l.After, l.Crowded = l.To-1, "", false
	}
	return true, nil
}

// page reads a page of the documents with a _ts in [from, To) that were not given yet.
func (l *list) page(ctx context.Context, from int64, size int, place string) (docs []found, next string, err error) {
	l.requests++
	s := l.search
	s.From, s.To = from, l.To
	docs, next, err = l.o.found(ctx, s, size, place)
	docs = slices.DeleteFunc(docs, func(d found) bool { return d.TS == l.To-1 && d.Version.Key <= l.After })
	return docs, next, err
}

// found reads a page of a search.
func (o *Ops) found(ctx context.Context, s Search, size int, place string) (docs []found, next string, err error) {
	raws, next, err := o.p.Search.Search(ctx, s, size, place)
	if fault.CodeOf(err) == "continuation" {
		return nil, "", refuse(Conflict, "page: the container does not know it any more: list from the beginning")
	}
	if err != nil {
		return nil, "", err
	}
	for _, raw := range raws {
		doc, err := foundOf(raw, o.o.Now())
		if err != nil {
			return nil, "", err
		}
		docs = append(docs, doc)
	}
	return docs, next, nil
}

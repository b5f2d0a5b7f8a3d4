package sqlserver

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// codeCodePage is the code of a value that its column cannot hold.
const codeCodePage = "validation.code_page"

// codePages knows which of the user's columns have a code page. SQL Server replaces what a code page lacks by something
// similar, without a word (U+221E becomes 8), so such a value is refused before it is sent.
type codePages struct {
	columns []invoice.Column
	// read gives the code page of each column, in their order: 0 for a column that holds every character.
	read  func(ctx context.Context) ([]int, error)
	now   func() time.Time
	known atomic.Pointer[knownPages]
}

// codePagesAge is how long what was read is believed. A user may change a column at any time.
const codePagesAge = 5 * time.Minute

// knownPages is what was read at a time.
type knownPages struct {
	at time.Time
	// columns has the code page of each column; nil where nothing is checked.
	columns []*codePage
}

// refused gives the error of each item that holds a character which its column cannot hold; nil for the others. It reads
// again before it refuses: a column that was changed meanwhile must cost no document a failure. The error is the reading's.
func (p *codePages) refused(ctx context.Context, items []writer.Item) ([]error, error) {
	known, fresh, err := p.current(ctx)
	if err != nil {
		return nil, err
	}
	refused, some := p.compare(known, items)
	if !some || fresh {
		return refused, nil
	}
	if known, err = p.renew(ctx); err != nil {
		return nil, err
	}
	refused, _ = p.compare(known, items)
	return refused, nil
}

// current is what is known, read again when it is too old; fresh says that it was.
func (p *codePages) current(ctx context.Context) (known *knownPages, fresh bool, err error) {
	if known = p.known.Load(); known != nil && p.now().Sub(known.at) < codePagesAge {
		return known, false, nil
	}
	known, err = p.renew(ctx)
	return known, true, err
}

// renew reads the columns' code pages.
func (p *codePages) renew(ctx context.Context) (*knownPages, error) {
	at := p.now()
	numbers, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	made := map[int]*codePage{}
	if before := p.known.Load(); before != nil { // a table of 20,000 characters is made once
		for _, page := range before.columns {
			if page != nil {
				made[page.number] = page
			}
		}
	}
	known := &knownPages{at: at, columns: make([]*codePage, len(numbers))}
	for i, number := range numbers {
		page, ok := made[number]
		if !ok {
			page = newCodePage(number)
			made[number] = page
		}
		known.columns[i] = page
	}
	p.known.Store(known)
	return known, nil
}

// compare looks at every value whose column has a code page.
func (p *codePages) compare(known *knownPages, items []writer.Item) (refused []error, some bool) {
	refused = make([]error, len(items))
	for i, it := range items {
		if it.FailureMark { // it writes one text of ours, in ASCII
			continue
		}
		for n, page := range known.columns {
			if page == nil || it.Values[n].Null {
				continue
			}
			if r, lacks := page.lacks(it.Values[n].Text); lacks {
				refused[i], some = fault.New(fault.Document, opApply, codeCodePage,
					"document %s: %s: expected characters of the column's code page %d, found U+%04X",
					it.DocumentID, label(p.columns[n]), page.number, r), true
				break
			}
		}
	}
	return refused, some
}

// readCodePages reads the code page of each column of the column table.
func (s *Store) readCodePages(ctx context.Context) ([]int, error) {
	columns := s.tables.layout.Columns
	numbers := make([]int, len(columns))
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		there, _, err := s.columns(ctx, table)
		if err != nil {
			return nil, s.failed(outside("sqlserver: read columns", err))
		}
		for i, c := range columns {
			if has, ok := there[strings.ToLower(c.Name)]; ok && c.Table == table && has.narrow() {
				numbers[i] = has.codePage
			}
		}
	}
	return numbers, nil
}

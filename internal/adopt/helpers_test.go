package adopt_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// container is a container in memory whose documents have any _ts.
type container struct {
	docs []stored
	// pageSize is 1 when zero.
	pageSize       int
	windows, pages int
	// found are the documents of the window that is being read, of which the first given are read.
	found []invoice.Projection
	given int
	// most is the most documents of one window so far.
	most int
	// onPage is called with each page's number, from 1, before the page; its error replaces the page.
	onPage func(n int) error
	// afterQuery is called between the query of a window and its pages.
	afterQuery func(from, to int64)
}

type stored struct {
	ts  int64
	raw json.RawMessage
}

func (c *container) put(raw string) {
	var head struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal([]byte(raw), &head); err != nil {
		panic(err)
	}
	c.docs = append(c.docs, stored{head.TS, json.RawMessage(raw)})
}

// Find implements commit.Finder. It has one environment, and ignores the size that is asked for.
func (c *container) Find(_ context.Context, q commit.Query, continuation string) (commit.Page, error) {
	if continuation == "" {
		c.windows++
		c.found, c.given = nil, 0
		for _, d := range c.docs {
			if d.ts >= q.From && d.ts < q.To {
				c.found = append(c.found, invoice.Projection(d.raw))
			}
		}
		if c.afterQuery != nil {
			c.afterQuery(q.From, q.To)
		}
	}
	c.pages++
	if c.onPage != nil {
		if err := c.onPage(c.pages); err != nil {
			return commit.Page{}, err
		}
	}
	page := c.found[c.given:min(len(c.found), c.given+max(1, c.pageSize))]
	c.given += len(page)
	c.most = max(c.most, c.given)
	if c.given == len(c.found) {
		return commit.Page{Documents: page}, nil
	}
	return commit.Page{Documents: page, Next: fmt.Sprint(c.given)}, nil
}

type ledger struct {
	*inmem.Sink
	pages  int
	onPage func(n int) error
	// largest is the most rows of one page so far.
	largest int
	// after fails a finished page: a lost acknowledgement.
	after func(n int) error
}

func (l *ledger) Page(ctx context.Context, p adopt.Page) error {
	l.pages++
	l.largest = max(l.largest, len(p.Rows))
	if l.onPage != nil {
		if err := l.onPage(l.pages); err != nil {
			return err
		}
	}
	err := l.Sink.Page(ctx, p)
	if err == nil && l.after != nil {
		err = l.after(l.pages)
	}
	return err
}

// options have a fixed clock and a Wait that returns at once.
func options() adopt.Options {
	return adopt.Options{By: "me", Now: now, Wait: func(context.Context, time.Duration) error { return nil }}
}

func run(t *testing.T, docs commit.Finder, l adopt.Ledger) adopt.State {
	t.Helper()
	state, err := adopt.New(docs, l, options()).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, adopt.Done, state.Phase)
	return state
}

// committedDocument returns a committed document whose content is its number.
func committedDocument(n int, minute int, ts int64, lines ...int64) string {
	list, _ := json.Marshal(lines[1:])
	return fmt.Sprintf(`{"id":"2025-12-17 %02d:%02d:00.000000-06:00-%06d","_ts":%d,"request_details":{"sys_name":"web"},
		"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},"post-processing":{"duplicate_detail_uids":%s},
		"process_output":{"manufacturer_name":"maker %d","invoice_line_status":"RC-AI"},"sql_writer":{"status":"committed","committed_at":%q}}`,
		minute/60, minute%60, n, ts, lines[0], list, n, committedAt)
}

func entries(s *inmem.Sink, lines ...int64) map[int64]inmem.Entry {
	all := map[int64]inmem.Entry{}
	for _, line := range lines {
		all[line], _ = s.Entry(line)
	}
	return all
}

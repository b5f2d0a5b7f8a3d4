package cosmos

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// pageSize is the largest number of rows in a page. The service makes pages smaller (its own limit is 4 MB).
const pageSize = 1000

// Param is a parameter of a query. Name begins with @; Value is any value that JSON can encode.
type Param struct {
	Name  string
	Value any
}

// Query gives the rows of a query page by page, in no order. It stops when page returns more = false or an error, which it
// returns unchanged. A page is never empty: Query skips the service's empty pages.
//
// The query may only filter and project: over all partitions the gateway refuses ORDER BY, TOP, OFFSET, DISTINCT, GROUP BY
// and aggregates (docs/facts.md F63). Rows are equal in meaning to what is stored, as with ReadMany. Each page has its own
// deadline; the whole query has only the caller's. Errors by kind: infrastructure, throttled.
func (c *Container) Query(ctx context.Context, query string, params []Param, page func([]json.RawMessage) (more bool, err error)) error {
	_, err := c.pages(ctx, operation{"cosmos: query", onContainer}, query, params, page)
	return err
}

// pages also gives what the pages have cost, in request units, those before an error included.
func (c *Container) pages(ctx context.Context, op operation, query string, params []Param, visit func([]json.RawMessage) (bool, error)) (charge float64, err error) {
	for continuation := ""; ; {
		p, err := c.page(ctx, op, query, params, paging{size: pageSize}, continuation)
		charge += p.charge
		if err != nil {
			return charge, err
		}
		if len(p.rows) > 0 {
			if more, err := visit(p.rows); err != nil || !more {
				return charge, err
			}
		}
		if p.next == "" {
			return charge, nil
		}
		continuation = p.next
	}
}

// paging is the form of a page: at most size rows. A short continuation lacks what the service has found in its index for the
// pages after it, so it looks that up again (docs/facts.md F109).
type paging struct {
	size  int32
	short bool
}

// rowPage is a page of a query.
type rowPage struct {
	// rows may be empty before the last page.
	rows []json.RawMessage
	// next is the continuation of the next page; empty at the end.
	next string
	// charge is what the page has cost, in request units.
	charge float64
}

// page gives one page of a query. An empty continuation begins.
func (c *Container) page(ctx context.Context, op operation, query string, params []Param, p paging, continuation string) (read rowPage, err error) {
	options := &azcosmos.QueryOptions{PageSizeHint: p.size}
	if p.short {
		options.ResponseContinuationTokenLimitInKB = 1
	}
	for _, p := range params {
		options.QueryParameters = append(options.QueryParameters, azcosmos.QueryParameter(p))
	}
	if continuation != "" {
		options.ContinuationToken = &continuation
	}
	err = c.do(ctx, op, c.options.Timeouts.Page, func(ctx context.Context, s *connected) error {
		// The pager reads one page only. The caller has the continuation, so each page gets a deadline of its own.
		r, err := s.container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), options).NextPage(ctx)
		if err != nil {
			return err
		}
		read = rowPage{rows: make([]json.RawMessage, len(r.Items)), charge: float64(r.RequestCharge)}
		for i, item := range r.Items {
			read.rows[i] = item
		}
		if r.ContinuationToken != nil {
			read.next = *r.ContinuationToken
		}
		return nil
	})
	if err != nil {
		return rowPage{}, err
	}
	return read, nil
}

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

// Query gives the rows of a query page by page, in no order. It stops when page returns more = false or an error, which
// it returns unchanged. A page is never empty: Query skips the service's empty pages.
//
// The query may only filter and project: over all partitions the gateway refuses ORDER BY, TOP, OFFSET, DISTINCT, GROUP
// BY and aggregates (docs/facts.md F63). Rows are equal in meaning to what is stored, as with ReadMany. Each page has
// its own deadline; the whole query has only the caller's. Errors by kind: infrastructure, throttled.
func (c *Container) Query(
	ctx context.Context, query string, params []Param, page func([]json.RawMessage) (more bool, err error),
) error {
	return c.pages(ctx, operation{"cosmos: query", onContainer}, query, params, page)
}

// pages is Query for an operation.
func (c *Container) pages(
	ctx context.Context, op operation, query string, params []Param, visit func([]json.RawMessage) (bool, error),
) error {
	for continuation := ""; ; {
		p, err := c.page(ctx, op, query, params, pageSize, continuation)
		if err != nil {
			return err
		}
		if len(p.rows) > 0 {
			if more, err := visit(p.rows); err != nil || !more {
				return err
			}
		}
		if p.next == "" {
			return nil
		}
		continuation = p.next
	}
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

// page gives one page of a query, at most size rows. An empty continuation begins.
func (c *Container) page(
	ctx context.Context, op operation, query string, params []Param, size int32, continuation string,
) (read rowPage, err error) {
	options := &azcosmos.QueryOptions{PageSizeHint: size}
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

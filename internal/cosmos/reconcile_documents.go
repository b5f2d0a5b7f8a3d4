package cosmos

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// ReconcileDocuments reads the documents of one environment for reconciliation. It implements reconcile.Documents and keeps no state:
// another instance continues from a continuation.
//
// Its charges are the sums of x-ms-request-charge, with the pages before an error included.
type ReconcileDocuments struct {
	c       *Container
	sysName string
}

var _ reconcile.Documents = ReconcileDocuments{}

// Reconcile gives the reconcile.Documents of an environment in this container.
func (c *Container) Reconcile(sysName string) ReconcileDocuments {
	return ReconcileDocuments{c, sysName}
}

// Changed implements reconcile.Documents and adopt.Documents. It fetches only the members that invoice.Read uses, because a document may
// have 2 MB. Its continuation is at most about 1 KB (docs/facts.md F109), and a page at most 4 MB.
//
// The query does not filter by status: that ignores case (ADR 0004).
func (d ReconcileDocuments) Changed(ctx context.Context, from, to int64, size int, continuation string) (docs []invoice.Projection, next string, charge float64, err error) {
	query := "SELECT " + project(invoice.Members()) +
		" FROM c WHERE c.request_details.sys_name = @sys_name AND c._ts >= @from AND c._ts < @to"
	p, err := d.c.markedPage(ctx, operation{"cosmos: changed", onContainer}, query, []Param{
		{Name: "@sys_name", Value: d.sysName}, {Name: "@from", Value: from}, {Name: "@to", Value: to},
	}, paging{size: int32(min(size, math.MaxInt32)), short: true}, continuation) //nolint:gosec // bounded
	return projections(p.rows), p.next, p.charge, err
}

// ReadMany implements reconcile.Documents.
func (d ReconcileDocuments) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, float64, error) {
	return d.c.readMany(ctx, operation{"cosmos: read many", onContainer}, "SELECT *", ids, readManyChunk)
}

// project gives members for a SELECT, quoted, so that every name is valid.
func project(members []string) string {
	quoted := make([]string, len(members))
	for i, m := range members {
		quoted[i] = "c[" + strconv.Quote(m) + "]"
	}
	return strings.Join(quoted, ", ")
}

// projections gives the rows of a query that selects members.
func projections(rows []json.RawMessage) []invoice.Projection {
	out := make([]invoice.Projection, len(rows))
	for i, row := range rows {
		out[i] = invoice.Projection(row)
	}
	return out
}

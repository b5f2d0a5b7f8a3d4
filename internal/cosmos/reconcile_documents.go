package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
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

const (
	// headsChunk is how many ids one query of Heads contains. The SDK's own ReadManyItems sends as many.
	headsChunk = 1000
	// linesChunk is how many lines one query of OfLines contains: each adds two conditions to a chain of ORs.
	linesChunk = 25
)

// selectHead has the members of sql_writer but the attempts, which have up to 11 KB. A member that is absent stays so.
const selectHead = `SELECT c.id, c._ts, c._etag, {"sys_name": c.request_details.sys_name} AS request_details,` +
	` {"status": c.sql_writer.status, "outcome": c.sql_writer.outcome, "superseded_by": c.sql_writer.superseded_by,` +
	` "retry_count": c.sql_writer.retry_count, "retry_after": c.sql_writer.retry_after, "postponed": c.sql_writer.postponed,` +
	` "last_error": c.sql_writer.last_error, "last_error_at": c.sql_writer.last_error_at,` +
	` "last_error_kind": c.sql_writer.last_error_kind, "last_error_code": c.sql_writer.last_error_code,` +
	` "committed_at": c.sql_writer.committed_at, "failed_at": c.sql_writer.failed_at, "error": c.sql_writer.error,` +
	` "final_error": c.sql_writer.final_error, "reprocess_count": c.sql_writer.reprocess_count, "version": c.sql_writer.version} AS sql_writer`

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

// Heads implements reconcile.Documents.
func (d ReconcileDocuments) Heads(ctx context.Context, ids []string) ([]invoice.Projection, float64, error) {
	rows, charge, err := d.c.readMany(ctx, operation{"cosmos: heads", onContainer}, selectHead, ids, headsChunk)
	return projections(rows), charge, err
}

// OfLines implements reconcile.Documents. Equality and ARRAY_CONTAINS use the index (docs/facts.md F110).
func (d ReconcileDocuments) OfLines(ctx context.Context, lines []int64) (ids []string, charge float64, err error) {
	op := operation{"cosmos: documents of lines", onContainer}
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(lines))), linesChunk) {
		c := condition{{"@sys_name", d.sysName}}
		query := "SELECT c.id FROM c WHERE c.request_details.sys_name = @sys_name AND " + c.namesLine(some)
		cost, err := d.c.pages(ctx, op, query, c, func(rows []json.RawMessage) (bool, error) {
			for _, row := range rows {
				var head struct {
					ID string `json:"id"`
				}
				if err := json.Unmarshal(row, &head); err != nil {
					return false, fault.Wrap(fault.Infrastructure, op.name, "row", "the service answered with a malformed row", err)
				}
				ids = append(ids, head.ID)
			}
			return true, nil
		})
		charge += cost
		if err != nil {
			return nil, charge, err
		}
	}
	return distinct(ids), charge, nil // a document may name lines of two chunks
}

// namesLine is the condition that a document names one of lines, as main line or duplicate.
func (c *condition) namesLine(lines []int64) string {
	var names []string
	for _, line := range lines {
		names = append(names, c.addAll(fmt.Sprintf("@line%d_", len(names)), ops.Search{Line: line}.Lines())...)
	}
	text := "(" + mainLine + " IN (" + strings.Join(names, ", ") + ")"
	for _, name := range names {
		text += " OR ARRAY_CONTAINS(" + duplicates + ", " + name + ")"
	}
	return text + ")"
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

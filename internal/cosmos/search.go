package cosmos

import (
	"context"
	"fmt"
	"math"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// The members of a document in a search. The error's text and the attempts are left out: they have up to 11 KB.
const (
	selectFound = `SELECT c.id, c._ts, c.request_details, {"IVCE_DTL_UID": c.invoice_details_from_rpa.IVCE_DTL_UID} AS invoice_details_from_rpa,` +
		` {"status": c.sql_writer.status, "retry_count": c.sql_writer.retry_count, "retry_after": c.sql_writer.retry_after,` +
		` "last_error_kind": c.sql_writer.last_error_kind, "last_error_code": c.sql_writer.last_error_code,` +
		` "failed_at": c.sql_writer.failed_at, "version": c.sql_writer.version} AS sql_writer`
	mainLine   = "c.invoice_details_from_rpa.IVCE_DTL_UID"
	duplicates = `c["post-processing"].duplicate_detail_uids`
)

// Search gives one page of the documents that match. See ops.DocumentSearch. Its continuation is the service's, as short as
// the service makes it.
func (c *Container) Search(ctx context.Context, q ops.Search, size int, continuation string) ([]invoice.Projection, string, error) {
	query, params := searchQuery(q)
	p := paging{size: int32(min(size, math.MaxInt32)), short: true} //nolint:gosec // bounded
	found, err := c.markedPage(ctx, operation{"cosmos: search", onContainer}, query, params, p, continuation)
	return projections(found.rows), found.next, err
}

// searchQuery makes the query of a search. It only filters and projects, because the gateway serves no more over partitions
// (docs/facts.md F63). Equality, ranges and ARRAY_CONTAINS use the index (F110).
func searchQuery(q ops.Search) (string, []Param) {
	c := condition{{"@from", q.From}, {"@to", q.To}}
	query := selectFound
	if q.Request != "" {
		query += `, c["post-processing"]`
	}
	query += " FROM c WHERE c._ts >= @from AND c._ts < @to"
	equal := func(member, name, value string) {
		if value != "" {
			query += " AND " + member + " = " + c.add(name, value)
		}
	}
	equal("c.request_details.sys_name", "@sys_name", q.SysName)
	equal("c.sql_writer.last_error_kind", "@kind", q.Kind)
	equal("c.sql_writer.last_error_code", "@code", q.Code)
	if q.Status != "" {
		query += " AND " + c.inStatus(q.Status)
	}
	if q.Request != "" {
		query += " AND c.request_details.id IN (" + strings.Join(c.addAll("@request", q.Requests()), ", ") + ")"
	}
	if q.Line > 0 {
		names := c.addAll("@line", q.Lines())
		query += " AND (" + mainLine + " IN (" + strings.Join(names, ", ") + ")"
		for _, name := range names {
			query += " OR ARRAY_CONTAINS(" + duplicates + ", " + name + ")"
		}
		query += ")"
	}
	return query, c
}

// addAll adds values and gives their names in the text.
func (c *condition) addAll(name string, values []any) (names []string) {
	for i, value := range values {
		names = append(names, c.add(fmt.Sprint(name, i), value))
	}
	return names
}

package cosmos

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
)

// Window gives the documents of one environment with a _ts in [from, to). See adopt.Documents. It fetches only the members
// that invoice.Read uses, because a document may have 2 MB.
//
// The query only filters on indexed members and projects, because the gateway serves no more over partitions (docs/facts.md
// F63). It does not filter by status: that ignores case (ADR 0004), and nearly every document of an old container is
// finished.
func (c *Container) Window(ctx context.Context, sysName string, from, to int64, page func([]invoice.Projection) (more bool, err error)) error {
	_, err := c.pages(ctx, operation{"cosmos: window", onContainer}, windowQuery(), []Param{
		{Name: "@sys_name", Value: sysName}, {Name: "@from", Value: from}, {Name: "@to", Value: to},
	}, func(rows []json.RawMessage) (bool, error) { return page(projections(rows)) })
	return err
}

func windowQuery() string {
	return "SELECT " + project(invoice.Members()) +
		" FROM c WHERE c.request_details.sys_name = @sys_name AND c._ts >= @from AND c._ts < @to"
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

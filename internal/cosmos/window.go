package cosmos

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
)

// Window gives the documents of one environment whose _ts is at least from and less than to. See adopt.Documents. Of each it
// fetches the members that a document is read from and nothing else: one may be 2 MB of which a few hundred bytes matter.
//
// It filters by equality and range on indexed members and projects, which is all that the gateway serves over partitions
// (docs/facts.md F63). Status is not part of the filter: it is compared without regard to case (ADR 0005), and nearly every
// document of a container with history is finished.
func (c *Container) Window(ctx context.Context, sysName string, from, to int64, page func([]json.RawMessage) (more bool, err error)) error {
	return c.pages(ctx, operation{"cosmos: window", onContainer}, windowQuery(), []Param{
		{Name: "@sys_name", Value: sysName}, {Name: "@from", Value: from}, {Name: "@to", Value: to},
	}, page)
}

// windowQuery names the members in the form that takes every name.
func windowQuery() string {
	members := invoice.Members()
	for i, m := range members {
		members[i] = "c[" + strconv.Quote(m) + "]"
	}
	return "SELECT " + strings.Join(members, ", ") +
		" FROM c WHERE c.request_details.sys_name = @sys_name AND c._ts >= @from AND c._ts < @to"
}

package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// Waiting gives the documents of an environment that wait in one of statuses and whose _ts lies in [from, to), ids, times
// and codes only. See writer.Backlog. A member of another type than expected counts as empty, as everywhere.
func (c *Container) Waiting(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]writer.Waiting) (more bool, err error)) error {
	op := operation{"cosmos: waiting", onContainer}
	query, params := waitingQuery(sysName, statuses, from, to)
	if query == "" {
		return nil
	}
	return c.pages(ctx, op, query, params, func(rows []json.RawMessage) (bool, error) {
		found, err := readAllWaiting(op, rows)
		if err != nil {
			return false, err
		}
		return page(found)
	})
}

// waitingQuery makes the query, "" when nothing is asked for. It filters and projects, no more: what the gateway serves over partitions (azure-facts
// 5.1). Order and bounds are the caller's to make.
//
// The form decides whether the index serves it. Equality, IN and ranges do; LOWER(c.sql_writer.status) = 'pending' would
// find every spelling and read every document ("This function doesn't use the index", the vendor's page on LOWER). So
// the status is compared with each spelling that is promised. sys_name and _ts stand beside it and not inside the OR:
// whatever the missing status costs, it is looked for in this environment and window only.
//
// A member of something that is no object is undefined, so NOT IS_DEFINED finds a document without sql_writer, with null
// or with a text in its place, too. IS_NULL of something undefined is false.
func waitingQuery(sysName string, statuses []invoice.Status, from, to int64) (string, []Param) {
	params := []Param{{Name: "@sys_name", Value: sysName}, {Name: "@from", Value: from}, {Name: "@to", Value: to}}
	var names []string
	for _, status := range statuses {
		for _, text := range writer.Spellings(status) {
			name := fmt.Sprintf("@status%d", len(names))
			names, params = append(names, name), append(params, Param{Name: name, Value: text})
		}
	}
	if len(names) == 0 {
		return "", nil // IN () is no query
	}
	status := "c.sql_writer.status IN (" + strings.Join(names, ", ") + ")"
	if slices.Contains(statuses, invoice.Pending) {
		status = "(" + status + " OR NOT IS_DEFINED(c.sql_writer.status) OR IS_NULL(c.sql_writer.status))"
	}
	return "SELECT c.id, c._ts, c.sql_writer.status, c.sql_writer.retry_after, c.sql_writer.last_error_kind," +
		" c.sql_writer.last_error_code, c.sql_writer.failed_at" +
		" FROM c WHERE c.request_details.sys_name = @sys_name AND c._ts >= @from AND c._ts < @to AND " + status, params
}

// readAllWaiting reads the rows of a page.
func readAllWaiting(op operation, rows []json.RawMessage) ([]writer.Waiting, error) {
	found := make([]writer.Waiting, len(rows))
	for i, row := range rows {
		w, err := readWaiting(row)
		if err != nil {
			return nil, fault.Wrap(fault.Infrastructure, op.name, "row", "the service answered with a row that is none", err)
		}
		found[i] = w
	}
	return found, nil
}

// readWaiting reads one row. Its members stand beside each other under the names that they have in sql_writer, so the row
// is read by the rules for sql_writer; only id and _ts, which the service vouches for, must be what they should.
func readWaiting(row json.RawMessage) (writer.Waiting, error) {
	var head struct {
		ID string `json:"id"`
		TS int64  `json:"_ts"`
	}
	if err := json.Unmarshal(row, &head); err != nil {
		return writer.Waiting{}, err
	}
	var state invoice.State
	if err := json.Unmarshal(row, &state); err != nil {
		return writer.Waiting{}, err
	}
	return writer.WaitingOf(head.ID, head.TS, state), nil
}

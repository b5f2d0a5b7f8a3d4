package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// PendingDocs gives the documents of an environment that wait in one of statuses and whose _ts lies in [from, to), ids, times
// and codes only. See commit.Backlog. A member of another type than expected counts as empty, as everywhere.
func (c *Container) PendingDocs(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]commit.PendingDoc) (more bool, err error)) error {
	op := operation{"cosmos: waiting", onContainer}
	query, params := pendingQuery(sysName, statuses, from, to)
	if query == "" {
		return nil
	}
	return c.pages(ctx, op, query, params, func(rows []json.RawMessage) (bool, error) {
		found, err := readAllPending(op, rows)
		if err != nil {
			return false, err
		}
		return page(found)
	})
}

// windowPage is how many documents a page of a window may have: those that one request to SQL takes.
const windowPage = 100

// Page gives one page of a window. See commit.Backlog. The query is asked with the times that the search began with.
func (c *Container) Page(ctx context.Context, q commit.WindowQuery, continuation string) (found []commit.PendingDoc, next string, err error) {
	op, place := operation{"cosmos: backlog", onContainer}, ""
	if continuation != "" {
		var ok bool
		if q, place, ok = q.Continued(continuation); !ok || place == "" {
			return nil, "", noContinuation(op)
		}
	}
	query, params, err := backlogQuery(op, q)
	if err != nil {
		return nil, "", err
	}
	found, next, err = c.pendingPage(ctx, op, query, params, windowPage, place)
	if next != "" {
		next = q.Continuation(next)
	}
	return found, next, err
}

// What is told of a waiting document, and the parts of conditions that several queries have.
const (
	selectPending = "SELECT c.id, c._ts, c.sql_writer.status, c.sql_writer.retry_after, c.sql_writer.postponed," +
		" c.sql_writer.last_error_kind, c.sql_writer.last_error_code, c.sql_writer.failed_at FROM c WHERE c.request_details.sys_name = @sys_name"
	isDue       = "(NOT IS_NUMBER(c.sql_writer.retry_after) OR c.sql_writer.retry_after <= @now OR c.sql_writer.retry_after > @tomorrow)"
	isPutOff    = "(IS_STRING(c.sql_writer.last_error_kind) AND c.sql_writer.last_error_kind IN (%s))"
	isPostponed = "(IS_BOOL(c.sql_writer.postponed) AND c.sql_writer.postponed = true)"
)

// pendingQuery makes the query of Waiting, "" when nothing is asked for. It filters and projects, no more: what the gateway
// serves over partitions (docs/facts.md F63). Order and bounds are the caller's to make.
//
// The form decides whether the index serves it. Equality, IN and ranges do; LOWER(c.sql_writer.status) = 'pending' would
// find every spelling and read every document ("This function doesn't use the index", the vendor's page on LOWER). So
// the status is compared with each spelling that is promised.
func pendingQuery(sysName string, statuses []invoice.Status, from, to int64) (string, []Param) {
	c := condition{{"@sys_name", sysName}, {"@from", from}, {"@to", to}}
	in := c.inStatus(statuses...)
	if in == "" {
		return "", nil // IN () is no query
	}
	return selectPending + " AND " + in + " AND c._ts >= @from AND c._ts < @to", c
}

// backlogQuery makes the query of a window. What is compared with a member that is not there, or of another type, is
// undefined, and so is NOT of that; every condition that is negated therefore asks for the type first. NOT IS_DEFINED is
// not used: it scans (docs/facts.md F66).
func backlogQuery(op operation, q commit.WindowQuery) (string, []Param, error) {
	c := condition{{"@sys_name", q.SysName}}
	if q.Window == commit.Orphans {
		pending := c.inStatus(invoice.Pending) + " AND c._ts < " + c.add("@left", q.LeftBefore)
		processing := c.inStatus(invoice.Processing) + " AND c._ts < " + c.add("@old", q.OldWriterBefore)
		return selectPending + " AND ((" + pending + ") OR (" + processing + "))", c, nil
	}
	query := selectPending + " AND " + c.inStatus(invoice.RetryScheduled) + " AND "
	c.add("@now", q.Now)
	c.add("@tomorrow", q.Now+int64(invoice.MostAhead/time.Second))
	var kinds []string
	for _, kind := range commit.PutOffKinds() {
		kinds = append(kinds, c.add("@"+string(kind), kind))
	}
	putOff := fmt.Sprintf(isPutOff, strings.Join(kinds, ", "))
	switch q.Window {
	case commit.PutOff:
		return query + putOff + " AND " + isDue, c, nil
	case commit.Due:
		return query + "NOT " + putOff + " AND NOT " + isPostponed + " AND " + isDue, c, nil
	case commit.Postponed:
		early := "c._ts < " + c.add("@applied", q.AppliedBefore)
		return query + isPostponed + " AND NOT " + putOff + " AND (" + isDue + " OR " + early + ")", c, nil
	case commit.Orphans: // answered above
	}
	return "", nil, fault.New(fault.Internal, op.name, "window", "there is no window %q", q.Window)
}

// condition gathers the parameters of a query while its text is made.
type condition []Param

// add takes in a value and answers the name it has in the text.
func (c *condition) add(name string, value any) string {
	*c = append(*c, Param{Name: name, Value: value})
	return name
}

// inStatus is the condition that the status is one of statuses in one of its spellings; "" when there is none.
func (c *condition) inStatus(statuses ...invoice.Status) string {
	var names []string
	for _, status := range statuses {
		for _, text := range commit.Spellings(status) {
			names = append(names, c.add(fmt.Sprint("@status", len(*c)), text))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "c.sql_writer.status IN (" + strings.Join(names, ", ") + ")"
}

// readAllPending reads the rows of a page.
func readAllPending(op operation, rows []json.RawMessage) ([]commit.PendingDoc, error) {
	found := make([]commit.PendingDoc, len(rows))
	for i, row := range rows {
		w, err := readPending(row)
		if err != nil {
			return nil, fault.Wrap(fault.Infrastructure, op.name, "row", "the service answered with a row that is none", err)
		}
		found[i] = w
	}
	return found, nil
}

// readPending reads one row. Its members stand beside each other under the names that they have in sql_writer, so the row
// is read by the rules for sql_writer; only id and _ts, which the service vouches for, must be what they should.
func readPending(row json.RawMessage) (commit.PendingDoc, error) {
	var head struct {
		ID string `json:"id"`
		TS int64  `json:"_ts"`
	}
	if err := json.Unmarshal(row, &head); err != nil {
		return commit.PendingDoc{}, err
	}
	var state invoice.State
	if err := json.Unmarshal(row, &state); err != nil {
		return commit.PendingDoc{}, err
	}
	return commit.PendingDocOf(head.ID, head.TS, state), nil
}

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

// PendingDocs gives the documents of an environment with one of statuses and a _ts in [from, to): ids, times and codes
// only. See commit.Backlog. A member of an unexpected type counts as empty.
func (c *Container) PendingDocs(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]commit.PendingDoc) (more bool, err error)) error {
	op := operation{"cosmos: waiting", onContainer}
	query, params := pendingQuery(sysName, statuses, from, to)
	if query == "" {
		return nil
	}
	_, err := c.pages(ctx, op, query, params, func(rows []json.RawMessage) (bool, error) {
		found, err := readAllPending(op, rows)
		if err != nil {
			return false, err
		}
		return page(found)
	})
	return err
}

// windowPage is the largest number of documents in a page of a window: as many as one request to SQL takes.
const windowPage = 100

// Page gives one page of a window. See commit.Backlog. The continuation has the times of the first page, so that every page
// runs the same query.
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

// The columns of a pending document, and conditions that several queries share.
const (
	selectPending = "SELECT c.id, c._ts, c.sql_writer.status, c.sql_writer.retry_after, c.sql_writer.postponed," +
		" c.sql_writer.last_error_kind, c.sql_writer.last_error_code, c.sql_writer.failed_at," +
		" c.sql_writer.last_error_at, c.sql_writer.attempts[0].at AS first_at, c.invoice_details_from_rpa.IVCE_DTL_UID" +
		" FROM c WHERE c.request_details.sys_name = @sys_name"
	isDue       = "(NOT IS_NUMBER(c.sql_writer.retry_after) OR c.sql_writer.retry_after <= @now OR c.sql_writer.retry_after > @tomorrow)"
	isPutOff    = "(IS_STRING(c.sql_writer.last_error_kind) AND c.sql_writer.last_error_kind IN (%s))"
	isPostponed = "(IS_BOOL(c.sql_writer.postponed) AND c.sql_writer.postponed = true)"
)

// pendingQuery makes the query of PendingDocs, or "" without statuses. It only filters and projects, because the gateway
// serves no more over partitions (docs/facts.md F63). The caller sorts and limits.
//
// The index serves equality, IN and ranges. LOWER(c.sql_writer.status) = 'pending' would find every spelling, but reads
// every document ("This function doesn't use the index", the vendor's page on LOWER). The query therefore names each
// spelling of commit.Spellings.
func pendingQuery(sysName string, statuses []invoice.Status, from, to int64) (string, []Param) {
	c := condition{{"@sys_name", sysName}, {"@from", from}, {"@to", to}}
	in := c.inStatus(statuses...)
	if in == "" {
		return "", nil // IN () is no query
	}
	return selectPending + " AND " + in + " AND c._ts >= @from AND c._ts < @to", c
}

// backlogQuery makes the query of a window. A comparison with a missing member or another type is undefined, and so is its
// NOT. Every negated condition therefore checks the type first. NOT IS_DEFINED is not used, because it scans (docs/facts.md
// F66).
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
	case commit.Blamed:
		early := isPostponed + " AND c._ts < " + c.add("@applied", q.AppliedBefore)
		return query + "NOT " + putOff + " AND (" + isDue + " OR " + early + ")", c, nil
	case commit.Orphans: // answered above
	}
	return "", nil, fault.New(fault.Internal, op.name, "window", "there is no window %q", q.Window)
}

// condition collects the parameters of a query while its text is made.
type condition []Param

// add adds a value and gives its name in the text.
func (c *condition) add(name string, value any) string {
	*c = append(*c, Param{Name: name, Value: value})
	return name
}

// inStatus is the condition for the statuses in all their spellings, or "" without statuses.
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

func readAllPending(op operation, rows []json.RawMessage) ([]commit.PendingDoc, error) {
	found := make([]commit.PendingDoc, len(rows))
	for i, row := range rows {
		w, err := readPending(row)
		if err != nil {
			return nil, fault.Wrap(fault.Infrastructure, op.name, "row", "the service answered with a malformed row", err)
		}
		found[i] = w
	}
	return found, nil
}

// readPending reads one row. Its members have the names of sql_writer, so they are read by the same lenient rules. The
// service guarantees id and _ts, so their types are checked.
func readPending(row json.RawMessage) (commit.PendingDoc, error) {
	var head struct {
		ID string `json:"id"`
		TS int64  `json:"_ts"`
		// Line and FirstAt may be of any type.
		Line    json.RawMessage `json:"IVCE_DTL_UID"`
		FirstAt any             `json:"first_at"`
	}
	if err := json.Unmarshal(row, &head); err != nil {
		return commit.PendingDoc{}, err
	}
	var state invoice.State
	if err := json.Unmarshal(row, &state); err != nil {
		return commit.PendingDoc{}, err
	}
	p := commit.PendingDocOf(head.ID, head.TS, invoice.LineID(head.Line), state)
	p.FirstAt, _ = head.FirstAt.(string)
	return p, nil
}

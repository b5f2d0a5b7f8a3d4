package inmem

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// candidate is what a search sees of a document.
type candidate struct {
	commit.PendingDoc
	// sysName is request_details.sys_name, status sql_writer.status, as they stand; empty when they are no texts.
	sysName, status string
}

// candidateOf reads what a search sees. What stands in the place of sql_writer and is no object has no status.
func candidateOf(id string, members map[string]json.RawMessage) (candidate, error) {
	var ts int64
	var state invoice.State
	err := json.Unmarshal(members["_ts"], &ts)
	own := object(members["sql_writer"])
	if err == nil && own != nil {
		err = json.Unmarshal(members["sql_writer"], &state)
	}
	if err != nil {
		return candidate{}, fault.Wrap(fault.Internal, "inmem: waiting", "marshal", "a stored document cannot be read", err)
	}
	e := candidate{PendingDoc: commit.PendingDocOf(id, ts, invoice.LineID(object(members["invoice_details_from_rpa"])["IVCE_DTL_UID"]), state)}
	e.sysName = text(object(members["request_details"])["sys_name"])
	e.status = text(own["status"])
	return e, nil
}

// between reports whether a document is of an environment and was last changed in [from, to).
func (e candidate) between(sysName string, from, to int64) bool {
	return e.sysName == sysName && e.TS >= from && e.TS < to
}

// is reports whether the status is one of statuses, in a spelling that is promised.
func (e candidate) is(statuses ...invoice.Status) bool {
	return slices.ContainsFunc(statuses, func(s invoice.Status) bool { return slices.Contains(commit.Spellings(s), e.status) })
}

// in reports whether a document of the environment is in the window that is asked for.
func (e candidate) in(q commit.WindowQuery) bool {
	due := invoice.Due(e.RetryAfter, time.Unix(q.Now, 0))
	putOff := slices.Contains(commit.PutOffKinds(), fault.Kind(e.Kind))
	retry := e.is(invoice.RetryScheduled)
	switch q.Window {
	case commit.PutOff:
		return retry && putOff && due
	case commit.Blamed:
		return retry && !putOff && (due || e.Postponed && e.TS < q.AppliedBefore)
	case commit.Orphans:
	}
	return e.is(invoice.Pending) && e.TS < q.LeftBefore || e.is(invoice.Processing) && e.TS < q.OldWriterBefore
}

// PendingDocs gives the documents of an environment that wait in one of statuses, a few at a time. See commit.Backlog.
func (d *Documents) PendingDocs(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]commit.PendingDoc) (more bool, err error)) error {
	const pageSize = 100
	s, q := d.Selection(0), run.Query{SysName: sysName, Statuses: statuses, From: from, To: to}
	var all []commit.PendingDoc
	for next := ""; ; {
		found, after, err := s.Page(ctx, q, next)
		if err != nil {
			return err
		}
		all = append(all, found...)
		if next = after; next == "" {
			break
		}
	}
	for chunk := range slices.Chunk(all, pageSize) {
		if err := ended(ctx, "inmem: waiting"); err != nil {
			return err
		}
		if more, err := page(chunk); err != nil || !more {
			return err
		}
	}
	return nil
}

// Page gives one page of a window: what is found among the next 1,000 documents of the environment, so that use cases meet
// the empty pages of a service. See commit.Backlog.
func (d *Documents) Page(ctx context.Context, q commit.WindowQuery, continuation string) (found []commit.PendingDoc, next string, err error) {
	const op, most, looked = "inmem: backlog", 100, 1000
	if err := ended(ctx, op); err != nil {
		return nil, "", err
	}
	if !slices.Contains(commit.Windows(), q.Window) {
		return nil, "", fault.New(fault.Internal, op, "window", "there is no window %q", q.Window)
	}
	place := ""
	if continuation != "" {
		var ok bool
		if q, place, ok = q.Continued(continuation); !ok || place == "" {
			return nil, "", noContinuation(op)
		}
	}
	ours := func(e candidate) bool { return e.sysName == q.SysName }
	found, place, err = d.search(op, q, place, most, looked, ours, func(e candidate) bool { return e.in(q) })
	if place != "" {
		place = q.Continuation(place)
	}
	return found, place, err
}

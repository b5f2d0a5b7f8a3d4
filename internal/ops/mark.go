package ops

import (
	"context"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// markTries bounds the attempts to record over concurrent changes.
const markTries = 3

// MarkRequest asks to mark a document as committed.
type MarkRequest struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Marked is the result.
type Marked struct {
	ID string `json:"id"`
	// From is the status before.
	From invoice.Status `json:"from"`
}

// MarkCommitted marks a document as committed whose lines a person has repaired. It is not tried again, and readers
// count it as committed, outcome "manual". Lines and ledger are not touched: the ledger says which document's content a
// line holds, and the repair is no document's. The document must be failed, retry_scheduled, pending after a failure,
// or marked already, as after a restore that lost the entry. Its state is audited first: the mark counts only with the
// entry, which says who and why, and names its committed_at.
//
// Errors by kind: *RequestError (usage; not found; conflict when the status does not allow it or changed). Further
// infrastructure, throttled, quota, contention; document when it accepts no patch.
func (o *Ops) MarkCommitted(ctx context.Context, r MarkRequest) (Marked, error) {
	if err := checkDocumentID(r.ID); err != nil {
		return Marked{}, err
	}
	by, err := o.mayAct(ctx, r.Why)
	if err != nil {
		return Marked{}, err
	}
	audited, at := false, invoice.Stamp(o.o.Now(), o.o.Location)
	for range markTries {
		doc, _, err := o.document(ctx, r.ID)
		if err != nil {
			return Marked{}, err
		}
		if err := o.markable(doc.Document); err != nil {
			return Marked{}, err
		}
		if !audited {
			if err := o.auditMark(ctx, doc.Document, at, by, r.Why); err != nil {
				return Marked{}, unaudited(err)
			}
			audited = true
		}
		_, err = o.p.Documents.Record(ctx, doc, marked(doc.State, at))
		switch {
		case err == nil:
			return Marked{ID: doc.ID, From: doc.State.Status}, nil
		case fault.Has(err, fault.Gone):
			return Marked{}, refuse(NotFound, "the document %q was deleted meanwhile", r.ID)
		case !fault.Has(err, fault.Changed):
			return Marked{}, err
		}
	}
	return Marked{}, refuse(Conflict, "the document changed %d times meanwhile: read it again", markTries)
}

// markable returns the reason why a document cannot be marked; nil when it can.
func (o *Ops) markable(doc invoice.Document) error {
	s := doc.State
	switch {
	case doc.SysName != o.o.SysName:
		return refuse(Conflict, "the document belongs to the environment %q, this app is %q", doc.SysName, o.o.SysName)
	case s.Status == invoice.Failed || s.Status == invoice.RetryScheduled,
		s.Status == invoice.Committed && s.Outcome == invoice.OutcomeManual:
		return nil
	case s.Status == invoice.Pending &&
		(s.FailedAt != "" || s.LastErrorAt != "" || s.LastErrorKind != "" || len(s.Attempts) > 0):
		return nil
	case s.Status == invoice.Pending:
		return refuse(Conflict, "the document is pending and has not failed: it will be written by itself")
	case s.Status == "":
		return refuse(Conflict,
			"the document was never offered (no sql_writer.status): only one that has failed can be marked")
	}
	return refuse(Conflict, "the document is %s: only one that has failed can be marked", s.StatusFound)
}

func (o *Ops) auditMark(ctx context.Context, doc invoice.Document, at, by, why string) error {
	detail, err := asJSON("ops: mark", map[string]any{
		"status": doc.State.Status, "retry_count": doc.State.RetryCount, "kind": doc.State.LastErrorKind,
		"code": doc.State.LastErrorCode, "failed_at": doc.State.FailedAt, "committed_at": at,
		"main_detail_id": doc.Main,
	})
	if err != nil {
		return err
	}
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Write(ctx,
			run.Audit{Action: run.CodeMarkCommitted, By: by, Why: why, Subject: doc.ID, Detail: detail})
	})
}

// marked returns the state committed at a time, without the fields of the failure.
func marked(s invoice.State, at string) invoice.State {
	s.Status, s.Outcome, s.SupersededBy = invoice.Committed, invoice.OutcomeManual, ""
	s.CommittedAt = at
	s.RetryAfter, s.Postponed, s.FirstFailedAt = 0, false, ""
	s.LastError, s.LastErrorAt, s.LastErrorKind, s.LastErrorCode = "", "", "", ""
	s.Error, s.FinalError, s.FailedAt = "", "", ""
	return s
}

package ops

import (
	"context"
	"encoding/json"
	"maps"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The members of sql_writer that record a mark.
const (
	markedBy  = "marked_by"
	markedWhy = "marked_why"
	markedAt  = "marked_at"
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
// line holds, and the repair is no document's. The document must be failed, retry_scheduled, or pending after a
// failure. Its state is audited first.
//
// Errors by kind: *RequestError (usage; not found; conflict when the status does not allow it or changed). Further
// infrastructure, throttled, quota, contention; document when it accepts no patch.
func (o *Ops) MarkCommitted(ctx context.Context, r MarkRequest) (Marked, error) {
	if err := checkDocumentID(r.ID); err != nil {
		return Marked{}, err
	}
	by, err := checkReason(ctx, r.Why)
	if err != nil {
		return Marked{}, err
	}
	if o.o.ReadOnly != "" {
		return Marked{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	audited := false
	for range markTries {
		doc, _, err := o.document(ctx, r.ID)
		if err != nil {
			return Marked{}, err
		}
		if err := o.markable(doc.Document); err != nil {
			return Marked{}, err
		}
		if !audited {
			if err := o.auditMark(ctx, doc.Document, by, r.Why); err != nil {
				return Marked{}, unaudited(err)
			}
			audited = true
		}
		_, err = o.p.Documents.Record(ctx, doc, o.marked(doc.State, by, r.Why))
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
	case s.Status == invoice.Failed || s.Status == invoice.RetryScheduled:
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

func (o *Ops) auditMark(ctx context.Context, doc invoice.Document, by, why string) error {
	detail, err := json.Marshal(map[string]any{
		"status": doc.State.Status, "retry_count": doc.State.RetryCount, "kind": doc.State.LastErrorKind,
		"code":      doc.State.LastErrorCode,
		"failed_at": doc.State.FailedAt, "main_detail_id": doc.Main,
	})
	if err != nil {
		return fault.Wrap(fault.Internal, "ops: mark", fault.CodeBug, "the audit entry cannot be written as JSON", err)
	}
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Write(ctx,
			run.Audit{Action: "mark-committed", By: by, Why: why, Subject: doc.ID, Detail: detail})
	})
}

// marked returns the committed state, without the fields of the failure.
func (o *Ops) marked(s invoice.State, by, why string) invoice.State {
	const maxBy, maxWhy = 100, 500
	at := invoice.Stamp(o.o.Now(), o.o.Location)
	s.Status, s.Outcome, s.SupersededBy, s.CommittedAt = invoice.Committed, invoice.OutcomeManual, "", at
	s.RetryAfter, s.Postponed, s.FirstFailedAt = 0, false, ""
	s.LastError, s.LastErrorAt, s.LastErrorKind, s.LastErrorCode = "", "", "", ""
	s.Error, s.FinalError, s.FailedAt = "", "", ""
	extra := maps.Clone(s.Extra)
	if extra == nil {
		extra = map[string]json.RawMessage{}
	}
	for name, text := range map[string]string{
		markedBy: run.Truncate(by, maxBy), markedWhy: run.Truncate(why, maxWhy), markedAt: at,
	} {
		if value, err := json.Marshal(text); err == nil { // a text can always be encoded
			extra[name] = value
		}
	}
	s.Extra = extra
	return s
}

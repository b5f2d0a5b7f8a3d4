package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// DocumentRestore is the action of the audit log for a deleted document that is put back from its evidence.
const DocumentRestore = "DOCUMENT_RESTORE"

// RestoreRequest asks to put a deleted document back.
type RestoreRequest struct {
	EvidenceOfDocument

	// DryRun says what would be put back, and changes nothing.
	DryRun bool   `json:"dry_run,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Restored is a document that was put back, or would be.
type Restored struct {
	DryRun   bool   `json:"dry_run,omitempty"`
	Document string `json:"document"`
	// Folder has the evidence: the newest complete one, stored At.
	Folder string    `json:"folder"`
	At     time.Time `json:"at"`
	// Status is the one that the document has then, Kind and Code are those of its last failure.
	Status invoice.Status `json:"status"`
	Kind   string         `json:"kind"`
	Code   string         `json:"code"`
}

// EvidenceRestore puts a deleted document back into the container from its newest complete evidence, as it failed: a
// retry takes it then. It is refused where the evidence cannot be trusted, or where SQL has later content of the
// document. The audit entry comes first.
//
// Errors by kind: *RequestError (usage; not_found; conflict when it exists, when its evidence is refused, and in a
// shadow); infrastructure, throttled, quota, contention; document when the container refuses it.
func (o *Ops) EvidenceRestore(ctx context.Context, r RestoreRequest) (done Restored, err error) {
	by := ""
	if !r.DryRun {
		if by, err = o.mayAct(ctx, r.Why); err != nil {
			return done, err
		}
	}
	e, err := o.newestEpisode(ctx, r.EvidenceOfDocument)
	if err == nil {
		err = o.readEpisode(ctx, r.ID, &e)
	}
	if err != nil {
		return done, err
	}
	switch _, err := o.p.Documents.Read(ctx, r.ID); {
	case err == nil:
		return done, refuse(Conflict, "the document %q exists: `document retry` tries it again", r.ID)
	case !fault.Has(err, fault.Gone):
		return done, err
	}
	doc, state, err := o.original(ctx, r.ID, e)
	if err != nil {
		return done, err
	}
	done = Restored{
		DryRun: r.DryRun, Document: r.ID, Folder: e.Folder, At: o.in(e.At), Status: state.Status,
		Kind: state.LastErrorKind, Code: state.LastErrorCode,
	}
	if r.DryRun {
		return done, nil
	}
	detail, err := asJSON("ops: restore", map[string]string{"folder": e.Folder})
	if err != nil {
		return Restored{}, err
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Write(ctx, run.Audit{Action: DocumentRestore, By: by, Why: r.Why, Subject: r.ID, Detail: detail})
	})
	if err != nil {
		return Restored{}, unaudited(err)
	}
	if err := o.p.Creator.Submit(ctx, doc, false); fault.CodeOf(err) == documentExists {
		return Restored{}, refuse(Conflict, "the document %q came meanwhile: it stays as it is", r.ID)
	} else if err != nil {
		return Restored{}, err
	}
	return done, nil
}

// maxSkew is how far the clocks of Cosmos DB and of the storage account may be apart.
const maxSkew = time.Minute

// documentExists is the code of DocumentCreator.Submit for a document that exists.
const documentExists = "409"

// original makes a document of its evidence, with the state in which it failed and without what belongs to the
// container. Numbers keep their digits. Whoever may write to the storage account could plant evidence, so it is
// compared with what does not come from there. Whoever computes the hash and dates the metadata anew is not stopped: an
// immutability policy of the container does (ADR 0021).
func (o *Ops) original(ctx context.Context, id string, e EvidenceEpisode) (json.RawMessage, invoice.State, error) {
	refused := func(format string, args ...any) error {
		return refuse(Conflict, "%s is not put back: %s", e.Folder, fmt.Sprintf(format, args...))
	}
	if e.Incomplete || len(e.Problems) > 0 {
		return nil, invoice.State{}, refused("its evidence is not complete: %s", strings.Join(e.Problems, "; "))
	}
	content, err := o.p.Evidence.Read(ctx, e.Folder+"/"+commit.EvidenceOriginal)
	if err != nil && !fault.Has(err, fault.Gone) {
		return nil, invoice.State{}, err
	}
	doc, err := o.o.Reader.Read(content, e.At) // as the app read it then: a time may have been in the future
	_, hash, _ := strings.Cut(path.Base(e.Folder), "-")
	switch {
	case err != nil || doc.ID != id:
		return nil, doc.State,
			refused("expected the document %q in %s, found something else", id, commit.EvidenceOriginal)
	case doc.SysName != o.o.SysName:
		return nil, doc.State,
			refused("its document belongs to the environment %q, this app is %q", doc.SysName, o.o.SysName)
	case e.Metadata.HashVersion != doc.Mapping.Version():
		return nil, doc.State,
			refused(
				"a build with another mapping stored it, so its content cannot be compared. " +
					"If it is right: `evidence get` it, and `document submit` the file")
	case time.Unix(e.Metadata.TS, 0).After(e.At.Add(maxSkew)):
		return nil, doc.State,
			refused("expected the _ts of the document before %s, when it was stored, found %d",
				o.clock(e.At), e.Metadata.TS)
	case doc.Hash != hash:
		return nil, doc.State,
			refused("expected content with the hash %s, which its name has, found %s", hash, doc.Hash)
	}
	if err := o.notAppliedSince(ctx, id, e.Metadata.TS); err != nil {
		return nil, doc.State, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		// it was read as one
		return nil, doc.State,
			fault.Wrap(fault.Internal, "ops: restore", fault.CodeBug, "the document is not an object", err)
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return slices.Contains(systemMembers(), name)
	})
	state := e.failed.Restored(doc.State)
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if members["sql_writer"], err = state.MarshalJSON(); err == nil {
		err = out.Encode(members)
	}
	if err != nil {
		return nil, state,
			fault.Wrap(fault.Internal, "ops: restore", fault.CodeBug, "the document cannot be written as JSON", err)
	}
	return text.Bytes(), state, nil
}

// systemMembers are the members of a document that belong to the container.
func systemMembers() []string {
	return []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
}

// notAppliedSince refuses a document that SQL has as it was after a _ts, on whatever line: what is put back has a new
// _ts, and would be written over it. Lines that another document holds are none of its concern, because newest wins.
func (o *Ops) notAppliedSince(ctx context.Context, id string, ts int64) error {
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		rows, err := s.Ledger.LedgerOf(ctx, id)
		if err != nil {
			return because(err, "nothing was put back, because what SQL has of the document is not known")
		}
		for _, row := range rows {
			if row.Outcome != "failed" && row.SourceTS >= ts {
				return refuse(Conflict,
					"the document %q is not put back: line %d has content of it of %s, and its evidence is of %s",
					id, row.Line, o.clock(time.Unix(row.SourceTS, 0)), o.clock(time.Unix(ts, 0)))
			}
		}
		return nil
	})
}

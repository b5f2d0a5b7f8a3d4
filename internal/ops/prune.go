package ops

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
)

// EvidencePrune is the action of the audit log for evidence that was deleted.
const EvidencePrune = "EVIDENCE_PRUNE"

const (
	// youngest is the least age of evidence that may be deleted: its document may be written again, or be looked for.
	youngest = 24 * time.Hour
	// maxPruned bounds the folders of one request, and headsAtOnce the documents of one question to the container.
	maxPruned   = 10_000
	headsAtOnce = 1000
	// pruneWithin bounds one request: Azure's front end ends an HTTP request after 230 s.
	pruneWithin = 3 * time.Minute
	// suspicious is how many documents are not all gone by chance: the container is another one.
	suspicious = 20
)

// PruneRequest asks to delete evidence of documents that do not exist any more.
type PruneRequest struct {
	// Before bounds it to evidence that was stored earlier; at least a day ago.
	Before time.Time `json:"before"`
	// AllGone allows that 20 documents or more have evidence, and none of them exists. Without it this is refused: the container of the
	// results may be the wrong one.
	AllGone bool `json:"all_gone,omitempty"`
	// DryRun counts and lists, and deletes nothing.
	DryRun bool   `json:"dry_run,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Pruned is the result.
type Pruned struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Folders counts folders of evidence, of Documents that do not exist any more: those found by a dry run, else the deleted ones. Files
	// counts what was deleted.
	Folders   int `json:"folders"`
	Documents int `json:"documents"`
	Files     int `json:"files"`
	// First lists some of the folders, at most 20.
	First []PrunedFolder `json:"first"`
	// More says that there may be more, because the request would have become too long: ask again.
	More bool `json:"more,omitempty"`
}

// PrunedFolder is a folder of evidence within the environment.
type PrunedFolder struct {
	Folder   string    `json:"folder"`
	Document string    `json:"document"`
	At       time.Time `json:"at"`
}

// PruneEvidence deletes the evidence of failed documents that do not exist any more, audited first. Evidence of a document that exists, in
// whatever environment, stays. Errors: *RequestError (usage; conflict in a shadow, and without AllGone when no document exists); infrastructure, throttled, quota, contention; what was
// deleted before stays deleted, and the request may be repeated.
func (o *Ops) PruneEvidence(ctx context.Context, r PruneRequest) (done Pruned, err error) {
	by := ""
	switch {
	case r.Before.IsZero():
		return done, refuse(Usage, "before: expected the time before which evidence is old, found nothing")
	case o.o.Now().Sub(r.Before) < youngest:
		return done, refuse(Usage, "before: expected a time at least a day ago, found %s", o.clock(r.Before))
	case !r.DryRun:
		if by, err = checkReason(ctx, r.Why); err != nil {
			return done, err
		}
		if o.o.ReadOnly != "" {
			return done, refuse(Conflict, "%s", o.o.ReadOnly)
		}
	}
	began := o.o.Now()
	late := func() bool { return o.o.Now().Sub(began) > pruneWithin }
	orphans, more, err := o.orphans(ctx, r, late)
	if err != nil {
		return done, err
	}
	done = Pruned{DryRun: r.DryRun, First: []PrunedFolder{}, More: more}
	if len(orphans) == 0 {
		return done, nil
	}
	if !r.DryRun {
		if err := o.auditPrune(ctx, by, r, len(orphans)); err != nil {
			return Pruned{}, unaudited(err)
		}
	}
	documents := map[string]bool{}
	for _, e := range orphans {
		if late() {
			done.More = true
			break
		}
		if !r.DryRun {
			files, err := o.p.Evidence.Remove(ctx, e.Folder)
			if err != nil {
				return done, err
			}
			done.Files += files
		}
		documents[e.DocumentID] = true
		if done.Folders++; len(done.First) < shown {
			done.First = append(done.First, PrunedFolder{Folder: e.Folder, Document: e.DocumentID, At: o.in(e.At)})
		}
	}
	done.Documents = len(documents)
	return done, nil
}

// orphans lists old evidence of documents that do not exist, at most maxPruned folders. more says that it ended early. Documents of young
// evidence are asked for too, until one is found that exists.
func (o *Ops) orphans(ctx context.Context, r PruneRequest, late func() bool) (orphans []reconcile.Episode, more bool, err error) {
	gone := map[string]bool{} // some of the documents that do not exist
	exists := r.AllGone
	for at := ""; ; {
		page, next, err := o.p.Evidence.Episodes(ctx, at)
		if err != nil {
			return nil, false, err
		}
		old := func(e reconcile.Episode) bool { return e.At.Before(r.Before) }
		page = slices.DeleteFunc(page, func(e reconcile.Episode) bool { return exists && !old(e) })
		for part := range slices.Chunk(page, headsAtOnce) {
			looked := len(part)
			found, err := o.withoutDocument(ctx, part)
			if err != nil {
				return nil, false, err
			}
			exists = exists || len(found) < looked
			for _, e := range found {
				if old(e) {
					orphans = append(orphans, e)
				}
				if len(gone) < suspicious {
					gone[e.DocumentID] = true
				}
			}
		}
		ended := next == ""
		more = !ended && (len(orphans) >= maxPruned || late())
		switch {
		case !ended && !more:
		case !exists && len(orphans) > 0 && len(gone) >= suspicious:
			return nil, false, refuse(Conflict, "at least %d documents have evidence, and none of them exists: is COSMOS_CONTAINER the container of the results? If they were all deleted, ask with all_gone (--all-gone)", suspicious)
		default:
			return orphans[:min(len(orphans), maxPruned)], more, nil
		}
		at = next
	}
}

// withoutDocument returns those episodes whose document does not exist.
func (o *Ops) withoutDocument(ctx context.Context, episodes []reconcile.Episode) ([]reconcile.Episode, error) {
	ids := make([]string, len(episodes))
	for i, e := range episodes {
		ids[i] = e.DocumentID
	}
	docs, _, err := o.p.Heads.Heads(ctx, distinct(ids))
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, doc := range docs {
		var head struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(doc, &head); err != nil || head.ID == "" { // who is not known to be gone stays
			return nil, fault.New(fault.Internal, "ops: prune", "json", "the head of a document is not valid JSON, or has no id")
		}
		there[head.ID] = true
	}
	return slices.DeleteFunc(episodes, func(e reconcile.Episode) bool { return there[e.DocumentID] }), nil
}

func (o *Ops) auditPrune(ctx context.Context, by string, r PruneRequest, folders int) error {
	detail, err := json.Marshal(map[string]any{"before": o.in(r.Before), "folders": folders})
	if err != nil {
		return fault.Wrap(fault.Internal, "ops: prune", "encode", "the audit entry cannot be written as JSON", err)
	}
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Write(ctx, Audit{Action: EvidencePrune, By: by, Why: r.Why, Detail: detail})
	})
}

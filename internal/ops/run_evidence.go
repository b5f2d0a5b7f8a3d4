package ops

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// DocumentRestore is the action of the audit log for deleted documents that are put back from their evidence.
const DocumentRestore = "DOCUMENT_RESTORE"

const (
	// maxRestored bounds the documents that one request puts back.
	maxRestored = 100
)

// systemMembers are the members of a document that belong to the container.
func systemMembers() []string {
	return []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
}

// poison are the poison messages of a request, one for each document: the newest, by the document's id.
type poison struct {
	newest map[string]reconcile.Episode
	// replay are documents that are failed, gone those that do not exist. Others are only counted, and named if the request names them.
	replay   []Match
	gone     []string
	notTaken []NotTaken
	counts   run.EvidenceCounts
	// more says that there may be more than a run may name.
	more bool
}

// checkEvidence checks what concerns evidence. replays is the kind that tries failed documents again.
func (r StartRequest) checkEvidence(replays run.Kind) error {
	switch {
	case r.DeletedToo && !r.FromEvidence:
		return refuse(Usage, "deleted_too: expected from_evidence with it")
	case !r.FromEvidence:
		return nil
	case r.Kind != replays:
		return refuse(Usage, "from_evidence: expected the kind %s, found %q", replays, string(r.Kind))
	case r.Run != "" || len(r.Statuses) > 0 || len(r.Findings) > 0:
		return refuse(Usage, "from_evidence: expected ids, or a time and an error, found a run, statuses or findings")
	case r.DeletedToo && (len(r.IDs) == 0 || len(r.IDs) > maxRestored):
		return refuse(Usage, "deleted_too: expected 1 to %d ids with it, found %d", maxRestored, len(r.IDs))
	case r.DeletedToo && r.Limit > 0: // more would be put back than the run takes
		return refuse(Usage, "limit: goes not with deleted_too: name fewer ids")
	}
	return nil
}

// resolveEvidence finds the poison messages of a request and makes their documents its filter: those that are failed, then those that do not
// exist. With DeletedToo it first puts these back. Errors: *RequestError (conflict) when evidence cannot be used; those of EvidenceStore,
// DocumentHeads, DocumentCreator and AuditLog.
func (o *Ops) resolveEvidence(ctx context.Context, r *StartRequest) (*poison, error) {
	p := &poison{notTaken: []NotTaken{}}
	var err error
	if p.newest, err = o.poisonMessages(ctx, *r); err != nil {
		return nil, err
	}
	for _, id := range r.IDs {
		if _, there := p.newest[id]; !there {
			p.notTaken = append(p.notTaken, NotTaken{id, "no evidence of it is stored"})
		}
	}
	if err := o.judge(ctx, p, len(r.IDs) > 0, slices.Sorted(maps.Keys(p.newest))); err != nil {
		return nil, err
	}
	if r.DeletedToo && len(p.gone) > 0 {
		if err := o.restore(ctx, *r, p); err != nil {
			return nil, err
		}
	}
	if len(p.replay)+len(p.gone) > maxRunIDs {
		p.replay, p.more = p.replay[:min(len(p.replay), maxRunIDs)], true
		p.gone = p.gone[:min(len(p.gone), maxRunIDs-len(p.replay))]
	}
	p.counts.ToReplay, p.counts.Gone = len(p.replay), len(p.gone)
	p.counts.Matched = p.counts.ToReplay + p.counts.Gone + p.counts.NotFailed
	r.IDs = slices.Concat(idsOf(p.replay), p.gone)
	return p, nil
}

// addPills counts the documents of poison messages. Where none is failed there is nothing to do.
func (p preview) addPills(pills *poison) {
	p.Evidence, p.NotTaken = &pills.counts, pills.notTaken
	if len(pills.replay) == 0 {
		p.Note = "there is nothing to replay"
		return
	}
	for _, m := range pills.replay {
		p.add(m)
	}
	for _, id := range pills.gone {
		p.add(Match{ID: id})
	}
	p.AtLeast = pills.more
}

func idsOf(matches []Match) []string {
	ids := make([]string, len(matches))
	for i, m := range matches {
		ids[i] = m.ID
	}
	return ids
}

// poisonMessages returns the newest episode of each document, if it is one that the request asks for. An older one says nothing about the
// document now.
func (o *Ops) poisonMessages(ctx context.Context, r StartRequest) (map[string]reconcile.Episode, error) {
	asked, newest := map[string]bool{}, map[string]reconcile.Episode{}
	for _, id := range r.IDs {
		asked[id] = true
	}
	for at := ""; ; {
		page, next, err := o.p.Evidence.Episodes(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if last, there := newest[e.DocumentID]; (len(asked) == 0 || asked[e.DocumentID]) && (!there || e.After(last)) {
				newest[e.DocumentID] = e
			}
		}
		if at = next; at == "" {
			break
		}
	}
	maps.DeleteFunc(newest, func(_ string, e reconcile.Episode) bool {
		return e.At.Before(r.From) || (!r.To.IsZero() && !e.At.Before(r.To))
	})
	if r.Code == "" && r.ErrorKind == "" {
		return newest, nil
	}
	var mu sync.Mutex
	matching := map[string]reconcile.Episode{}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	for id, e := range newest {
		group.Go(func() error {
			f, err := o.pillError(reading, e)
			if err == nil && (r.ErrorKind == "" || f.Kind == r.ErrorKind) && (r.Code == "" || strings.EqualFold(f.Code, r.Code)) {
				mu.Lock()
				defer mu.Unlock()
				matching[id] = e
			}
			return err
		})
	}
	return matching, group.Wait()
}

// pillError reads the error of an episode; the zero value when there is none, or it is no JSON.
func (o *Ops) pillError(ctx context.Context, e reconcile.Episode) (f commit.PillError, err error) {
	content, err := o.p.Evidence.Read(ctx, e.Folder+"/"+commit.EvidenceError)
	if err != nil && !fault.Has(err, fault.Gone) {
		return f, err
	}
	if json.Unmarshal(content, &f) != nil {
		f = commit.PillError{}
	}
	return f, nil
}

// judge looks what became of documents. It ends when a run can name no more. named says that the request names them.
func (o *Ops) judge(ctx context.Context, p *poison, named bool, ids []string) error {
	for part := range slices.Chunk(ids, headsAtOnce) {
		if len(p.replay) >= maxRunIDs {
			p.more = true
			return nil
		}
		raws, _, err := o.p.Heads.Heads(ctx, part)
		if err != nil {
			return err
		}
		there := map[string]invoice.Document{}
		for _, raw := range raws {
			doc, err := invoice.Read(raw, o.o.Now())
			if err != nil {
				return err
			}
			there[doc.ID] = doc
		}
		for _, id := range part {
			doc, exists := there[id]
			why := "it is " + cmp.Or(doc.State.StatusFound, notOffered)
			switch {
			case !exists:
				p.gone = append(p.gone, id)
				continue
			case doc.SysName != o.o.SysName:
				why = fmt.Sprintf("it belongs to the environment %q", doc.SysName)
			case doc.State.Status == invoice.Failed:
				p.replay = append(p.replay, o.match(commit.PendingDocOf(doc.ID, doc.TS, doc.Main, doc.State)))
				continue
			}
			if p.counts.NotFailed++; named {
				p.notTaken = append(p.notTaken, NotTaken{id, why})
			}
		}
	}
	return nil
}

// restore puts the documents that do not exist back, as failed ones, so that the run replays them as any other. All evidence is read before
// the first is created. A document that came meanwhile wins. A dry run creates nothing.
func (o *Ops) restore(ctx context.Context, r StartRequest, p *poison) error {
	docs, matches := make([]json.RawMessage, len(p.gone)), make([]Match, len(p.gone))
	for i, id := range p.gone {
		var err error
		if docs[i], matches[i], err = o.original(ctx, id, p.newest[id]); err != nil {
			return err
		}
	}
	if !r.DryRun {
		if err := o.auditRestore(ctx, r.Why, p.gone); err != nil {
			return unaudited(err)
		}
	}
	var came []string
	for i, doc := range docs {
		if !r.DryRun {
			err := o.p.Creator.Submit(ctx, doc, false)
			switch {
			case fault.CodeOf(err) == documentExists:
				came = append(came, p.gone[i])
				continue
			case err != nil && !fault.IsDependency(err):
				err = refuse(Conflict, "id %q: it cannot be put back: %s", p.gone[i], errorText(err))
			}
			if err != nil {
				return putBack(err, p.counts.Restored)
			}
		}
		p.counts.Restored++
		p.replay = append(p.replay, matches[i])
	}
	p.gone = nil
	if err := o.judge(ctx, p, true, came); err != nil {
		return putBack(err, p.counts.Restored)
	}
	return nil
}

// documentExists is the code of DocumentCreator.Submit for a document that exists.
const documentExists = "409"

// original makes a document of its evidence, without what belongs to the container. Numbers keep their digits.
func (o *Ops) original(ctx context.Context, id string, e reconcile.Episode) (json.RawMessage, Match, error) {
	const file = commit.EvidenceOriginal
	content, err := o.p.Evidence.Read(ctx, e.Folder+"/"+file)
	if err != nil && !fault.Has(err, fault.Gone) {
		return nil, Match{}, err
	}
	var members map[string]json.RawMessage
	var found string
	if json.Unmarshal(content, &members) != nil || json.Unmarshal(members["id"], &found) != nil || found != id {
		return nil, Match{}, refuse(Conflict, "id %q: expected a document with this id in %s/%s, found %q", id, e.Folder, file, Truncate(found, MaxBy))
	}
	failed, err := o.pillError(ctx, e)
	if err != nil {
		return nil, Match{}, err
	}
	var state invoice.State
	if own, there := members["sql_writer"]; there && json.Unmarshal(own, &state) != nil {
		return nil, Match{}, refuse(Conflict, "id %q: expected an object sql_writer in %s/%s, found something else", id, e.Folder, file)
	}
	state = failed.Restored(state)
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return slices.Contains(systemMembers(), name) })
	var doc bytes.Buffer
	out := json.NewEncoder(&doc)
	out.SetEscapeHTML(false)
	if members["sql_writer"], err = state.MarshalJSON(); err == nil {
		err = out.Encode(members)
	}
	if err != nil {
		return nil, Match{}, fault.Wrap(fault.Internal, "ops: restore", "encode", "the document cannot be written as JSON", err)
	}
	return doc.Bytes(), o.match(commit.PendingDocOf(id, 0, 0, state)), nil
}

func (o *Ops) auditRestore(ctx context.Context, why string, ids []string) error {
	by, err := actor(ctx)
	if err != nil {
		return err
	}
	detail, err := json.Marshal(map[string]any{"documents": ids})
	if err != nil {
		return fault.Wrap(fault.Internal, "ops: restore", "encode", "the audit entry cannot be written as JSON", err)
	}
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Audit.Write(ctx, Audit{Action: DocumentRestore, By: by, Why: why, Detail: detail})
	})
}

// putBack says of an error that documents were put back before it.
func putBack(err error, documents int) error {
	if documents == 0 {
		return err
	}
	const says = "%d deleted documents were put back with status failed, and no run was started: repeat the command: %s"
	if e := fault.As(err); e != nil {
		wrapped := *e
		wrapped.Reason = fmt.Sprintf(says, documents, e.Reason)
		return &wrapped
	}
	return refuse(Conflict, says, documents, err)
}

// joinNotes joins those that are not empty.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// tellEvidence writes beside the evidence of each replayed document which run takes it: the first of them, up to the run's limit. The run has
// begun, so a failure is a note.
func (o *Ops) tellEvidence(ctx context.Context, id string, p *poison, limit int) (note string) {
	taken := p.replay
	if limit > 0 {
		taken = taken[:min(len(taken), limit)]
	}
	by, _ := actor(ctx) // the run began, so somebody asked
	file := EvidenceReplay{Run: id, At: o.in(o.o.Now()), By: by}
	var mu sync.Mutex
	var problems []string
	var group errgroup.Group
	group.SetLimit(filesAtOnce)
	for _, m := range taken {
		e := p.newest[m.ID]
		group.Go(func() error {
			if problem := o.tell(ctx, e, file); problem != "" {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, problem)
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails
	if len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf("%s could not be written beside the evidence of %d of %d documents: %s", replayedJSON, len(problems), len(taken), problems[0])
}

// tell writes the file beside an episode, and says what prevented it.
func (o *Ops) tell(ctx context.Context, e reconcile.Episode, file EvidenceReplay) (problem string) {
	files, err := o.p.Evidence.List(ctx, e.Folder)
	if err != nil {
		return errorText(err)
	}
	i := slices.IndexFunc(files, func(f EvidenceFile) bool { return f.Name == commit.EvidenceOriginal })
	if i < 0 {
		return e.Folder + " has no " + commit.EvidenceOriginal
	}
	place := o.p.Evidence.Place()
	sum := sha256.Sum256([]byte(place.Container + "\n" + place.Prefix + "/" + e.Folder + "/" + files[i].Name + "\n" + files[i].ETag))
	file.JobID = hex.EncodeToString(sum[:])
	content, err := json.MarshalIndent(file, "", "  ")
	if err == nil {
		err = o.p.Evidence.Put(ctx, e.Folder+"/"+replayedJSON, content)
	}
	if err != nil {
		return errorText(err)
	}
	return ""
}

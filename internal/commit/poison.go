package commit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxEscapedID bounds an escaped id in an evidence name. A longer one is cut and ends with the document's key.
const maxEscapedID = 600

// poison ends a document whose retries are spent, in the order of promise G7: evidence, failure mark on its lines, status.
// Each step may be repeated: evidence is stored once, and the mark is idempotent. done is false when the document changed
// meanwhile. The error is of dependency scope; the next try then repeats all steps.
func (p *pass) poison(ctx context.Context, cur invoice.Document, cause error) (done bool, err error) {
	switch {
	case p.c.o.Evidence == nil:
		return p.wait(ctx, cur, cause, maxBackoff, "there is no store for its evidence")
	case !p.c.breaker.MayPoison(ctx):
		return p.enough(ctx, cur, cause)
	}
	if cur.NeedsVersion { // a mark needs a version, and the next steps the document that has it
		kept, ok, err := p.keepVersion(ctx, cur)
		if err != nil || !ok {
			return true, err
		}
		if !sameContent(kept, cur) {
			return false, nil // the content changed meanwhile: the cause is not about it
		}
		cur = kept
	}
	raw, now, ok, err := p.original(ctx, cur)
	if err != nil || !ok {
		return true, err
	}
	if now.ETag != cur.ETag {
		return false, nil
	}
	pill := p.pill(cur, cause)
	if err := p.keep(ctx, pill, raw); err != nil {
		wait := maxBackoff
		if fault.IsDependency(err) {
			wait = aloneBackoff
		}
		return p.wait(ctx, cur, cause, wait, "its evidence cannot be kept: "+fault.CodeOf(err))
	}
	if !p.c.breaker.TakePoison(ctx, pill.folder) {
		return p.enough(ctx, cur, cause)
	}
	return p.mark(ctx, cur, cause, pill)
}

// enough puts a document off because of the bound per hour. It logs once an hour, not for each document.
func (p *pass) enough(ctx context.Context, cur invoice.Document, cause error) (bool, error) {
	if hour := p.c.o.Now().Unix() / 3600; p.c.capLogged.Swap(hour) != hour {
		p.c.o.Log.Error().Str("code", fault.CodeOf(cause)).Str("document", cur.ID).
			Msg("this hour's limit of poison pills is reached: this document, and others like it, stay retry_scheduled")
	}
	return p.put(ctx, cur, p.t.waits(cur.State, cause, maxBackoff), result{err: cause})
}

// wait puts a document off that would become a poison pill, and logs the reason. It counts no failure.
func (p *pass) wait(ctx context.Context, cur invoice.Document, cause error, wait time.Duration, why string) (bool, error) {
	p.c.o.Log.Error().Str("document", cur.ID).Str("kind", string(fault.KindOf(cause))).Str("code", fault.CodeOf(cause)).
		Str("why", why).Msg("its retries are spent, and it stays retry_scheduled")
	return p.put(ctx, cur, p.t.waits(cur.State, cause, wait), result{err: cause})
}

// original reads the document from the container, because the host rewrote the feed's snapshot. ok is false when the
// document is gone, and counted.
func (p *pass) original(ctx context.Context, cur invoice.Document) (raw json.RawMessage, now invoice.Document, ok bool, err error) {
	begin := p.c.o.Now()
	raw, err = p.c.docs.Read(ctx, cur.ID)
	p.countRead(p.c.o.Now().Sub(begin))
	if err == nil {
		now, err = invoice.Read(raw, p.c.o.Now())
	}
	switch {
	case err == nil:
		return raw, now, true, nil
	case fault.Has(err, fault.Gone):
		p.count(cur.ID, "gone", "")
	case fault.IsDependency(err):
		return nil, now, false, err
	default:
		p.leave(cur.ID, err)
	}
	return nil, now, false, nil
}

// pill is a poison pill's evidence without the document itself.
type pill struct {
	// folder is its EvidenceFolder.
	folder   string
	error    pillError
	metadata pillMetadata
}

// pillError is error.json.
type pillError struct {
	DocumentID string            `json:"document_id"`
	JobID      string            `json:"job_id,omitempty"`
	FailedAt   string            `json:"failed_at"`
	RetryCount int               `json:"retry_count"`
	Kind       string            `json:"last_error_kind"`
	Code       string            `json:"last_error_code"`
	LastError  string            `json:"last_error"`
	Attempts   []invoice.Attempt `json:"attempts"`
}

// pillMetadata is metadata.json.
type pillMetadata struct {
	Container      string  `json:"container"`
	DocumentID     string  `json:"document_id"`
	ETag           string  `json:"etag"`
	TS             int64   `json:"ts"`
	SysName        string  `json:"sys_name"`
	VersionUS      int64   `json:"version_us"`
	DocumentKey    string  `json:"document_key"`
	ContentHash    string  `json:"content_hash"`
	HashVersion    int     `json:"hash_version"`
	ReprocessCount int     `json:"reprocess_count"`
	Main           int64   `json:"main_detail_id,omitempty"`
	Duplicates     []int64 `json:"duplicate_detail_ids"`
	AppVersion     string  `json:"app_version"`
}

// pill collects the evidence of a document whose last failure is cause.
func (p *pass) pill(cur invoice.Document, cause error) pill {
	s := p.t.failed(cur.State, cause, "")
	return pill{
		folder: EvidenceFolder(cur, s.ReprocessCount),
		error: pillError{
			DocumentID: cur.ID, JobID: p.batch.BatchID, FailedAt: s.FailedAt, RetryCount: s.RetryCount,
			Kind: s.LastErrorKind, Code: s.LastErrorCode, LastError: s.LastError, Attempts: s.Attempts,
		},
		metadata: pillMetadata{
			Container: p.c.o.Container, DocumentID: cur.ID, ETag: cur.ETag, TS: cur.TS, SysName: cur.SysName,
			VersionUS: cur.Version.US, DocumentKey: cur.Version.Key, ContentHash: cur.Hash, HashVersion: invoice.HashVersion,
			ReprocessCount: s.ReprocessCount, Main: cur.Main, Duplicates: append([]int64{}, cur.Duplicates...),
			AppVersion: p.c.o.AppVersion,
		},
	}
}

// EvidenceFolder is the folder of a document's evidence. It is the same for the same content and the same number of resets.
func EvidenceFolder(d invoice.Document, reprocessCount int) string {
	main := "unknown"
	if d.Main > 0 {
		main = fmt.Sprint(d.Main)
	}
	return fmt.Sprintf("failed/%s/%s/%d-%s", main, escapeID(d), reprocessCount, d.Hash)
}

// escapeID makes a file name of an id: letters, digits and -_.~ stay, every other byte becomes %XX. An id that is too long
// ends with the document's key, so that no two share a name.
func escapeID(d invoice.Document) string {
	const plain = "-_.~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var b strings.Builder
	for i := range len(d.ID) {
		c := d.ID[i]
		if strings.IndexByte(plain, c) >= 0 && (c != '.' || i < len(d.ID)-1) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > maxEscapedID {
			return b.String()[:maxEscapedID] + "~" + d.Version.Key
		}
	}
	return b.String()
}

// keep stores the evidence. metadata.json comes last, so its presence proves that the evidence is complete. After a failure
// the store is not called again for the batch.
func (p *pass) keep(ctx context.Context, pill pill, raw json.RawMessage) error {
	const op = "commit: evidence"
	p.mu.Lock()
	down := p.evidenceDown
	p.mu.Unlock()
	if down {
		return fault.New(fault.Infrastructure, op, "evidence_down", "the store of evidence failed a moment ago")
	}
	errorJSON, err := json.MarshalIndent(pill.error, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, op, "encode", "error.json cannot be written", err)
	}
	metadata, err := json.MarshalIndent(pill.metadata, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, op, "encode", "metadata.json cannot be written", err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{"original.json", raw}, {"error.json", errorJSON}, {"metadata.json", metadata}} {
		if err := p.c.o.Evidence.Keep(ctx, pill.folder+"/"+file.name, file.content); err != nil {
			p.mu.Lock()
			p.evidenceDown = fault.IsDependency(err)
			p.mu.Unlock()
			return err
		}
	}
	return nil
}

// MarkOf makes the failure mark of a document's lines.
func MarkOf(d invoice.Document) Item {
	return Item{
		DocumentID: d.ID, Version: d.Version, SourceTS: d.TS, Hash: d.Hash, HashVersion: invoice.HashVersion, FailureMark: true,
		Main: d.Main, Duplicates: d.Duplicates,
	}
}

// mark writes AI-ERROR to the lines of a document whose evidence is stored, and records failed. When the lines have the
// document's content or newer content, it records that outcome instead.
func (p *pass) mark(ctx context.Context, cur invoice.Document, cause error, pill pill) (bool, error) {
	finalError := cur.Unmarkable(p.c.o.Now())
	if finalError == "" {
		outcomes, err := p.request(ctx, []Item{MarkOf(cur)}, contentionTries)
		if err == nil && len(outcomes) != 1 {
			err = fault.New(fault.Internal, "commit: mark", "outcome_count", "%d outcomes for one mark", len(outcomes))
		}
		if err == nil {
			err = outcomes[0].Refused
		}
		switch {
		case fault.Has(err, fault.OthersAnswered):
			if !p.c.breaker.FailedAlone(ctx, cur.ID, err) {
				return true, err
			}
			return p.wait(ctx, cur, cause, aloneBackoff, "its mark fails like an outage while others are answered: "+fault.CodeOf(err))
		case fault.IsDependency(err):
			return true, err
		case err != nil && fault.KindOf(blameAlone(err)) == fault.Contention:
			return p.wait(ctx, cur, cause, aloneBackoff, "its mark lost every race: "+fault.CodeOf(err))
		case err != nil:
			finalError = fmt.Sprintf("MANUAL REVIEW: AI-ERROR could not be set for lines %s: %s", lines(cur), sentence(err))
		default:
			if out := outcomes[0]; out.Verdict == Unchanged || out.Verdict == Superseded {
				return p.notPoison(ctx, cur, result{outcome: out})
			} else if missing := out.Missing(); len(missing) > 0 {
				finalError = "AI-ERROR could not be set where there is no row in IVCE_DTL: lines " + idList(missing)
			}
		}
	} else {
		finalError = "no line was marked: " + finalError
	}
	event := p.c.o.Log.Error().Str("document", cur.ID).Str("evidence", pill.folder).
		Str("kind", string(fault.KindOf(cause))).Str("code", fault.CodeOf(cause))
	if strings.HasPrefix(finalError, "MANUAL REVIEW") {
		event.Int64("main_detail_id", cur.Main).Ints64("duplicate_detail_ids", cur.Duplicates).
			Msg("MANUAL REVIEW: a poison pill whose lines could not be marked AI-ERROR")
	} else {
		event.Bool("marked", finalError == "").Msg("poison pill: its evidence is kept")
	}
	return p.put(ctx, cur, p.t.failed(cur.State, cause, finalError), result{err: cause})
}

// notPoison records the outcome of a document whose lines have its content, or newer content, instead of a mark.
func (p *pass) notPoison(ctx context.Context, cur invoice.Document, res result) (bool, error) {
	if supersededByItself(res) {
		return false, nil
	}
	return p.put(ctx, cur, p.t.committed(cur.State, res.outcome), res)
}

// lines lists a document's lines in a text.
func lines(d invoice.Document) string {
	return idList(append([]int64{d.Main}, d.Duplicates...))
}

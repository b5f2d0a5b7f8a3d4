package commit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxEscapedID bounds an escaped id in an evidence name. A longer one is cut and ends with the document's key.
const maxEscapedID = 600

// poisoner is the seventh stage: it ends documents whose retries are spent, in the order of promise G7: evidence,
// failure mark on their lines, status. Each step may be repeated: evidence is stored once, and the mark is idempotent.
type poisoner struct {
	requester   *requester
	reader      invoice.Reader
	docs        Documents
	patcher     patcher
	transitions transitions
	breaker     *breaker.Breaker
	evidence    Evidence
	// container, appVersion, runID and invocationID go into the evidence.
	container, appVersion, runID, invocationID string
	// capLogged is the last hour in which the bound on poison messages was logged.
	capLogged *atomic.Int64
	// evidenceDown is true after the evidence store failed for this batch. It is then not called for every document.
	evidenceDown atomic.Bool
	parallel     int
	now          func() time.Time
	tally        *tally
}

// poison stores the evidence and marks the lines of documents whose retries are spent, and gives them the state to
// record. The error is of dependency scope; the next try then repeats all steps.
func (p *poisoner) poison(ctx context.Context, works []inflight) error {
	return each(works, p.parallel, func(w *inflight) bool { return w.step == spent }, func(w *inflight) error {
		defer guard(p.tally, w)
		return p.end(ctx, w)
	})
}

func (p *poisoner) end(ctx context.Context, w *inflight) error {
	switch {
	case p.evidence == nil:
		p.wait(w, maxBackoff, "there is no store for its evidence")
		return nil
	case fault.CodeOf(w.cause) == CodeIDTwice: // marks and evidence name a document by its id
		p.wait(w, maxBackoff, CodeIDTwice)
		return nil
	case !p.breaker.MayPoison(ctx):
		p.enough(w)
		return nil
	}
	if w.doc.NeedsVersion { // a mark needs a version
		if err := p.patcher.version(ctx, w, p.transitions); err != nil || w.step != spent {
			return err
		}
	}
	raw, err := p.original(ctx, w)
	if err != nil || w.step != spent {
		return err
	}
	found := p.collect(w.doc, w.cause)
	if err := p.keep(ctx, found, raw); err != nil {
		wait := maxBackoff
		if fault.IsDependency(err) {
			wait = aloneBackoff
		}
		p.wait(w, wait, "its evidence cannot be kept: "+fault.CodeOf(err))
		return nil
	}
	switch taken, err := p.breaker.TakePoison(ctx, found.folder, w.proven); {
	case err != nil:
		p.wait(w, aloneBackoff, "it cannot be counted: "+fault.CodeOf(err))
		return nil
	case !taken:
		p.enough(w)
		return nil
	}
	return p.mark(ctx, w, found)
}

// enough puts a document off because of a bound. It logs that of an hour once an hour, not for each document.
func (p *poisoner) enough(w *inflight) {
	if hour := p.now().Unix() / 3600; w.proven && p.capLogged.Swap(hour) != hour {
		p.tally.log.Write(events.PoisonLimit, events.Fields{Document: w.doc.ID}.Of(w.cause))
	}
	w.step, w.next = recordable, p.transitions.stateWaiting(w.doc.State, w.cause, maxBackoff)
}

// wait puts a document off that would become a poison message, and logs the reason. It counts no failure. An hour is
// not cut short by what others write: the reason is none of theirs.
func (p *poisoner) wait(w *inflight, d time.Duration, why string) {
	f := events.Fields{Document: w.doc.ID}.Of(w.cause)
	f.Reason = why
	p.tally.log.Write(events.PoisonWaits, f)
	w.step, w.next = recordable, p.transitions.stateWaiting(w.doc.State, w.cause, d)
	w.next.Postponed = w.next.Postponed && d < maxBackoff
	// the record raises _ts: another try has this folder
	w.next.FirstFailedAt = invoice.Stamp(p.began(w.doc), p.transitions.loc)
}

// original reads the document from the container, because the host rewrote the feed's snapshot.
func (p *poisoner) original(ctx context.Context, w *inflight) (json.RawMessage, error) {
	now, err := reread(ctx, p.reader, p.docs, w.doc, p.now())
	switch {
	case err == nil:
		if now.ETag != w.doc.ETag {
			w.step = changed
		}
		return now.JSON(), nil
	case fault.IsDependency(err):
		return nil, err
	case fault.Has(err, fault.Gone):
		p.tally.count(w.doc.ID, invoice.OutcomeGone, "")
	default:
		p.tally.leave(w.doc, err)
	}
	w.step = finished
	return nil, nil
}

// evidence is a poison message's evidence without the document itself.
type evidence struct {
	// folder is its EvidenceFolder.
	folder   string
	error    PoisonError
	metadata PoisonMetadata
}

// PoisonError is error.json: why a document became a poison message.
type PoisonError struct {
	DocumentID string `json:"document_id"`
	// RunID or InvocationID made the last try.
	RunID        string `json:"run_id,omitempty"`
	InvocationID string `json:"invocation_id,omitempty"`

	FailedAt   string            `json:"failed_at"`
	RetryCount int               `json:"retry_count"`
	Kind       string            `json:"last_error_kind"`
	Code       string            `json:"last_error_code"`
	LastError  string            `json:"last_error"`
	Attempts   []invoice.Attempt `json:"attempts"`
}

// PoisonMetadata is metadata.json: which snapshot of a document became a poison message.
type PoisonMetadata struct {
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

// collect makes the evidence of a document whose last failure is cause.
func (p *poisoner) collect(cur invoice.Snapshot, cause error) evidence {
	s := p.transitions.failed(cur.State, cause, "")
	return evidence{
		folder: EvidenceFolder(cur.Document, p.began(cur)),
		error: PoisonError{
			DocumentID: cur.ID, RunID: p.runID, InvocationID: p.invocationID, FailedAt: s.FailedAt,
			RetryCount: s.RetryCount,
			Kind:       s.LastErrorKind, Code: s.LastErrorCode, LastError: s.LastError, Attempts: s.Attempts,
		},
		metadata: PoisonMetadata{
			Container: p.container, DocumentID: cur.ID, ETag: cur.ETag, TS: cur.TS, SysName: cur.SysName,
			VersionUS: cur.Version.US, DocumentKey: cur.Version.Key, ContentHash: cur.Hash,
			HashVersion:    cur.Mapping.Version(),
			ReprocessCount: s.ReprocessCount, Main: cur.Main, Duplicates: append([]int64{}, cur.Duplicates...),
			AppVersion: p.appVersion,
		},
	}
}

// began is when a document began to fail. Where nobody knows, because somebody changed it by hand, it is the snapshot's
// time.
func (p *poisoner) began(cur invoice.Snapshot) time.Time {
	if at, known := p.transitions.firstFailure(p.transitions.begin(cur.State)); known {
		return at
	}
	return time.Unix(cur.TS, 0)
}

// EvidenceFolder is the folder of the evidence of a document that began to fail at a time. A step that is repeated has
// the same folder; a document that fails again has another one, also with the same content.
func EvidenceFolder(d invoice.Document, began time.Time) string {
	return evidenceParent(d) + "/" + began.UTC().Format(evidenceTime) + "-" + d.Hash
}

// evidenceTime is the layout of a time in the name of a folder. Such names are in the order of their times.
const evidenceTime = "20060102T150405.000000Z"

// evidenceParent has the folders of a document's evidence.
func evidenceParent(d invoice.Document) string {
	main := unknownMain
	if d.Main > 0 {
		main = fmt.Sprint(d.Main)
	}
	return EvidenceRoot + "/" + main + "/" + escapeID(d)
}

// escapeID makes a file name of an id: letters, digits and -_.~ stay, every other byte becomes %XX. An id that is too
// long ends with the document's key, so that no two share a name.
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

// keep stores the evidence. metadata.json comes last, so its presence proves that the evidence is complete. After a
// failure the store is not called again for the batch.
func (p *poisoner) keep(ctx context.Context, e evidence, raw json.RawMessage) error {
	const op = "commit: evidence"
	if p.evidenceDown.Load() {
		return fault.New(fault.Infrastructure, op, "evidence_down", "the store of evidence failed a moment ago")
	}
	errorJSON, err := json.MarshalIndent(e.error, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, op, fault.CodeBug, "error.json cannot be written", err)
	}
	metadata, err := json.MarshalIndent(e.metadata, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, op, fault.CodeBug, "metadata.json cannot be written", err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{EvidenceOriginal, raw}, {EvidenceError, errorJSON}, {EvidenceMetadata, metadata}} {
		if err := p.evidence.Keep(ctx, e.folder+"/"+file.name, file.content); err != nil {
			p.evidenceDown.Store(fault.IsDependency(err))
			return err
		}
	}
	return nil
}

// MarkOf makes the failure mark of a document's lines.
func MarkOf(d invoice.Document) Item {
	return Item{
		DocumentID: d.ID, Version: d.Version, SourceTS: d.TS, Hash: d.Hash,
		HashVersion: d.Mapping.Version(), FailureMark: true,
		Main: d.Main, Duplicates: d.Duplicates,
	}
}

// mark writes AI-ERROR to the lines of a document whose evidence is stored, and gives it the state failed. When the
// lines have the document's content or newer content, it gets that outcome instead.
func (p *poisoner) mark(ctx context.Context, w *inflight, e evidence) error {
	cur, cause := w.doc, w.cause
	finalError := cur.Unmarkable(p.now())
	if finalError == "" {
		outcomes, err := p.requester.request(ctx, []Item{MarkOf(cur.Document)}, contentionTries)
		p.breaker.Confirm(ctx, err)
		if err == nil && len(outcomes) != 1 {
			err = fault.New(fault.Internal, "commit: mark", fault.CodeBug, "%d outcomes for one mark", len(outcomes))
		}
		if err == nil {
			err = outcomes[0].Refused
		}
		switch {
		case fault.Has(err, fault.OthersAnswered) && p.breaker.FailedAlone(ctx, cur.ID, err):
			p.wait(w, aloneBackoff, "its mark fails like an outage while others are answered: "+fault.CodeOf(err))
			return nil
		case fault.IsDependency(err):
			return err
		case err != nil && fault.KindOf(blameAlone(err)) == fault.Contention:
			p.wait(w, aloneBackoff, "its mark lost every race: "+fault.CodeOf(err))
			return nil
		case err != nil:
			finalError = fmt.Sprintf("MANUAL REVIEW: AI-ERROR could not be set for lines %s: %s",
				lines(cur), sentence(err))
		default:
			if out := outcomes[0]; out.Verdict == invoice.OutcomeUnchanged || out.Verdict == invoice.OutcomeSuperseded {
				p.notPoison(w, result{outcome: out})
				return nil
			}
			finalError = outcomes[0].whyUnmarked()
		}
	} else {
		finalError = "no line was marked: " + finalError
	}
	f := events.Fields{Document: cur.ID, Line: cur.Main, Evidence: e.folder}.Of(cause)
	if strings.HasPrefix(finalError, "MANUAL REVIEW") {
		f.Duplicates = cur.Duplicates
		p.tally.log.Write(events.PoisonUnmarked, f)
	} else {
		f.Marked = finalError == ""
		p.tally.log.Write(events.PoisonKept, f)
	}
	w.step, w.next = recordable, p.transitions.failed(cur.State, cause, finalError)
	return nil
}

// notPoison gives a document the outcome of its mark, because its lines have its content, or newer content.
func (p *poisoner) notPoison(w *inflight, res result) {
	if supersededByItself(res) {
		w.step = changed
		return
	}
	w.result, w.cause = res, nil
	w.step, w.next = recordable, p.transitions.committed(w.doc.State, res.outcome)
}

// lines lists a document's lines in a text.
func lines(d invoice.Snapshot) string {
	return idList(append([]int64{d.Main}, d.Duplicates...))
}

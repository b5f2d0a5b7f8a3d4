package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
)

// The properties in which Service Bus says why a message is a dead letter.
const (
	propReason      = "DeadLetterReason"
	propDescription = "DeadLetterErrorDescription"
)

// DeadLetters stores unusable messages as evidence and fails their batch or run: the functions BatchDeadLetter and
// RunDeadLetter. It is safe for concurrent use.
type DeadLetters struct {
	rejecter
	kind MessageKind
}

// NewBatchDeadLetters handles the dead letters of the batch queue.
func NewBatchDeadLetters(p Ports, o Options) *DeadLetters {
	return &DeadLetters{rejecter{base{p, o.withDefaults()}, "batches"}, BatchMessage}
}

// NewRunDeadLetters handles the dead letters of the run queue.
func NewRunDeadLetters(p Ports, o Options) *DeadLetters {
	return &DeadLetters{rejecter{base{p, o.withDefaults()}, "runs"}, RunMessage}
}

// Receive handles one dead letter: first the evidence, then the state of its batch or run, then the audit log. A batch
// or run that has ended, or has a live owner, is not changed. Receive is idempotent. While the evidence store or SQL is
// away it holds the message, because an abandoned one would return at once without end. Errors by kind: infrastructure,
// throttled, quota, contention.
func (l *DeadLetters) Receive(ctx context.Context, in Incoming) (Handled, error) {
	given := cmp.Or(in.Properties[propReason], "no reason given")
	if more := in.Properties[propDescription]; more != "" {
		given += ": " + more
	}
	p, err := ReadPayload(in.Body, l.kind)
	if err == nil {
		err = l.checkEnvironment(p)
	}
	ours := ""
	if err != nil {
		ours = " (" + reasonOf(err) + ")"
	}
	return l.deadLetter(ctx, in, p, err,
		deadLetterReason{
			prefix: "dead letter: ", line: fault.TruncateLine(given, fault.MaxForeign) + ours, full: given + ours,
		})
}

// deadLetterReason says why a message is a dead letter.
type deadLetterReason struct {
	// line is one short line for logs, replies, the audit log and the batch's or run's error. The last two have the
	// prefix.
	prefix, line string
	// full is for the evidence only. The sender of the dead letter wrote it, and its length is not bounded.
	full string
}

// rejecter handles invalid messages.
type rejecter struct {
	base
	queue string
}

// reject treats an invalid message as a dead letter at once, and not after ten deliveries.
func (r rejecter) reject(ctx context.Context, in Incoming, p Payload, cause error) (Handled, error) {
	return r.deadLetter(ctx, in, p, cause, deadLetterReason{line: reasonOf(cause), full: reasonOf(cause)})
}

// deadLetter stores the evidence, changes the state and writes the audit log. invalid is the error that makes the
// payload unusable; nil when it is usable.
func (r rejecter) deadLetter(
	ctx context.Context, in Incoming, p Payload, invalid error, why deadLetterReason,
) (Handled, error) {
	if invalid != nil {
		p = Payload{Kind: p.Kind} // what it claims is not trusted
	}
	done := Handled{
		Did: "dead_lettered", Run: p.RunID, Batch: p.BatchID, Reason: why.line,
		Foreign: fault.CodeOf(invalid) == codeEnvironment,
	}
	folder := r.folder(in)
	err := r.retryUntil(ctx, func(ctx context.Context) error { return r.keepEvidence(ctx, folder, in, why.full) })
	if err != nil {
		return Handled{Did: "held", Run: p.RunID, Batch: p.BatchID, Reason: "its evidence cannot be stored"}, err
	}
	changed := false
	err = r.retryUntil(ctx, func(ctx context.Context) (err error) {
		changed, err = r.updateState(ctx, in, p, why.prefix+why.line, folder)
		return err
	})
	if err != nil {
		return Handled{Did: "held", Run: p.RunID, Batch: p.BatchID, Reason: "its state cannot be recorded"}, err
	}
	r.log(ctx).Write(events.MessageDeadLettered,
		events.Fields{Run: p.RunID, Batch: p.BatchID, Evidence: folder, Changed: changed, Reason: why.line})
	return done, nil
}

// messageEvidence is the file message.json.
type messageEvidence struct {
	Queue         string            `json:"queue"`
	MessageID     string            `json:"message_id"`
	DeliveryCount int               `json:"delivery_count,omitempty"`
	EnqueuedAt    time.Time         `json:"enqueued_at,omitzero"`
	Reason        string            `json:"reason"`
	Properties    map[string]string `json:"properties,omitempty"`
	BodyBytes     int               `json:"body_bytes"`
	// BodyNote says how the stored body may differ from the one that was sent.
	BodyNote string `json:"body_note,omitempty"`
}

// The host decodes a body as UTF-8 before it calls the app.
const bodyReplaced = "the host replaced bytes that are not UTF-8 before the app received them"

// bodyNote recognises replaced bytes by U+FFFD. A sender's own U+FFFD looks the same.
func bodyNote(body []byte) string {
	if bytes.Contains(body, []byte("\ufffd")) {
		return bodyReplaced
	}
	return ""
}

// keepEvidence stores the body and message.json.
func (r rejecter) keepEvidence(ctx context.Context, folder string, in Incoming, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.p.Evidence.Keep(ctx, folder+"/body", in.Body); err != nil {
		return err
	}
	about, err := json.MarshalIndent(messageEvidence{
		r.queue, in.ID, in.Count, in.EnqueuedAt, reason, in.Properties, len(in.Body), bodyNote(in.Body),
	}, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, "run: evidence", fault.CodeBug, "the evidence cannot be written as JSON", err)
	}
	return r.p.Evidence.Keep(ctx, folder+"/message.json", about)
}

// updateState fails the batch or the run, if the message is still its current one, and writes the audit log.
func (r rejecter) updateState(
	ctx context.Context, in Incoming, p Payload, why, folder string,
) (changed bool, err error) {
	audit := Audit{
		Action: CodeDeadLetter, Level: LevelError, By: r.queue, Why: why, Run: p.RunID, Batch: p.BatchID,
		Detail: detail(
			map[string]any{
				"message_id": fault.Truncate(in.ID, fault.MaxForeign), "delivery_count": in.Count, "evidence": folder,
			}),
	}
	err = r.withStore(ctx, func(ctx context.Context) error {
		changed = false
		switch {
		case p.BatchID != "":
			changed, err = r.endBatch(ctx, p, why, audit)
		case p.RunID != "":
			changed, err = r.endRun(ctx, p, why, audit)
		}
		if err != nil || changed {
			return err
		}
		nothing := audit // a copy: a retry after a lost race may still change something
		nothing.Level = LevelWarn
		return r.p.Store.Write(ctx, nothing)
	})
	return changed, err
}

// endBatch fails the batch, unless a later message of it is on its way.
func (r rejecter) endBatch(ctx context.Context, p Payload, why string, audit Audit) (bool, error) {
	return r.p.Store.DeadLetter(ctx, p.BatchID, p.BatchAttempt, why, r.staleAfter(ctx, workerStale), audit)
}

// endRun fails the run, unless a later manager had it.
func (r rejecter) endRun(ctx context.Context, p Payload, why string, audit Audit) (bool, error) {
	row, ok, err := r.p.Store.Run(ctx, p.RunID)
	if err != nil || !ok || row.SysName != r.o.SysName || outdated(row, p) {
		return false, err
	}
	return r.p.Store.FailRun(ctx, p.RunID, why, r.staleAfter(ctx, ManagerStale), audit)
}

// folder names the evidence of a message. A repeated delivery gets the same name.
func (r rejecter) folder(in Incoming) string {
	sum := sha256.Sum256(append([]byte(in.ID+"\n"), in.Body...))
	day := "undated"
	if !in.EnqueuedAt.IsZero() {
		day = in.EnqueuedAt.UTC().Format(time.DateOnly)
	}
	const digits = 16
	return "dead-letters/" + r.queue + "/" + day + "/" + safeName(in.ID) + "-" + hex.EncodeToString(sum[:])[:digits]
}

// safeName replaces characters that are not safe in a blob's name.
func safeName(id string) string {
	const most = 100
	id = strings.Map(func(c rune) rune {
		if (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, id)
	if len(id) > most {
		id = id[:most]
	}
	return cmp.Or(id, "no-id")
}

// reasonOf returns the reason of a classified error.
func reasonOf(err error) string {
	if e := fault.As(err); e != nil {
		return e.Reason
	}
	return "it cannot be read"
}

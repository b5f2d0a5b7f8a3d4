package run

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sqlwriter/internal/fault"
)

// MessageVersion is the version of the messages that this build writes. It reads this and all older versions. Within a
// version, members are only added.
const MessageVersion = 1

// maxMessageLayers bounds how many JSON strings and base64 layers may wrap a message.
const maxMessageLayers = 4

// MessageKind is the subject of a message: a run or a batch.
type MessageKind string

// The kinds.
const (
	RunMessage   MessageKind = "run"
	BatchMessage MessageKind = "batch"
)

// Payload is the body of a message. It names a row and repeats nothing of it. The host copies a body's members over the
// trigger's metadata, whatever their case. So no name here may equal one of those: not message_id, delivery_count or
// sys (docs/facts.md F11).
type Payload struct {
	Version int         `json:"message_version"`
	Kind    MessageKind `json:"message_kind"`
	SysName string      `json:"sys_name"`
	RunID   string      `json:"run_id"`
	// BatchID and BatchAttempt are set in a BatchMessage only.
	BatchID      string `json:"batch_id,omitempty"`
	BatchAttempt int    `json:"batch_attempt,omitempty"`
	// Epoch is that of the owner that released the batch or run and deferred the message. A claim that shows the row's
	// epoch succeeds at once and counts no lost owner. A run's first message shows the epoch of the run without an
	// owner.
	Epoch int `json:"owner_epoch,omitempty"`
	// Deferral counts the deferrals; FirstDeferredAt is the time of the first in epoch seconds.
	Deferral        int   `json:"deferral,omitempty"`
	FirstDeferredAt int64 `json:"first_deferred_at,omitempty"`
}

// ID is the message id. Every wanted repetition has an id of its own, so that duplicate detection drops only the
// others.
func (p Payload) ID() string {
	if p.Kind == RunMessage {
		return fmt.Sprintf("%s:%d:%d", p.RunID, p.Epoch, p.Deferral)
	}
	return fmt.Sprintf("%s:%d:%d:%d", p.BatchID, p.BatchAttempt, p.Epoch, p.Deferral)
}

// Outgoing encodes the payload as a message.
func (p Payload) Outgoing(delay time.Duration) Outgoing {
	p.Version = MessageVersion
	body, err := json.Marshal(p)
	if err != nil {
		panic("run: a payload of texts and numbers cannot be written as JSON: " + err.Error())
	}
	return Outgoing{ID: p.ID(), Body: body, Delay: delay}
}

// nextDeferral returns the payload of the deferred message.
func (p Payload) nextDeferral(now time.Time) Payload {
	if p.Deferral++; p.FirstDeferredAt == 0 {
		p.FirstDeferredAt = now.Unix()
	}
	return p
}

func (p Payload) ticket() Ticket { return Ticket{Attempt: p.BatchAttempt, Epoch: p.Epoch} }

func batchPayload(sysName string, batch Batch) Payload {
	return Payload{
		Kind: BatchMessage, SysName: sysName, RunID: batch.Run, BatchID: batch.ID, BatchAttempt: batch.Attempt,
	}
}

// RunPayload is the payload of a run's message. It never shows the epoch of a live owner, which has not released the
// run.
func RunPayload(r Run) Payload { //nolint:revive // a batch has its own
	p := Payload{Kind: RunMessage, SysName: r.SysName, RunID: r.ID, Epoch: r.Epoch}
	if r.Owner != "" {
		p.Epoch--
	}
	return p
}

const opMessage = "run: message"

// ReadPayload decodes a body: JSON or base64 of JSON, each possibly inside JSON strings, as portals and other queues
// wrap them. Errors by kind: document, with what was expected and found but no content; codes "too_large", "not_json",
// "version", "kind", "member".
func ReadPayload(body []byte, want MessageKind) (Payload, error) {
	if len(body) > MaxBody {
		return Payload{}, invalidMessage("too_large", "body: expected at most %d bytes, found %d", MaxBody, len(body))
	}
	object, err := unwrapPayload(body)
	if err != nil {
		return Payload{}, err
	}
	var head struct {
		Version *int `json:"message_version"`
	}
	if err := json.Unmarshal(object, &head); err != nil || head.Version == nil {
		return Payload{}, invalidMessage("version", "message_version: expected a whole number, found none")
	}
	if *head.Version < 1 || *head.Version > MessageVersion {
		return Payload{},
			invalidMessage("version", "message_version: expected 1 to %d, found %d: a newer build may have written it",
				MessageVersion, *head.Version)
	}
	var p Payload
	if err := json.Unmarshal(object, &p); err != nil {
		return Payload{}, invalidMessage("member", "%s", memberProblem(err))
	}
	return p, p.check(want)
}

// check refuses a payload that no build writes.
func (p Payload) check(want MessageKind) error {
	switch {
	case p.Kind != want:
		return invalidMessage("kind", "message_kind: expected %q, found %q", want,
			fault.Truncate(string(p.Kind), fault.MaxForeign))
	case p.SysName == "":
		return invalidMessage("member", "sys_name: expected a text, found none")
	case !IsRunID(p.RunID):
		return invalidMessage("member",
			"run_id: expected 1 to %d visible ASCII characters, found %d bytes", MaxRunID, len(p.RunID))
	case want == BatchMessage && !isHash(p.BatchID):
		return invalidMessage("member", "batch_id: expected 64 lower-case hex digits, found %d bytes", len(p.BatchID))
	case p.Deferral < 0 || p.BatchAttempt < 0 || p.Epoch < 0 || p.FirstDeferredAt < 0:
		return invalidMessage("member",
			"deferral, batch_attempt, owner_epoch, first_deferred_at: expected none below 0")
	}
	return nil
}

// unwrapPayload removes layers until it finds a JSON object.
func unwrapPayload(body []byte) ([]byte, error) {
	text := body
	for range maxMessageLayers {
		text = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("\ufeff")))
		switch {
		case len(text) == 0:
			return nil, invalidMessage("not_json", "body: expected a JSON object, found nothing")
		case text[0] == '{':
			if !json.Valid(text) {
				return nil,
					invalidMessage("not_json",
						"body: expected a JSON object, found %d bytes that begin like one and are not valid", len(text))
			}
			return text, nil
		case text[0] == '"':
			var inner string
			if json.Unmarshal(text, &inner) != nil {
				return nil, invalidMessage("not_json", "body: expected a JSON object, found a string that does not end")
			}
			text = []byte(inner)
		default:
			decoded, ok := fromBase64(text)
			if !ok {
				return nil,
					invalidMessage("not_json",
						"body: expected a JSON object or base64 of one, found %s", describe(text))
			}
			text = decoded
		}
	}
	return nil,
		invalidMessage("not_json",
			"body: expected a JSON object, found more than %d layers of strings", maxMessageLayers)
}

func fromBase64(text []byte) ([]byte, bool) {
	const shortest = 8 // "null" and "true" are base64, too
	if len(text) < shortest {
		return nil, false
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
		if decoded, err := encoding.DecodeString(string(text)); err == nil {
			return decoded, true
		}
	}
	return nil, false
}

// describe names what a body is, without repeating it.
func describe(text []byte) string {
	switch {
	case !utf8.Valid(text):
		return fmt.Sprintf("%d bytes that are not text", len(text))
	case json.Valid(text) && text[0] == '[':
		return "a JSON array"
	case json.Valid(text):
		return "a JSON value that is not an object"
	}
	return fmt.Sprintf("a text of %d bytes that is not JSON", len(text))
}

// memberProblem names the member of the wrong type.
func memberProblem(err error) string {
	var e *json.UnmarshalTypeError
	if errors.As(err, &e) {
		kind, _, _ := strings.Cut(e.Value, " ") // the number itself follows
		return fmt.Sprintf("%s: expected a %s, found a %s", e.Field, e.Type, fault.Truncate(kind, fault.MaxForeign))
	}
	return "a member: expected another type"
}

func invalidMessage(code, format string, args ...any) error {
	return fault.New(fault.Document, opMessage, code, format, args...)
}

// isHash accepts a lower-case hex SHA-256.
func isHash(id string) bool {
	const length = 64
	if len(id) != length {
		return false
	}
	for i := range len(id) {
		if (id[i] < '0' || id[i] > '9') && (id[i] < 'a' || id[i] > 'f') {
			return false
		}
	}
	return true
}

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/run"
)

// Receiver handles one message of a queue. After an error the host abandons the message, which comes again at once
// until the queue's delivery limit dead-letters it. The receiver must therefore do the waiting.
type Receiver interface {
	Receive(ctx context.Context, d run.Incoming) (run.Handled, error)
}

// queueFunction makes a function on a queue. Every error fails the invocation, because only the queue can deliver the
// message again.
func queueFunction(name string, r Receiver) Mounted {
	return Mounted{
		Name: name, Binding: "message", Payload: Message, Event: events.MessageDone,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			d := in.Message
			d.Invocation = in.ID
			handled, err := r.Receive(ctx, d)
			return Reply{Logs: []string{handledSummary(handled)}, Fields: events.Fields{
				Run: handled.Run, Batch: handled.Batch, Did: handled.Did, Reason: handled.Reason,
				Counts: handled.Counts, DeliveryCount: d.Count,
			}}, err
		},
	}
}

// handledSummary is the result of a message in one line, for the invocation's log.
func handledSummary(h run.Handled) string {
	parts := []string{"message"}
	for _, about := range []struct{ name, value string }{{"run", h.Run}, {"batch", h.Batch}} {
		if about.value != "" {
			parts = append(parts, about.name+" "+about.value)
		}
	}
	text := strings.Join(parts, ", ") + ": " + h.Did
	if h.Did == "" {
		text = strings.Join(parts, ", ") + ": nothing done"
	}
	if h.Reason != "" {
		text += " (" + h.Reason + ")"
	}
	for _, name := range slices.Sorted(maps.Keys(h.Counts)) {
		text += fmt.Sprintf("; %d %s", h.Counts[name], name)
	}
	return text
}

// hostLayers is the number of string layers around a message's text: a string literal in a member of a JSON object
// (docs/facts.md F10).
const hostLayers = 2

// messageBody removes the host's layers and no more: the body itself may be a string literal. A text that is not a
// literal is the body, and so is an object, an array or a number.
//
// A missing value or null is an empty body, not an error: the receiver reports it. A dead letter that could not be
// decoded would come back for ever.
func messageBody(value []byte) []byte {
	value = bytes.TrimSpace(value)
	if string(value) == "null" {
		return nil
	}
	for range hostLayers {
		text, ok := literal(value)
		if !ok {
			break
		}
		value = text
	}
	return bytes.Clone(value)
}

// literal returns the text of a string literal; false if the value is not exactly one.
func literal(value []byte) ([]byte, bool) {
	const quotes = 2
	if len(value) < quotes || value[0] != '"' || value[len(value)-1] != '"' {
		return nil, false
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return nil, false
	}
	return []byte(text), true
}

// messageOf makes an Incoming from a message and its metadata. Missing or invalid metadata stays empty: the work does
// not depend on it, and members of the body may have overwritten it (docs/facts.md F11).
func messageOf(value, metadata []byte) run.Incoming {
	d := run.Incoming{Body: messageBody(value)}
	var m map[string]json.RawMessage
	if json.Unmarshal(metadata, &m) != nil {
		return d
	}
	d.ID = text(m["MessageId"])
	if n, err := strconv.Atoi(text(m["DeliveryCount"])); err == nil && n > 0 {
		d.Count = n
	}
	d.EnqueuedAt = firstTime(m["EnqueuedTimeUtc"], m["EnqueuedTime"])
	if d.Properties = properties(m["ApplicationProperties"]); d.Properties == nil {
		d.Properties = properties(m["UserProperties"])
	}
	return d
}

// text returns a scalar of the metadata without the host's layers; "" for any other value.
func text(value []byte) string {
	for range hostLayers {
		inner, ok := literal(value)
		if !ok {
			break
		}
		value = inner
	}
	if len(value) > 0 && bytes.IndexByte([]byte("{["), value[0]) >= 0 || string(value) == "null" {
		return ""
	}
	return string(value)
}

// firstTime returns the first readable time, in UTC. The host omits the zone of UTC times.
func firstTime(values ...json.RawMessage) time.Time {
	for _, v := range values {
		// Parse accepts fractions of a second with both
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
			if at, err := time.Parse(layout, text(v)); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// properties returns the members of an object as texts: strings unchanged, other values as JSON. It is nil if the value
// is not an object.
func properties(value []byte) map[string]string {
	object, err := unwrap(bytes.Clone(value), Object, "Metadata.ApplicationProperties")
	if err != nil {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	texts := make(map[string]string, len(members))
	for name, v := range members {
		plain, isText := literal(v)
		switch {
		case isText:
			texts[name] = string(plain)
		case string(v) == "null":
			texts[name] = ""
		default:
			texts[name] = string(v)
		}
	}
	return texts
}

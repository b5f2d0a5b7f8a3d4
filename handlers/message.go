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

	"github.com/rs/zerolog"

	"sqlwriter/internal/run"
)

// Receiver handles one message of a queue. With an error the host abandons the message, which then comes again at once,
// until the queue's limit of deliveries makes it a dead letter: waiting is the receiver's business.
type Receiver interface {
	Receive(ctx context.Context, d run.Incoming) (run.Handled, error)
}

// receives is a function on a queue. Every error fails the invocation: nobody but the queue would bring the message again.
func receives(name string, r Receiver) Mounted {
	return Mounted{
		Name: name, Binding: "message", Payload: Message,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			d := in.Message
			d.Invocation = in.ID
			handled, err := r.Receive(ctx, d)
			return Reply{Logs: []string{handledSummary(handled)}, Note: messageNote{handled, d.Count}}, err
		},
	}
}

// handledSummary is what became of a message in one line for the invocation's own log.
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

// messageNote is what became of a message as fields of the invocation's log line.
type messageNote struct {
	run.Handled
	deliveries int
}

// MarshalZerologObject writes what was done with which run and batch, and counts; nothing of the message itself.
func (n messageNote) MarshalZerologObject(e *zerolog.Event) {
	for _, f := range []struct{ name, value string }{{"run", n.Run}, {"batch", n.Batch}, {"did", n.Did}, {"because", n.Reason}} {
		if f.value != "" {
			e.Str(f.name, f.value)
		}
	}
	if len(n.Counts) > 0 {
		e.Dict("counts", counts(n.Counts))
	}
	e.Int("delivery_count", n.deliveries)
}

// hostLayers is how many strings the host wraps a message's text in: it is written as a string literal, and that as a
// member of a JSON object (docs/facts.md F10).
const hostLayers = 2

// messageBody takes the host's layers off a message, and no more: what is left is the body as it was sent, which may be a
// string literal itself. Fewer layers are taken for what they are: a text that is no literal is the body, and so is an
// object, an array or a number as it stands. Nothing, or null, is an empty body: whoever handles messages says what is
// wrong with them, and a dead letter that cannot be handled would come back for ever.
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

// literal gives the text that a string literal stands for; false when the value is none, or has anything around it.
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

// messageOf makes a delivery of a message and its metadata. What is missing or odd in the metadata stays empty: it says
// nothing that the work depends on, and the body's own members may have overwritten it (docs/facts.md F11).
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

// text gives a scalar of the metadata under the host's layers; "" for everything else.
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

// firstTime gives the first of several times that can be read. The host leaves the zone out of a time in UTC.
func firstTime(values ...json.RawMessage) time.Time {
	for _, v := range values {
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} { // fractions are read without being named
			if at, err := time.Parse(layout, text(v)); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// properties gives the members of an object as texts: strings as they are, everything else as JSON. Nil when the value is
// no object.
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

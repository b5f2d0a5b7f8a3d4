package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"sqlwriter/internal/run"
)

// Kind is the type of a trigger's value without the host's layers of JSON strings. Layers are removed until the type is
// reached and no further: a text that is JSON must stay a text (docs/facts.md F3). A Message may be of any type, so
// only the host's own layers are removed.
type Kind string

const (
	// Array is a list of documents: cosmosDBTrigger sends it in two layers of strings (docs/facts.md F5).
	Array Kind = "array"
	// Object is one object: timerTrigger and httpTrigger send it without layers.
	Object Kind = "object"
	// Message is a message of any content: serviceBusTrigger sends it in two layers of strings (docs/facts.md F10,
	// F11).
	Message Kind = "message"
)

// maxLayers bounds the layers of strings. The host uses two.
const maxLayers = 4

// PayloadError is an invalid envelope. It never repeats content.
type PayloadError struct {
	// Path is the place in the envelope: "Data.documents".
	Path string
	// Expected and Found are types of values or a description of the text.
	Expected, Found string
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("payload: %s: expected %s, found %s", e.Path, e.Expected, e.Found)
}

// envelope is the host's payload for one invocation.
type envelope struct {
	// elements are the elements of an Array; object is an Object. Both are slices of the body.
	elements []json.RawMessage
	object   json.RawMessage
	// message is a Message; it has its own memory.
	message run.Incoming
	// retryCount is Metadata.RetryContext.RetryCount of an Array: 0 at the first attempt and without a retry policy. An
	// Object has none: the caller of an HTTP function can forge its Metadata (docs/facts.md F13).
	retryCount int
}

// decode reads an envelope in place: it destroys body and returns slices of it. Errors: *PayloadError.
func decode(body []byte, binding string, kind Kind) (envelope, error) {
	var e envelope
	var data, metadata []byte
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	at := skipSpace(body, 0)
	if err := expect(body, at, '{', "body"); err != nil {
		return e, err
	}
	end, err := members(body, at, func(name string, value []byte) error {
		switch name {
		case "Data":
			data = value
		case "Metadata":
			metadata = value
		}
		return nil
	})
	if err == nil && skipSpace(body, end) != len(body) {
		err = errChar
	}
	if err != nil {
		return e, &PayloadError{"body", "one JSON object", fmt.Sprintf("%d bytes: %v", len(body), err)}
	}
	value, err := pick(data, binding)
	if err != nil {
		return e, err
	}
	switch kind {
	case Array:
		e.retryCount = retryCount(metadata) // first, because unwrap destroys the body's text
	case Message:
		e.message = messageOf(value, metadata)
		return e, nil
	case Object: // nothing is read from its Metadata
	}
	if value, err = unwrap(value, kind, "Data."+binding); err != nil {
		return e, err
	}
	if kind == Object {
		e.object = value
		return e, nil
	}
	end, err = elements(value, 0, func(v []byte) { e.elements = append(e.elements, v) })
	if err == nil && skipSpace(value, end) != len(value) {
		err = errChar
	}
	if err != nil {
		return e, &PayloadError{
			"Data." + binding, "an array",
			fmt.Sprintf("an array that breaks off at element %d: %v", len(e.elements), err),
		}
	}
	return e, nil
}

// pick returns the binding's value in Data.
func pick(data []byte, binding string) ([]byte, error) {
	if err := expect(data, 0, '{', "Data"); err != nil {
		return nil, err
	}
	var value []byte
	names := 0
	if _, err := members(data, 0, func(name string, v []byte) error {
		names++
		if name == binding {
			value = v
		}
		return nil
	}); err != nil {
		return nil, &PayloadError{"Data", "an object", err.Error()}
	}
	if value == nil {
		return nil, &PayloadError{"Data." + binding, "the trigger's value", fmt.Sprintf("%d other bindings", names)}
	}
	return value, nil
}

// unwrap removes layers of strings until the value has the wanted type.
func unwrap(value []byte, kind Kind, path string) ([]byte, error) {
	want := byte('[')
	if kind == Object {
		want = '{'
	}
	for range maxLayers {
		value = value[skipSpace(value, 0):]
		if len(value) == 0 || value[0] != '"' {
			break
		}
		end, err := skipString(value, 0)
		if err == nil && skipSpace(value, end) != len(value) {
			err = errChar
		}
		if err == nil {
			value, err = unescape(value[:end])
		}
		if err != nil {
			return nil, &PayloadError{path, "an " + string(kind), "a string that is not valid JSON: " + err.Error()}
		}
	}
	if err := expect(value, 0, want, path); err != nil {
		return nil, err
	}
	return value, nil
}

// expect checks the first byte of the value at b[i].
func expect(b []byte, i int, want byte, path string) error {
	if i < len(b) && b[i] == want {
		return nil
	}
	expected := "an object"
	if want == '[' {
		expected = "an array"
	}
	return &PayloadError{path, expected, foundAt(b, i)}
}

// foundAt names the type of the value at b[i].
func foundAt(b []byte, i int) string {
	if i >= len(b) {
		return "nothing"
	}
	switch b[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	}
	end, err := skipLiteral(b, i)
	if err != nil || !json.Valid(b[i:end]) {
		return "text that is not JSON"
	}
	switch b[i] {
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// retryCount reads Metadata.RetryContext.RetryCount: a number or a string, in an object or a string. It is 0 if the
// member is absent.
//
// An unreadable RetryContext counts as one earlier attempt, so the documents are read again. That costs a read; an old
// snapshot taken for a new one could cost a correction (docs/requirements.md R17).
func retryCount(metadata []byte) int {
	const unknown = 1
	var m map[string]json.RawMessage
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil {
		return 0
	}
	raw, ok := m["RetryContext"]
	if !ok || string(raw) == "null" {
		return 0
	}
	context, err := unwrap(bytes.Clone(raw), Object, "Metadata.RetryContext")
	if err != nil {
		return unknown
	}
	var counts map[string]json.RawMessage
	if json.Unmarshal(context, &counts) != nil {
		return unknown
	}
	n, err := strconv.Atoi(string(bytes.Trim(counts["RetryCount"], `"`)))
	if err != nil || n < 0 {
		return unknown
	}
	return n
}

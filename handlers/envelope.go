package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

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
	// elements are the elements of an Array; object is an Object.
	elements []json.RawMessage
	object   json.RawMessage
	// message is a Message; it has its own memory.
	message run.Incoming
	// retryCount is Metadata.RetryContext.RetryCount of an Array: 0 at the first attempt and without a retry policy. An
	// Object has none: the caller of an HTTP function can forge its Metadata (docs/facts.md F13).
	retryCount int
}

// decode reads an envelope. It destroys body: values may be slices of it. Errors: *PayloadError.
func decode(body []byte, binding string, kind Kind) (envelope, error) {
	var e envelope
	data, metadata, err := split(bytes.TrimPrefix(body, []byte("\ufeff")))
	if err != nil {
		return e, err
	}
	path := "Data." + binding
	value, found := data[binding]
	if !found {
		return e, &PayloadError{path, "the trigger's value", fmt.Sprintf("%d other bindings", len(data))}
	}
	if kind == Message {
		e.message = messageOf(value, metadata)
		return e, nil
	}
	if kind == Array {
		e.retryCount = retryCount(metadata)
	}
	if value, err = unwrap(value, kind, path); err != nil {
		return e, err
	}
	if kind == Object { // nothing is read from its Metadata
		e.object = value
		return e, nil
	}
	err = read(value, func(r reader) error {
		return r.values(func(_ string, v []byte) { e.elements = append(e.elements, v) })
	})
	if err != nil {
		return e,
			&PayloadError{
				path, "an array", fmt.Sprintf("an array that breaks off at element %d: %v", len(e.elements), err),
			}
	}
	return e, nil
}

// split returns the bindings' values in Data, and Metadata. A body of 100 MB is read once.
func split(body []byte) (data map[string][]byte, metadata []byte, err error) {
	if err := expect(body, '{', "body"); err != nil {
		return nil, nil, err
	}
	var other []byte // a Data that is no object
	err = read(body, func(r reader) error {
		return r.each(func(name string) error {
			if name == "Data" && r.PeekKind() == '{' {
				data = map[string][]byte{}
				return r.values(func(name string, v []byte) { data[name] = v })
			}
			value, err := r.value()
			switch name {
			case "Data":
				data, other = nil, value
			case "Metadata":
				metadata = value
			}
			return err
		})
	})
	switch {
	case err != nil:
		return nil, nil, &PayloadError{"body", "one JSON object", fmt.Sprintf("%d bytes: %v", len(body), err)}
	case data == nil:
		return nil, nil, expect(other, '{', "Data")
	}
	return data, metadata, nil
}

// unwrap removes layers of strings until the value has the wanted type. It destroys value: the text of the second layer
// is written over the first layer, so that 100 MB are there twice and not three times.
func unwrap(value []byte, kind Kind, path string) ([]byte, error) {
	want := jsontext.Kind('[')
	if kind == Object {
		want = '{'
	}
	var before []byte // the layer that was read last
	for range maxLayers {
		value = bytes.Trim(value, space)
		if jsontext.Value(value).Kind() != '"' {
			break
		}
		text, err := jsontext.AppendUnquote(before[:0], value)
		// Of a lone surrogate the text has U+FFFD, as that of encoding/json, beside the error.
		if err != nil && !jsontext.Value(value).IsValid(tolerant()...) {
			return nil, &PayloadError{path, "an " + string(kind), "a string that is not valid JSON"}
		}
		before, value = value, text
	}
	if err := expect(value, want, path); err != nil {
		return nil, err
	}
	return value, nil
}

// expect checks the type of a value by its first character.
func expect(b []byte, want jsontext.Kind, path string) error {
	if jsontext.Value(b).Kind() == want {
		return nil
	}
	names := map[jsontext.Kind]string{
		'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "a boolean",
		'f': "a boolean", 'n': "null",
	}
	found := "text that is not JSON"
	switch v := jsontext.Value(b); {
	case len(b) == 0:
		found = "nothing"
	case v.IsValid(tolerant()...):
		found = names[v.Kind()]
	}
	return &PayloadError{path, names[want], found}
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
	context, err := unwrap(raw, Object, "Metadata.RetryContext")
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

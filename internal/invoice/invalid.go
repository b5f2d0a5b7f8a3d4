package invoice

import (
	"fmt"
	"strconv"

	"sqlwriter/internal/fault"
)

// FieldError is one member of a document that a rule refuses.
type FieldError struct {
	// Path is the member's place as dotted names, with [n] for an element of a list (from 0).
	Path string
	// Code is the rule's short name: "too_long". Mass failures are counted by code.
	Code string
	// Expected says what the rule wants, for people.
	Expected string
	// Found is the value as it stood, at most 40 characters of it; empty for lists, objects and where nothing stood.
	Found string
	// FoundType is the JSON type that stood there, with its length where that is the trouble. It holds no value.
	FoundType string
}

// Invalid says why a document cannot be written. errors.As finds a *fault.Error of kind document in it, whose code is
// "validation." and the first field's code, and whose condition is unreadable where Unreadable is true.
type Invalid struct {
	// DocumentID is the document's id.
	DocumentID string
	// Unreadable is true when the document cannot be understood as a document at all: trying again cannot help.
	Unreadable bool
	// Fields are the refused members, those that make it unreadable first; Omitted is about how many more there
	// were (two columns made from one member may both count).
	Fields  []FieldError
	Omitted int
}

// maxFields bounds Invalid.Fields: a list of a million wrong ids needs no million explanations.
const maxFields = 64

// maxFound is how many characters of a found value go into an error text.
const maxFound = 40

// Error is one line of at most MaxErrorBytes: the document's id and for each member its path, what was expected and
// what was found. It shows values, so it belongs in the document and in answers to operators; logs take Safe.
func (e *Invalid) Error() string { return e.line(true) }

// Safe is Error without the values that were found, for logs.
func (e *Invalid) Safe() string { return e.line(false) }

// Unwrap gives the classified form.
func (e *Invalid) Unwrap() error {
	f := &fault.Error{Kind: fault.Document, Code: "validation", Op: "invoice: read", Reason: e.Safe()}
	if len(e.Fields) > 0 {
		f.Code = "validation." + e.Fields[0].Code
	}
	if e.Unreadable {
		f.Condition = fault.Unreadable
	}
	return f
}

func (e *Invalid) line(values bool) string {
	const room = len("; and 2147483647 more")
	line := "document " + strconv.Quote(fault.Truncate(e.DocumentID, fault.MaxForeign))
	for i, f := range e.Fields {
		part := f.line(values)
		separator := ": "
		if i > 0 {
			separator = "; "
		}
		if i > 0 && len(line)+len(separator)+len(part) > MaxErrorBytes-room {
			return fmt.Sprintf("%s; and %d more", line, len(e.Fields)-i+e.Omitted)
		}
		line += separator + part
	}
	if e.Omitted > 0 {
		line = fmt.Sprintf("%s; and %d more", line, e.Omitted)
	}
	return fault.Truncate(line, MaxErrorBytes)
}

func (f FieldError) line(values bool) string {
	s := f.Path + ": expected " + f.Expected + ", found " + f.FoundType
	if values && f.Found != "" {
		s += " " + f.Found
	}
	return s
}

// refused describes a member that a rule refuses. The path is the reader's to fill in.
func refused(code, expected string, span []byte) *FieldError {
	f := &FieldError{Code: code, Expected: expected, FoundType: string(typeOf(span))}
	switch typeOf(span) {
	case jsonText:
		text, whole := beginning(span, maxFound)
		f.Found = strconv.Quote(text)
		if !whole {
			f.Found += "…"
		}
	case jsonNumber:
		f.Found = string(span)
		if len(span) > maxFound {
			f.Found = string(span[:maxFound]) + "…"
		}
	case jsonBool:
		f.Found = string(span)
	case absent, jsonNull, jsonList, jsonObject:
	}
	return f
}

// unrecordable is the error of a document whose id cannot be read: there is no place to record anything.
func unrecordable(code, format string, args ...any) error {
	e := fault.New(fault.Document, "invoice: read", "validation."+code, format, args...)
	e.Condition = fault.Unreadable
	return e
}

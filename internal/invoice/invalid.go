package invoice

import (
	"fmt"
	"strconv"

	"sqlwriter/internal/fault"
)

// FieldError is one refused member of a document.
type FieldError struct {
	// Path is the member's place as dotted names, with [n] for element n of a list, from 0.
	Path string
	// Code is the short name of the rule: "too_long". Mass failures are counted by code.
	Code string
	// Expected is the rule in words.
	Expected string
	// Found is the value, at most 40 characters of it; empty for lists, objects and absent members.
	Found string
	// FoundType is the JSON type found, with its length for a too long text. It has no value.
	FoundType string

	// ruled: the value is known, and only a rule of the mapping or of a setting refuses it. Another mapping may take
	// it, and its hash is that of the value.
	ruled bool
}

// Invalid says why a document cannot be written. errors.As finds a *fault.Error of kind document in it. Its code is
// "validation." and the first field's code; its condition is unreadable if Unreadable is true.
type Invalid struct {
	DocumentID string
	// Unreadable is true when the document's structure cannot be understood. Another try cannot help.
	Unreadable bool
	// Fields are the refused members, those that make it unreadable first. Omitted is about how many more there are:
	// two columns of one member may both count.
	Fields  []FieldError
	Omitted int
}

// maxFields bounds Fields; a list may have a million wrong ids.
const maxFields = 64

// maxFound is how many characters of a found value go into an error text.
const maxFound = 40

// Error returns one line of at most MaxErrorBytes: the id, and each member's path, expectation and value. It has values
// and must not be logged; logs use Safe.
func (e *Invalid) Error() string { return e.line(true) }

// Safe is Error without the found values, for logs.
func (e *Invalid) Safe() string { return e.line(false) }

// Unwrap returns the *fault.Error.
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
	const reserved = len("; and 2147483647 more")
	line := "document " + strconv.Quote(fault.Truncate(e.DocumentID, fault.MaxForeign))
	for i, f := range e.Fields {
		part := f.line(values)
		separator := ": "
		if i > 0 {
			separator = "; "
		}
		if i > 0 && len(line)+len(separator)+len(part) > MaxErrorBytes-reserved {
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

// refused describes a refused member. The reader adds the path.
func refused(code, expected string, span []byte) *FieldError {
	f := &FieldError{Code: code, Expected: expected, FoundType: string(typeOf(span))}
	switch typeOf(span) {
	case jsonText:
		text, complete := beginning(span, maxFound)
		f.Found = strconv.Quote(text)
		if !complete {
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

// ruled says that the value of a refused member is known.
func ruled(f *FieldError) *FieldError {
	f.ruled = true
	return f
}

// unrecordable is the error of a document without a readable id, for which nothing can be recorded.
func unrecordable(code, format string, args ...any) error {
	e := fault.New(fault.Document, "invoice: read", "validation."+code, format, args...)
	e.Condition = fault.Unreadable
	return e
}

// Package jsonval parses and represents JSON values for the Cosmos DB emulator: object members keep their order,
// numbers keep the text they were written with (a 64-bit integer comes back digit by digit), and a value
// can be absent, which Cosmos DB's query language calls "undefined" and treats unlike null.
//
// Values are immutable; the With functions copy the level they change. Text of a parsed value shares the
// memory of the parsed text, so a stored document costs little more than its own bytes.
package jsonval

import (
	"iter"
	"math"
	"strconv"
)

// Kind is the JSON type of a Value.
type Kind uint8

// The kinds. Undefined is the zero Value: no value at all.
const (
	Undefined Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String names the kind for messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	default:
		return "undefined"
	}
}

// Value is one JSON value, or none. The zero Value is Undefined.
type Value struct {
	kind Kind
	bool bool
	text string // of a String its content, of a Number its literal
	kids *kids  // of an Array or Object
}

// kids holds the elements of an array (no names) or the members of an object.
type kids struct {
	names  []string
	values []Value
}

// NullValue is JSON null.
func NullValue() Value { return Value{kind: Null} }

// OfBool is JSON true or false.
func OfBool(b bool) Value { return Value{kind: Bool, bool: b} }

// OfString is a JSON string with the given content.
func OfString(s string) Value { return Value{kind: String, text: s} }

// OfInt is a JSON number.
func OfInt(n int64) Value { return Value{kind: Number, text: strconv.FormatInt(n, 10)} }

// OfFloat is a JSON number in the shortest form that reads back the same; a value JSON cannot hold
// (NaN, infinities) is Undefined, as a query's arithmetic wants it.
func OfFloat(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return Value{kind: Number, text: strconv.FormatFloat(f, format, -1, 64)}
}

// OfArray is a JSON array of the given elements, which the caller must not change afterwards.
func OfArray(elements []Value) Value {
	return Value{kind: Array, kids: &kids{values: elements}}
}

// OfObject is a JSON object; names and values go pairwise and must not be changed afterwards.
func OfObject(names []string, values []Value) Value {
	return Value{kind: Object, kids: &kids{names: names, values: values}}
}

// Kind is the JSON type.
func (v Value) Kind() Kind { return v.kind }

// IsUndefined reports whether there is no value.
func (v Value) IsUndefined() bool { return v.kind == Undefined }

// True reports whether the value is JSON true.
func (v Value) True() bool { return v.kind == Bool && v.bool }

// Text is the content of a string or the literal of a number, otherwise "".
func (v Value) Text() string { return v.text }

// Float is the number as a double; 0 when the value is not a number.
func (v Value) Float() float64 {
	if v.kind != Number {
		return 0
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0
	}
	return f
}

// Int is the number as a 64-bit integer; ok is false when it is not a number or not written as an integer
// that fits.
func (v Value) Int() (n int64, ok bool) {
	if v.kind != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil
}

// Len is the number of elements or members; 0 for scalars.
func (v Value) Len() int {
	if v.kids == nil {
		return 0
	}
	return len(v.kids.values)
}

// At is the i-th element of an array; Undefined when there is none.
func (v Value) At(i int) Value {
	if v.kind != Array || i < 0 || i >= len(v.kids.values) {
		return Value{}
	}
	return v.kids.values[i]
}

// Get is the member of an object; Undefined when there is none.
func (v Value) Get(name string) Value {
	if v.kind != Object {
		return Value{}
	}
	for i, n := range v.kids.names {
		if n == name {
			return v.kids.values[i]
		}
	}
	return Value{}
}

// Path follows member names from v; Undefined when one is missing.
func (v Value) Path(names ...string) Value {
	for _, n := range names {
		v = v.Get(n)
	}
	return v
}

// Elements are the elements of an array; the slice must not be changed.
func (v Value) Elements() []Value {
	if v.kind != Array {
		return nil
	}
	return v.kids.values
}

// Members iterates over the members of an object in their order.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object {
			return
		}
		for i, n := range v.kids.names {
			if !yield(n, v.kids.values[i]) {
				return
			}
		}
	}
}

// With is the object with the member set: in its old place when it exists, otherwise last.
func (v Value) With(name string, member Value) Value {
	size := v.Len()
	names, values := make([]string, 0, size+1), make([]Value, 0, size+1)
	found := false
	for n, m := range v.Members() {
		if n == name {
			m, found = member, true
		}
		names, values = append(names, n), append(values, m)
	}
	if !found {
		names, values = append(names, name), append(values, member)
	}
	return OfObject(names, values)
}

// Without is the object without the named members.
func (v Value) Without(drop ...string) Value {
	size := v.Len()
	names, values := make([]string, 0, size), make([]Value, 0, size)
next:
	for n, m := range v.Members() {
		for _, d := range drop {
			if n == d {
				continue next
			}
		}
		names, values = append(names, n), append(values, m)
	}
	return OfObject(names, values)
}

// Equal reports whether two values are the same JSON: numbers as doubles, objects without regard to order.
// Two undefined values are not equal: there is nothing to compare.
func Equal(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case Null:
		return true
	case Bool:
		return a.bool == b.bool
	case Number:
		return a.text == b.text || a.Float() == b.Float()
	case String:
		return a.text == b.text
	case Array:
		return equalArrays(a.kids.values, b.kids.values)
	case Object:
		if len(a.kids.names) != len(b.kids.names) {
			return false
		}
		for n, m := range a.Members() {
			if !Equal(m, b.Get(n)) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func equalArrays(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

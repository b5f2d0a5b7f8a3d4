package invoice

import "bytes"

// Documents are read in place: a snapshot may be 1.9 MB with a few hundred bytes that matter. encoding/json would copy
// it, match names without regard to case ("ID" for "id") and hide lone surrogates. json.Valid checks the whole once,
// and these functions walk the valid text.
//
// A span is the bytes of one value inside the snapshot, nil when the member is absent. No result of Read may keep a
// span.

// jsonType is the type of a value, as error messages name it.
type jsonType string

const (
	absent     jsonType = "absent"
	jsonNull   jsonType = "null"
	jsonBool   jsonType = "boolean"
	jsonNumber jsonType = "number"
	jsonText   jsonType = "text"
	jsonList   jsonType = "list"
	jsonObject jsonType = "object"
)

// typeOf returns the type of a span, which follows from its first byte in valid JSON.
func typeOf(span []byte) jsonType {
	if len(span) == 0 {
		return absent
	}
	switch span[0] {
	case 'n':
		return jsonNull
	case 't', 'f':
		return jsonBool
	case '"':
		return jsonText
	case '[':
		return jsonList
	case '{':
		return jsonObject
	}
	return jsonNumber
}

// given reports whether a member has a value. Absent and null are the same to every rule.
func given(span []byte) bool {
	t := typeOf(span)
	return t != absent && t != jsonNull
}

// eachMember visits the members of a valid object in order. Names have no escapes, so callers can compare bytes.
func eachMember(object []byte, visit func(name, value []byte)) {
	i := skipSpace(object, 1)
	for object[i] != '}' {
		end := valueEnd(object, i)
		name := object[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(decode(object[i:end]))
		}
		i = skipSpace(object, skipSpace(object, end)+1) // after the colon
		end = valueEnd(object, i)
		visit(name, object[i:end])
		i = nextItem(object, end)
	}
}

// eachElement visits the elements of a valid list in order.
func eachElement(list []byte, visit func(i int, value []byte)) {
	i := skipSpace(list, 1)
	for n := 0; list[i] != ']'; n++ {
		end := valueEnd(list, i)
		visit(n, list[i:end])
		i = nextItem(list, end)
	}
}

// nextItem steps over the comma after an item, or stops at the closing bracket.
func nextItem(raw []byte, i int) int {
	i = skipSpace(raw, i)
	if raw[i] == ',' {
		i = skipSpace(raw, i+1)
	}
	return i
}

func skipSpace(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t' {
		i++
	}
	return i
}

// valueEnd returns the end of the value that begins at i. It counts brackets instead of recursing, so depth costs
// nothing.
func valueEnd(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return textEnd(raw, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch raw[i] {
			case '"':
				i = textEnd(raw, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	if n := bytes.IndexAny(raw[i:], ",]} \n\r\t"); n >= 0 {
		return i + n
	}
	return len(raw)
}

// textEnd returns the end of the text that begins with the quote at i.
func textEnd(raw []byte, i int) int {
	for i++; ; i++ {
		switch raw[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

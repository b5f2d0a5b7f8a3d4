package invoice

import "bytes"

// A snapshot may be 1.9 MB of which a few hundred bytes matter. encoding/json would copy it into values, match member
// names without regard to case ("ID" for "id") and hide lone surrogates, so documents are read in place: json.Valid
// judges the whole once, and the functions here walk what it accepted. A span is the bytes of one value inside the
// snapshot, nil when the member is absent; nothing made from a span may keep it.

// jsonType is the type of a value, in the words of error messages.
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

// typeOf answers the type of a span from its first byte, which in valid JSON decides it.
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

// given reports whether a member is there with a value; absent and null are the same to every rule.
func given(span []byte) bool {
	t := typeOf(span)
	return t != absent && t != jsonNull
}

// eachMember visits the members of a valid object in order. Names are compared by the caller byte for byte, so they
// are given without their escapes.
func eachMember(object []byte, visit func(name, value []byte)) {
	i := skipSpace(object, 1)
	for object[i] != '}' {
		end := valueEnd(object, i)
		name := object[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(decode(object[i:end]))
		}
		i = skipSpace(object, skipSpace(object, end)+1) // behind the colon
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

// valueEnd answers where the value that begins at i ends. It counts brackets instead of recursing: depth costs nothing.
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

// textEnd answers where the text that begins with the quote at i ends.
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

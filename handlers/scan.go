package handlers

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// The scanner finds the ends of JSON values without reading them, and deliberately does not validate. A document that
// is invalid inside is passed on, so that the use case can report it and continue with the others. 100 MB are walked
// once instead of parsed and copied.

// maxDepth bounds nesting. Newtonsoft, which wrote the text, gives up at 64 (docs/facts.md F45).
const maxDepth = 1000

var (
	errEnd     = errors.New("the text ends in the middle of a value")
	errChar    = errors.New("a character that cannot stand there in JSON")
	errDepth   = errors.New("nested deeper than 1000 levels")
	errBracket = errors.New("brackets that do not match")
	errEscape  = errors.New("an escape sequence that JSON does not know")
)

// skipSpace returns the first position from i on without white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after the string literal at b[i].
func skipString(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			i++
		}
	}
	return i, errEnd
}

// skipValue returns the position after the value at b[i].
func skipValue(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, errEnd
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	default:
		return skipLiteral(b, i)
	}
}

// skipNested returns the position after the object or array at b[i].
func skipNested(b []byte, i int) (int, error) {
	var open []byte
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			var err error
			if i, err = skipString(b, i); err != nil {
				return i, err
			}
			continue
		case '{', '[':
			if len(open) == maxDepth {
				return i, errDepth
			}
			open = append(open, c+2) // '{'+2 is '}', '['+2 is ']'
		case '}', ']':
			if open[len(open)-1] != c {
				return i, errBracket
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return i, errEnd
}

// skipLiteral returns the position after a number, true, false or null, or after any other word in its place.
func skipLiteral(b []byte, i int) (int, error) {
	from := i
	for i < len(b) && bytes.IndexByte([]byte("+-."), b[i]) >= 0 || i < len(b) && isWord(b[i]) {
		i++
	}
	if i == from {
		return i, errChar
	}
	return i, nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// members calls f for each member of the object at b[i] and returns the position after the object. The value is a slice
// of b.
func members(b []byte, i int, f func(name string, value []byte) error) (int, error) {
	return walk(b, i, '}', func(i int) (int, error) {
		if b[i] != '"' {
			return i, errChar
		}
		end, err := skipString(b, i)
		if err != nil {
			return end, err
		}
		name, err := unescape(bytes.Clone(b[i:end]))
		if err != nil {
			return i, err
		}
		if i = skipSpace(b, end); i >= len(b) {
			return i, errEnd
		} else if b[i] != ':' {
			return i, errChar
		}
		i = skipSpace(b, i+1)
		if end, err = skipValue(b, i); err != nil {
			return end, err
		}
		return end, f(string(name), b[i:end:end])
	})
}

// elements calls f for each element of the array at b[i] and returns the position after the array.
func elements(b []byte, i int, f func(value []byte)) (int, error) {
	return walk(b, i, ']', func(i int) (int, error) {
		end, err := skipValue(b, i)
		if err != nil {
			return end, err
		}
		f(b[i:end:end])
		return end, nil
	})
}

// walk reads the comma-separated items between the bracket at b[i] and its closing one. item reads one and returns the
// position after it.
func walk(b []byte, i int, closing byte, item func(i int) (int, error)) (int, error) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1, nil
	}
	for i < len(b) {
		end, err := item(i)
		if err != nil {
			return end, err
		}
		if i = skipSpace(b, end); i >= len(b) {
			break
		}
		switch b[i] {
		case closing:
			return i + 1, nil
		case ',':
			i = skipSpace(b, i+1)
		default:
			return i, errChar
		}
	}
	return i, errEnd
}

// unescape converts a string literal with its quotes into its text in place. The text is never longer, so 100 MB of
// escaped documents need no second 100 MB. The literal is destroyed. A lone surrogate becomes U+FFFD, as in
// encoding/json.
func unescape(lit []byte) ([]byte, error) {
	r, w, end := 1, 1, len(lit)-1
	for {
		run := bytes.IndexByte(lit[r:end], '\\')
		if run < 0 {
			run = end - r
		}
		if w != r {
			copy(lit[w:], lit[r:r+run])
		}
		r, w = r+run, w+run
		if r == end {
			return lit[1:w:w], nil
		}
		c := lit[r+1] // exists: a literal cannot end in a lone backslash
		r += 2
		if c == 'u' {
			char, size := unicodeEscape(lit[r-2 : end])
			if size == 0 {
				return nil, errEscape
			}
			r += size - 2
			w += utf8.EncodeRune(lit[w:w+utf8.UTFMax], char) // at most 3 bytes for 6 read, 4 for 12
			continue
		}
		plain := escaped(c)
		if plain == 0 {
			return nil, errEscape
		}
		lit[w] = plain
		w++
	}
}

// escaped returns the character of a backslash and c; 0 if the escape is invalid.
func escaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

// unicodeEscape reads \uXXXX or a surrogate pair of them. It returns the character and the number of bytes read; 0 if
// invalid.
func unicodeEscape(b []byte) (rune, int) {
	first, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	if second, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 reads the \uXXXX at the front of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

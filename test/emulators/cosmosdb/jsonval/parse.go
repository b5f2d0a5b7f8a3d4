package jsonval

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting a document may have (Cosmos DB service quotas: "maximum level of nesting
// for embedded objects and arrays" 128).
const MaxDepth = 128

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("not valid JSON")

// Parse reads one JSON text. It is strict: RFC 8259, UTF-8, numbers that a double can hold, nesting of at
// most MaxDepth. Of members with one name the last counts. An escaped lone surrogate becomes U+FFFD, as the
// real service stores it. Errors wrap ErrSyntax and name the byte offset.
func Parse(text string) (Value, error) {
	if !utf8.ValidString(text) {
		return Value{}, fmt.Errorf("%w: not UTF-8", ErrSyntax)
	}
	p := parser{text: text}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	p.space()
	if p.pos != len(p.text) {
		return Value{}, p.fail("text after the value")
	}
	return v, nil
}

type parser struct {
	text string
	pos  int
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("%w: offset %d: %s", ErrSyntax, p.pos, what)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not a space, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.pos >= len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) value(depth int) (Value, error) {
	if depth > MaxDepth {
		return Value{}, p.fail("nested deeper than " + strconv.Itoa(MaxDepth))
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.str()
		return OfString(s), err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range []struct {
		text  string
		value Value
	}{{"null", NullValue()}, {"true", OfBool(true)}, {"false", OfBool(false)}} {
		if strings.HasPrefix(p.text[p.pos:], word.text) {
			p.pos += len(word.text)
			return word.value, nil
		}
	}
	return Value{}, p.fail("a value expected")
}

func (p *parser) object(depth int) (Value, error) {
	p.pos++ // {
	out := &kids{}
	if p.peek() == '}' {
		p.pos++
		return Value{kind: Object, kids: out}, nil
	}
	for {
		if p.peek() != '"' {
			return Value{}, p.fail("a member name expected")
		}
		name, err := p.str()
		if err != nil {
			return Value{}, err
		}
		if p.peek() != ':' {
			return Value{}, p.fail("':' expected")
		}
		p.pos++
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		out.names, out.values = append(out.names, name), append(out.values, v)
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return Value{kind: Object, kids: lastWins(out)}, nil
		default:
			return Value{}, p.fail("',' or '}' expected")
		}
	}
}

// lastWins drops all but the last of members with one name.
func lastWins(in *kids) *kids {
	if !hasTwins(in.names) {
		return in
	}
	seen := make(map[string]int, len(in.names))
	for i, n := range in.names {
		seen[n] = i
	}
	out := &kids{}
	for i, n := range in.names {
		if seen[n] == i {
			out.names, out.values = append(out.names, n), append(out.values, in.values[i])
		}
	}
	return out
}

// hasTwins compares small objects name by name: most objects are small and have no twins, and a map for
// each would be most of the cost of parsing.
func hasTwins(names []string) bool {
	if len(names) > 24 {
		seen := make(map[string]struct{}, len(names))
		for _, n := range names {
			seen[n] = struct{}{}
		}
		return len(seen) < len(names)
	}
	for i, a := range names {
		for _, b := range names[:i] {
			if a == b {
				return true
			}
		}
	}
	return false
}

func (p *parser) array(depth int) (Value, error) {
	p.pos++ // [
	out := &kids{}
	if p.peek() == ']' {
		p.pos++
		return Value{kind: Array, kids: out}, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		out.values = append(out.values, v)
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return Value{kind: Array, kids: out}, nil
		default:
			return Value{}, p.fail("',' or ']' expected")
		}
	}
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) take(set string) bool {
	if p.pos < len(p.text) && strings.IndexByte(set, p.text[p.pos]) >= 0 {
		p.pos++
		return true
	}
	return false
}

func (p *parser) number() (Value, error) {
	start := p.pos
	p.take("-")
	zero := p.pos < len(p.text) && p.text[p.pos] == '0'
	first := p.pos
	if !p.digits() || zero && p.pos > first+1 {
		return Value{}, p.fail("a number expected")
	}
	if p.take(".") && !p.digits() {
		return Value{}, p.fail("digits expected after '.'")
	}
	if p.take("eE") {
		p.take("+-")
		if !p.digits() {
			return Value{}, p.fail("digits expected in the exponent")
		}
	}
	text := p.text[start:p.pos]
	if f, _ := strconv.ParseFloat(text, 64); math.IsInf(f, 0) {
		return Value{}, p.fail("the number " + text + " does not fit a double")
	}
	return Value{kind: Number, text: text}, nil
}

// str reads a string; without escapes its content shares the parsed text.
func (p *parser) str() (string, error) {
	p.pos++ // "
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return p.text[start : p.pos-1], nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("a control character in a string")
		default:
			p.pos++
		}
	}
	return "", p.fail("a string without end")
}

func (p *parser) escaped(start int) (string, error) {
	var out strings.Builder
	out.WriteString(p.text[start:p.pos])
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == '"':
			return out.String(), nil
		case c < ' ':
			return "", p.fail("a control character in a string")
		case c != '\\':
			out.WriteByte(c)
			continue
		}
		if p.pos >= len(p.text) {
			break
		}
		c = p.text[p.pos]
		p.pos++
		if c == 'u' {
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			out.WriteRune(r)
			continue
		}
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return "", p.fail("an unknown escape")
		}
		out.WriteByte("\"\\/\b\f\n\r\t"[i])
	}
	return "", p.fail("a string without end")
}

// unicode reads the four digits after \u, and the second half of a surrogate pair when it follows.
func (p *parser) unicode() (rune, error) {
	hi, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(hi) {
		return hi, err
	}
	if strings.HasPrefix(p.text[p.pos:], `\u`) {
		back := p.pos
		p.pos += 2
		lo, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			return r, nil
		}
		p.pos = back
	}
	return utf8.RuneError, nil
}

func (p *parser) hex4() (rune, error) {
	if p.pos+4 > len(p.text) {
		return 0, p.fail("four hexadecimal digits expected")
	}
	n, err := strconv.ParseUint(p.text[p.pos:p.pos+4], 16, 16)
	if err != nil {
		return 0, p.fail("four hexadecimal digits expected")
	}
	p.pos += 4
	return rune(n), nil
}

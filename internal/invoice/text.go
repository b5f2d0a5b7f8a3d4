package invoice

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// textFlaw is a reason why no column can hold a text.
type textFlaw string

const (
	noFlaw textFlaw = ""
	// hasNUL: tools that read nvarchar as a C string cut it there, so people see another text than the stored one.
	hasNUL textFlaw = "nul"
	// notUnicode: a lone surrogate or bytes that are not UTF-8. Decoders replace them by U+FFFD silently.
	notUnicode textFlaw = "unicode"
)

// measure counts the UTF-16 units of a text span and finds flaws without a copy: the text may be 1.9 MB.
func measure(span []byte) (units int, flaw textFlaw) {
	body := span[1 : len(span)-1]
	for len(body) > 0 {
		if c := body[0]; c < utf8.RuneSelf && c != '\\' && c != 0 { // nearly all
			units++
			body = body[1:]
			continue
		}
		r, size, ok := nextRune(body)
		switch {
		case !ok:
			return units, notUnicode
		case r == 0:
			flaw = hasNUL
		case r > 0xFFFF:
			units++
		}
		units++
		body = body[size:]
	}
	return units, flaw
}

// decode returns the text of a span. Invalid Unicode becomes U+FFFD, as in encoding/json.
func decode(span []byte) string {
	body := span[1 : len(span)-1]
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body)
	}
	var b strings.Builder
	b.Grow(len(body))
	for len(body) > 0 {
		r, size, _ := nextRune(body)
		b.WriteRune(r)
		body = body[size:]
	}
	return b.String()
}

// beginning returns at most limit characters of a text span and whether that is the whole text.
func beginning(span []byte, limit int) (text string, complete bool) {
	body := span[1 : len(span)-1]
	var b strings.Builder
	for ; limit > 0 && len(body) > 0; limit-- {
		r, size, _ := nextRune(body)
		b.WriteRune(r)
		body = body[size:]
	}
	return b.String(), len(body) == 0
}

// nextRune decodes the first character inside a valid JSON string. ok is false for a lone surrogate and for bytes that
// are not UTF-8; the rune is then U+FFFD.
func nextRune(body []byte) (r rune, size int, ok bool) {
	if body[0] != '\\' {
		r, size = utf8.DecodeRune(body)
		return r, size, r != utf8.RuneError || size > 1
	}
	switch body[1] {
	case 'u':
		return escapedRune(body)
	case 'b':
		return '\b', 2, true
	case 'f':
		return '\f', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case 't':
		return '\t', 2, true
	}
	return rune(body[1]), 2, true
}

// escapedRune decodes \uXXXX, or two of them that are a surrogate pair.
func escapedRune(body []byte) (r rune, size int, ok bool) {
	const unit, pair = len(`\uXXXX`), len(`\uXXXX\uXXXX`)
	high := hexUnit(body)
	switch {
	case high < 0xD800 || high > 0xDFFF:
		return high, unit, true
	case high < 0xDC00 && len(body) >= pair && body[unit] == '\\' && body[unit+1] == 'u':
		if low := hexUnit(body[unit:]); low >= 0xDC00 && low <= 0xDFFF {
			return 0x10000 + (high-0xD800)<<10 + (low - 0xDC00), pair, true
		}
	}
	return utf8.RuneError, unit, false
}

// hexUnit reads the four digits of \uXXXX, which valid JSON always has.
func hexUnit(escape []byte) rune {
	var v rune
	for _, c := range escape[2:6] {
		v <<= 4
		switch {
		case c >= 'a':
			v |= rune(c - 'a' + 10)
		case c >= 'A':
			v |= rune(c - 'A' + 10)
		default:
			v |= rune(c - '0')
		}
	}
	return v
}

// text makes the value of a text column. A plain whole number stands for its digits (a part number 425). A number with
// a point or an exponent is refused, because its original text ("4.250", "4E5") is lost.
func (c Column) text(span []byte) (Value, *FieldError) {
	expected := "text of at most " + strconv.Itoa(c.Max) + " characters"
	switch typeOf(span) {
	case jsonText:
	case jsonNumber:
		digits, refusal := integerDigits(span, expected)
		if refusal != nil {
			return Null(), refusal
		}
		return c.fits(digits, len(digits), expected, span)
	case absent, jsonNull, jsonBool, jsonList, jsonObject:
		return Null(), refused("wrong_type", expected, span)
	}
	units, flaw := measure(span)
	switch flaw {
	case hasNUL:
		return Null(), refused("nul", "text without U+0000", span)
	case notUnicode:
		return Null(), refused("unicode", "valid Unicode without lone surrogates", span)
	case noFlaw:
	}
	return c.fits(decode(span), units, expected, span)
}

// fits checks a text's length and the allowed values.
func (c Column) fits(text string, units int, expected string, span []byte) (Value, *FieldError) {
	if c.Required && text == "" {
		return Of(text), ruled(required(span))
	}
	if word, ok := c.Words[text]; ok {
		text, units = word, utf16Units(word)
	}
	if units > c.Max && c.Cut {
		text, units = cut(text, c.Max), c.Max
	}
	if units > c.Max {
		refusal := refused("too_long", expected, span)
		refusal.FoundType = fmt.Sprintf("%s of %d characters", typeOf(span), units)
		return Of(text), ruled(refusal)
	}
	if len(c.Values) > 0 && !slices.Contains(c.Values, text) {
		return Of(text), ruled(refused("not_allowed", "one of "+strings.Join(c.Values, ", "), span))
	}
	return Of(text), nil
}

// cut returns the beginning of a text with at most limit UTF-16 units, never half a pair.
func cut(text string, limit int) string {
	for i, r := range text {
		if limit -= utf16.RuneLen(r); limit < 0 {
			return text[:i]
		}
	}
	return text
}

func utf16Units(text string) (units int) {
	for _, r := range text {
		units += utf16.RuneLen(r)
	}
	return units
}

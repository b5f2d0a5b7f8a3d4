package invoice

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// textFlaw is what makes a text unfit for any column.
type textFlaw string

const (
	noFlaw textFlaw = ""
	// hasNUL: tools that read nvarchar as a C string cut it there, so what people see is not what is stored.
	hasNUL textFlaw = "nul"
	// notUnicode: a lone surrogate or bytes that are no UTF-8. Every decoder replaces them by U+FFFD in silence.
	notUnicode textFlaw = "unicode"
)

// measure counts the UTF-16 units of a text span and looks for flaws without making a string of it: a text of 1.9 MB
// in a column of 100 costs no memory.
func measure(span []byte) (units int, flaw textFlaw) {
	body := span[1 : len(span)-1]
	for len(body) > 0 {
		if c := body[0]; c < utf8.RuneSelf && c != '\\' && c != 0 { // nearly every one
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

// decode gives the text of a span; what is no Unicode becomes U+FFFD, as encoding/json does it.
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

// beginning gives at most limit characters of a text span, and whether that is all of it.
func beginning(span []byte, limit int) (text string, whole bool) {
	body := span[1 : len(span)-1]
	var b strings.Builder
	for ; limit > 0 && len(body) > 0; limit-- {
		r, size, _ := nextRune(body)
		b.WriteRune(r)
		body = body[size:]
	}
	return b.String(), len(body) == 0
}

// nextRune decodes the first character of the inside of a valid JSON string; ok is false for a lone surrogate and for
// bytes that are no UTF-8, the rune is then U+FFFD.
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

// escapedRune decodes \uXXXX and the pair of them that stands for a character above U+FFFF.
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

// hexUnit reads the four digits behind \u. JSON that was found valid always has them.
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

// text makes the value of a text column. Where a number stands for a text (a part number 425), its digits are meant;
// a number with a point or an exponent is refused, because the text it was ("4.250", "4E5") cannot be known any more.
func (c Column) text(span []byte) (Value, *FieldError) {
	expected := "text of at most " + strconv.Itoa(c.Max) + " characters"
	switch typeOf(span) {
	case jsonText:
	case jsonNumber:
		digits, refusal := wholeDigits(span, expected)
		if refusal != nil {
			return Null(), refusal
		}
		return c.fits(digits, len(digits), expected, span)
	case absent, jsonNull, jsonBool, jsonList, jsonObject:
		return Null(), refused("wrong_type", expected, span)
	}
	units, flaw := measure(span)
	switch {
	case flaw == hasNUL:
		return Null(), refused("nul", "text without U+0000", span)
	case flaw == notUnicode:
		return Null(), refused("unicode", "valid Unicode without lone surrogates", span)
	case units > c.Max:
		return c.fits("", units, expected, span)
	}
	return c.fits(decode(span), units, expected, span)
}

// fits checks a text's length and, where the column lists its values, that it is one of them.
func (c Column) fits(text string, units int, expected string, span []byte) (Value, *FieldError) {
	if units > c.Max {
		refusal := refused("too_long", expected, span)
		refusal.FoundType = fmt.Sprintf("%s of %d characters", typeOf(span), units)
		return Null(), refusal
	}
	if c.Required && text == "" {
		return Null(), refused("required", "a value, because NULL or '' would erase what the row says", span)
	}
	if c.Name == StatusColumn && text == "AI_ERROR" {
		text = StatusAIError // the pipeline's spelling; the table's readers know the other one
	}
	if len(c.Values) == 0 {
		return Of(text), nil
	}
	for _, v := range c.Values {
		if v == text {
			return Of(text), nil
		}
	}
	return Null(), refused("not_allowed", "one of "+strings.Join(c.Values, ", "), span)
}

package funchost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// newtonsoft re-prints JSON as JArray.ToString(Formatting.None) does after Newtonsoft has parsed it with default
// settings (docs/facts.md F8): no white space, strings escaped Newtonsoft's way, strings that look like dates parsed
// and printed again, fractions taken through a double. Whole numbers keep every digit (long or BigInteger). Property
// names are left alone.
//
// Source: extension CosmosDBTriggerValueBinder.cs; Cosmos SDK CosmosJsonDotNetSerializer.cs (default settings);
// Newtonsoft.Json JsonTextReader.Async/ParseReadNumber.
func newtonsoft(dst, src []byte, zone *time.Location) ([]byte, error) {
	return reprint(dst, src, zone, appendNumber)
}

// reprint is newtonsoft with another way to print numbers.
func reprint(dst, src []byte, zone *time.Location, number func([]byte, string) []byte) ([]byte, error) {
	if !json.Valid(src) {
		return nil, fmt.Errorf("the document is not JSON (%d bytes)", len(src))
	}
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '"':
			end := stringEnd(src, i)
			text := unquote(src[i:end])
			if !isName(src, end) {
				text = rewriteDate(text, zone)
			}
			dst = appendQuoted(dst, text)
			i = end
		case c == '-' || (c >= '0' && c <= '9'):
			end := i
			for end < len(src) && strings.IndexByte("+-.eE0123456789", src[end]) >= 0 {
				end++
			}
			dst = number(dst, string(src[i:end]))
			i = end
		default: // structure, true, false, null
			dst = append(dst, c)
			i++
		}
	}
	return dst, nil
}

// stringEnd returns the index after the closing quote of the string that begins at i in valid JSON.
func stringEnd(src []byte, i int) int {
	for i++; src[i] != '"'; i++ {
		if src[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isName says whether a string that ended at i is a property name.
func isName(src []byte, i int) bool {
	rest := bytes.TrimLeft(src[i:min(len(src), i+64)], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

func unquote(literal []byte) string {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(literal, &s) != nil { // unreachable in valid JSON
		return string(inner)
	}
	return s
}

// appendQuoted writes a JSON string literal as Newtonsoft does: quotes, backslashes and control characters escaped
// (lower case hexadecimal), also U+0085, U+2028 and U+2029, but not <, >, & as Go's encoder would, nor a slash. Source:
// Newtonsoft.Json Utilities/JavaScriptUtils.cs.
func appendQuoted(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == '\u0085' || r == '\u2028' || r == '\u2029' || (r == utf8.RuneError && size == 1) {
				dst = append(dst, s[start:i]...)
				if r == utf8.RuneError {
					dst = append(dst, "\uFFFD"...)
				} else {
					dst = fmt.Appendf(dst, `\u%04x`, r)
				}
				start = i + size
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\b':
			dst = append(dst, '\\', 'b')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendNumber writes a number as Newtonsoft prints it: whole numbers digit by digit, anything with a point or an
// exponent through a double, "R" format, with ".0" where the double is whole (JsonConvert.EnsureDecimalPlace).
func appendNumber(dst []byte, text string) []byte {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			text = "0"
		}
		return append(dst, text...)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return append(dst, text...) // beyond a double: the real reader prints an Infinity that no JSON parser takes
	}
	out := dotnetDouble(f)
	if !strings.ContainsAny(out, ".E") {
		out += ".0"
	}
	return append(dst, out...)
}

// dotnetDouble is double.ToString("R"): the shortest digits that give the same double, scientific when the decimal
// point would stand more than 17 places to the right or more than three zeros would follow it (docs/facts.md F8).
func dotnetDouble(f float64) string {
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(math.Abs(f), 'e', -1, 64), "e")
	digits = strings.Replace(digits, ".", "", 1)
	exp, _ := strconv.Atoi(exponent)
	scale := exp + 1 // digits before the decimal point
	sign := ""
	if math.Signbit(f) {
		sign = "-"
	}
	if f != 0 && (scale > 17 || scale < -3) {
		mantissa := digits[:1]
		if len(digits) > 1 {
			mantissa += "." + digits[1:]
		}
		expSign := '+'
		if exp < 0 {
			expSign, exp = '-', -exp
		}
		return fmt.Sprintf("%s%sE%c%02d", sign, mantissa, expSign, exp)
	}
	return sign + strconv.FormatFloat(math.Abs(f), 'f', -1, 64)
}

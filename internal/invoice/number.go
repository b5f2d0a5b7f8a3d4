package invoice

import (
	"math"
	"strconv"
	"strings"
)

// maxExact is the largest whole number that a JSON number carries exactly: Cosmos DB and most JSON writers use IEEE
// doubles. 2^53 is excluded, because 2^53+1 is rounded to it.
const maxExact = 1<<53 - 1

// number is an exact JSON number: 0.digits * 10^exp. The digits have no zero at either end, so equal numbers are equal
// values; zero has no digits. Nothing is expanded, so 1e999999999 costs as little as 1.
type number struct {
	negative bool
	digits   string
	exp      int
	// plain is true for a number without point and exponent.
	plain bool
}

// parseNumber reads a text that is exactly one JSON number: no plus sign, no leading zero, no blank.
func parseNumber(s string) (number, bool) {
	var n number
	s, n.negative = strings.CutPrefix(s, "-")
	integer, rest := cutDigits(s)
	if integer == "" || (len(integer) > 1 && integer[0] == '0') {
		return number{}, false
	}
	n.plain = rest == ""
	fraction := ""
	if after, found := strings.CutPrefix(rest, "."); found {
		if fraction, rest = cutDigits(after); fraction == "" {
			return number{}, false
		}
	}
	exp := 0
	if rest != "" {
		var ok bool
		if exp, ok = parseExponent(rest); !ok {
			return number{}, false
		}
	}
	digits := strings.TrimLeft(integer+fraction, "0")
	n.exp = len(digits) - len(fraction) + exp
	n.digits = strings.TrimRight(digits, "0")
	if n.digits == "" {
		return number{plain: n.plain}, true // -0 and 0e5 are 0
	}
	return n, true
}

// parseExponent reads "e+12". A larger exponent than a billion becomes a billion, which no column holds either.
func parseExponent(s string) (int, bool) {
	const beyond = 1_000_000_000
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	digits, rest := cutDigits(s)
	if digits == "" || rest != "" {
		return 0, false
	}
	exp, err := strconv.Atoi(digits)
	if err != nil || exp > beyond {
		exp = beyond
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

// cutDigits splits a text after its leading decimal digits.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// integral reports whether the number is whole, whatever its notation.
func (n number) integral() bool { return n.exp >= len(n.digits) }

// int64 returns a whole number within int64.
func (n number) int64() (int64, bool) {
	const mostDigits = 19
	if !n.integral() || n.exp > mostDigits {
		return 0, false
	}
	if n.digits == "" {
		return 0, true
	}
	text := n.digits + strings.Repeat("0", n.exp-len(n.digits))
	if n.negative {
		text = "-" + text
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// compare returns -1, 0 or +1 for n less than, equal to, or greater than o.
func (n number) compare(o number) int {
	if n.sign() != o.sign() {
		if n.sign() < o.sign() {
			return -1
		}
		return 1
	}
	c := n.exp - o.exp
	if c == 0 {
		c = strings.Compare(n.digits, o.digits)
	}
	switch {
	case c < 0:
		return -n.sign()
	case c > 0:
		return n.sign()
	}
	return 0
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// round formats the number with exactly scale digits after the point, rounded half away from zero like SQL Server's
// ROUND. ok is false if that takes more than precision digits.
func (n number) round(precision, scale int) (text string, ok bool) {
	keep := n.exp + scale // the number of digits that remain
	if keep > precision {
		return "", false
	}
	var result []byte
	switch {
	case keep >= len(n.digits):
		result = append([]byte(n.digits), strings.Repeat("0", keep-len(n.digits))...)
	case keep >= 0:
		result = []byte(n.digits[:keep])
		if n.digits[keep] >= '5' {
			result = increment(result)
		}
	}
	if len(result) > precision {
		return "", false
	}
	text = string(result)
	if missing := scale + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	if scale > 0 {
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if n.negative && len(result) > 0 && strings.Trim(string(result), "0") != "" {
		text = "-" + text
	}
	return text, true
}

// increment adds one to a string of decimal digits.
func increment(digits []byte) []byte {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] < '9' {
			digits[i]++
			return digits
		}
		digits[i] = '0'
	}
	return append([]byte{'1'}, digits...)
}

// asDouble is the number as a double, in its shortest digits. The host and Cosmos DB keep fractions as doubles and may
// print 17 digits where three came. Both must give the same value and hash.
func (n number) asDouble() number {
	text := "0." + n.digits + "e" + strconv.Itoa(n.exp)
	if n.negative {
		text = "-" + text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || n.digits == "" {
		return n // beyond doubles and every column
	}
	double, ok := parseNumber(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok {
		return n
	}
	return double
}

// numberIn reads a JSON number, or a text that is exactly one (as pandas and spreadsheets write).
func numberIn(span []byte) (number, bool) {
	switch typeOf(span) {
	case jsonNumber:
		return parseNumber(string(span))
	case jsonText:
		const longest = 400 // longer than any number; avoids a copy of 1.9 MB
		if text, complete := beginning(span, longest); complete {
			return parseNumber(text)
		}
		return number{}, false
	default:
		return number{}, false
	}
}

// quantity makes the value of an integer or decimal column. Bounds are checked before rounding: 1.00001 is more than 1
// and must be refused.
func (c Column) quantity(span []byte) (Value, *FieldError) {
	expected := "a number"
	if c.Kind == Integer {
		expected = "a whole number"
	}
	if c.Min != "" {
		expected += " from " + c.Min
	}
	if c.Limit != "" {
		expected += " to " + c.Limit
	}
	n, ok := numberIn(span)
	if !ok {
		return Null(), refused("not_a_number", expected, span)
	}
	if c.Kind == Decimal && typeOf(span) == jsonNumber {
		n = n.asDouble()
	}
	if !c.within(n) {
		return Null(), refused("out_of_range", expected, span)
	}
	if c.Kind == Integer {
		v, ok := n.int64()
		switch {
		case !n.integral():
			return Null(), refused("not_whole", expected, span)
		case !ok || (typeOf(span) == jsonNumber && (v > maxExact || v < -maxExact)):
			return Null(), refused("out_of_range", expected+"; beyond 2^53-1 as text, within 64 bits", span)
		}
		return Of(strconv.FormatInt(v, 10)), nil
	}
	text, ok := n.round(c.Precision, c.Scale)
	if !ok {
		return Null(), refused("out_of_range", expected+" with at most "+strconv.Itoa(c.Precision-c.Scale)+" digits before the point", span)
	}
	return Of(text), nil
}

// within checks a number against the column's inclusive bounds.
func (c Column) within(n number) bool {
	if low, ok := parseNumber(c.Min); ok && n.compare(low) < 0 {
		return false
	}
	high, ok := parseNumber(c.Limit)
	return !ok || n.compare(high) <= 0
}

// integerDigits returns the digits of a JSON number that is whole and exact.
func integerDigits(span []byte, expected string) (string, *FieldError) {
	n, _ := parseNumber(string(span))
	if !n.plain {
		return "", refused("wrong_type", expected+", or a number without point and exponent", span)
	}
	v, ok := n.int64()
	if !ok || v > maxExact || v < -maxExact {
		return "", refused("inexact", "digits beyond 2^53-1 as text, because JSON writers round such numbers", span)
	}
	return strconv.FormatInt(v, 10), nil
}

// wholeNumber reads a whole number of sql_writer or _ts tolerantly: anything else is 0.
func wholeNumber(span []byte) int64 {
	if typeOf(span) != jsonNumber {
		return 0
	}
	n, _ := parseNumber(string(span))
	v, _ := n.int64()
	return max(v, 0)
}

// count reads a counter; 0 if it is out of range.
func count(span []byte) int {
	if v := wholeNumber(span); v <= math.MaxInt32 {
		return int(v)
	}
	return 0
}

// wholeSecondsUp reads seconds, rounded up so that nothing is due too early; 0 if it is not a number.
func wholeSecondsUp(span []byte) int64 {
	if typeOf(span) != jsonNumber {
		return 0
	}
	n, _ := parseNumber(string(span))
	if n.integral() || n.negative {
		return wholeNumber(span)
	}
	up, ok := n.floor()
	if !ok || up == math.MaxInt64 {
		return 0
	}
	return up + 1
}

// floor returns the whole part of a positive number.
func (n number) floor() (int64, bool) {
	if n.exp <= 0 {
		return 0, true
	}
	n.digits = strings.TrimRight(n.digits[:min(n.exp, len(n.digits))], "0")
	return n.int64()
}

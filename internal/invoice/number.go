package invoice

import (
	"math"
	"strconv"
	"strings"
)

// maxExact is the largest whole number up to which a JSON number can be believed: Cosmos DB and most JSON writers keep
// numbers as IEEE doubles. 2^53 itself is out: 2^53+1 arrives as exactly that.
const maxExact = 1<<53 - 1

// number is a JSON number, exactly: 0.digits * 10^exp. The digits have no zero at either end, so that equal numbers
// are equal values and comparing needs no arithmetic; zero has no digits. Nothing is ever expanded, so 1e999999999
// costs as little as 1.
type number struct {
	negative bool
	digits   string
	exp      int
	// plain is true when the number was written with neither a point nor an exponent.
	plain bool
}

// parseNumber reads a text that is exactly one JSON number: no sign but minus, no leading zero, no blank.
func parseNumber(s string) (number, bool) {
	var n number
	s, n.negative = strings.CutPrefix(s, "-")
	whole, rest := cutDigits(s)
	if whole == "" || (len(whole) > 1 && whole[0] == '0') {
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
	digits := strings.TrimLeft(whole+fraction, "0")
	n.exp = len(digits) - len(fraction) + exp
	n.digits = strings.TrimRight(digits, "0")
	if n.digits == "" {
		return number{plain: n.plain}, true // -0 is 0, and so is 0e5
	}
	return n, true
}

// parseExponent reads "e+12". An exponent beyond any column is as good as a billion.
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

// cutDigits splits a text behind its leading decimal digits.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// integral reports whether the number is whole, however it was written.
func (n number) integral() bool { return n.exp >= len(n.digits) }

// int64 gives a whole number within int64.
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

// compare answers -1, 0 or +1 as n is smaller than, equal to, or larger than o.
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

// round writes the number with exactly scale digits behind the point, rounded half away from zero as SQL Server's
// ROUND does it; ok is false when that takes more than precision digits.
func (n number) round(precision, scale int) (text string, ok bool) {
	keep := n.exp + scale // how many of the digits stay
	if keep > precision {
		return "", false
	}
	var kept []byte
	switch {
	case keep >= len(n.digits):
		kept = append([]byte(n.digits), strings.Repeat("0", keep-len(n.digits))...)
	case keep >= 0:
		kept = []byte(n.digits[:keep])
		if n.digits[keep] >= '5' {
			kept = increment(kept)
		}
	}
	if len(kept) > precision {
		return "", false
	}
	text = string(kept)
	if missing := scale + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	if scale > 0 {
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if n.negative && len(kept) > 0 && strings.Trim(string(kept), "0") != "" {
		text = "-" + text
	}
	return text, true
}

// increment adds one to a row of decimal digits.
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

// asDouble is the number as every JSON reader on its way sees it, in its shortest digits: the host and Cosmos DB keep
// fractions as doubles and may print one with 17 digits that came with three. Both must give one value and one hash.
func (n number) asDouble() number {
	text := "0." + n.digits + "e" + strconv.Itoa(n.exp)
	if n.negative {
		text = "-" + text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || n.digits == "" {
		return n // beyond doubles, and beyond every column
	}
	double, ok := parseNumber(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok {
		return n
	}
	return double
}

// numberIn reads a JSON number, or a text that is exactly one (pandas and spreadsheets make those).
func numberIn(span []byte) (number, bool) {
	switch typeOf(span) {
	case jsonNumber:
		return parseNumber(string(span))
	case jsonText:
		const longest = 400 // more than any number needs; a text of 1.9 MB is not copied to find out
		if text, whole := beginning(span, longest); whole {
			return parseNumber(text)
		}
		return number{}, false
	default:
		return number{}, false
	}
}

// quantity makes the value of an integer or decimal column. Bounds are checked before rounding: 1.00001 is more than 1,
// and a confidence that is wrong by little is still wrong.
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

// within checks a number against the column's bounds, inclusively.
func (c Column) within(n number) bool {
	if low, ok := parseNumber(c.Min); ok && n.compare(low) < 0 {
		return false
	}
	high, ok := parseNumber(c.Limit)
	return !ok || n.compare(high) <= 0
}

// wholeDigits gives the digits of a whole JSON number that can be believed.
func wholeDigits(span []byte, expected string) (string, *FieldError) {
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

// whole reads a whole number of our own members, 0 when it is anything else: they are read tolerantly.
func whole(span []byte) int64 {
	if typeOf(span) != jsonNumber {
		return 0
	}
	n, _ := parseNumber(string(span))
	v, _ := n.int64()
	return max(v, 0)
}

// count reads how often something happened, 0 when that makes no sense.
func count(span []byte) int {
	if v := whole(span); v <= math.MaxInt32 {
		return int(v)
	}
	return 0
}

// wholeUp reads a number of seconds, rounded up so that nothing is due too early; 0 when it is not a number.
func wholeUp(span []byte) int64 {
	if typeOf(span) != jsonNumber {
		return 0
	}
	n, _ := parseNumber(string(span))
	if n.integral() || n.negative {
		return whole(span)
	}
	up, ok := n.floor()
	if !ok || up == math.MaxInt64 {
		return 0
	}
	return up + 1
}

// floor gives the whole part of a positive number.
func (n number) floor() (int64, bool) {
	if n.exp <= 0 {
		return 0, true
	}
	n.digits = strings.TrimRight(n.digits[:min(n.exp, len(n.digits))], "0")
	return n.int64()
}

package invoice

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxExact is the largest whole number that a JSON number carries exactly: Cosmos DB and most JSON writers use IEEE
// doubles. 2^53 is excluded, because 2^53+1 is rounded to it.
const maxExact = 1<<53 - 1

// longestNumber is the length of the longest text that is read exactly.
const longestNumber = 400

// Exact reads a decimal number: sign, digits, point, exponent. It gives nil for any other text, and for more than 400
// characters.
//
// math/big writes powers of ten out, so an exponent beyond 1000 becomes 1000. Whatever its 400 digits, the number stays
// too large for every column, or rounded to 0 in it.
func Exact(text string) *big.Rat {
	const beyond = 1000
	// math/big reads fractions and other bases, too
	if len(text) > longestNumber || strings.Trim(text, "+-.0123456789eE") != "" {
		return nil
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		exponent, err := strconv.ParseInt(text[e+1:], 10, 32)
		if errors.Is(err, strconv.ErrSyntax) {
			return nil
		}
		text = text[:e] + "e" + strconv.FormatInt(max(-beyond, min(exponent, beyond)), 10)
	}
	n, _ := new(big.Rat).SetString(text)
	return n
}

// parseNumber reads a text that is exactly one JSON number; nil if it is none. One of more than 400 characters is
// rounded to a double, as Cosmos DB rounds numbers: exact arithmetic is slow with many digits.
func parseNumber(text []byte) *big.Rat {
	if !json.Valid(text) {
		return nil
	}
	if len(text) > longestNumber {
		text = asDouble(text)
	}
	return Exact(string(text))
}

// asDouble rounds a JSON number to a double, in its shortest digits. The host and Cosmos DB keep fractions as doubles
// and may print 17 digits where three came. Both must give the same value and hash. A number beyond doubles becomes the
// largest one, which no column holds either.
func asDouble(text []byte) []byte {
	f, _ := strconv.ParseFloat(string(text), 64) // it is infinite after an error of range
	return strconv.AppendFloat(nil, max(-math.MaxFloat64, min(f, math.MaxFloat64)), 'e', -1, 64)
}

// toInt64 returns a whole number within int64.
func toInt64(n *big.Rat) (int64, bool) {
	if n == nil || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// rounded formats a number with exactly scale digits after the point, rounded half away from zero like SQL Server's
// ROUND. ok is false if that takes more than precision digits.
func rounded(n *big.Rat, precision, scale int) (text string, ok bool) {
	text = n.FloatString(scale)
	digits := strings.TrimLeft(strings.Replace(text, ".", "", 1), "-0")
	if digits == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return text, len(digits) <= precision
}

// numberIn reads a JSON number, or a text that is exactly one (as pandas and spreadsheets write); nil for anything
// else. fractions says that a JSON number is a double.
func numberIn(span []byte, fractions bool) *big.Rat {
	switch typeOf(span) {
	case jsonNumber:
		if fractions {
			span = asDouble(span)
		}
		return parseNumber(span)
	case jsonText:
		if text, complete := beginning(span, longestNumber); complete { // avoids a copy of 1.9 MB
			return parseNumber([]byte(text))
		}
	default:
	}
	return nil
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
	n := numberIn(span, c.Kind == Decimal)
	if n == nil {
		return Null(), refused("not_a_number", expected, span)
	}
	if !c.within(n) {
		refusal := refused("out_of_range", expected, span)
		if text, ok := c.exactly(n); ok {
			return Of(text), ruled(refusal)
		}
		return Null(), refusal
	}
	if c.Kind == Integer {
		v, ok := toInt64(n)
		switch {
		case !n.IsInt():
			return Null(), refused("not_whole", expected, span)
		case !ok || (typeOf(span) == jsonNumber && (v > maxExact || v < -maxExact)):
			return Null(), refused("out_of_range", expected+"; beyond 2^53-1 as text, within 64 bits", span)
		}
		return Of(strconv.FormatInt(v, 10)), nil
	}
	text, ok := rounded(n, c.Precision, c.Scale)
	if !ok {
		return Null(),
			refused("out_of_range",
				expected+" with at most "+strconv.Itoa(c.Precision-c.Scale)+" digits before the point", span)
	}
	return Of(text), nil
}

// exactly is the column's text of a number that it holds without rounding.
func (c Column) exactly(n *big.Rat) (string, bool) {
	const longest = 128 // bits before the point, more than any column has
	if n.Num().BitLen()-n.Denom().BitLen() > longest {
		return "", false
	}
	text, ok := rounded(n, c.Precision, c.Scale)
	if c.Kind == Integer {
		v, whole := toInt64(n)
		text, ok = strconv.FormatInt(v, 10), whole
	}
	return text, ok && Exact(text).Cmp(n) == 0
}

// within checks a number against the column's inclusive bounds.
func (c Column) within(n *big.Rat) bool {
	low, high := Exact(c.Min), Exact(c.Limit)
	return (low == nil || n.Cmp(low) >= 0) && (high == nil || n.Cmp(high) <= 0)
}

// integerDigits returns the digits of a JSON number that is whole and exact.
func integerDigits(span []byte, expected string) (string, *FieldError) {
	if bytes.ContainsAny(span, ".eE") {
		return "", refused("wrong_type", expected+", or a number without point and exponent", span)
	}
	v, ok := toInt64(parseNumber(span))
	if !ok || v > maxExact || v < -maxExact {
		return "", refused("inexact", "digits beyond 2^53-1 as text, because JSON writers round such numbers", span)
	}
	return strconv.FormatInt(v, 10), nil
}

// wholeNumber reads a whole number of sql_writer or _ts tolerantly: anything else is 0.
func wholeNumber(span []byte) int64 {
	v, _ := toInt64(parseNumber(span))
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
	n := parseNumber(span)
	if n == nil || n.IsInt() {
		v, _ := toInt64(n)
		return max(v, 0)
	}
	up := new(big.Int).Div(n.Num(), n.Denom()) // the next lower whole number
	up.Add(up, big.NewInt(1))
	v, _ := toInt64(new(big.Rat).SetInt(up))
	return max(v, 0)
}

package conformance

import (
	"math"
	"strings"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// valueCases: what is stored is what was sent, to the letter.
func valueCases() []sinkCase {
	return []sinkCase{
		{"NULL in every column that may be NULL, over values", nil, nullOverValues},
		{"the empty text is not NULL", nil, texts("")},
		{"letters beyond ASCII", nil, texts("ünï", "漢字", "né", "ß")},
		{"characters of 4 bytes", nil, texts("😀", "𝄞 a 😀", strings.Repeat("😀", 5))},
		{"quotes, backslashes and what looks like SQL or JSON", nil, texts(
			`'`, `"`, `''`, `\`, `\"`, `\u0041`, `'); --`, `{"a":1}`, `[1]`, `null`, `$.x`, `%s`, "`", `<&>`)},
		{"control characters, line separators and blanks at both ends", nil, texts(
			"\x01", "a\tb", "a\r\nb", "\u2028", "\u00a0", " a", "a ", " ", "\ufeffa", "\x7f")},
		{"texts that look like numbers, dates or booleans stay texts", nil, texts(
			"0042", "1e5", "1421550", "-0", "1.50", "0x1F", "true", "2025-12-17", "9007199254740993")},
		{"every text column at its full width", nil, fullWidth},
		{"every text column at its full width in characters of 4 bytes", nil, fullWidthWide},
		{"decimals at their limits, to the last digit", nil, decimalLimits},
		{"lines 1, 2^53+1 and 2^63-1", nil, hugeLines},
		{"times to the microsecond, and versions and snapshots of any size", nil, times},
	}
}

// with replaces the values of the columns that pick chooses.
func with(it commit.Item, pick func(invoice.Column) (string, bool)) commit.Item {
	values := make([]invoice.Value, len(it.Values))
	for i, c := range mapping.InUse().Columns() {
		values[i] = it.Values[i]
		if c.Source != invoice.FromDocument && c.Source != invoice.FromRequestTime {
			continue
		}
		if v, ok := pick(c); ok {
			values[i] = invoice.Of(v)
		}
	}
	it.Values = values
	return it
}

// moment is a time as a column takes it. One of a local column has what a datetime has.
func moment(c invoice.Column, at string) string {
	if c.Local {
		return at[:len("2025-12-17T16:30:15.99")] + "0000"
	}
	return at
}

// free reports whether a column takes any text.
func free(c invoice.Column) bool { return c.Kind == invoice.Text && len(c.Values) == 0 }

func nullOverValues(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 1, 2)
	s.gives(a, "applied(applied applied)")
	for i, c := range mapping.InUse().Columns() {
		if !c.Required {
			b.Values[i] = invoice.Null()
		}
	}
	s.gives(b, "applied(applied applied)")
	for i, c := range mapping.InUse().Columns() {
		if c.Keep {
			b.Values[i] = a.Values[i]
		}
	}
	s.holds(b)
}

// texts is a case: each text in every column that takes any, on a main line and a duplicate.
func texts(list ...string) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, 1, 2)
		for i, text := range list {
			a := with(doc("id with "+text, int64(10+i), 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
				return text, free(c) && len([]rune(text))*2 <= width(c)
			})
			s.gives(a, "applied(applied applied)")
			s.holds(a)
		}
	}
}

func fullWidth(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := with(doc("a", 10, 5, "x", 1), func(c invoice.Column) (string, bool) {
		return strings.Repeat("ü", width(c)), free(c)
	})
	s.gives(a, "applied(applied)")
	s.holds(a)
}

func fullWidthWide(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := with(doc("a", 10, 5, "x", 1), func(c invoice.Column) (string, bool) {
		return strings.Repeat("😀", width(c)/2), free(c) // two UTF-16 units each
	})
	s.gives(a, "applied(applied)")
	s.holds(a)
}

func decimalLimits(s *sinkTest) {
	s.h.AddLines(s, 1)
	for n, v := range []string{"0", "1", "0.1", "0.9999", "0.0001", "0.3333"} {
		a := with(doc("a", int64(10+n), 5, "x", 1), func(c invoice.Column) (string, bool) {
			whole, part, _ := strings.Cut(v, ".")
			if c.Kind != invoice.Decimal || c.Scale == 0 {
				return "", false
			}
			return whole + "." + (part + strings.Repeat("0", c.Scale))[:c.Scale], true
		})
		s.gives(a, "applied(applied)")
		s.holds(a)
	}
}

func hugeLines(s *sinkTest) {
	lines := []int64{1<<53 + 1, math.MaxInt64, 1, 1 << 53, 1<<53 + 2}
	s.h.AddLines(s, lines...)
	a := doc("a", 10, 5, "x", lines[:3]...)
	s.gives(a, "applied(applied applied applied)")
	s.holds(a)
	for _, line := range lines[3:] {
		require.Equal(s, SinkRow{Detail: true, Values: nullValues()}, s.h.Row(s, line),
			"the neighbours stay as they are")
	}
	b := doc("b", 11, 5, "y", math.MaxInt64, 1<<53+1)
	s.gives(b, "applied(applied applied)")
	s.holds(b)
}

func times(s *sinkTest) {
	s.h.AddLines(s, 1)
	for n, v := range []string{
		"1970-01-01T00:00:00.000000Z", "2025-12-17T16:30:15.000001Z", "2025-12-17T16:30:15.999999Z",
		"2024-02-29T23:59:59.500000Z", "9999-12-31T23:59:59.999999Z",
	} {
		a := with(doc("a", 1_766_000_000_000_000+int64(n), 253_402_300_799+int64(n), "x", 1),
			func(c invoice.Column) (string, bool) {
				return moment(c, v), c.Kind == invoice.Time
			})
		s.gives(a, "applied(applied)")
		s.holds(a)
	}
}

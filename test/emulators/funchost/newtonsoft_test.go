package funchost

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Expected values come from docs/facts.md F7, F8 and from Newtonsoft.Json's own tests (DateTimeParserTests are implied
// by JsonConvertTest.cs, JavaScriptUtilsTests.cs, JsonTextReaderTests).
func TestNewtonsoftRewritesDatesOnlyWhereItShould(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	require.NoError(t, err)
	for _, c := range []struct{ name, in, utc, chicago string }{
		{
			"trailing zeros of the fraction vanish", "2025-12-17T10:30:01.1000000Z", "2025-12-17T10:30:01.1Z",
			"2025-12-17T10:30:01.1Z",
		},
		{"a zero fraction vanishes", "2025-12-17T10:30:01.000Z", "2025-12-17T10:30:01Z", "2025-12-17T10:30:01Z"},
		{
			"seven digits stay", "2025-12-17T10:30:01.1234567Z", "2025-12-17T10:30:01.1234567Z",
			"2025-12-17T10:30:01.1234567Z",
		},
		{"a small z becomes a large one", "2025-12-17T10:30:01z", "2025-12-17T10:30:01Z", "2025-12-17T10:30:01Z"},
		{
			"an offset is moved to the host's zone", "2025-12-17T10:30:01+02:00", "2025-12-17T08:30:01+00:00",
			"2025-12-17T02:30:01-06:00",
		},
		{
			"a negative offset too", "2025-12-17T23:30:01.50-06:00", "2025-12-18T05:30:01.5+00:00",
			"2025-12-17T23:30:01.5-06:00",
		},
		{
			"an offset without a colon", "2025-12-17T10:30:01+0200", "2025-12-17T08:30:01+00:00",
			"2025-12-17T02:30:01-06:00",
		},
		{"an offset of hours only", "2025-12-17T10:30:01+02", "2025-12-17T08:30:01+00:00", "2025-12-17T02:30:01-06:00"},
		{"no zone stays without", "2025-12-17T10:30:01.10", "2025-12-17T10:30:01.1", "2025-12-17T10:30:01.1"},
		{"hour 24 is the next day", "2025-12-17T24:00:00Z", "2025-12-18T00:00:00Z", "2025-12-18T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.utc, rewriteDate(c.in, time.UTC))
			require.Equal(t, c.chicago, rewriteDate(c.in, chicago))
		})
	}
	for name, text := range map[string]string{
		"a blank instead of T":        "2025-12-17 10:30:15.100000-06:00",
		"18 characters":               "2025-12-17T10:30:1",
		"a date alone":                "2025-12-17",
		"no such day":                 "2025-02-30T10:30:01.100Z",
		"no such hour":                "2025-12-17T25:30:01.100Z",
		"eight digits and a Z":        "2025-12-17T10:30:01.10000000Z",
		"text behind it":              "2025-12-17T10:30:01.100Z and so on",
		"a blank in front":            " 2025-12-17T10:30:01.100Z",
		"a fraction of no digits":     "2025-12-17T10:30:01.Z",
		"41 characters":               "2025-12-17T10:30:01.1000000Z" + strings.Repeat(" ", 13),
		"an id that begins with time": "2025-12-17T10:30:01.100Z-4711",
	} {
		t.Run("untouched: "+name, func(t *testing.T) { require.Equal(t, text, rewriteDate(text, time.UTC)) })
	}
}

func TestNewtonsoftEscapes(t *testing.T) {
	// JavaScriptUtilsTests.cs: only quote, backslash, control characters, U+0085, U+2028 and U+2029 are escaped; HTML,
	// slashes and other letters are not.
	in := `{"a":"\u0001\u001f\t\n\r\f\b\"\\\/<>&'\u007f\u0085\u2028\u2029\u00fc\ud83d\ude00\ud800x"}`
	got, err := newtonsoft(nil, []byte(in), time.UTC)
	require.NoError(t, err)
	require.Equal(t,
		`{"a":"\u0001\u001f\t\n\r\f\b\"\\/<>&'`+"\u007f"+`\u0085\u2028\u2029ü😀`+"\uFFFD"+`x"}`, string(got))
}

func TestNewtonsoftNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"9007199254740993": "9007199254740993", "9223372036854775808": "9223372036854775808",
		"123456789012345678901234567890": "123456789012345678901234567890",
		"0":                              "0", "-0": "0", "-17": "-17",
		// Fractions go through a double: JsonConvert.EnsureDecimalPlace and double.ToString("R").
		"1.10": "1.1", "1421549.0": "1421549.0", "1e2": "100.0", "0.95": "0.95", "-0.0": "-0.0",
		"1E15": "1000000000000000.0", "1e14": "100000000000000.0", "0.0001": "0.0001",
		"0.00001": "1E-05", "1.5e-7": "1.5E-07",
		"12345678901234567.0": "12345678901234568.0", "123456789012345678.0": "1.2345678901234568E+17",
		"0.1234567890123456789": "0.12345678901234568",
	} {
		require.Equal(t, want, string(appendNumber(nil, in)), in)
	}
}

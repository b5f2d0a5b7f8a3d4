package jsonval_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

func TestParseKeepsOrderAndNumberText(t *testing.T) {
	const text = `{"z":1,"a":9007199254740993,"n":-0.10,"e":1E+2,"l":[true,false,null,"x"],"o":{}}`
	v, err := jsonval.Parse(" " + text + "\n")
	require.NoError(t, err)
	require.Equal(t, text, v.JSON())
	n, ok := v.Get("a").Int()
	require.True(t, ok)
	require.EqualValues(t, 9007199254740993, n)
	require.InDelta(t, 100, v.Get("e").Float(), 0)
}

func TestParseStrings(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`: "plain", `"\u0041\n\/\"\\"`: "A\n/\"\\", `"\ud83d\ude00"`: "😀", `"\ud800"`: "\uFFFD",
		`"\ud800\u0041"`: "\uFFFDA", `"\u0000"`: "\x00",
	} {
		v, err := jsonval.Parse(in)
		require.NoError(t, err, in)
		require.Equal(t, want, v.Text(), in)
		back, err := jsonval.Parse(v.JSON())
		require.NoError(t, err)
		require.Equal(t, want, back.Text())
	}
}

func TestParseLastOfTwinsWins(t *testing.T) {
	v, err := jsonval.Parse(`{"a":1,"b":2,"a":3}`)
	require.NoError(t, err)
	require.Equal(t, `{"b":2,"a":3}`, v.JSON())
	many := `{"m":0` + strings.Repeat(`,"x":1`, 40) + `}`
	v, err = jsonval.Parse(many)
	require.NoError(t, err)
	require.Equal(t, `{"m":0,"x":1}`, v.JSON())
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{
		``, ` `, `{`, `[1,]`, `{"a":}`, `{"a" 1}`, `{a:1}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `1e999`, `NaN`, `tru`,
		`"a`, "\"\n\"", `"\x"`, `"\u12"`, `"\u12g4"`, `1 2`, `{"a":1}}`, "\"\xff\"",
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		_, err := jsonval.Parse(bad)
		require.ErrorIs(t, err, jsonval.ErrSyntax, bad)
	}
}

func TestWithAndWithoutCopy(t *testing.T) {
	v, err := jsonval.Parse(`{"a":1,"b":2}`)
	require.NoError(t, err)
	w := v.With("a", jsonval.OfInt(9)).With("c", jsonval.OfBool(true)).Without("b")
	require.Equal(t, `{"a":9,"c":true}`, w.JSON())
	require.Equal(t, `{"a":1,"b":2}`, v.JSON())
}

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`1`, `2`, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`null`, `null`, true},
		{`null`, `false`, false},
		{`"a"`, `"a"`, true},
	} {
		a, err := jsonval.Parse(tc.a)
		require.NoError(t, err)
		b, err := jsonval.Parse(tc.b)
		require.NoError(t, err)
		require.Equal(t, tc.want, jsonval.Equal(a, b), "%s %s", tc.a, tc.b)
	}
	require.False(t, jsonval.Equal(jsonval.Value{}, jsonval.Value{}), "undefined equals nothing")
	require.True(t, jsonval.OfFloat(math.NaN()).IsUndefined())
}

// FuzzParse compares the parser with encoding/json: it may refuse more (depth, numbers beyond a double,
// bytes that are not UTF-8), never accept more, and what it writes reads back the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u00e9",null]}`, `[{"a":1,"a":2}]`, `"\ud800"`, `-0.5e10`, `{`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := jsonval.Parse(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid([]byte(text)))
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.NoError(t, json.Unmarshal([]byte(v.JSON()), &got))
		require.Equal(t, want, got)
	})
}

package invoice

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// jsonNumbers generates JSON numbers of every shape, most of them near a rounding limit.
func jsonNumbers() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?`),
		rapid.StringMatching(`-?[0-9]\.[0-9]{3}(4|5|49999|50000|50001|9999)`),
	)
}

// halfAwayFromZero is the expected rounding, with big.Rat.
func halfAwayFromZero(n *big.Rat, scale int) *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	scaled := new(big.Rat).Mul(n, new(big.Rat).SetInt(power))
	twice := new(big.Int).Mul(new(big.Int).Abs(scaled.Num()), big.NewInt(2))
	twice.Add(twice, scaled.Denom())
	rounded := twice.Quo(twice, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	if scaled.Sign() < 0 {
		rounded.Neg(rounded)
	}
	return new(big.Rat).SetFrac(rounded, power)
}

func TestDecimalsAreRoundedAsExactArithmeticRoundsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := jsonNumbers().Draw(t, "number")
		scale := rapid.IntRange(0, 6).Draw(t, "scale")
		precision := rapid.IntRange(scale+1, 20).Draw(t, "precision")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip()
		}
		want := halfAwayFromZero(exact, scale)
		most := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision-scale)), nil))
		fits := new(big.Rat).Abs(want).Cmp(most) < 0
		got, ok := rounded(parseNumber([]byte(text)), precision, scale)
		if ok != fits {
			t.Fatalf("%s in decimal(%d,%d): fits %v, want %v", text, precision, scale, ok, fits)
		}
		if canonical := want.FloatString(scale); ok && got != canonical {
			t.Fatalf("%s in decimal(%d,%d): %s, want %s", text, precision, scale, got, canonical)
		}
	})
}

func TestExactlyJSONNumbersAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+ ]?[0-9]{0,3}[.]?[0-9]{0,3}([eE][-+]?[0-9]{0,2})?[ a]?`).Draw(t, "text")
		got := parseNumber([]byte(text)) != nil
		want := json.Valid([]byte(text)) && strings.TrimSpace(text) == text
		if got != want {
			t.Fatalf("%q: number %v, want %v", text, got, want)
		}
	})
}

func TestSecondsAreRoundedUp(t *testing.T) {
	for text, want := range map[string]int64{
		"1734454920.0": 1734454920, "1734454920": 1734454920, "1734454920.000001": 1734454921, "0.1": 1, "0": 0,
		"-5": 0, "-0.5": 0, "1.7344549200001e9": 1734454921, "1e300": 0, "9223372036854775807": 9223372036854775807,
		"9223372036854775806.5": 9223372036854775807, "9223372036854775807.5": 0, `"5"`: 0,
		"null": 0, "": 0, "12e-1": 2,
	} {
		require.Equal(t, want, wholeSecondsUp([]byte(text)), text)
	}
}

// No column has whole numbers of a document yet.
func TestAnIntegerColumnTakesWholeNumbersExactly(t *testing.T) {
	c := Column{
		Table: Detail, Name: "QTY", Source: FromDocument, Paths: []string{"process_output.quantity"},
		Kind: Integer, Min: "-5",
	}
	for text, want := range map[string]string{
		"7": "7", "7.0": "7", "-5": "-5", `"12"`: "12", "-0": "0", `"9223372036854775807"`: "9223372036854775807",
		"9007199254740991": "9007199254740991",
		"1.5":              "not_whole", "-6": "out_of_range", "9007199254740993": "out_of_range",
		`"9223372036854775808"`: "out_of_range", `"x"`: "not_a_number", `""`: "not_a_number", "[]": "not_a_number",
	} {
		v, refusal := c.normalise([]byte(text))
		if refusal != nil {
			require.Equal(t, want, refusal.Code, text)
			require.Equal(t, refusal.ruled, !v.Null, "%s: a value that is known, or none", text)
			continue
		}
		require.Equal(t, want, v.Text, text)
	}
}

func TestADecimalMustFitItsColumn(t *testing.T) {
	c := Column{Kind: Decimal, Precision: 5, Scale: 2}
	v, refusal := c.normalise([]byte("-999.994"))
	require.Nil(t, refusal)
	require.Equal(t, "-999.99", v.Text)
	for _, text := range []string{"999.995", "1000", "1e999999999", "-1e5"} {
		_, refusal = c.normalise([]byte(text))
		require.NotNil(t, refusal, text)
		require.Equal(t, "out_of_range", refusal.Code)
	}
}

// Found by the property below: each invalid byte becomes one character.
func TestEveryByteThatIsNoUTF8IsACharacter(t *testing.T) {
	require.Equal(t, "\uFFFD\uFFFDa", decode([]byte("\"\xff\xffa\"")))
}

func TestTextsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	pieces := []string{
		"a", "é", "🔩", `\"`, `\\`, `\/`, `\n`, `\t`, `\b`, `\f`, `\r`, `\u0041`, `\u00e9`, `\uD83D\uDD29`, `\u0000`,
		`\ud800`, `\uDC00`, `\uFFFF`, "\xff",
	}
	rapid.Check(t, func(t *rapid.T) {
		span := []byte(`"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "") + `"`)
		var want string
		if err := json.Unmarshal(span, &want); err != nil {
			t.Fatal(err)
		}
		if got := decode(span); got != want {
			t.Fatalf("%s: %q, want %q", span, got, want)
		}
		units, flaw := measure(span)
		if bad := strings.ContainsRune(want, '\uFFFD'); bad != (flaw == notUnicode) {
			t.Fatalf("%s: flaw %q", span, flaw)
		}
		if flaw != notUnicode && units != len(utf16.Encode([]rune(want))) {
			t.Fatalf("%s: %d units", span, units)
		}
		if flaw == noFlaw && strings.ContainsRune(want, 0) {
			t.Fatalf("%s: NUL unseen", span)
		}
	})
}

func TestMembersAreWalkedAsEncodingJSONWalksThem(t *testing.T) {
	object := []byte(
		"{ \"a\" : [1, {\"b\":\"]}\"} ,\"\\\"\"] ,\n\"a\\u0062\":-1.5e3,\"\":{}\t, \"c\" : \"x\\\\\" , \"d\":true }")
	var want map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &want))
	got := map[string]json.RawMessage{}
	eachMember(object, func(name, value []byte) { got[string(name)] = value })
	require.Equal(t, want, got)
	var elements []string
	eachElement([]byte(` [ 1 , "a,b" ,[ ] , null ]`)[1:], func(i int, v []byte) {
		require.Len(t, elements, i)
		elements = append(elements, string(v))
	})
	require.Equal(t, []string{"1", `"a,b"`, "[ ]", "null"}, elements)
}

func TestAnObstacleOnTheWayIsRefusedNotSkipped(t *testing.T) {
	p := newPlan(nil)
	deep := p.at("process_output.inner.value")
	r := reading{plan: p, spans: make([][]byte, p.size)}
	p.root.collect([]byte(`{"process_output":{"inner":"text"}}`), r.spans)
	require.True(t, r.value(Column{Kind: Text}, []*node{deep}).Null)
	require.Len(t, r.invalid.Fields, 1)
	require.Equal(t, "process_output.inner", r.invalid.Fields[0].Path)
	require.False(t, r.invalid.Unreadable)
}

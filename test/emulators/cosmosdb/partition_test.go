package cosmosdb

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// The wanted keys are those of azure-cosmos 4.81.0 (Java), class PartitionKeyInternalHelper.
func TestEffectivePartitionKeysAreThoseOfTheJavaSDK(t *testing.T) {
	for text, want := range map[string]struct{ v1, v2 string }{
		`""`:   {"05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"},
		`"p1"`: {"05C1CFEDCF076008713200", "062B23DEC15212F01B9A85F4E93A940C"},
		`"ä"`:  {"05C1D1C139278C08C4A500", "2DB0C4B96610958D66AA9ACC5D4CB9B0"},
		`"` + strings.Repeat("x", 100) +
			`"`: {"05C1DD45A3938C08" + strings.Repeat("79", 100) + "00", "3F35F33CA8F8DA98DB46E18CDC66A245"},
		`"` + strings.Repeat("x", 101) +
			`"`: {"05C1DD45A3938C08" + strings.Repeat("79", 100) + "00", "300C91B3A88EBBFFE4DB4541EA0875FC"},
		`"` + strings.Repeat("ä", 60) +
			`"`: {"05C1E14D8783DE08" + strings.Repeat("C4A5", 50) + "C4", "2BC2D23FBA3D82441A26F82EFC5A6022"},
		`true`:  {"05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"},
		`false`: {"05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"},
		`null`:  {"05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"},
		`0`:     {"05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
		`1.5`:   {"05C1E9694167A805BFF8", "35C5DDEB6C795D16A9963C73C54E97BC"},
		`-7`:    {"05C1DB7F2FE524053FE4", "1B0AD9007F20B649B04248EBD09C9145"},
		`1e300`: {
			"05C1AB5FCFAF8005FE37F30F918103D738", "1234CB21048B20039B22F11DBB13CD7B",
		},
		``: {"05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"},
	} {
		value := jsonval.Value{} // a missing member
		if text != "" {
			var err error
			value, err = jsonval.Parse(text)
			require.NoError(t, err)
		}
		key, apiErr := newPartitionKey([]jsonval.Value{value})
		require.Nil(t, apiErr)
		require.Equal(t, want.v1, pkDefinition{version: 1}.effective(key), "version 1 of %s", text)
		require.Equal(t, want.v2, pkDefinition{version: 2}.effective(key), "version 2 of %s", text)
	}
}

func TestBoundsOfRangesArePositions(t *testing.T) {
	require.Equal(t, []string{"", "05C1D0", "05C1E0", "05C1E8", "FF"}, pkDefinition{version: 1}.boundaries(4))
	for _, position := range []uint64{0, 1, 2, 127, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		d := pkDefinition{version: 1}
		require.Equal(t, position, d.position(d.bound(position)))
	}
}

func TestVersionsOfPartitionKeys(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `2`: 2, `"V1"`: 1, `"V2"`: 2, `null`: 1, `3`: 0, `"2"`: 0, `true`: 0,
	} {
		v, err := jsonval.Parse(`{"paths":["/id"],"kind":"Hash","version":` + text + `}`)
		require.NoError(t, err)
		def, apiErr := parsePKDefinition(v)
		require.Equal(t, want, def.version, text)
		require.Equal(t, want == 0, apiErr != nil, text)
	}
}

// PathParser of the vendor's SDKs reads paths so.
func TestPartsOfPaths(t *testing.T) {
	for path, want := range map[string][]string{
		"/id":                   {"id"},
		"/request_details/id":   {"request_details", "id"},
		`/"post-processing"/id`: {"post-processing", "id"},
		`/'a/b'/c`:              {"a/b", "c"},
		`/"say \"a\""/b`:        {`say \"a\"`, "b"},
		`/a"b`:                  {`a"b`},
		"":                      nil,
		"id":                    nil,
		"/":                     nil,
		"/a/":                   nil,
		"//a":                   nil,
		`/"a`:                   nil,
		`/""`:                   nil,
		`/"a\"`:                 nil,
		`/"a"b`:                 nil,
	} {
		got, ok := pathParts(path)
		require.Equal(t, want != nil, ok, path)
		if ok {
			require.Equal(t, want, got, path)
		}
	}
}

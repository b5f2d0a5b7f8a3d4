package cosmossql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmossql"
	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

const sample = `{"id":"d1","n":5,"f":2.5,"neg":-3,"t":"Done","empty":"","yes":true,"no":false,"nil":null,
"list":[1,2,"x",{"k":1,"m":2}],"obj":{"a":{"b":7},"x-y":8},"post-processing":{"duplicate_detail_uids":[10,11]},"value":"v","big":9007199254740993,"_ts":1766000000}`

func parse(t testing.TB, text string) jsonval.Value {
	t.Helper()
	v, err := jsonval.Parse(text)
	require.NoError(t, err, text)
	return v
}

func params(t testing.TB) map[string]jsonval.Value {
	return map[string]jsonval.Value{
		"@n": parse(t, "5"), "@s": parse(t, `"Done"`), "@list": parse(t, `[1,5]`),
		"@nil": parse(t, "null"), "@none": {},
	}
}

// TestWhere is the truth table: want is true, false or undefined; both of the last two drop the document,
// but NOT tells them apart.
func TestWhere(t *testing.T) {
	for condition, want := range map[string]string{
		// comparisons
		"c.n = 5": "true", "c.n = 5.0": "true", "c.n != 5": "false", "c.n <> 6": "true",
		"c.n < 6": "true", "c.n <= 5": "true",
		"c.n > 5": "false", "c.n >= 5": "true", "5 = c.n": "true", "c.t = 'Done'": "true", `c.t = "Done"`: "true",
		"c.t = 'done'": "false",
		"c.t > 'Doe'":  "true", "c.yes = true": "true", "c.no < c.yes": "true", "c.nil = null": "true",
		"c.nil != null":                "false",
		"c.list = [1,2,'x',{m:2,k:1}]": "true", "c.obj.a = {b:7}": "true", "c.obj.a != {'b':8}": "true",
		"c.n = '5'": "undefined", "c.n != '5'": "undefined", "c.t = null": "undefined", "c.nil < 1": "undefined",
		"c.list < c.list": "undefined",
		"c.nope = 1":      "undefined", "c.nope != 1": "undefined", "c.nope = c.nope": "undefined",
		"c.nope = undefined": "undefined", "c.n = undefined": "undefined",
		// parameters
		"c.n = @n": "true", "c.t = @s": "true", "c.nil = @nil": "true", "IS_DEFINED(@none)": "false",
		"ARRAY_CONTAINS(@list, c.n)": "true",
		// members
		`c["obj"]["x-y"] = 8`: "true", "c['post-processing'].duplicate_detail_uids[1] = 11": "true",
		"c.list[3].k = 1": "true", "c.list[9] = 1": "undefined",
		"c[@s] = 1": "undefined", "c.value = 'v'": "true", "c.t.x = 1": "undefined", "c.list.x = 1": "undefined",
		"c.list[-1] = 1": "undefined", "c._ts >= 1766000000": "true",
		// logic with undefined
		"c.n = 5 AND c.t = 'Done'": "true", "c.n = 5 AND c.nope = 1": "undefined", "c.n = 6 AND c.nope = 1": "false",
		"c.nope = 1 AND c.n = 6": "false",
		"c.n = 5 OR c.nope = 1":  "true", "c.nope = 1 OR c.n = 5": "true", "c.n = 6 OR c.nope = 1": "undefined",
		"c.n = 6 OR c.n = 7": "false",
		"NOT (c.n = 5)":      "false", "NOT (c.nope = 1)": "undefined", "NOT (c.n = 6)": "true",
		"NOT IS_DEFINED(c.nope)": "true", "not not c.yes": "true",
		"NOT IS_NUMBER(c.nope)": "true", "NOT IS_NUMBER(c.t) OR c.t <= 5": "true", "c.t <= 5": "undefined",
		"NOT (IS_STRING(c.nope) AND c.nope IN ('x'))": "true", "NOT (c.nope IN ('x'))": "undefined",
		"NOT (IS_BOOL(c.n) AND c.n = true)": "true", "NOT (IS_BOOL(c.yes) AND c.yes = true)": "false",
		"IS_BOOL(c.nope) AND c.nope = true": "false",
		"c.n":                               "undefined", "c.n AND c.yes": "undefined", "NOT c.n": "undefined",
		"c.n = 5 or c.n = 6 and c.nope = 1": "true", "(c.n = 5 OR c.n = 6) AND c.nope = 1": "undefined",
		// IN, BETWEEN, LIKE
		"c.n IN (1, 5)": "true", "c.n IN (1, 2)": "false", "c.n NOT IN (1, 2)": "true", "c.n NOT IN (1, 5)": "false",
		"c.nope IN (1)": "undefined", "c.nope NOT IN (1)": "undefined",
		"c.t IN ('a', @s)": "true", "c.t IN (1, 'Done')": "true", "c.nil IN (null)": "true",
		"c.n IN (c.list[0], c.n)": "true", "c.list IN ([1])": "false",
		"c.n BETWEEN 5 AND 6": "true", "c.n BETWEEN 6 AND 7": "false", "c.n NOT BETWEEN 6 AND 7": "true",
		"c.nope BETWEEN 1 AND 2": "undefined", "c.t BETWEEN 'A' AND 'E'": "true",
		"c.n BETWEEN 'a' AND 'b'": "undefined",
		"c.t LIKE 'Do%'":          "true", "c.t LIKE 'do%'": "false", "c.t LIKE '%n_'": "true",
		"c.t LIKE '_one'":     "true",
		"c.t LIKE 'D[a-z]ne'": "true", "c.t LIKE 'D[^o]ne'": "false",
		"c.t NOT LIKE '%x%'": "true", "c.n LIKE '5'": "undefined", "c.nope LIKE '%'": "undefined",
		"c.empty LIKE '%'": "true", "c.empty LIKE '_'": "false",
		"'50%' LIKE '50!%' ESCAPE '!'": "true", "'50x' LIKE '50!%' ESCAPE '!'": "false", "c.t LIKE 'D%n%'": "true",
		"c.t LIKE c.t": "true", "'a[b' LIKE 'a[b'": "true",
		// functions
		"IS_DEFINED(c.nil)": "true", "IS_DEFINED(c.nope.x.y)": "false", "IS_NULL(c.nil)": "true",
		"IS_NULL(c.nope)": "false", "IS_STRING(c.t)": "true", "IS_NUMBER(c.t)": "false",
		"IS_BOOL(c.no)": "true", "IS_ARRAY(c.list)": "true", "IS_OBJECT(c.obj)": "true", "IS_PRIMITIVE(c.nil)": "true",
		"IS_PRIMITIVE(c.list)": "false", "is_primitive(c.nope)": "false",
		"STARTSWITH(c.t, 'Do')": "true", "STARTSWITH(c.t, 'do')": "false", "STARTSWITH(c.t, 'do', true)": "true",
		"STARTSWITH(c.t, 'do', false)": "false", "STARTSWITH(c.n, 'd')": "undefined",
		"ENDSWITH(c.t, 'ne')": "true", "CONTAINS(c.t, 'ON', true)": "true", "CONTAINS(c.nope, 'x')": "undefined",
		"StringEquals(c.t, 'DONE', true)": "true",
		"LOWER(c.t) = 'done'":             "true", "UPPER(c.t) = 'DONE'": "true", "TRIM(' a ') = 'a'": "true",
		"LENGTH(c.t) = 4": "true", "LENGTH('é') = 1": "true",
		"ARRAY_CONTAINS(c.list, 'x')": "true", "ARRAY_CONTAINS(c.list, 9)": "false",
		"ARRAY_CONTAINS(c.n, 9)": "undefined", "ARRAY_CONTAINS(c.list, {k:1})": "false",
		"ARRAY_CONTAINS(c.nope, 1)":                                      "undefined",
		"ARRAY_CONTAINS(c['post-processing'].duplicate_detail_uids, 11)": "true", "ARRAY_LENGTH(c.list) = 4": "true",
		"GetCurrentTimestamp() = 1766000000123": "true",
		// arithmetic and the rest
		"c.n + 1 = 6": "true", "c.n - 1 * 2 = 3": "true", "(c.n - 1) * 2 = 8": "true", "c.n / 2 = 2.5": "true",
		"c.n % 2 = 1": "true", "-c.n = -5": "true", "+c.n = 5": "true", "c.n + c.t = 1": "undefined",
		"c.n / 0 = 1":         "undefined",
		"c.nope ?? 'x' = 'x'": "true", "(c.nope ?? 'x') = 'x'": "true", "(c.nil ?? 'x') = null": "true",
		"c.yes ? c.yes : c.no": "true", "c.nope ? c.yes : c.no": "false",
		"c.n = 5 -- a comment": "true", "c.t = 'it\\'s' OR c.t = \"a\\u0041\"": "false", "1e2 = 100": "true",
		".5 = 0.5": "true", "true": "true", "undefined": "undefined",
	} {
		q, err := cosmossql.Parse("SELECT * FROM c WHERE " + condition)
		require.NoError(t, err, condition)
		require.NoError(t, q.Bind(params(t), time.UnixMilli(1766000000123)), condition)
		doc := parse(t, sample)
		not, err := cosmossql.Parse("SELECT VALUE NOT (" + strings.TrimSuffix(condition, "-- a comment") + ") FROM c")
		require.NoError(t, err, condition)
		require.NoError(t, not.Bind(params(t), time.UnixMilli(1766000000123)))
		got := "undefined"
		if q.Matches(doc) {
			got = "true"
		} else if not.Project(doc).True() {
			got = "false"
		}
		require.Equal(t, want, got, condition)
	}
}

func TestProject(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT c.n, c.nope, c.nil, c.t FROM c":                         `{"n":5,"nil":null,"t":"Done"}`,
		"SELECT c.obj.a.b, c.n AS number, c.t text FROM c":              `{"b":7,"number":5,"text":"Done"}`,
		`SELECT c["obj"]["x-y"], c.n + 1, c.list[0] FROM c`:             `{"x-y":8,"$1":6,"$2":1}`,
		"SELECT c.obj AS o FROM root AS c":                              `{"o":{"a":{"b":7},"x-y":8}}`,
		"SELECT VALUE c.big FROM docs c":                                `9007199254740993`,
		"SELECT VALUE {a: c.n, b: c.nope, 'c d': [c.t, c.nope]} FROM c": `{"a":5,"c d":["Done",null]}`,
		"SELECT VALUE 1 FROM c":                                         `1`,
		"select value c.id from c where c.n in (5)":                     `"d1"`,
		"SELECT r.obj.a FROM r":                                         `{"a":{"b":7}}`,
	} {
		q, err := cosmossql.Parse(query)
		require.NoError(t, err, query)
		require.NoError(t, q.Bind(nil, time.Time{}))
		require.Equal(t, want, q.Project(parse(t, sample)).JSON(), query)
	}
	q, err := cosmossql.Parse("SELECT VALUE c.nope FROM c")
	require.NoError(t, err)
	require.NoError(t, q.Bind(nil, time.Time{}))
	require.True(t, q.Project(parse(t, sample)).IsUndefined(), "no row")
	q, err = cosmossql.Parse("SELECT c FROM c")
	require.NoError(t, err)
	require.NoError(t, q.Bind(nil, time.Time{}))
	require.Equal(t, "5", q.Project(parse(t, sample)).Path("c", "n").JSON())
}

func TestParseErrors(t *testing.T) {
	for query, code := range map[string]string{
		"": "SC1002", "SELECT": "SC1002", "SELECT * FROM": "SC1002", "SELECT * FROM c WHERE": "SC1002",
		"SELECT *, c.n FROM c": "SC1001", "SELECT * FROM c WHERE c.n = ": "SC1002",
		"SELECT * FROM c WHERE c.n == 1": "SC1001", "SELECT * FROM c WHERE (c.n = 1": "SC1002",
		"SELECT * FROM c WHERE c.n IN ()": "SC1001", "SELECT * FROM c WHERE c.n IN 1": "SC1001",
		"SELECT * FROM c WHERE c.t = 'open": "SC1012", "SELECT * FROM c;": "SC1010",
		"SELECT * FROM c WHERE c.n = 1 c.n": "SC1001", "SELECT * FROM c WHERE c. = 1": "SC1001",
		"SELECT * FROM c WHERE d.n = 1": "SC2001", "SELECT d.n FROM c": "SC2001",
		"SELECT * FROM c WHERE FOO(c.n)": "SC2005", "SELECT * FROM c WHERE LOWER()": "SC2050",
		"SELECT * FROM c WHERE c.t LIKE 'x' ESCAPE 'ab'": "SC1001",
		"SELECT * FROM c WHERE c.n = 12x":                "SC1007", "SELECT * FROM c WHERE c.t = '\\q'": "SC1004",
		"SELECT c.n, c.n FROM c": "SC2022", "SELECT * FROM c ORDER c.n": "SC1001", "SELECT * FROM c OFFSET 1": "SC1002",
		"SELECT * FROM c WHERE c.n NOT 5": "SC1001", "SELECT * FROM c WHERE c.n BETWEEN 1": "SC1002",
		"SELECT * FROM c WHERE c.select = 1": "SC1001", "SELECT * FROM select": "SC1001",
		"SELECT * FROM c WHERE " + strings.Repeat("(", 500) + "1":       "SC3002",
		"SELECT * FROM c WHERE " + strings.Repeat("NOT ", 500) + "true": "SC3002",
		"SELECT * FROM c JOIN x IN c.list":                              "EMULATOR",
		"SELECT * FROM (SELECT * FROM c)":                               "EMULATOR",
		"SELECT * FROM x IN c.list":                                     "EMULATOR", "SELECT * FROM c.list": "EMULATOR",
		"SELECT * FROM c WHERE EXISTS(SELECT 1)": "EMULATOR", "SELECT * FROM c WHERE c.n IN (SELECT 1)": "EMULATOR",
		"SELECT * FROM c WHERE ~c.n = 1": "EMULATOR", "SELECT * FROM c WHERE c.n & 1": "EMULATOR",
		"SELECT * FROM c WHERE c.t || '!' = 'x'": "EMULATOR", "SELECT * FROM c WHERE NOT c.n = 1": "EMULATOR",
		"SELECT ARRAY(SELECT 1) FROM c":   "EMULATOR",
		"SELECT * FROM c ORDER BY RANK x": "EMULATOR", "SELECT 1": "EMULATOR",
	} {
		_, err := cosmossql.Parse(query)
		var e *cosmossql.Error
		require.True(t, errors.As(err, &e), "%s: %v", query, err)
		require.Equal(t, code, e.Code, "%s: %v", query, err)
		require.Equal(t, code == "EMULATOR" || code == "SC2005", e.NotImplemented, query)
	}
	_, err := cosmossql.Parse("SELECT * FROM c WHERE c.t = '" + strings.Repeat("x", cosmossql.MaxLength) + "'")
	require.ErrorContains(t, err, "longer than")
}

func TestConstants(t *testing.T) {
	for condition, want := range map[string]int{
		"c.id = 'a'": 1, "'a' = c.id": 1, "c.id IN ('a', @s)": 2, "c.n = 1 AND c.id = 'a'": 1,
		"(c.id = 'a' AND c.n = 1) AND c.t = 'x'": 1,
		"c.id = 'a' OR c.n = 1":                  -1, "c.id != 'a'": -1, "c.id = c.n": -1, "c.id NOT IN ('a')": -1,
		"c.id IN ('a', c.n)": -1, "c.x.id = 'a'": -1, "NOT (c.id = 'a')": -1, "c.id > 'a'": -1,
	} {
		q, err := cosmossql.Parse("SELECT * FROM c WHERE " + condition)
		require.NoError(t, err)
		require.NoError(t, q.Bind(params(t), time.Time{}))
		got, ok := q.Constants("id")
		require.Equal(t, want >= 0, ok, condition)
		if ok {
			require.Len(t, got, want, condition)
		}
	}
}

// FuzzParse: no text makes the parser or the evaluation panic, and every refusal is an *Error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM c WHERE c.n = 5 AND c['x'].y IN (1, @n) OR NOT (c.t LIKE 'D%' ESCAPE '!')",
		"SELECT TOP 2 c.a AS b, [1, {x: c.n}] FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 2",
		"SELECT VALUE COUNT(1) FROM c GROUP BY c.x", "SELECT c.n ?? 1, c.n ? 1 : 2 FROM c -- x",
		"from c where 'a\\u0041'",
	} {
		f.Add(s)
	}
	doc := parse(f, sample)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parseText := range []func(string) (*cosmossql.Query, error){cosmossql.Parse, cosmossql.ParseCondition} {
			q, err := parseText(text)
			if err == nil {
				err = q.Bind(params(t), time.Time{})
			}
			if err != nil {
				var e *cosmossql.Error
				require.True(t, errors.As(err, &e))
				continue
			}
			q.Matches(doc)
			if q.Unserved() == nil && q.Collected() {
				_, _ = q.Collect([]jsonval.Value{doc, doc})
			} else {
				q.Project(doc)
			}
			q.Constants("id")
			q.GatewayRefusal()
		}
	})
}

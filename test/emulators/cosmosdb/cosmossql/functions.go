package cosmossql

import (
	"strings"
	"unicode/utf8"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// function is a system function: how many arguments it takes and what it does.
type function struct {
	min, max int
	do       func(e *env, args []jsonval.Value) jsonval.Value
}

// functions is the table of what is served; names are upper case and looked up without regard to case.
// Wrong types answer Undefined, as the pages of the vendor's function reference say.
func functions() map[string]function {
	kind := func(kinds ...jsonval.Kind) function {
		return function{1, 1, func(_ *env, a []jsonval.Value) jsonval.Value {
			for _, k := range kinds {
				if a[0].Kind() == k {
					return jsonval.OfBool(true)
				}
			}
			return jsonval.OfBool(false)
		}}
	}
	return map[string]function{
		"IS_DEFINED": {1, 1, func(_ *env, a []jsonval.Value) jsonval.Value {
			return jsonval.OfBool(!a[0].IsUndefined())
		}},
		"IS_NULL": kind(jsonval.Null), "IS_BOOL": kind(jsonval.Bool), "IS_NUMBER": kind(jsonval.Number),
		"IS_STRING": kind(jsonval.String), "IS_ARRAY": kind(jsonval.Array), "IS_OBJECT": kind(jsonval.Object),
		"IS_PRIMITIVE": kind(jsonval.Null, jsonval.Bool, jsonval.Number, jsonval.String),

		"STARTSWITH": textTest(strings.HasPrefix), "ENDSWITH": textTest(strings.HasSuffix),
		"CONTAINS":     textTest(strings.Contains),
		"STRINGEQUALS": textTest(func(a, b string) bool { return a == b }),
		"LOWER":        textMap(strings.ToLower), "UPPER": textMap(strings.ToUpper), "TRIM": textMap(strings.TrimSpace),
		"LENGTH": {1, 1, func(_ *env, a []jsonval.Value) jsonval.Value {
			if a[0].Kind() != jsonval.String {
				return jsonval.Value{}
			}
			return jsonval.OfInt(int64(utf8.RuneCountInString(a[0].Text())))
		}},

		"ARRAY_CONTAINS": {2, 2, arrayContains},
		"ARRAY_LENGTH": {1, 1, func(_ *env, a []jsonval.Value) jsonval.Value {
			if a[0].Kind() != jsonval.Array {
				return jsonval.Value{}
			}
			return jsonval.OfInt(int64(a[0].Len()))
		}},

		"GETCURRENTTIMESTAMP": {0, 0, func(e *env, _ []jsonval.Value) jsonval.Value {
			return jsonval.OfInt(e.now.UnixMilli())
		}},
	}
}

// textTest is a test of two strings, with the optional third argument that ignores case.
func textTest(test func(a, b string) bool) function {
	return function{2, 3, func(_ *env, a []jsonval.Value) jsonval.Value {
		if a[0].Kind() != jsonval.String || a[1].Kind() != jsonval.String {
			return jsonval.Value{}
		}
		x, y := a[0].Text(), a[1].Text()
		if len(a) == 3 {
			if a[2].Kind() != jsonval.Bool {
				return jsonval.Value{}
			}
			if a[2].True() {
				x, y = strings.ToLower(x), strings.ToLower(y)
			}
		}
		return jsonval.OfBool(test(x, y))
	}}
}

func textMap(change func(string) string) function {
	return function{1, 1, func(_ *env, a []jsonval.Value) jsonval.Value {
		if a[0].Kind() != jsonval.String {
			return jsonval.Value{}
		}
		return jsonval.OfString(change(a[0].Text()))
	}}
}

// arrayContains looks for an element.
func arrayContains(_ *env, a []jsonval.Value) jsonval.Value {
	if a[0].Kind() != jsonval.Array || a[1].IsUndefined() {
		return jsonval.Value{}
	}
	for _, e := range a[0].Elements() {
		if jsonval.Equal(e, a[1]) {
			return jsonval.OfBool(true)
		}
	}
	return jsonval.OfBool(false)
}

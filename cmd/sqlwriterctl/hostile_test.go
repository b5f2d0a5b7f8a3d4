package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/opsapi"
)

// hostile moves the cursor, ends the line, turns the direction of reading, and colours by an 8-bit control character.
const hostile = "inv\x1b[1A\x1b[2K\r\nINV\u202eX\u009b31m\tend\x7f"

// hostileApp answers every call with all members filled, every text being hostile.
func hostileApp(t *testing.T) *bench {
	t.Helper()
	return answered(t, func(row opsapi.Row, _ any) (any, error) {
		answer := reflect.New(row.Answer)
		fill(answer.Elem())
		return answer.Interface(), nil
	})
}

// fill fills a value; a list gets one element. It leaves the page of a next request out, which would never end.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case json.RawMessage:
		text, _ := json.Marshal(hostile)
		v.SetBytes(text)
		return
	case []byte:
		v.SetBytes([]byte(hostile + "\xff\x9b"))
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others stay zero
	case reflect.String:
		v.SetString(hostile)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		v.Set(reflect.ValueOf(hostile))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.Append(v, one))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Next" {
				fill(v.Field(i))
			}
		}
	}
}

// local are the commands that ask no app; the texts of documents are in none of them.
var local = []string{"document submit", "ledger adopt", "ledger status", "ledger reopen", "migrate up", "migrate status", "migrate script", "column list", "completion", "version", "explain"} //nolint:gochecknoglobals // constant

// asked are the examples of all commands that ask the app.
func asked(t *testing.T) (all map[string][]string) {
	t.Helper()
	all = map[string][]string{}
	for path, lines := range examples() {
		for _, line := range lines {
			if m := cited.FindStringSubmatch(line); !slices.Contains(local, path) {
				all[line] = shellWords(m[1])
			}
		}
	}
	require.Greater(t, len(all), 30)
	return all
}

// What documents say reaches no terminal as it is: neither on stdout nor on stderr, from no command and no member of an
// answer.
func TestATerminalGetsNoControlCharacters(t *testing.T) {
	b := hostileApp(t)
	for line, args := range asked(t) {
		if len(args) > 1 && args[0] == "run" && slices.Contains(args, "--watch") {
			continue // its run never ends
		}
		for _, shows := range []bool{false, true} {
			for _, form := range []string{"table", "json"} {
				if !shows && slices.Contains(args, "get") {
					continue // a file gets every byte
				}
				b.shows, b.asks, b.stdin = shows, true, "y\n"
				b.run(t, append(slices.Clone(args), "-o", form)...)
				require.NotEmpty(t, b.out+b.errors, line)
				for _, r := range b.out + b.errors {
					require.True(t, r == '\n' || unicode.IsGraphic(r), "%s prints %q: %q", line, r, b.out+b.errors)
				}
				if !slices.Contains(args, "get") { // a file has lines
					require.NotContains(t, b.out+b.errors, "\nINV", line)
				}
			}
		}
	}
}

// An id that a shell would take for two is refused, before any is printed. JSON has it as it is.
func TestAnIDOfTwoLinesIsRefused(t *testing.T) {
	b := hostileApp(t)
	for _, args := range [][]string{
		{"document", "list"},
		{"document", "why", "x"},
		{"document", "retry", "--error-code", "2628", "--dry-run"},
		{"run", "items", "r"},
		{"run", "list"},
		{"finding", "list"},
		{"evidence", "show", "x"},
	} {
		require.Equal(t, exitFailed, b.run(t, append(args, "-q")...), args)
		require.Empty(t, b.out, args)
		require.Contains(t, b.errors, `\x1b[1A\x1b[2K\r\nINV\u202eX`, args)
		require.Contains(t, b.errors,
			"it has control characters, and -q prints one id a line\nhint: -o json has it as it is", args)
	}
	b.run(t, "document", "list", "-o", "json")
	var page struct{ Documents []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(b.out), &page))
	require.Equal(t, hostile, page.Documents[0].ID)
}

func TestAFileOfEvidenceIsGivenByteByByte(t *testing.T) {
	b := hostileApp(t)
	require.Equal(t, exitOK, b.run(t, "evidence", "get", "x"), b.errors)
	require.Equal(t, hostile+"\xff\x9b", b.out)
}

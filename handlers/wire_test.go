package handlers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The host's encoding, written independently of the decoder after its source: DefaultHttpWorkerService.cs,
// ScriptInvocationContextExtensions.cs GetHttpScriptInvocationContextValue.

// newtonsoft is JsonConvert.SerializeObject of a string: unlike Go's encoder it does not escape <, > and &.
func newtonsoft(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // strings always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// cosmosBody is the POST for a batch: the array as a string literal, twice, in a member of a JSON object.
func cosmosBody(array, metadata string) string {
	return `{"Data":{"documents":` + newtonsoft(newtonsoft(array)) + `},"Metadata":` + metadata + `}`
}

const sysOnly = `{"sys":{"MethodName":"CommitResults","UtcNow":"2026-01-02T03:04:05.1234567Z","RandGuid":"00000000-0000-0000-0000-000000000000"}}`

func FuzzEnvelope(f *testing.F) {
	for _, name := range goldens(f) {
		f.Add([]byte(readGolden(f, name).body))
	}
	for _, s := range []string{
		`{"Data":{"documents":"\"[1,\\u00e4\"`, `{"Data":{"documents":"\"[\\ud83d\\ude00]\""}}`, `"`, `{`,
		"\ufeff{}", `{"Data":{}} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []Kind{Array, Object} {
			e, err := decode(bytes.Clone(body), "documents", kind)
			if err != nil {
				var p *PayloadError
				require.ErrorAs(t, err, &p)
				continue
			}
			require.GreaterOrEqual(t, e.retryCount, 0)
			if !json.Valid(body) {
				continue // it begins with a byte order mark
			}
			same(t, body, e, kind)
		}
		// Every JSON array survives the host's encoding.
		var parts []json.RawMessage
		if json.Unmarshal(body, &parts) == nil && parts != nil && !tooDeep(body) {
			e, err := decode([]byte(cosmosBody(string(body), sysOnly)), "documents", Array)
			require.NoError(t, err)
			require.Len(t, e.elements, len(parts))
			for i := range parts {
				require.JSONEq(t, string(parts[i]), string(e.elements[i]))
			}
		}
	})
}

// same compares with a decoder of encoding/json alone.
func same(t *testing.T, body []byte, e envelope, kind Kind) {
	t.Helper()
	var outer struct{ Data map[string]json.RawMessage }
	if json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &outer) != nil {
		return // Go ignores the case of member names; the host and our decoder do not
	}
	value := outer.Data["documents"]
	for {
		var text string
		if json.Unmarshal(value, &text) != nil {
			break
		}
		value = json.RawMessage(text)
	}
	if !json.Valid(value) {
		return
	}
	if kind == Object {
		require.JSONEq(t, string(value), string(e.object))
		return
	}
	var parts []json.RawMessage
	require.NoError(t, json.Unmarshal(value, &parts))
	require.Len(t, e.elements, len(parts))
	for i := range parts {
		require.JSONEq(t, string(parts[i]), string(e.elements[i]))
	}
}

func tooDeep(body []byte) bool {
	return bytes.Count(body, []byte("[")) > maxDepth || bytes.Count(body, []byte("{")) > maxDepth
}

func BenchmarkDecode(b *testing.B) {
	document := `{"id":"2026-01-01 00:00:00.000001-06:00","text":` +
		newtonsoft(strings.Repeat(`a "quoted" \ word; `, 100_000)) + `}`
	body := []byte(cosmosBody("["+document+"]", sysOnly))
	work := make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		copy(work, body)
		if _, err := decode(work, "documents", Array); err != nil {
			b.Fatal(err)
		}
	}
}

package handlers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// hostile are texts that were trouble somewhere.
func hostile() []string {
	return []string{
		"", " ", "0", "-1", "1e9", "9223372036854775808", "NaN", "true", "null", "[]", "{}", `"`, "\\", "\x00",
		"a\x00b", "\u2028", "\U0001F4A5", "é",
		"../..", "a/b", "%2F", "%00", "?", "#", ",", ",,a,", "' OR 1=1 --", "$(id)", "<script>", "2026-01-02T03:04:05Z",
		"9999-12-31T23:59:59Z", "yesterday",
		"drain", "replay", "reindex", "failed", "committed", "run-1", "run-1/1", failedID, strings.Repeat("x", 5000),
		strings.Repeat("é", 400),
	}
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile()), rapid.String())
}

// value draws a JSON value for a parameter: mostly of its type, sometimes of another one.
func value(t *rapid.T, p opsapi.Parameter) any {
	if rapid.IntRange(0, 9).Draw(t, "another type") == 9 {
		return rapid.SampledFrom(
			[]any{nil, true, 1.5, -1, "x", []any{}, []any{nil}, map[string]any{"a": 1}}).Draw(t, p.Name)
	}
	switch {
	case p.Type == reflect.TypeFor[time.Time]():
		return rapid.SampledFrom(
			[]any{"2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "x"}).Draw(t, p.Name)
	case p.Type.Kind() == reflect.Bool:
		return rapid.Bool().Draw(t, p.Name)
	case p.Type.Kind() == reflect.Int, p.Type.Kind() == reflect.Int64:
		return rapid.OneOf(rapid.IntRange(-1, 30), rapid.Int()).Draw(t, p.Name)
	case p.Type.Kind() == reflect.Slice && p.Type.Elem().Kind() == reflect.Int64:
		return rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, p.Name)
	case p.Type.Kind() == reflect.Slice:
		return rapid.SliceOfN(texts(), 0, 3).Draw(t, p.Name)
	}
	return texts().Draw(t, p.Name)
}

// request draws a request of a row. Some lack parameters, some have one that nobody knows.
func request(t *rapid.T, r opsapi.Row, whole bool) opsCall {
	there := map[string][]string{
		"id": {failedID}, "run": {"run-1"}, "kind": {"drain", "replay"}, "name": {"runs"}, "batch": {"run-1/1"},
		"why": {"w"}, "finding": {"edited/7", "stale/7/x"}, "findings": {"edited/7"},
		"before": {"2025-01-01T00:00:00Z"},
	}
	values := map[string]any{}
	for _, p := range r.Parameters() {
		switch {
		// the first takes ids or a filter
		case whole && p.Name == "ids" && (r.Name == "document.retry" || r.Name == "document.diff"):
			values[p.Name] = there["id"]
		case whole && p.Name == "id" && r.Name == "evidence.restore":
			values[p.Name] = deletedID
		case whole && p.Name == "findings" && r.Name == "finding.accept":
			values[p.Name] = there[p.Name]
		case whole && r.Name == "line.release" && p.Name == "line":
			values[p.Name] = 1
		// which takes an id or a line
		case whole && (p.Required || p.Name == "why" || (p.Name == "id" && r.Name == "document.why")):
			values[p.Name] = rapid.SampledFrom(there[p.Name]).Draw(t, p.Name)
		case !whole && rapid.IntRange(0, 2).Draw(t, "with "+p.Name) > 0,
			whole && rapid.IntRange(0, 19).Draw(t, "also "+p.Name) == 19:
			values[p.Name] = value(t, p)
		}
	}
	if rapid.IntRange(0, 19).Draw(t, "with another") == 19 {
		values[rapid.SampledFrom([]string{"by", "Identities", "Headers", "sys", "code", "x\x00"}).Draw(t,
			"another")] = texts().Draw(t, "another's value")
	}
	c := opsCall{method: r.Method, path: r.Path}
	if r.Method == http.MethodPost {
		body, err := json.Marshal(values)
		require.NoError(t, err)
		c.body = string(body)
		if rapid.IntRange(0, 19).Draw(t, "broken") == 19 {
			c.body = rapid.OneOf(texts(), rapid.Just(c.body[:len(c.body)/2])).Draw(t, "body")
		}
		return c
	}
	query := url.Values{}
	for name, v := range values {
		text, isText := v.(string)
		if list, ok := v.([]string); ok {
			text, isText = strings.Join(list, ","), true
		}
		if !isText {
			raw, err := json.Marshal(v)
			require.NoError(t, err)
			text = string(raw)
		}
		query.Set(name, text)
	}
	c.path += "?" + query.Encode()
	return c
}

// schemas compiles the schema of each call's answer.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	f, err := os.Open("../internal/opsapi/openapi.json")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	description, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("openapi.json", description))
	all := map[string]*jsonschema.Schema{}
	for _, r := range opsapi.Table() {
		at := "openapi.json#/paths/" + strings.ReplaceAll("/"+r.Path, "/", "~1") + "/" + strings.ToLower(r.Method) +
			"/responses/200/content/application~1json/schema"
		all[r.Name], err = c.Compile(at)
		require.NoError(t, err)
	}
	all["problem"], err = c.Compile("openapi.json#/components/schemas/opsapi.Problem")
	require.NoError(t, err)
	return all
}

// Whatever a request holds, the answer is one that the description names, and never a mistake of ours.
func TestNoRequestBreaksTheAPI(t *testing.T) {
	answers, table := schemas(t), opsapi.Table()
	succeeded := map[string]bool{}
	check := func(rt *rapid.T) {
		o, store := operated(t)
		require.NoError(rt,
			store.StartRun(t.Context(), run.Run{ID: "run-1", SysName: "web", Kind: run.Drain}, run.Audit{}))
		c := reconcile.Comparison{ID: "compare-1", By: "ann", Why: "x"}
		_, err := store.Findings(nil).Begin(t.Context(), c)
		require.NoError(rt, err)
		require.NoError(rt,
			store.Findings(nil).Save(t.Context(), c,
				[]reconcile.Seen{
					{Key: reconcile.Key{Class: reconcile.Edited, Line: 7, Document: failedID}, Sure: true},
				}, nil))
		for _, r := range rapid.Permutation(table).Draw(rt, "calls") {
			c := request(rt, r, rapid.Bool().Draw(rt, "whole"))
			f, prefix := Ops(opened(o)), "v1/"
			c.identities = rapid.SampledFrom(
				[]string{keyed("operator"), keyed("default"), keyed(""), `{"IsAuthenticated":false}`}).Draw(rt, "who")
			if rapid.Bool().Draw(rt, "ui") {
				f, prefix = signedInUI(o), "api/v1/"
				c.headers = map[string]string{
					"Sec-Fetch-Site":        rapid.SampledFrom([]string{"same-origin", "cross-site"}).Draw(rt, "site"),
					"X-MS-CLIENT-PRINCIPAL": "e30=",
				}
				c.identities = rapid.SampledFrom(
					[]string{
						person("name", "Ann", "roles", "Operator"),
						person("name", "Bob", "roles", "Reader"), keyed("default"),
					}).Draw(rt, "person")
			}
			if c.path = prefix + c.path; rapid.IntRange(0, 19).Draw(rt, "another method") == 19 {
				c.method = rapid.SampledFrom(
					[]string{"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "x\x00"}).Draw(rt, "method")
				if i := slices.IndexFunc(table, func(other opsapi.Row) bool {
					return other.Path == r.Path && other.Method == c.method
				}); i >= 0 {
					r = table[i]
				}
			}
			before := changed(t, o, store)
			got := c.call(t, f)
			var body any
			require.NoError(rt, json.Unmarshal([]byte(got.Body), &body))
			status, err := strconv.Atoi(got.Status)
			require.NoError(rt, err)
			may := r.Role == opsapi.Reader || strings.Contains(c.identities, "Ann") ||
				c.identities == keyed("operator")
			if status == http.StatusOK {
				require.True(rt, may, "%s without the role", r.Name)
				require.NoError(rt, answers[r.Name].Validate(body), "%s: %s", r.Name, got.Body)
				succeeded[r.Name] = true
			} else {
				require.Contains(rt, []int{400, 401, 403, 404, 405, 409, 415}, status,
					"%s %+v: %s", r.Name, c, got.Body)
				require.NoError(rt, answers["problem"].Validate(body), got.Body)
			}
			if r.Method == http.MethodGet || status != http.StatusOK {
				require.Equal(rt, before, changed(t, o, store), "%s changed something: %s", r.Name, got.Body)
			}
		}
	}
	missing := func() (names []string) {
		for _, r := range table {
			// they need a batch, an ended run, a line that its document dropped
			if !succeeded[r.Name] &&
				!slices.Contains([]string{"batch.show", "batch.requeue", "run.resume", "line.release"}, r.Name) {
				names = append(names, r.Name)
			}
		}
		return names
	}
	const rounds = 10 // one round may miss a call
	for round := 0; round == 0 || (round < rounds && len(missing()) > 0 && !testing.Short()); round++ {
		rapid.Check(t, check)
	}
	require.True(t, len(missing()) == 0 || testing.Short(),
		"no request of these succeeded, so the generator is too wild: %v", missing())
}

// changed is all that an action can change: the audit log, the runs, the flow, the document.
func changed(t testing.TB, o *ops.Ops, store *inmem.RunStore) any {
	flow, err := o.Status(t.Context(), ops.StatusQuery{})
	require.NoError(t, err)
	why, err := o.Why(t.Context(), ops.WhyQuery{ID: failedID})
	require.NoError(t, err)
	return []any{len(store.Audits()), flow.Flow, why.Status}
}

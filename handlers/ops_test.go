package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
	"sqlwriter/internal/ui"
	"sqlwriter/test/inmem"
)

// failedID is the document of operated, which has failed. deletedID is one that failed and was deleted.
const (
	failedID  = "2025-12-17 10:30:00.000000-06:00-0001-1"
	deletedID = "2025-12-17 10:30:00.000000-06:00-0002-1"
)

// operated returns the use cases over adapters in memory, and their run store.
func operated(t testing.TB) (*ops.Ops, *inmem.RunStore) {
	t.Helper()
	docs, sink, store := inmem.NewDocuments(clock), inmem.NewSink(), inmem.NewRunStore(clock, "web")
	require.NoError(t,
		docs.Put(
			json.RawMessage(`{"id":"`+failedID+
				`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1},
		"process_output":{"manufacturer_name":"M","part_number":"4","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"sql_writer":{"status":"failed","last_error_kind":"document","last_error_code":"2628"}}`)))
	flow := breaker.New(inmem.NewControl(),
		breaker.Options{Build: "v1", SysName: "web", Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver, Now: clock})
	executor := run.NewExecutor(run.Ports{
		Store: store, Finder: docs, Documents: docs, Breaker: flow,
		Commit: commit.NewCommit(docs, sink, commit.Options{SysName: "web", Breaker: flow}),
	}, run.Options{SysName: "web", Now: clock, Wait: func(context.Context, time.Duration) error {
		return context.Canceled
	}})
	evidence, folder := inmem.NewEvidenceOn(clock),
		commit.EvidenceFolder(invoice.Document{ID: failedID, Main: 1, Hash: "h"}, time.Unix(0, 0))
	for _, name := range []string{commit.EvidenceOriginal, commit.EvidenceError, commit.EvidenceMetadata} {
		require.NoError(t, evidence.Keep(t.Context(), folder+"/"+name, []byte("{}")))
	}
	keepEvidence(t, evidence,
		`{"id":"`+deletedID+`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":2}}`)
	return ops.New(ops.Ports{
		Creator: docs, Documents: docs, Finder: docs, Breaker: flow, RunQueue: inmem.NewQueue(nil),
		Counts:      &inmem.Counts{},
		ReportNames: []run.ReportName{{Name: "runs", Meaning: "the latest"}}, Evidence: evidence,
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{
				Audit: store.AuditLog(), Runs: store, Reports: oneTable{}, Ledger: noLedger{}, Executor: executor,
				Findings: store.Findings(sink), Rows: sink.ReconcileRows("web", 0),
				Check: func(context.Context) error { return nil }, Mapping: invoice.DefaultMapping(),
				Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
					return sink.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
				},
			}, nil
		},
	}, ops.Options{SysName: "web", Now: clock}), store
}

// keepEvidence keeps the evidence of a document that failed and is not in the container.
func keepEvidence(t testing.TB, evidence *inmem.Evidence, original string) {
	t.Helper()
	doc, err := invoice.Reader{}.Read(json.RawMessage(original), clock())
	require.NoError(t, err)
	failed, err := json.Marshal(commit.PoisonError{DocumentID: doc.ID, Kind: "document", Code: "2628"})
	require.NoError(t, err)
	metadata, err := json.Marshal(
		commit.PoisonMetadata{DocumentID: doc.ID, HashVersion: invoice.DefaultMapping().Version()})
	require.NoError(t, err)
	folder := commit.EvidenceFolder(doc, time.Unix(0, 0))
	for name, content := range map[string]string{
		commit.EvidenceOriginal: original, commit.EvidenceError: string(failed),
		commit.EvidenceMetadata: string(metadata),
	} {
		require.NoError(t, evidence.Keep(t.Context(), folder+"/"+name, []byte(content)))
	}
}

type oneTable struct{}

func (oneTable) Names() []run.ReportName {
	return []run.ReportName{{Name: "runs", Meaning: "the latest"}}
}

func (oneTable) Report(context.Context, string) (run.Table, error) {
	return run.Table{Columns: []string{"a"}, Rows: [][]any{{1}}}, nil
}

// opened makes the use cases available.
func opened(o *ops.Ops) func(context.Context) (*ops.Ops, error) {
	return func(context.Context) (*ops.Ops, error) { return o, nil }
}

// signedInUI is Ui with the platform's authentication.
func signedInUI(o *ops.Ops) Mounted {
	return UI(opened(o), ui.New(ui.Options{SysName: "web", Mode: "live", Now: clock}),
		UIAccess{SignIn: true, Origin: "https://operators.example.com"})
}

// keyed is the host's identity of a function key.
func keyed(name string) string {
	return `{"AuthenticationType":"WebJobsAuthLevel","IsAuthenticated":true,"Claims":[{"Type":"http://schemas.microsoft.com/2017/07/functions/claims/keyid","Value":"` + name + `"}]}`
}

// opsCall is a request as the host forwards it.
type opsCall struct {
	method, path, body, media string
	// identities are those of the host; by default an operator's key.
	identities string
	headers    map[string]string
	// noParams omits Params, so that only the address has the path.
	noParams bool
}

func (c opsCall) object(t testing.TB, route string) string {
	t.Helper()
	path, query, _ := strings.Cut(c.path, "?")
	values := map[string]string{}
	parsed, err := url.ParseQuery(query)
	require.NoError(t, err)
	for name := range parsed {
		values[name] = parsed.Get(name)
	}
	if c.identities == "" {
		c.identities = keyed("operator-ann")
	}
	headers := map[string][]string{}
	for name, value := range c.headers {
		headers[name] = []string{value}
	}
	req := map[string]any{
		"Url": "https://app.azurewebsites.net/api/" + route + "/" + c.path, "Method": c.method,
		"Query": values, "Headers": headers,
		"Identities": json.RawMessage("[" + c.identities + "]"),
	}
	if !c.noParams {
		req["Params"] = map[string]string{"path": path}
	}
	if c.body != "" {
		req["Body"] = c.body
		if c.media == "" {
			c.media = "application/json; charset=utf-8"
		}
		headers["content-type"] = []string{c.media}
	}
	body, err := json.Marshal(map[string]any{"Data": map[string]any{"req": req}, "Metadata": map[string]any{}})
	require.NoError(t, err)
	return string(body)
}

// called is a function's answer to a caller.
type called struct {
	Status  string            `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	log     string
}

func get(path string) opsCall { return opsCall{method: http.MethodGet, path: path} }

func post(path, body string) opsCall { return opsCall{method: http.MethodPost, path: path, body: body} }

// as is the call with other identities.
func (c opsCall) as(identities string) opsCall {
	c.identities = identities
	return c
}

// call runs the request.
func (c opsCall) call(t testing.TB, f Mounted) called {
	t.Helper()
	var out bytes.Buffer
	h := Mount([]Mounted{f}, Options{Log: zerolog.New(&out), Now: clock})
	w := httptest.NewRecorder()
	h.ServeHTTP(w,
		httptest.NewRequest(http.MethodPost, host+"/"+f.Name, strings.NewReader(c.object(t, strings.ToLower(f.Name)))))
	require.Equal(t, http.StatusOK, w.Code, "the invocation itself never fails: %s %s", w.Body, out.String())
	var reply struct {
		Outputs struct {
			Res called `json:"res"`
		}
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	if strings.HasSuffix(reply.Outputs.Res.Headers["Content-Type"], "json") {
		require.True(t, json.Valid([]byte(reply.Outputs.Res.Body)))
	}
	reply.Outputs.Res.log = out.String()
	return reply.Outputs.Res
}

// A call that fails by a mistake of ours is an error of the log, with a reason and without a text that may be anything.
func TestACallThatFailsIsLoggedWithItsReason(t *testing.T) {
	for event, err := range map[string]error{
		`"level":"error","event":"invocation_failed".*"kind":"internal","code":"unclassified","reason":"\*errors.errorString","http_status":500.*"call":"status.get"`: errors.New("key-marker"),
		`"level":"info","event":"call_answered".*"kind":"infrastructure","code":"refused","reason":"test: nobody listens","http_status":503.*"call":"status.get"`:     fault.New(fault.Infrastructure, "test", "refused", "nobody listens"),
	} {
		got := get("v1/status").call(t, Ops(func(context.Context) (*ops.Ops, error) { return nil, err }))
		require.Regexp(t, event, got.log)
		require.NotContains(t, got.log+got.Body, "key-marker")
	}
}

// A body of the most documents that a run may name is accepted, a larger one is not held. Either is answered to the
// caller, because a failed invocation would wake somebody.
func TestOpsTakesTheMostDocumentsOfARun(t *testing.T) {
	o, _ := operated(t)
	ask := func(ids int) called {
		body, err := json.Marshal(map[string]any{
			"kind": "replay", "dry_run": true,
			"ids": slices.Repeat([]string{"2025-12-17 10:30:00.000000-06:00-0001-12345678901234567890"}, ids),
		})
		require.NoError(t, err)
		return post("v1/runs", string(body)).call(t, Ops(opened(o)))
	}
	got := ask(10_000)
	require.Equal(t, "200", got.Status, got.Body)
	got = ask(40_000)
	require.Equal(t, "413", got.Status, got.Body)
	require.Contains(t, got.Body, `"kind":"request","code":"usage"`)
	require.Contains(t, got.Body, "the body: expected at most 768 KiB, found more: name fewer documents in one request")
	require.Contains(t, got.log, `"level":"info","event":"call_answered","function":"Ops","http_status":413`)
}

func TestOpsServesEachCall(t *testing.T) {
	o, store := operated(t)
	run := func(c opsCall) map[string]any {
		t.Helper()
		got := c.call(t, Ops(opened(o)))
		require.Equal(t, "200", got.Status, got.Body)
		require.Equal(t, jsonType, got.Headers["Content-Type"])
		require.NotContains(t, got.log, "key-marker")
		var answer map[string]any
		require.NoError(t, json.Unmarshal([]byte(got.Body), &answer))
		return answer
	}
	require.Equal(t, "web", run(opsCall{method: "GET", path: "v1/Status/", noParams: true})["sys_name"])
	require.Equal(t, "failed",
		run(get("v1/documents/why?code=key-marker&id=" + url.QueryEscape(failedID)))["status"])
	started := run(
		opsCall{
			method: "POST", path: "v1/runs", body: `{"kind":"replay","all":true,"why":"w"}`,
			media: "application/vnd.x+json", identities: keyed("operator-ann"),
		})
	require.Len(t, run(get("v1/runs?limit=3"))["runs"], 1)
	id := started["run"].(string)
	require.Equal(t, "running", run(get("v1/runs/progress?run=" + id))["status"])
	require.Equal(t, []any{},
		run(get("v1/runs/items?outcome=failed,retry_scheduled&run=" + id))["items"],
		"a list is never null")
	require.Equal(t, []any{}, run(get("v1/batches"))["batches"])
	run(post("v1/flow/pause", `{"why":"w"}`))
	run(post("v1/flow/resume", `{"why":"w","force":true}`))
	run(post("v1/runs/cancel", `{"run":"`+id+`","why":"w"}`))
	run(post("v1/documents/mark-committed", `{"id":"`+failedID+`","why":"w"}`))
	require.Len(t, run(get("v1/audits?all=true"))["audits"], 5)
	require.Len(t, run(get("v1/reports"))["rows"], 1, "their names")
	require.Equal(t, []any{[]any{1.0}}, run(get("v1/reports?name=runs"))["rows"])
	require.Equal(t, "function key operator-ann", store.Audits()[0].By, "the audit log names the key")
}

func TestOpsRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for name, c := range map[string]struct {
		call   opsCall
		status string
		says   string
	}{
		"another path":    {get("v1/content-marker"), "404", `"known":["audits","batches",`},
		"another version": {get("v2/status"), "404", "no such path"},
		"no path":         {get(""), "404", "no such path"},
		"GET to act":      {get("v1/flow/pause"), "405", "flow/pause takes POST only"},
		"POST to ask":     {post("v1/status", "{}"), "405", "takes GET only"},
		"DELETE":          {opsCall{method: "DELETE", path: "v1/runs"}, "405", "takes GET and POST only"},
		"no body":         {post("v1/flow/pause", ""), "400", "found nothing"},
		"no JSON":         {post("v1/flow/pause", "{content-marker"), "400", "found text that is not JSON"},
		"cut off":         {post("v1/flow/pause", `{"why":"b"`), "400", "found text that is not JSON"},
		"a list":          {post("v1/flow/pause", `[]`), "400", "expected a JSON object, found something else"},
		"null":            {post("v1/flow/pause", `null`), "400", "expected a JSON object, found something else"},
		"who asks": {
			post("v1/flow/pause", `{"by":"ann","why":"w"}`), "400", "by: unknown member of flow.pause; known: why",
		},
		"an unknown name": {
			post("v1/runs", `{"al":true}`), "400", "al: unknown member of run.start; known: kind, ids, since,",
		},
		"another type": {post("v1/runs", `{"all":"yes"}`), "400", "all: expected a bool, found a string"},
		"no time":      {post("v1/runs", `{"since":"yesterday"}`), "400", "expected times such as"},
		"two objects":  {post("v1/flow/pause", `{"why":"b"}{}`), "400", "more behind it"},
		"bytes": {
			opsCall{method: "POST", path: "v1/flow/pause", body: `eyJieSI6ImIifQ==`, media: "application/octet-stream"},
			"415", "application/octet-stream",
		},
		"a form": {
			opsCall{method: "POST", path: "v1/flow/pause", body: `why=b`, media: "application/x-www-form-urlencoded"},
			"415", "application/json",
		},
		"an unknown parameter": {
			get("v1/runs?limt=1"), "400", "limt: unknown parameter of run.list; known: limit, page",
		},
		"one where there are none": {
			get("v1/openapi.json?all=1"), "400", "all: unknown parameter of api.show; known: none",
		},
		"one of an action": {
			post("v1/flow/pause?why=w", "{}"), "400", "why: flow.pause takes its parameters in the body",
		},
		"no limit":             {get("v1/runs?limit=all"), "400", "limit: expected a whole number"},
		"a negative limit":     {get("v1/batches?limit=-1"), "400", "limit"},
		"not all and not some": {get("v1/audits?all=some"), "400", "all: expected true or false"},
		"nothing for a value": {
			get("v1/batches?status="), "400", "status: expected a value, found nothing",
		},
		"no run": {get("v1/runs/progress"), "400", "run: expected the id of a run"},
	} {
		t.Run(name, func(t *testing.T) {
			o, store := operated(t)
			got := c.call.call(t, Ops(opened(o)))
			require.Equal(t, c.status, got.Status, got.Body)
			require.Equal(t, opsapi.ProblemType, got.Headers["Content-Type"])
			var p opsapi.Problem
			require.NoError(t, json.Unmarshal([]byte(got.Body), &p))
			require.Contains(t, got.Body, c.says)
			require.Equal(t, []any{"about:blank", "request"}, []any{p.Type, p.Kind})
			require.Equal(t, c.status == "405", got.Headers["Allow"] != "")
			require.Empty(t, store.Audits())
			require.NotContains(t, got.log, "content-marker")
		})
	}
	got := opsCall{method: "DELETE", path: "v1/runs"}.call(t, Ops(nil))
	require.Equal(t, "GET, POST", got.Headers["Allow"])
}

// Only a key whose name begins with operator acts: whoever made it meant that. Others read. Without a key nothing is
// done.
func TestAKeyHasARole(t *testing.T) {
	o, store := operated(t)
	principal := `{"AuthenticationType":"aad","IsAuthenticated":true,"RoleClaimType":"roles","Claims":[{"Type":"roles","Value":"Operator"}]}`
	for name, c := range map[string]struct{ identities, reads, acts string }{
		"operator":      {keyed("operator"), "200", "200"},
		"an operator's": {keyed("Operator-ann"), "200", "200"},
		"default":       {keyed("default"), "200", "403"},
		"master":        {keyed("master"), "200", "403"},
		"a tool without": {
			`{"AuthenticationType":"WebJobsAuthLevel","IsAuthenticated":true,"Claims":[]}`, "200", "403",
		},
		"a reader's":        {keyed("reader-monitor"), "200", "403"},
		"no operator's":     {keyed("no-operator"), "200", "403"},
		"nobody":            {`{"AuthenticationType":null,"IsAuthenticated":false,"Claims":[]}`, "401", "401"},
		"a person":          {principal, "401", "401"},
		"a person and key":  {principal + "," + keyed("reader"), "200", "403"},
		"a forged key":      {keyed("operator") + "," + keyed("reader"), "200", "403"},
		"not authenticated": {strings.Replace(keyed("operator"), "true", "false", 1), "401", "401"},
	} {
		got := get("v1/status").as(c.identities).call(t, Ops(opened(o)))
		require.Equal(t, c.reads, got.Status, "%s: %s", name, got.Body)
		before := len(store.Audits())
		got = post("v1/runs", `{"kind":"replay","all":true,"why":"w"}`).as(c.identities).call(t, Ops(opened(o)))
		require.Equal(t, c.acts, got.Status, "%s: %s", name, got.Body)
		require.Equal(t, c.acts == "200", len(store.Audits()) > before, name)
	}
}

func TestOpsMapsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status string
		says   []string
	}{
		"usage": {
			&ops.RequestError{Refusal: ops.Usage, Message: "why: missing"}, "400",
			[]string{`"kind":"request"`, `"code":"usage"`, "why: missing", `"title":"Bad Request"`},
		},
		"not found": {
			&ops.RequestError{Refusal: ops.NotFound, Message: "nobody"}, "404", []string{`"code":"not_found"`},
		},
		"conflict": {
			&ops.RequestError{Refusal: ops.Conflict, Message: "committed"}, "409", []string{`"code":"conflict"`},
		},
		"infrastructure": {
			fault.Wrap(fault.Infrastructure, "cosmos: read", "401", "refused", errors.New("key-marker")), "503",
			[]string{`"kind":"infrastructure"`, `"code":"401"`, "refused"},
		},
		"flow": {
			fault.New(fault.Infrastructure, "breaker", breaker.CodeOpen, "stopped since then"), "503",
			[]string{`"code":"breaker_open"`, "stopped since then"},
		},
		"contention": {
			fault.New(fault.Contention, "breaker", "412", "try again"), "409", []string{`"kind":"contention"`},
		},
		"deadline": {context.DeadlineExceeded, "503", []string{`"code":"deadline"`}},
		"internal": {
			fault.New(fault.Internal, "x", fault.CodeBug, "cannot be"), "500", []string{`"kind":"internal"`},
		},
		"unclassified": {errors.New("key-marker"), "500", []string{`"code":"unclassified"`}},
	} {
		t.Run(name, func(t *testing.T) {
			fails := func(context.Context) (*ops.Ops, error) { return nil, c.err }
			for _, call := range []opsCall{
				{method: "GET", path: "v1/runs"}, {method: "POST", path: "v1/runs/cancel", body: `{}`},
			} {
				got := call.call(t, Ops(fails))
				require.Equal(t, c.status, got.Status, got.Body)
				for _, says := range c.says {
					require.Contains(t, got.Body, says)
				}
				require.NotContains(t, got.Body+got.log, "key-marker")
				require.Contains(t, got.log, `"http_status":`+c.status)
			}
		})
	}
}

// person is the host's identity of somebody who signed in.
func person(claims ...string) string {
	id := map[string]any{
		"AuthenticationType": "aad", "IsAuthenticated": true,
		"RoleClaimType": "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
	}
	var all []map[string]string
	for i := 0; i < len(claims); i += 2 {
		all = append(all, map[string]string{"Type": claims[i], "Value": claims[i+1]})
	}
	id["Claims"] = all
	text, _ := json.Marshal(id)
	return string(text)
}

func TestAPersonHasARole(t *testing.T) {
	const object = "http://schemas.microsoft.com/identity/claims/objectidentifier"
	ann := []string{"preferred_username", "ann@example.com", "name", "Ann", object, "1-2-3"}
	as := func(more ...string) string { return person(append(ann[:len(ann):len(ann)], more...)...) }
	o, store := operated(t)
	for name, c := range map[string]struct {
		identities        string
		reads, acts, says string
	}{
		"an operator": {as("roles", "Operator"), "200", "200", ""},
		"by another type": {
			as("http://schemas.microsoft.com/ws/2008/06/identity/claims/role", "Operator"), "200", "200", "",
		},
		"a reader": {
			as("roles", "Reader"), "200", "403",
			"ann@example.com (1-2-3) has the role Reader; run.start requires Operator",
		},
		"both, in any order": {as("role", "Operator", "role", "Reader"), "200", "200", ""},
		"no role":            {as(), "403", "403", "ann@example.com (1-2-3) has no role in this app"},
		"another role": {
			as("roles", "operator", "roles", "Admin", "groups", "Operator"), "403", "403", "has no role",
		},
		"no name": {person("roles", "Operator"), "403", "403", "names nobody"},
		"an app":  {person("azp", "client-1", "oid", "4-5-6", "roles", "Operator"), "200", "200", ""},
		"nobody": {
			`{"AuthenticationType":null,"IsAuthenticated":false,"Claims":[]}`, "401", "401", "sign in first",
		},
		"nothing": {`null`, "401", "401", "sign in first"},
		"a key":   {keyed("default"), "401", "401", "sign in first"},
		"another provider": {
			strings.Replace(as("roles", "Operator"), `"aad"`, `"github"`, 1), "401", "401", "sign in first",
		},
		"not authenticated": {
			strings.Replace(as("roles", "Operator"), "true", "false", 1), "401", "401", "sign in first",
		},
		"a reader with a key":    {as("roles", "Reader") + "," + keyed("default"), "200", "403", "has the role Reader"},
		"an operator with a key": {as("roles", "Operator") + "," + keyed("reader"), "200", "200", ""},
	} {
		got := get("api/v1/status").as(c.identities).call(t, signedInUI(o))
		require.Equal(t, c.reads, got.Status, "%s: %s", name, got.Body)
		before := len(store.Audits())
		act := opsCall{
			method: "POST", path: "api/v1/runs", body: `{"kind":"replay","all":true,"why":"w"}`,
			identities: c.identities,
			headers:    map[string]string{"Sec-Fetch-Site": "same-origin"},
		}
		got = act.call(t, signedInUI(o))
		require.Equal(t, c.acts, got.Status, "%s: %s", name, got.Body)
		require.Contains(t, got.Body, c.says, name)
		require.NotContains(t, got.log, "ann", "who asks stands in the audit log")
		require.Equal(t, c.acts == "200", len(store.Audits()) > before, name)
		got = act.call(t, UI(opened(o), ui.New(ui.Options{}), UIAccess{}))
		require.Equal(t, "403", got.Status, name)
		require.Contains(t, got.Body, "WEBSITE_AUTH_ENABLED", "sign-in is off, whatever an identity says")
	}
	bys := map[string]bool{}
	for _, a := range store.Audits() {
		bys[a.By] = true
	}
	require.Equal(t, map[string]bool{"ann@example.com (1-2-3)": true, "client-1 (4-5-6)": true}, bys)
}

// A page of another site can make a signed-in browser send a request, but not with these headers.
func TestAnotherSiteCannotAct(t *testing.T) {
	o, store := operated(t)
	ann := person("name", "Ann", "roles", "Operator")
	for name, c := range map[string]struct {
		headers map[string]string
		status  string
	}{
		"our page":                {map[string]string{"sec-fetch-site": "same-origin", "Origin": "https://app"}, "200"},
		"a program with a token":  {map[string]string{"Authorization": "Bearer x"}, "200"},
		"another site":            {map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil"}, "403"},
		"another app of the host": {map[string]string{"Sec-Fetch-Site": "same-site"}, "403"},
		"a typed address":         {map[string]string{"Sec-Fetch-Site": "none"}, "403"},
		"with a token even": {
			map[string]string{"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer x"}, "403",
		},
		"an old browser":         {map[string]string{"Origin": "https://operators.example.com"}, "200"},
		"an old browser, evil":   {map[string]string{"Origin": "https://evil"}, "403"},
		"a token from elsewhere": {map[string]string{"Origin": "https://evil", "Authorization": "Bearer x"}, "403"},
		"an opaque origin":       {map[string]string{"Origin": "null"}, "403"},
		"nothing":                {nil, "403"},
	} {
		before := len(store.Audits())
		call := opsCall{
			method: "POST", path: "api/v1/runs", body: `{"kind":"replay","all":true,"why":"w"}`,
			identities: ann, headers: c.headers,
		}
		got := call.call(t, signedInUI(o))
		require.Equal(t, c.status, got.Status, "%s: %s", name, got.Body)
		require.Equal(t, c.status == "200", len(store.Audits()) > before, name)
		got = opsCall{method: "GET", path: "api/v1/status", identities: ann, headers: c.headers}.call(t, signedInUI(o))
		require.Equal(t, "200", got.Status, "a read changes nothing")
	}
}

// noLedger is a ledger without rows.
type noLedger struct{}

func (noLedger) LedgerLines(context.Context, []int64) ([]ops.LedgerLine, error) { return nil, nil }
func (noLedger) LedgerOf(context.Context, string) ([]ops.LedgerLine, error)     { return nil, nil }

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// operations returns a fake of the use case that records its input.
func (r *recorder) operations(context.Context) (Operations, error) { return fakeOps{r, nil}, nil }

type fakeOps struct {
	r   *recorder
	err error
}

func (f fakeOps) record(what string, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	fmt.Fprintf(&f.r.seen, "%s %s\n", what, text)
	return f.err
}

func (f fakeOps) Status(context.Context) (ops.Status, error) {
	return ops.Status{SysName: "web", At: clock(), Flow: ops.FlowView{State: breaker.Running, Says: "running"}}, f.record("status", nil)
}

func (f fakeOps) Why(_ context.Context, id string) (ops.Explanation, error) {
	return ops.Explanation{ID: id, Summary: "3 of 5 retries used; next try 10:20", Attempts: []ops.Tried{}}, f.record("why", id)
}

func (f fakeOps) Pause(_ context.Context, r ops.FlowRequest) (ops.FlowChange, error) {
	return ops.FlowChange{Audited: true}, f.record("pause", r)
}

func (f fakeOps) Resume(_ context.Context, r ops.FlowRequest) (ops.FlowChange, error) {
	return ops.FlowChange{Audited: true}, f.record("resume", r)
}

func (f fakeOps) MarkCommitted(_ context.Context, r ops.MarkRequest) (ops.Marked, error) {
	return ops.Marked{ID: r.ID, From: "failed"}, f.record("mark-committed", r)
}

func (f fakeOps) Audits(_ context.Context, q ops.AuditQuery) ([]ops.Audit, error) {
	return nil, f.record("audits", q)
}

func (f fakeOps) StartRun(_ context.Context, r ops.StartRequest) (ops.Started, error) {
	return ops.Started{Run: "drain-1", Kind: r.Kind, First: []ops.Match{}}, f.record("run/start", r)
}

func (f fakeOps) RunShow(_ context.Context, id string) (ops.RunProgress, error) {
	return ops.RunProgress{Run: run.Run{ID: id, Status: run.RunRunning}, Done: 7}, f.record("run/show", id)
}

func (f fakeOps) RunList(_ context.Context, limit int) ([]ops.RunSummary, error) {
	return []ops.RunSummary{{Run: run.Run{ID: "drain-1"}}}, f.record("run/list", limit)
}

func (f fakeOps) RunItems(_ context.Context, q ops.ItemQuery) ([]run.ItemOutcome, error) {
	return nil, f.record("run/items", q)
}

func (f fakeOps) RunCancel(_ context.Context, r ops.RunRequest) (ops.RunProgress, error) {
	return ops.RunProgress{}, f.record("run/cancel", r)
}

func (f fakeOps) RunResume(_ context.Context, r ops.ResumeRequest) (ops.RunProgress, error) {
	return ops.RunProgress{}, f.record("run/resume", r)
}

func (f fakeOps) BatchList(_ context.Context, q ops.BatchQuery) ([]run.Batch, error) {
	return nil, f.record("batch/list", q)
}

func (f fakeOps) BatchShow(_ context.Context, name string) (ops.BatchDetail, error) {
	return ops.BatchDetail{}, f.record("batch/show", name)
}

func (f fakeOps) BatchRequeue(_ context.Context, r ops.RequeueRequest) (ops.Requeued, error) {
	return ops.Requeued{Batches: 2}, f.record("batch/requeue", r)
}

func (f fakeOps) Report(_ context.Context, name string) (run.Table, error) {
	return run.Table{Columns: []string{"a"}, Rows: [][]any{{1}}}, f.record("report", name)
}

func (f fakeOps) ReportNames(context.Context) ([]run.ReportName, error) {
	return []run.ReportName{{Name: "runs", Meaning: "the latest"}}, f.record("reports", nil)
}

// opsCall is a request as the host forwards it.
type opsCall struct {
	method, path, body, media string
	// noParams omits Params, so that only the address has the path.
	noParams bool
}

func (c opsCall) object(t *testing.T) string {
	t.Helper()
	path, query, _ := strings.Cut(c.path, "?")
	values := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	req := map[string]any{"Url": "https://app.azurewebsites.net/api/ops/" + c.path, "Method": c.method, "Query": values, "Headers": map[string][]string{}}
	if !c.noParams {
		req["Params"] = map[string]string{"path": path}
	}
	if c.body != "" {
		req["Body"] = c.body
		media := c.media
		if media == "" {
			media = "application/json; charset=utf-8"
		}
		req["Headers"] = map[string][]string{"content-type": {media}}
	}
	body, err := json.Marshal(map[string]any{"Data": map[string]any{"req": req}, "Metadata": map[string]any{}})
	require.NoError(t, err)
	return string(body)
}

// call runs the request.
func (c opsCall) call(t *testing.T, open func(context.Context) (Operations, error)) (status, body, log string) {
	t.Helper()
	var out bytes.Buffer
	h := Mount([]Mounted{Ops(open)}, Options{Log: zerolog.New(&out), Now: clock})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/Ops", strings.NewReader(c.object(t))))
	require.Equal(t, http.StatusOK, w.Code, "the invocation itself never fails: %s", w.Body)
	var reply struct {
		Outputs struct {
			Res struct{ StatusCode, Body string } `json:"res"`
		}
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.True(t, json.Valid([]byte(reply.Outputs.Res.Body)))
	return reply.Outputs.Res.StatusCode, reply.Outputs.Res.Body, out.String()
}

func TestOpsPassesRequestsOn(t *testing.T) {
	for _, c := range []struct {
		call opsCall
		seen string
	}{
		{opsCall{method: "GET", path: "status"}, "status null"},
		{opsCall{method: "GET", path: "Status/", noParams: true}, "status null"},
		{opsCall{method: "GET", path: "why?id=a b"}, `why "a b"`},
		{opsCall{method: "GET", path: "run/list"}, "run/list 0"},
		{opsCall{method: "GET", path: "run/list?limit=5&code=key-marker"}, "run/list 5"},
		{opsCall{method: "GET", path: "audits?limit=7"}, `audits {"limit":7}`},
		{opsCall{method: "GET", path: "audits?run=r&action=RUN_CANCEL&all=true"}, `audits {"run":"r","action":"RUN_CANCEL","all":true}`},
		{opsCall{method: "GET", path: "audits?all=0"}, `audits {}`},
		{opsCall{method: "POST", path: "run/start", body: `{"kind":"replay","all":true,"by":"b","why":"w"}`, media: "application/vnd.x+json"}, `run/start {"kind":"replay","all":true,"by":"b","why":"w"}`},
		{opsCall{method: "POST", path: "pause", body: `{"by":"b","why":"w"}`}, `pause {"by":"b","why":"w"}`},
		{opsCall{method: "POST", path: "resume", body: `{"by":"b","why":"w","force":true}`}, `resume {"by":"b","why":"w","force":true}`},
		{opsCall{method: "POST", path: "mark-committed", body: `{"id":"i","by":"b","why":"w"}`}, `mark-committed {"id":"i","by":"b","why":"w"}`},
		{
			opsCall{method: "POST", path: "run/start", body: `{"kind":"replay","error_kind":"document","code":"2628","to":"2026-01-02T03:04:05Z","ids":["a"],"dry_run":true,"rate_per_minute":60,"limit":3,"pattern":"checkpoint","by":"b","why":"w"}`},
			`run/start {"kind":"replay","error_kind":"document","code":"2628","to":"2026-01-02T03:04:05Z","ids":["a"],"dry_run":true,"rate_per_minute":60,"limit":3,"pattern":"checkpoint","by":"b","why":"w"}`,
		},
		{opsCall{method: "GET", path: "run/show?id=drain-1"}, `run/show "drain-1"`},
		{opsCall{method: "GET", path: "Run/List/", noParams: true}, "run/list 0"},
		{opsCall{method: "GET", path: "run/list?limit=3"}, "run/list 3"},
		{opsCall{method: "GET", path: "run/items?run=r&outcome=failed, deferred&after=a b&limit=1000"}, `run/items {"run":"r","outcomes":["failed","deferred"],"after":"a b","limit":1000}`},
		{opsCall{method: "POST", path: "run/cancel", body: `{"run":"r","by":"b","why":"w"}`}, `run/cancel {"run":"r","by":"b","why":"w"}`},
		{opsCall{method: "POST", path: "run/resume", body: `{"run":"r","by":"b","why":"w"}`}, `run/resume {"run":"r","by":"b","why":"w"}`},
		{opsCall{method: "GET", path: "batch/list?run=r&status=failed&limit=9"}, `batch/list {"run":"r","status":"failed","limit":9}`},
		{opsCall{method: "GET", path: "batch/list"}, `batch/list {}`},
		{opsCall{method: "GET", path: "batch/show?id=r/12"}, `batch/show "r/12"`},
		{opsCall{method: "POST", path: "batch/requeue", body: `{"run":"r","by":"b","why":"w"}`}, `batch/requeue {"run":"r","by":"b","why":"w"}`},
		{opsCall{method: "GET", path: "report?name=workers"}, `report "workers"`},
		{opsCall{method: "GET", path: "reports"}, `reports null`},
	} {
		var r recorder
		status, body, log := c.call.call(t, r.operations)
		require.Equal(t, "200", status, "%v: %s", c.call, body)
		require.Equal(t, c.seen+"\n", r.seen.String())
		require.NotContains(t, log, "key-marker")
		require.Contains(t, log, `"http_status":200`)
	}
}

func TestOpsRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for name, c := range map[string]struct {
		call   opsCall
		status string
		says   string
	}{
		"another path":             {opsCall{method: "GET", path: "content-marker"}, "404", `"known_paths":["audits","batch/list",`},
		"no path":                  {opsCall{method: "GET", path: ""}, "404", "no such path"},
		"GET to act":               {opsCall{method: "GET", path: "pause"}, "405", "ops/pause takes POST only"},
		"POST to ask":              {opsCall{method: "POST", path: "status", body: "{}"}, "405", "takes GET only"},
		"no body":                  {opsCall{method: "POST", path: "pause"}, "400", "found nothing"},
		"no JSON":                  {opsCall{method: "POST", path: "pause", body: "content-marker"}, "400", "found text that is not JSON"},
		"cut off":                  {opsCall{method: "POST", path: "pause", body: `{"by":"b"`}, "400", "found text that is not JSON"},
		"a list":                   {opsCall{method: "POST", path: "pause", body: `[]`}, "400", "expected a JSON object, found a array"},
		"an unknown name":          {opsCall{method: "POST", path: "run/start", body: `{"al":true}`}, "400", `unknown field \"al\"`},
		"another type":             {opsCall{method: "POST", path: "run/start", body: `{"all":"yes"}`}, "400", "all: expected a bool, found a string"},
		"no time":                  {opsCall{method: "POST", path: "run/start", body: `{"from":"yesterday"}`}, "400", "expected times such as"},
		"two objects":              {opsCall{method: "POST", path: "pause", body: `{"by":"b"}{}`}, "400", "more behind it"},
		"bytes":                    {opsCall{method: "POST", path: "pause", body: `eyJieSI6ImIifQ==`, media: "application/octet-stream"}, "415", "application/octet-stream"},
		"a form":                   {opsCall{method: "POST", path: "pause", body: `by=b`, media: "application/x-www-form-urlencoded"}, "415", "application/json"},
		"no limit":                 {opsCall{method: "GET", path: "run/list?limit=all"}, "400", "limit"},
		"not all and not some":     {opsCall{method: "GET", path: "audits?all=some"}, "400", "all: expected true or false"},
		"no limit of runs":         {opsCall{method: "GET", path: "run/list?limit=0"}, "400", "limit"},
		"no limit of batches":      {opsCall{method: "GET", path: "batch/list?limit=-1"}, "400", "limit"},
		"a run begun by GET":       {opsCall{method: "GET", path: "run/start"}, "405", "ops/run/start takes POST only"},
		"a run without a verb":     {opsCall{method: "GET", path: "run"}, "404", `"batch/list","batch/requeue","batch/show","mark-committed",`},
		"an unknown name of a run": {opsCall{method: "POST", path: "run/start", body: `{"kind":"drain","al":true}`}, "400", `unknown field \"al\"`},
		"another's name":           {opsCall{method: "POST", path: "batch/requeue", body: `{"id":"x"}`}, "400", `unknown field \"id\"`},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			status, body, log := c.call.call(t, r.operations)
			require.Equal(t, c.status, status, body)
			require.Contains(t, body, c.says)
			require.Empty(t, r.seen.String())
			require.NotContains(t, log, "content-marker")
		})
	}
}

func TestOpsMapsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status string
		says   []string
	}{
		"usage":          {&ops.RequestError{Refusal: ops.Usage, Message: "why: missing"}, "400", []string{`"kind":"request"`, `"code":"usage"`, "why: missing"}},
		"not found":      {&ops.RequestError{Refusal: ops.NotFound, Message: "nobody"}, "404", []string{`"code":"not_found"`}},
		"conflict":       {&ops.RequestError{Refusal: ops.Conflict, Message: "committed"}, "409", []string{`"code":"conflict"`}},
		"infrastructure": {fault.Wrap(fault.Infrastructure, "cosmos: read", "401", "refused", errors.New("key-marker")), "503", []string{`"kind":"infrastructure"`, `"code":"401"`, "refused"}},
		"flow":           {fault.New(fault.Infrastructure, "breaker", breaker.CodeOpen, "stopped since then"), "503", []string{`"code":"breaker_open"`, "stopped since then"}},
		"contention":     {fault.New(fault.Contention, "breaker", "412", "try again"), "409", []string{`"kind":"contention"`}},
		"deadline":       {context.DeadlineExceeded, "503", []string{`"code":"deadline"`}},
		"internal":       {fault.New(fault.Internal, "x", "encode", "cannot be"), "500", []string{`"kind":"internal"`}},
		"unclassified":   {errors.New("key-marker"), "500", []string{`"code":"unclassified"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			use := func(context.Context) (Operations, error) { return fakeOps{&r, c.err}, nil }
			refuse := func(context.Context) (Operations, error) { return nil, c.err }
			for _, open := range []func(context.Context) (Operations, error){use, refuse} {
				for _, call := range []opsCall{{method: "GET", path: "run/list"}, {method: "POST", path: "run/cancel", body: `{}`}} {
					status, body, log := call.call(t, open)
					require.Equal(t, c.status, status, body)
					for _, says := range c.says {
						require.Contains(t, body, says)
					}
					require.NotContains(t, body+log, "key-marker")
					require.Contains(t, log, `"http_status":`+c.status)
				}
			}
		})
	}
}

// Lists are never null, and results have the member names that the command line reads.
func TestOpsAnswersAboutRuns(t *testing.T) {
	for path, says := range map[string]string{
		"run/items?run=r": `{"items":[]}`, "batch/list": `{"batches":[]}`, "reports": `{"reports":[{"name":"runs","meaning":"the latest"}]}`,
		"report?name=runs": `{"columns":["a"],"rows":[[1]]}`,
	} {
		var r recorder
		_, body, _ := opsCall{method: "GET", path: path}.call(t, r.operations)
		require.JSONEq(t, says, body, path)
	}
	var r recorder
	_, body, _ := opsCall{method: "GET", path: "run/show?id=a"}.call(t, r.operations)
	var p ops.RunProgress
	require.NoError(t, json.Unmarshal([]byte(body), &p))
	require.Equal(t, []any{"a", run.RunRunning, 7}, []any{p.ID, p.Status, p.Done})
}

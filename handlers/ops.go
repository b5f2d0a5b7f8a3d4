package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Operations are the operators' use cases: *ops.Ops. Errors: *ops.RequestError for an invalid request, otherwise
// classified ones.
type Operations interface {
	Status(ctx context.Context) (ops.Status, error)
	Why(ctx context.Context, id string) (ops.Explanation, error)
	Pause(ctx context.Context, r ops.FlowRequest) (ops.FlowChange, error)
	Resume(ctx context.Context, r ops.FlowRequest) (ops.FlowChange, error)
	MarkCommitted(ctx context.Context, r ops.MarkRequest) (ops.Marked, error)
	Audits(ctx context.Context, q ops.AuditQuery) ([]ops.Audit, error)
	RunOperations
}

// RunOperations are the use cases about runs.
type RunOperations interface {
	StartRun(ctx context.Context, r ops.StartRequest) (ops.Started, error)
	RunShow(ctx context.Context, id string) (ops.RunProgress, error)
	RunList(ctx context.Context, limit int) ([]ops.RunSummary, error)
	RunItems(ctx context.Context, q ops.ItemQuery) ([]run.ItemOutcome, error)
	RunCancel(ctx context.Context, r ops.RunRequest) (ops.RunProgress, error)
	RunResume(ctx context.Context, r ops.ResumeRequest) (ops.RunProgress, error)
	BatchList(ctx context.Context, q ops.BatchQuery) ([]run.Batch, error)
	BatchShow(ctx context.Context, name string) (ops.BatchDetail, error)
	BatchRequeue(ctx context.Context, r ops.RequeueRequest) (ops.Requeued, error)
	Report(ctx context.Context, name string) (run.Table, error)
	ReportNames(ctx context.Context) ([]run.ReportName, error)
}

// Ops mounts functions/Ops, the operators' API behind a function key. open returns the use cases, or an error of scope
// dependency while they are not available.
//
// Every body is a JSON object: the result (lists under their name), or {"error":{"reason","kind","code"}}. Error
// statuses: 400 (invalid request), 404, 405, 409 (the state does not allow it), 415, 500, 503 (a dependency fails).
func Ops(open func(context.Context) (Operations, error)) Mounted {
	return Mounted{
		Name: "Ops", Binding: "req", Payload: Object,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			request, err := readOpsRequest(in.Object)
			if err != nil {
				return Reply{}, err
			}
			body, err := request.serve(ctx, open)
			note := opsNote{method: request.Method, path: request.path, status: http.StatusOK}
			if err != nil {
				var detail errorDetail
				note.status, detail = opsError(err)
				note.kind, note.code = detail.Kind, detail.Code
				body = wireError{detail}
			}
			return Reply{HTTP: &HTTPReply{Status: note.status, Body: body}, Note: note}, nil
		},
	}
}

// opsRequest is the host's httpTrigger value (docs/facts.md F12).
type opsRequest struct {
	URL     string `json:"Url"`
	Method  string
	Query   map[string]string
	Headers map[string][]string
	Params  map[string]*string
	// Body is a text, base64 for octet streams; absent without a Content-Length or if that is 0.
	Body json.RawMessage
	// path is the path after ops/ in lower case; empty if it is unknown, because it may be anything.
	path string
}

func readOpsRequest(object json.RawMessage) (opsRequest, error) {
	var r opsRequest
	if err := json.Unmarshal(object, &r); err != nil {
		return r, &PayloadError{"Data.req", "an HTTP request", "something else"}
	}
	path := r.Params["path"]
	if path == nil {
		u, err := url.Parse(r.URL)
		if err != nil {
			return r, &PayloadError{"Data.req.Url", "an address", "something else"}
		}
		_, rest, _ := strings.Cut(u.Path, "/ops/")
		path = &rest
	}
	r.path = strings.ToLower(strings.Trim(*path, "/"))
	return r, nil
}

type opsRoute struct {
	method string
	serve  func(ctx context.Context, o Operations, r opsRequest) (any, error)
}

// opsRoutes are the routes by path. No parameter has the name code, which the host takes for the key.
func opsRoutes() map[string]opsRoute {
	routes := runRoutes()
	maps.Copy(routes, map[string]opsRoute{
		"status": {http.MethodGet, func(ctx context.Context, o Operations, _ opsRequest) (any, error) { return o.Status(ctx) }},
		"why":    {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) { return o.Why(ctx, r.Query["id"]) }},
		"audits": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			all, err := r.flag("all")
			if err != nil {
				return nil, err
			}
			return list(ctx, r, "audits", func(ctx context.Context, limit int) ([]ops.Audit, error) {
				return o.Audits(ctx, ops.AuditQuery{Run: r.Query["run"], Action: r.Query["action"], All: all, Limit: limit})
			})
		}},
		"pause":          {http.MethodPost, action(Operations.Pause)},
		"resume":         {http.MethodPost, action(Operations.Resume)},
		"mark-committed": {http.MethodPost, action(Operations.MarkCommitted)},
	})
	return routes
}

// runRoutes are the routes about runs.
func runRoutes() map[string]opsRoute {
	return map[string]opsRoute{
		"run/list": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return list(ctx, r, "runs", o.RunList)
		}},
		"run/show": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return o.RunShow(ctx, r.Query["id"])
		}},
		"run/items": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return list(ctx, r, "items", func(ctx context.Context, limit int) ([]run.ItemOutcome, error) {
				return o.RunItems(ctx, ops.ItemQuery{Run: r.Query["run"], Outcomes: ops.OutcomesOf(r.Query["outcome"]), After: r.Query["after"], Limit: limit})
			})
		}},
		"batch/list": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return list(ctx, r, "batches", func(ctx context.Context, limit int) ([]run.Batch, error) {
				return o.BatchList(ctx, ops.BatchQuery{Run: r.Query["run"], Status: run.BatchStatus(r.Query["status"]), Limit: limit})
			})
		}},
		"batch/show": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return o.BatchShow(ctx, r.Query["id"])
		}},
		"report": {http.MethodGet, func(ctx context.Context, o Operations, r opsRequest) (any, error) {
			return o.Report(ctx, r.Query["name"])
		}},
		"reports": {http.MethodGet, func(ctx context.Context, o Operations, _ opsRequest) (any, error) {
			names, err := o.ReportNames(ctx)
			return map[string][]run.ReportName{"reports": names}, err
		}},
		"run/start":     {http.MethodPost, action(Operations.StartRun)},
		"run/cancel":    {http.MethodPost, action(Operations.RunCancel)},
		"run/resume":    {http.MethodPost, action(Operations.RunResume)},
		"batch/requeue": {http.MethodPost, action(Operations.BatchRequeue)},
	}
}

// flag returns a parameter that is true or false; false if absent.
func (r opsRequest) flag(name string) (bool, error) {
	text, ok := r.Query[name]
	if !ok {
		return false, nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		return false, &ops.RequestError{Refusal: ops.Usage, Message: name + ": expected true or false"}
	}
	return is, nil
}

// list responds with a list under its name, at most as long as the parameter limit.
func list[T any](ctx context.Context, r opsRequest, name string, get func(context.Context, int) ([]T, error)) (any, error) {
	limit := 0
	if text, ok := r.Query["limit"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, &ops.RequestError{Refusal: ops.Usage, Message: "limit: expected a whole number above 0"}
		}
		limit = n
	}
	found, err := get(ctx, limit)
	if found == nil {
		found = []T{}
	}
	return map[string][]T{name: found}, err
}

// action decodes the body and calls the use case.
func action[Q, A any](do func(Operations, context.Context, Q) (A, error)) func(context.Context, Operations, opsRequest) (any, error) {
	return func(ctx context.Context, o Operations, r opsRequest) (any, error) {
		var q Q
		if err := r.decode(&q); err != nil {
			return nil, err
		}
		return do(o, ctx, q)
	}
}

// httpError is an error of the HTTP protocol, such as a wrong method.
type httpError struct {
	status int
	reason string
	known  []string
}

func (e *httpError) Error() string { return e.reason }

// serve finds the route and calls it.
func (r *opsRequest) serve(ctx context.Context, open func(context.Context) (Operations, error)) (any, error) {
	routes := opsRoutes()
	route, known := routes[r.path]
	if !known {
		r.path = ""
		return nil, &httpError{http.StatusNotFound, "no such path under ops/", slices.Sorted(maps.Keys(routes))}
	}
	if !strings.EqualFold(r.Method, route.method) {
		return nil, &httpError{http.StatusMethodNotAllowed, "ops/" + r.path + " takes " + route.method + " only", nil}
	}
	o, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return route.serve(ctx, o, *r)
}

// decode reads the body: one JSON object without unknown members.
func (r opsRequest) decode(to any) error {
	bad := func(format string, args ...any) error {
		return &ops.RequestError{Refusal: ops.Usage, Message: "the body: " + fmt.Sprintf(format, args...)}
	}
	if media, ok := r.media(); !ok {
		return &httpError{http.StatusUnsupportedMediaType, "the body: expected Content-Type application/json, found " + strconv.Quote(media), nil}
	}
	text := []byte(r.Body)
	var inner string
	if json.Unmarshal(text, &inner) == nil {
		text = []byte(inner)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return bad("expected a JSON object, found nothing (the host passes none on without a Content-Length)")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var clock *time.ParseError
	switch {
	case err == nil:
	case errors.As(err, &clock):
		return bad("expected times such as 2026-01-02T15:04:05-06:00, found something else")
	case errors.As(err, &kind) && kind.Field == "":
		return bad("expected a JSON object, found a %s", kind.Value)
	case errors.As(err, &kind):
		return bad("%s: expected a %s, found a %s", kind.Field, kind.Type, kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return bad("expected a JSON object, found text that is not JSON")
	default:
		return bad("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("expected one JSON object, found more behind it")
	}
	return nil
}

// media returns the body's content type and whether it is JSON. A missing type counts as JSON.
func (r opsRequest) media() (string, bool) {
	for name, values := range r.Headers {
		if !strings.EqualFold(name, "Content-Type") || len(values) == 0 {
			continue
		}
		media, _, err := mime.ParseMediaType(values[0])
		return media, err == nil && (media == jsonType || strings.HasSuffix(media, "+json"))
	}
	return "", true
}

// opsError maps an error to the caller's status code.
func opsError(err error) (int, errorDetail) {
	var protocol *httpError
	var request *ops.RequestError
	switch {
	case errors.As(err, &protocol):
		code := ops.Usage
		if protocol.status == http.StatusNotFound {
			code = ops.NotFound
		}
		return protocol.status, errorDetail{Reason: protocol.reason, Kind: "request", Code: string(code), KnownPaths: protocol.known}
	case errors.As(err, &request):
		status := map[ops.Refusal]int{ops.Usage: http.StatusBadRequest, ops.NotFound: http.StatusNotFound, ops.Conflict: http.StatusConflict}[request.Refusal]
		return status, errorDetail{Reason: request.Message, Kind: "request", Code: string(request.Refusal)}
	case fault.KindOf(err) == fault.Contention: // another request was faster; a new one may succeed
		return http.StatusConflict, describe(err)
	}
	return statusOf(err, false)
}

// opsNote is a request as fields of the log line, without the caller's texts.
type opsNote struct {
	method, path string
	status       int
	kind, code   string
}

// MarshalZerologObject writes the fields.
func (n opsNote) MarshalZerologObject(e *zerolog.Event) {
	method := "other"
	if n.method == http.MethodGet || n.method == http.MethodPost {
		method = n.method
	}
	e.Str("method", method).Str("path", "ops/"+n.path).Int("http_status", n.status)
	if n.code != "" {
		e.Str("kind", n.kind).Str("code", n.code)
	}
}

package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// Ops mounts functions/Ops, the operators' API behind a function key. open returns the use cases, or an error of scope
// dependency while they are not available.
func Ops(open func(context.Context) (*ops.Ops, error)) Mounted {
	return operators{
		name: "Ops", route: "/ops/", prefix: "v1", longest: maxCall, who: keyHolder, open: open,
	}.mounted()
}

// maxCall bounds the body of a call: a run may name 10,000 documents, whose ids have some 50 characters.
const maxCall = 768 << 10

// operators serves the table of calls (internal/opsapi) over one function. Every body is a JSON object: a result, or an
// opsapi.Problem with status 400 (invalid request), 401, 403 (role), 404, 405, 409 (the state does not allow it), 415,
// 500 or 503 (a dependency fails).
type operators struct {
	name string
	// route is the function's route in an address; prefix is what follows it before a row's path.
	route, prefix string
	// longest is the longest body of a caller in bytes.
	longest int64
	// who returns the caller. Errors: *httpError (401, 403).
	who func(r opsRequest) (opsapi.Who, error)
	// guard refuses actions that the caller did not mean; may be nil.
	guard func(r opsRequest) error
	open  func(context.Context) (*ops.Ops, error)
}

func (f operators) mounted() Mounted {
	return Mounted{
		Name: f.name, Binding: "req", Payload: Object, MaxBody: postOf(f.longest), Event: events.CallAnswered,
		Run: func(ctx context.Context, in Invocation) (Reply, error) {
			request, err := f.read(in.Object)
			if err != nil {
				return Reply{}, err
			}
			body, err := f.serve(ctx, &request)
			// without the caller's texts
			note := events.Fields{Method: methodOf(request.Method), Call: request.call, HTTPStatus: http.StatusOK}
			reply := &HTTPReply{Status: http.StatusOK, Body: body}
			if err != nil {
				p := problem(err)
				note.HTTPStatus, note.Kind, note.Code = p.Status, fault.Kind(p.Kind), p.Code
				if p.Kind != opsapi.KindRequest {
					note.Reason = p.Detail
				}
				reply = answer(p)
				if p.Status == http.StatusMethodNotAllowed {
					reply.Headers["Allow"] = strings.Join(p.Known, ", ")
				}
			}
			return Reply{HTTP: reply, Fields: note}, nil
		},
	}
}

// answer is the caller's answer of a problem.
func answer(p opsapi.Problem) *HTTPReply {
	return &HTTPReply{Status: p.Status, Body: p, Headers: map[string]string{"Content-Type": opsapi.ProblemType}}
}

// opsRequest is the host's httpTrigger value (docs/facts.md F12).
type opsRequest struct {
	URL     string `json:"Url"`
	Method  string
	Query   map[string]string
	Headers map[string][]string
	Params  map[string]*string
	// Identities are the host's. Nothing else says who asks: a caller can forge a header, and through it Metadata.
	Identities []identity
	// Body is a text, base64 for octet streams; absent without a Content-Length or if that is 0.
	Body json.RawMessage
	// path is the path behind the function's prefix.
	path string
	// call is the name of the call; empty if it is unknown, because the path may be anything.
	call string
}

func (f operators) read(object json.RawMessage) (opsRequest, error) {
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
		_, rest, _ := strings.Cut(u.Path, f.route)
		path = &rest
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(strings.Trim(*path, "/")), f.prefix+"/"); ok {
		r.path = rest
	}
	return r, nil
}

// httpError is an error of the HTTP protocol, such as a wrong method.
type httpError struct {
	status int
	reason string
	// known are the paths or methods that exist.
	known []string
}

func (e *httpError) Error() string { return e.reason }

func refused(status int, reason string) error { return &httpError{status: status, reason: reason} }

// serve finds the row and makes the call.
func (f operators) serve(ctx context.Context, r *opsRequest) (any, error) {
	who, err := f.who(*r)
	if err != nil {
		return nil, err
	}
	row, err := r.row()
	if err != nil {
		return nil, err
	}
	r.call = row.Name
	if err := who.Permit(row); err != nil { // before its body is read
		return nil, err
	}
	if f.guard != nil && row.Method != http.MethodGet {
		if err := f.guard(*r); err != nil {
			return nil, err
		}
	}
	body, err := r.body(row.Method)
	if err != nil {
		return nil, err
	}
	request, err := row.Read(r.Query, body)
	if err != nil {
		return nil, err
	}
	o, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	return opsapi.Make(ctx, opsapi.Direct(o, who), row, request)
}

// row returns the call of a path and a method.
func (r *opsRequest) row() (opsapi.Row, error) {
	paths, methods := map[string]bool{}, []string(nil)
	for _, row := range opsapi.Table() {
		paths[row.Path] = true
		if row.Path != r.path {
			continue
		}
		if row.Method == strings.ToUpper(r.Method) {
			return row, nil
		}
		methods = append(methods, row.Method)
	}
	if methods == nil {
		return opsapi.Row{}, &httpError{http.StatusNotFound, "no such path", slices.Sorted(maps.Keys(paths))}
	}
	slices.Sort(methods)
	return opsapi.Row{},
		&httpError{http.StatusMethodNotAllowed, r.path + " takes " + strings.Join(methods, " and ") + " only", methods}
}

// body returns the text of an action's body.
func (r *opsRequest) body(method string) ([]byte, error) {
	if method == http.MethodGet {
		return nil, nil
	}
	if media, ok := r.media(); !ok {
		return nil, refused(http.StatusUnsupportedMediaType,
			"the body: expected Content-Type application/json, found "+strconv.Quote(media))
	}
	var inner string
	if json.Unmarshal(r.Body, &inner) == nil {
		return []byte(inner), nil
	}
	return r.Body, nil
}

// media returns the body's content type and whether it is JSON. A missing type counts as JSON.
func (r *opsRequest) media() (string, bool) {
	text := r.header("Content-Type")
	if text == "" {
		return "", true
	}
	media, _, err := mime.ParseMediaType(text)
	return media, err == nil && (media == jsonType || strings.HasSuffix(media, "+json"))
}

// header returns the first value of a header.
func (r *opsRequest) header(name string) string {
	for found, values := range r.Headers {
		if strings.EqualFold(found, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// problem maps an error to the caller's answer.
func problem(err error) opsapi.Problem {
	var protocol *httpError
	var denied *opsapi.DeniedError
	var request *ops.RequestError
	p := opsapi.Problem{Type: "about:blank", Kind: opsapi.KindRequest}
	switch {
	case errors.As(err, &protocol):
		p.Status, p.Detail, p.Code, p.Known = protocol.status, protocol.reason, string(ops.Usage), protocol.known
		switch protocol.status {
		case http.StatusNotFound:
			p.Code = string(ops.NotFound)
		case http.StatusUnauthorized, http.StatusForbidden:
			p.Code = "denied"
		}
	case errors.As(err, &denied):
		p.Status, p.Detail, p.Code = http.StatusForbidden, denied.Error(), "denied"
	case errors.As(err, &request):
		p.Status, p.Detail, p.Code = opsapi.StatusOf(request.Refusal), request.Message, string(request.Refusal)
	default:
		status, detail := statusOf(err, false)
		if fault.KindOf(err) == fault.Contention { // another request was faster; a new one may succeed
			status = http.StatusConflict
		}
		p.Status, p.Detail, p.Kind, p.Code = status, detail.Reason, detail.Kind, detail.Code
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// methodOf is a method of the API, or "other".
func methodOf(method string) string {
	if method == http.MethodGet || method == http.MethodPost {
		return method
	}
	return "other"
}

package funchost

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// router is the host's own HTTP server: functions, and the few host paths that tools use.
type router struct {
	host  *Host
	http  []*function // in the order of their routes
	queue throttle
	start int64
}

func newRouter(h *Host) http.Handler {
	r := &router{host: h, queue: newThrottle(h.config.http), start: h.clock.Now().UnixMilli()}
	for _, f := range h.functions {
		if f.http != nil {
			r.http = append(r.http, f)
		}
	}
	slices.SortStableFunc(r.http, func(a, b *function) int { return compareRoutes(a.http.route, b.http.route) })
	return readHeads(r)
}

// ServeHTTP finds the path by itself: http.ServeMux redirects paths that the host takes as they are.
func (r *router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := requestPath(request.URL.EscapedPath())
	name, manual := strings.CutPrefix(path, "/admin/functions/")
	switch {
	case path == "/" && request.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w,
			"<!DOCTYPE html>\n<html>\n<head>\n    <title>Your Azure Function App is up and running.</title>\n</head>\n</html>\n")
	case path == "/admin/host/status" && request.Method == http.MethodGet:
		r.admin(w, request, r.status)
	case manual && request.Method == http.MethodPost:
		r.admin(w, request, func(w http.ResponseWriter, request *http.Request) { r.manual(w, request, name) })
	default:
		r.queue.serve(w, func() { r.function(w, request, path) }) //nolint:contextcheck // a client that hangs up does not end the handler's call (docs/facts.md)
	}
}

// admin guards a host path by the master key.
func (r *router) admin(w http.ResponseWriter, request *http.Request, next http.HandlerFunc) {
	if !r.host.options.Keys.allowed(request, authAdmin, "") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	next(w, request)
}

func (r *router) status(w http.ResponseWriter, _ *http.Request) {
	state := "Running"
	if r.host.listening.Err() != nil {
		state = "Stopping"
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": r.host.options.HostID, "state": state, "version": Version, "versionDetails": Version,
		"processUptime": r.host.clock.Now().UnixMilli() - r.start,
	})
}

// function serves a function's route. Order as in the host: sign-in (500), route and method (404), key (401), disabled
// (404), invocation; a failed one is 500 without a body. Source: FunctionInvocationMiddleware.cs.
func (r *router) function(w http.ResponseWriter, request *http.Request, path string) {
	for _, f := range r.http {
		params, ok := f.http.route.match(path)
		if !ok || !f.http.accepts(request.Method) {
			continue
		}
		who, err := r.host.identities(request, f.name)
		level, _ := r.host.options.Keys.grant(request, f.name)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
		case level < f.http.auth:
			w.WriteHeader(http.StatusUnauthorized)
		case f.disabled && level < authAdmin:
			w.WriteHeader(http.StatusNotFound)
		default:
			r.serve(w, f, func() (httpRequest, error) { //nolint:contextcheck // the caller may hang up; the invocation goes on
				return readRequest(request, path, params, who, bodyLimit(r.host.options.Settings))
			})
		}
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func (r *router) serve(w http.ResponseWriter, f *function, read func() (httpRequest, error)) {
	out, err := r.host.invokeHTTP(f, read)
	if err != nil {
		r.host.options.Log.Error().Err(err).Str("function", f.name).Msg("http function failed")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	out.write(w)
}

// invokeHTTP is the normal mode: the request goes into Data, the reply comes out of Outputs.
func (h *Host) invokeHTTP(f *function, read func() (httpRequest, error)) (httpReply, error) {
	request, err := read()
	if err != nil {
		return httpReply{}, err // before the handler hears of it
	}
	// The caller may hang up; the invocation goes on.
	out, err := h.execute(context.WithoutCancel(request.Context()), f, request.payload(f, h.options.Zone))
	if err != nil {
		return httpReply{}, err
	}
	return httpResult(f, out, h.options.Zone)
}

func (r httpRequest) payload(f *function, zone *time.Location) payload {
	return payload{data: r.data(), metadata: r.metadata(f.trigger, zone)}
}

// manual runs a timer with the given input and answers 202 at once. Source: FunctionsController.cs Invoke.
func (r *router) manual(w http.ResponseWriter, request *http.Request, name string) {
	h := r.host
	var body struct {
		Input json.RawMessage `json:"input"`
	}
	i := slices.IndexFunc(h.functions, func(f *function) bool {
		return f.timer != nil && strings.EqualFold(f.name, name)
	})
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil || i < 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p, err := h.manualTimer(request.Context(), h.functions[i], plainText(body.Input))
	if err != nil {
		h.options.Log.Error().Err(err).Str("function", name).Msg("manual input refused")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.tasks.Go(func() { _, _ = h.execute(h.listening, h.functions[i], p) }) // recorded by execute
	w.WriteHeader(http.StatusAccepted)
}

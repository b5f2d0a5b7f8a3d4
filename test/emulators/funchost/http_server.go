package funchost

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// router is the host's own HTTP server: functions, and the few host paths that tools use.
type router struct {
	host  *Host
	http  []*function // in the order of their routes
	start int64
}

func newRouter(h *Host) http.Handler {
	r := &router{host: h, start: h.clock.Now().UnixMilli()}
	for _, f := range h.functions {
		if f.http != nil {
			r.http = append(r.http, f)
		}
	}
	slices.SortStableFunc(r.http, func(a, b *function) int { return compareRoutes(a.http.route, b.http.route) })
	mux := http.NewServeMux()
	mux.HandleFunc("/", r.function)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Functions</title><h1>Your Functions 4.0 app is up and running</h1>\n")
	})
	mux.HandleFunc("/admin/host/ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /admin/host/status", r.admin(r.status))
	mux.HandleFunc("POST /admin/functions/{name}", r.admin(r.manual))
	return mux
}

// admin guards a host path by the master key.
func (r *router) admin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if !r.host.options.Keys.allowed(request, authAdmin, "") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next(w, request)
	}
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

// function serves a function's route. Order as in the host: route and method (404), key (401), disabled (404), invocation;
// a failed one is 500 without a body. Source: FunctionInvocationMiddleware.cs.
func (r *router) function(w http.ResponseWriter, request *http.Request) {
	for _, f := range r.http {
		params, ok := f.http.route.match(request.URL.Path)
		if !ok || !f.http.accepts(request.Method) {
			continue
		}
		if !r.host.options.Keys.allowed(request, f.http.auth, f.name) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if f.disabled && !r.host.options.Keys.allowed(request, authAdmin, f.name) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.serve(w, request, f, params) //nolint:contextcheck // the caller may hang up; the invocation goes on
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func (r *router) serve(w http.ResponseWriter, request *http.Request, f *function, params map[string]*string) {
	var out httpReply
	var err error
	if f.forwarded {
		out, err = r.host.forward(request, f)
	} else {
		out, err = r.host.invokeHTTP(request, f, params)
	}
	if err != nil {
		r.host.options.Log.Error().Err(err).Str("function", f.name).Msg("http function failed")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	out.write(w)
}

// invokeHTTP is the normal mode: the request goes into Data, the reply comes out of Outputs.
func (h *Host) invokeHTTP(request *http.Request, f *function, params map[string]*string) (httpReply, error) {
	data, err := requestData(request, params, f.http.auth)
	if err != nil {
		return httpReply{}, err
	}
	metadata, err := requestMetadata(request, params)
	if err != nil {
		return httpReply{}, err
	}
	// The caller may hang up; the invocation goes on.
	out, err := h.execute(context.WithoutCancel(request.Context()), f, payload{data: data, metadata: metadata})
	if err != nil {
		return httpReply{}, err
	}
	return httpResult(f, out)
}

// manual runs any function with the given input as its trigger's value and answers 202 at once.
// Source: FunctionsController.cs Invoke.
func (r *router) manual(w http.ResponseWriter, request *http.Request) {
	var body struct {
		Input json.RawMessage `json:"input"`
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := request.PathValue("name")
	i := slices.IndexFunc(r.host.functions, func(f *function) bool { return strings.EqualFold(f.name, name) })
	if i < 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	f := r.host.functions[i]
	p, err := manualPayload(f, plainText(body.Input), r.host)
	if err != nil {
		r.host.options.Log.Error().Err(err).Str("function", f.name).Msg("manual input refused")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h := r.host
	h.tasks.Go(func() { _, _ = h.execute(h.listening, f, p) }) // recorded by execute
	w.WriteHeader(http.StatusAccepted)
}

// manualPayload gives the input the form that the trigger would have given it.
func manualPayload(f *function, input string, h *Host) (payload, error) {
	switch {
	case f.cosmos != nil:
		var items []json.RawMessage
		if err := json.Unmarshal([]byte(input), &items); err != nil {
			return payload{}, err
		}
		data, err := cosmosData(items, h.options.Zone)
		return payload{data: data, items: len(items)}, err
	case f.timer != nil:
		data, err := timerData(nil, false)
		return payload{data: data}, err
	case f.serviceBus != nil:
		return serviceBusPayload(&azservicebus.ReceivedMessage{Body: []byte(input)}, h.options.Zone)
	default:
		request, err := http.NewRequestWithContext(h.life, http.MethodPost, "http://"+h.address+"/admin/functions/"+f.name, strings.NewReader(input))
		if err != nil {
			return payload{}, err
		}
		data, err := requestData(request, map[string]*string{}, f.http.auth)
		return payload{data: data}, err
	}
}

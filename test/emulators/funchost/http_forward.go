package funchost

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// forward is enableForwardingHttpRequest (and enableProxyingHttpRequest, which differs in streaming only): the handler
// gets the request itself, with its method, path, headers and body, and its reply passes through with any status.
// Retries don't come into it: the reply of the handler is the reply. Source: DefaultHttpWorkerService.cs
// ProcessHttpInAndOutInvocationRequest, HttpRequestExtensions.cs ToHttpRequestMessage.
func (h *Host) forward(request *http.Request, f *function) (httpReply, error) {
	id := newGUID()
	h.stats.change(f.name, func(s *FunctionStats) { s.Started++ })
	h.event(Event{Kind: InvocationStarted, Function: f.name, InvocationID: id})
	out, err := h.sendForwarded(request, f, id)
	kind := InvocationSuccess
	h.stats.change(f.name, func(s *FunctionStats) {
		if err != nil {
			kind = InvocationFailed
			s.Failed++
			return
		}
		s.Succeeded++
	})
	h.event(Event{Kind: kind, Function: f.name, InvocationID: id, Err: err})
	return out, err
}

func (h *Host) sendForwarded(request *http.Request, f *function, id string) (httpReply, error) {
	if err := h.dispatcher.waitUntilReady(h.life); err != nil {
		return httpReply{}, err
	}
	var body []byte
	if request.ContentLength > 0 { // as in normal mode, a chunked body is lost
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return httpReply{}, err
		}
	}
	return limited(h, f, id, func(ctx context.Context) (httpReply, error) {
		target := h.dispatcher.base + request.URL.RequestURI()
		forwarded, err := http.NewRequestWithContext(ctx, request.Method, target, bytes.NewReader(body))
		if err != nil {
			return httpReply{}, &InvocationError{Reason: ReasonConnection, Err: err}
		}
		forwarded.Header = request.Header.Clone()
		forwarded.Header.Del("Connection")
		forwarded.Host = request.Host
		addHostHeaders(forwarded.Header, id)
		response, err := h.dispatcher.client.Do(forwarded)
		if err != nil {
			return httpReply{}, &InvocationError{Reason: ReasonConnection, Err: err}
		}
		defer func() { _ = response.Body.Close() }()
		out := httpReply{status: response.StatusCode, header: response.Header.Clone()}
		for _, own := range []string{"Connection", "Content-Length", "Date"} {
			out.header.Del(own)
		}
		out.body, err = io.ReadAll(response.Body)
		return out, err
	})
}

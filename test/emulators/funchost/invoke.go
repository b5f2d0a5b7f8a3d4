package funchost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// execute runs an invocation with the function's retry policy and returns the reply and error of the last attempt. All
// attempts carry one invocation id (docs/facts.md F1). ctx ends the waiting between attempts, not an attempt: a custom
// handler does not learn that its caller is gone.
// Source: FunctionExecutorExtensions.cs.
func (h *Host) execute(ctx context.Context, f *function, p payload) (reply, error) {
	id := newGUID()
	var retry *retryContext
	if f.retry != nil {
		retry = &retryContext{max: f.retry.max}
	}
	for {
		out, err := h.attempt(f, id, p, retry) //nolint:contextcheck // nothing but the host's own end cuts an attempt short
		if err == nil || retry == nil {
			return out, err
		}
		if retry.max != -1 && retry.count == retry.max {
			h.event(Event{Kind: RetriesExhausted, Function: f.name, RetryCount: retry.count, Err: err})
			return out, err
		}
		retry.count++
		retry.err = err
		h.event(Event{Kind: Retry, Function: f.name, RetryCount: retry.count, Delay: f.retry.delay, Err: err})
		if !h.clock.Sleep(ctx, f.retry.delay, waitRetry) {
			return out, err
		}
	}
}

// attempt is one call of the handler.
func (h *Host) attempt(f *function, id string, p payload, retry *retryContext) (reply, error) {
	e := Event{Kind: InvocationStarted, Function: f.name, InvocationID: id, Items: p.items}
	if retry != nil {
		e.RetryCount = retry.count
	}
	h.event(e)
	out, err := h.send(f, id, p, retry)
	e.Err = err
	if err != nil {
		e.Kind = InvocationFailed
	} else {
		e.Kind = InvocationSuccess
	}
	h.event(e)
	return out, err
}

// send posts the invocation and waits for its result, at most functionTimeout.
func (h *Host) send(f *function, id string, p payload, retry *retryContext) (reply, error) {
	if err := h.dispatcher.waitUntilReady(h.life); err != nil {
		return reply{}, err
	}
	out, err := limited(h, f, id, func(ctx context.Context) (reply, error) {
		body := envelope(f, id, p, retry, h.clock.Now())
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.dispatcher.base+"/"+f.name,
			chunked{bytes.NewReader(body)})
		if err != nil {
			return reply{}, &InvocationError{Reason: ReasonConnection, Err: err}
		}
		request.Header.Set("Content-Type", "application/json; charset=utf-8")
		addHostHeaders(request.Header, id)
		response, err := h.dispatcher.client.Do(request)
		if err != nil {
			return reply{}, &InvocationError{Reason: ReasonConnection, Err: err}
		}
		defer func() { _ = response.Body.Close() }()
		return readReply(response)
	})
	if err != nil {
		return reply{}, err
	}
	for _, line := range out.Logs {
		h.options.Log.Info().Str("category", "Function."+f.name+".User").Str("invocation_id", id).Msg(string(line))
		h.event(Event{Kind: UserLog, Function: f.name, InvocationID: id, Text: string(line)})
	}
	return out, nil
}

// chunked hides a body's length: the host's formatter does not know it, so the request goes out chunked
// (HttpScriptInvocationContextExtensions.cs ToHttpRequestMessage with an ObjectContent).
type chunked struct{ io.Reader }

// addHostHeaders sets what every request to a handler carries (HttpWorkerConstants.cs).
func addHostHeaders(header http.Header, id string) {
	header.Set("X-Azure-Functions-HostVersion", Version)
	header.Set("X-Azure-Functions-InvocationId", id)
	header.Set("User-Agent", "Azure-Functions-Host/"+Version)
}

// limited runs work until it ends or functionTimeout is over; then it kills the handler, and with it every other
// invocation. A work that ends with errNoResult has not ended at all for the host.
func limited[T any](h *Host, f *function, id string, work func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	done := make(chan result, 1)
	h.tasks.Go(func() {
		value, err := work(h.life)
		done <- result{value, err}
	})
	timing, cancel := context.WithCancel(h.life)
	defer cancel()
	expired := make(chan struct{})
	if h.config.functionTimeout > 0 {
		h.tasks.Go(func() {
			if h.clock.Sleep(timing, h.config.functionTimeout, waitTimeout) {
				close(expired)
			}
		})
	}
	for {
		select {
		case r := <-done:
			if errors.Is(r.err, errNoResult) {
				continue // and no second result will come
			}
			if r.err != nil && h.life.Err() != nil {
				return none, &InvocationError{Reason: ReasonStopped, Err: r.err}
			}
			return r.value, r.err
		case <-expired:
			h.event(Event{Kind: InvocationTimeout, Function: f.name, InvocationID: id, Delay: h.config.functionTimeout})
			h.dispatcher.restartFor(h.life, "functionTimeout of invocation "+id)
			return none, &InvocationError{Reason: ReasonTimeout}
		case <-h.life.Done():
			return none, &InvocationError{Reason: ReasonStopped, Err: h.life.Err()}
		}
	}
}

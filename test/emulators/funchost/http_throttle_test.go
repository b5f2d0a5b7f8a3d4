package funchost

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// maxConcurrentRequests of them run, others wait, and those beyond maxOutstandingRequests are refused at once. The
// host's own paths are not counted.
func TestHTTPRequestsAreThrottled(t *testing.T) {
	r := newRoot(t).function("F", web(anyone)).
		file("host.json", withExtension("http", `{"maxConcurrentRequests":2,"maxOutstandingRequests":3}`))
	b := start(t, r, with(func(o *Options) { o.Keys.Master = "m" }))
	release := make(chan struct{})
	b.control.say(func(ctx context.Context, _ int, _ call) answer {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ok
	})
	refused := make(chan http.Header, 6)
	var calls errgroup.Group
	for range 6 {
		calls.Go(func() error {
			response, err := http.Get("http://" + b.Address() + "/api/F") //nolint:noctx // it ends with the host
			if err != nil {
				return err
			}
			if response.StatusCode == http.StatusTooManyRequests {
				refused <- response.Header
			}
			return response.Body.Close()
		})
	}
	for range 3 {
		require.Equal(t, "1", (<-refused).Get("X-FUNCTION-SCALEOUT"))
	}
	b.control.wait(t, 2)
	code, _, _ := b.request("GET", "/api/nothing", nil)
	require.Equal(t, http.StatusTooManyRequests, code, "before its path is looked at")
	code, _, _ = b.request("GET", "/admin/host/status", nil, "x-functions-key", "m")
	require.Equal(t, http.StatusOK, code)
	require.Len(t, b.control.seen(), 2, "the third waits")
	close(release)
	require.NoError(t, calls.Wait())
	require.Len(t, b.control.seen(), 3)
	code, _, _ = b.request("GET", "/api/nothing", nil)
	require.Equal(t, http.StatusNotFound, code)
}

// A larger body fails the invocation before the handler hears of it: 500, and not 413.
func TestTheHostBoundsBodies(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)), with(func(o *Options) {
		o.Settings["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"] = "10"
	}))
	code, _, _ := b.request("POST", "/api/F", reader2("0123456789"))
	require.Equal(t, http.StatusNoContent, code)
	code, body, _ := b.request("POST", "/api/F", reader2("0123456789a"))
	require.Equal(t, http.StatusInternalServerError, code)
	require.Empty(t, body)
	require.Len(t, b.control.seen(), 1)
}

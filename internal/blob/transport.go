package blob

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"sqlwriter/internal/azure"
)

// maxWait is the longest wait between two tries. A caller waits longer ones itself.
const maxWait = 2 * time.Second

// transport sends each request once. It is not an http.Client, because that follows redirects: the service sends none,
// and an address with a signature must not reach another host. Even a redirect that is not followed rewinds the body
// while it may still be sent.
type transport struct{ *http.Transport }

// Do implements policy.Transporter.
func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// newTransport makes the transport that all calls share.
func newTransport() transport { return transport{azure.Transport(16)} }

// bounded gives a call its deadline and its retries; doc.go has the reasons.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	deadline, _ := ctx.Deadline() // the caller's may be earlier
	return policy.WithRetryOptions(ctx, policy.RetryOptions{
		MaxRetries:    3,
		TryTimeout:    time.Until(deadline) / 2,
		RetryDelay:    200 * time.Millisecond,
		MaxRetryDelay: maxWait,
		ShouldRetry: func(resp *http.Response, err error) bool {
			return time.Until(deadline) > maxWait && (err != nil || isTemporary(resp.StatusCode))
		},
	}), cancel
}

// isTemporary reports whether a status is temporary. The list is azcore's.
func isTemporary(status int) bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, status)
}

package blob

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// maxWait is the longest wait between two tries; a longer one is the caller's business.
const maxWait = 2 * time.Second

// transport makes each request once and answers what came. It is no http.Client, which follows redirects: the service redirects
// nobody, an address with a signature is shown to nobody else, and even a redirect that is not followed rewinds the body while it
// may still be sent.
type transport struct{ *http.Transport }

// Do implements policy.Transporter.
func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// newTransport makes the transport that all calls share. azcore's default is not used because its connections are not ours to
// close.
func newTransport() transport {
	return transport{&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}}
}

// bounded gives a call its deadline and its repetitions; doc.go says why they are as they are.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	deadline, _ := ctx.Deadline() // the caller's may be earlier
	return policy.WithRetryOptions(ctx, policy.RetryOptions{
		MaxRetries:    3,
		TryTimeout:    time.Until(deadline) / 2,
		RetryDelay:    200 * time.Millisecond,
		MaxRetryDelay: maxWait,
		ShouldRetry: func(resp *http.Response, err error) bool {
			return time.Until(deadline) > maxWait && (err != nil || passes(resp.StatusCode))
		},
	}), cancel
}

// passes reports whether an answer is one that the service gives for a while only. The list is azcore's own.
func passes(status int) bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, status)
}

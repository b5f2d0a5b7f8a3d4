package cosmos

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"sqlwriter/internal/neterr"
)

// newTransport makes the http client that all calls share. azcosmos' default is not used because its certificates
// cannot be relaxed for an emulator and its connections are not ours to close.
func newTransport(concurrency int, skipVerify bool) *http.Client {
	return &http.Client{
		// A backstop only: every call has a deadline of its own. It bounds what the SDK does without one, such as
		// reading the account's regions.
		Timeout: time.Minute,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			// A connection that a firewall dropped in silence is noticed here, not after a call's whole deadline.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second},
			// The default of 2 would open and close a connection for nearly every concurrent patch over http/1.
			MaxIdleConns:        2 * concurrency,
			MaxIdleConnsPerHost: concurrency,
			IdleConnTimeout:     90 * time.Second,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS12,
				InsecureSkipVerify: skipVerify, //nolint:gosec // checkEndpoint allows it for an emulator only
			},
		},
	}
}

// worthRetrying is azcore's decision to repeat: a 429 only, since everything else is either repeated by azcosmos below
// it or must not be. A wait that would outlast the caller's deadline is not begun: the caller then learns that the
// account is throttling, and for how long, instead of a timeout that says nothing.
func worthRetrying(resp *http.Response, err error) bool {
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		return false
	}
	deadline, bounded := resp.Request.Context().Deadline()
	return !bounded || time.Until(deadline) > neterr.RetryAfter(resp.Header)
}

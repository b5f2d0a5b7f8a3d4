package cosmos

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"sqlwriter/internal/neterr"
)

// newTransport makes the HTTP client that all calls share. azcosmos' default is not used: it cannot skip the certificate
// check of an emulator, and this package could not close its connections.
func newTransport(concurrency int, skipVerify bool) *http.Client {
	return &http.Client{
		// Every call has a deadline of its own. This one bounds the SDK's own requests, such as the read of the account's
		// regions.
		Timeout: time.Minute,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			// The ping finds a connection that a firewall dropped silently, before a call's whole deadline passes.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second},
			// With the default of 2, nearly every concurrent patch over http/1 would open and close a connection.
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

// worthRetrying is azcore's decision to retry: 429 only, because azcosmos retries the rest or nothing may. A wait beyond
// the caller's deadline is not begun. The caller then learns that the account throttles, and for how long, instead of a
// timeout.
func worthRetrying(resp *http.Response, err error) bool {
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		return false
	}
	deadline, bounded := resp.Request.Context().Deadline()
	return !bounded || time.Until(deadline) > neterr.RetryAfter(resp.Header)
}

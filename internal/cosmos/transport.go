package cosmos

import (
	"net/http"
	"time"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/neterr"
)

// newTransport makes the HTTP client that all calls share.
func newTransport(concurrency int, unverified bool) *http.Client {
	// With the default of 2 idle connections, nearly every concurrent patch over http/1 would open and close one.
	t := azure.Transport(concurrency)
	t.MaxIdleConns = 2 * concurrency
	t.ForceAttemptHTTP2 = true
	// The ping finds a connection that a firewall dropped silently, before a call's whole deadline passes.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second}
	t.TLSClientConfig.InsecureSkipVerify = unverified // CheckEndpoint allows it for an emulator only
	// Every call has a deadline of its own. This one bounds the SDK's own requests, such as the read of the account's
	// regions.
	return &http.Client{Timeout: time.Minute, Transport: t}
}

// worthRetrying is azcore's decision to retry: 429 only, because azcosmos retries the rest or nothing may. A wait
// beyond the caller's deadline is not begun. The caller then learns that the account throttles, and for how long,
// instead of a timeout.
func worthRetrying(resp *http.Response, err error) bool {
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		return false
	}
	deadline, bounded := resp.Request.Context().Deadline()
	return !bounded || time.Until(deadline) > neterr.RetryAfter(resp.Header)
}

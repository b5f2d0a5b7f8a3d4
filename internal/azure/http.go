package azure

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Transport makes the transport of one client, with this many idle connections. azcore's default is not used: the
// adapters could not close its connections.
func Transport(idle int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: idle,
		IdleConnTimeout:     90 * time.Second,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

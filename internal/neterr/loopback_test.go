package neterr_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/neterr"
)

// private is the part of a request's address that no text may show.
const private = "/c/PRIVATE-ID?sig=SIGNATURE"

// get makes a request and returns its error.
func get(ctx context.Context, t *testing.T, client *http.Client, address string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+private, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.Error(t, err)
	require.Contains(t, err.Error(), "SIGNATURE",
		"net/http's own text has the address, so there is something to leave out")
	text := neterr.Describe(err)
	require.NotEmpty(t, text)
	require.NotContains(t, text, "PRIVATE-ID")
	require.NotContains(t, text, "SIGNATURE")
	return err
}

// startTLS starts a server with a self-made certificate for 127.0.0.1 and example.com.
func startTLS(t *testing.T, configure func(*tls.Config)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	configure(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// trusting returns a client that trusts the server and has the given configuration.
func trusting(t *testing.T, server *httptest.Server, configure func(*tls.Config)) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	configure(config)
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Errors of real handshakes, as net/http returns them.
func TestDistrustIsTLS(t *testing.T) {
	server := startTLS(t, func(*tls.Config) {})
	for name, c := range map[string]struct {
		configure func(*tls.Config)
		says      string
	}{
		"unknown authority": {func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, "unknown authority"},
		"expired": {func(c *tls.Config) {
			c.Time = func() time.Time { return server.Certificate().NotAfter.Add(time.Hour) }
		}, "expired"},
		"wrong host": {func(c *tls.Config) { c.ServerName = "sqlwriter.test" }, "sqlwriter.test"},
	} {
		t.Run(name, func(t *testing.T) {
			err := get(t.Context(), t, trusting(t, server, c.configure), server.URL)
			require.Equal(t, []string{"tls"}, matches(err), "%v", err)
			require.Contains(t, neterr.Describe(err), c.says)
		})
	}
}

func TestPlainHTTPWhereTLSIsExpected(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, err := (&tls.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.Equal(t, []string{"tls"}, matches(err), "%v", err)

	// net/http has an untyped error for this case, so it matches nothing.
	err = get(t.Context(), t, http.DefaultClient, strings.Replace(server.URL, "http:", "https:", 1))
	require.ErrorIs(t, err, http.ErrSchemeMismatch)
	require.Empty(t, matches(err))
}

// The limit of IsTLS: crypto/tls does not export the type of a received alert.
func TestAnAlertOverTCPIsOfNoSort(t *testing.T) {
	server := startTLS(t, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	err := get(t.Context(), t, trusting(t, server, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), server.URL)
	require.Empty(t, matches(err), "%v", err)
	require.Contains(t, neterr.Describe(err), "protocol version", "an operator reads it nevertheless")
}

func TestNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	err = get(t.Context(), t, http.DefaultClient, "http://"+address)
	require.Equal(t, []string{"refused"}, matches(err), "%v", err)
	require.Contains(t, neterr.Describe(err), address, "an operator looks there")
}

// startEnding starts a server that reads a request and calls end with the connection.
func startEnding(t *testing.T, end func(net.Conn)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			end(conn)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestTheOtherEndGoesAway(t *testing.T) {
	for want, end := range map[string]func(net.Conn){
		"eof": func(c net.Conn) { _ = c.Close() },
		"reset": func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0) // close with a reset
			_ = c.Close()
		},
	} {
		err := get(t.Context(), t, http.DefaultClient, startEnding(t, end).URL)
		require.Equal(t, []string{want}, matches(err), "%v", err)
	}
}

func TestNoAnswerComes(t *testing.T) {
	arrived, over := make(chan struct{}, 3), make(chan struct{}) // 3: one for each request below
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) }) // before server.Close, which waits for the requests

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	require.Equal(t, []string{"cancelled"}, matches(get(ctx, t, http.DefaultClient, server.URL)))

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Equal(t, []string{"timeout"}, matches(get(ctx, t, http.DefaultClient, server.URL)))
	require.Equal(t, []string{"timeout"},
		matches(get(t.Context(), t, &http.Client{Timeout: time.Nanosecond}, server.URL)), "net/http's own limit")
}

// A lookup by Go's resolver, with a name server on loopback.
func TestANameThatIsNotThere(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for packet := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			packet[2], packet[3] = packet[2]|0x80, 0x83 // a response; recursion available, NXDOMAIN (RFC 1035, 4.1.1)
			_, _ = server.WriteTo(packet[:n], from)
		}
	}()
	lookUp := func(ask func(context.Context) (net.Conn, error)) error {
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ask(ctx)
		}}
		transport := &http.Transport{DialContext: (&net.Dialer{Resolver: resolver}).DialContext}
		return get(t.Context(), t, &http.Client{Transport: transport}, "http://account.test.")
	}

	err = lookUp(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	})
	require.Equal(t, []string{"dns"}, matches(err), "%v", err)
	require.Contains(t, neterr.Describe(err), "account.test")

	err = lookUp(func(context.Context) (net.Conn, error) { return nil, context.DeadlineExceeded })
	require.Equal(t, []string{"dns", "timeout"}, matches(err), "%v", err)
}

package azurite

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/loopback"
)

// Fault is what the proxy does with a request.
type Fault int

// The faults.
const (
	// Pass: the request and its answer go through.
	Pass Fault = iota
	// CutBefore: the proxy takes the request and closes the connection; the server never gets it.
	CutBefore
	// CutMidway: the connection is reset while the request is still being sent.
	CutMidway
	// CutAfter: the server does what the request asks for, and the connection ends instead of the answer.
	CutAfter
	// Hang: the request is taken and nothing happens any more, until the client gives up.
	Hang
	// HangAfter: the server does what the request asks for, and the answer never comes.
	HangAfter
)

// Proxy stands between a client and an Azurite. A client's address of the account is the proxy's.
type Proxy struct {
	address string
	forward *httputil.ReverseProxy
	// over ends what hangs.
	over chan struct{}

	mu      sync.Mutex
	server  *http.Server
	planned []Fault
	always  Fault
	seen    []string
}

// Proxy starts a proxy on loopback in front of the server. The end of the test stops it.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	transport := &http.Transport{}
	p := &Proxy{over: make(chan struct{}), forward: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) { // the path stays as it was escaped: it is signed
			r.Out.URL.Scheme, r.Out.URL.Host = "http", s.Address
			r.Out.Host = r.In.Host
		},
	}}
	p.listen(t, loopback.Address(t))
	t.Cleanup(func() {
		close(p.over)
		p.Refuse()
		transport.CloseIdleConnections()
	})
	return p
}

// ConnectionString is for a client that goes through the proxy.
func (p *Proxy) ConnectionString() string { return connectionString(p.address) }

// Plan sets the faults of the next requests, one fault each; those after them pass, or have the fault of Always.
func (p *Proxy) Plan(next ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned = next
}

// Always sets the fault of every request without one from Plan.
func (p *Proxy) Always(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned, p.always = nil, f
}

// Seen gives the methods of all requests so far.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// Refuse ends all connections and stops listening: new ones are refused, until Listen.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close() // closed before is closed
}

// Listen listens again, on the same port.
func (p *Proxy) Listen(t testing.TB) {
	t.Helper()
	p.listen(t, p.address)
}

func (p *Proxy) listen(t testing.TB, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.mu.Lock()
	p.address, p.server = l.Addr().String(), server
	p.mu.Unlock()
	go func() { _ = server.Serve(l) }() // until Refuse
}

// next takes a request in and answers what becomes of it.
func (p *Proxy) next(method string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, method)
	if len(p.planned) == 0 {
		return p.always
	}
	f := p.planned[0]
	p.planned = p.planned[1:]
	return f
}

// ServeHTTP does to a request what is planned for it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.next(r.Method)
	switch f {
	case Pass:
		p.forward.ServeHTTP(w, r)
		return
	case CutMidway:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		cut(w, true)
		return
	case CutAfter, HangAfter:
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
	case CutBefore, Hang:
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection would be a reset
	}
	if f == Hang || f == HangAfter {
		select {
		case <-r.Context().Done():
		case <-p.over:
		}
	}
	cut(w, false)
}

// cut ends a connection without a word.
func cut(w http.ResponseWriter, reset bool) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // what is not sent is thrown away, and the other end gets a reset
	}
	_ = conn.Close() // that is the point
}

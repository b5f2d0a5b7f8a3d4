package funchost

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// headConn keeps the head of the request that is being read: Go's server changes the spelling of header names and loses
// their order, and the handler gets both from the host as the client sent them (docs/facts.md F12).
type headConn struct {
	net.Conn
	mu   sync.Mutex
	head []byte
	done bool // the head is complete; what follows is body
}

var endOfHead = []byte("\r\n\r\n") //nolint:gochecknoglobals // a constant

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.head = append(c.head, p[:n]...)
		c.done = bytes.Contains(c.head, endOfHead)
	}
	return n, err
}

// next forgets the head: the client sends the next request.
func (c *headConn) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.done = nil, false
}

func (c *headConn) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, _, _ := bytes.Cut(c.head, endOfHead)
	return strings.Split(string(head), "\r\n")[1:]
}

type headListener struct{ net.Listener }

func (l headListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: c}, nil
}

type headKey struct{}

// withHead makes a connection known to the handlers of its requests (http.Server.ConnContext).
func withHead(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, headKey{}, c)
}

// readHeads tells the connection where a request ends.
func readHeads(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			_, _ = io.Copy(io.Discard, r.Body) // a body that nobody read is not the next head
			if c, ok := r.Context().Value(headKey{}).(*headConn); ok {
				c.next()
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// field is a name with its values, in the spelling and the order of the handler's view.
type field struct {
	name   string
	values []string
}

// fields collects values under their names, compared without case, each with its first spelling.
type fields []field

func (f *fields) add(name, value string) {
	i := slices.IndexFunc(*f, func(have field) bool { return strings.EqualFold(have.name, name) })
	if i < 0 {
		*f = append(*f, field{name: name})
		i = len(*f) - 1
	}
	(*f)[i].values = append((*f)[i].values, value)
}

// serverHeaders are the names that the host's web server (Kestrel) knows, in its spelling. It hands them on first and
// in this order, the others behind them as they came. The recordings have the order of a few; the rest is that of its
// source.
var serverHeaders = strings.Fields("Accept Connection Host User-Agent Accept-Charset Accept-Encoding Accept-Language " + //nolint:gochecknoglobals // a table
	"Authorization baggage Cache-Control Content-Type Cookie Correlation-Context Date Expect From If-Match If-Modified-Since " +
	"If-None-Match If-Range If-Unmodified-Since Keep-Alive Max-Forwards Origin Pragma Proxy-Authorization Range Referer " +
	"Request-Id TE traceparent tracestate Transfer-Encoding Upgrade Upgrade-Insecure-Requests Via Warning Content-Length")

// headersOf are the request's headers as the handler gets them.
func headersOf(r *http.Request) fields {
	var sent, out fields
	if c, ok := r.Context().Value(headKey{}).(*headConn); ok {
		for _, line := range c.lines() {
			name, value, _ := strings.Cut(line, ":")
			sent.add(name, strings.TrimSpace(value))
		}
	} else { // a request that the host made itself
		sent.add("Host", r.Host)
	}
	for _, name := range serverHeaders {
		for _, f := range sent {
			if strings.EqualFold(f.name, name) {
				out = append(out, field{name, f.values})
			}
		}
	}
	for _, f := range sent {
		if !slices.ContainsFunc(serverHeaders, func(name string) bool { return strings.EqualFold(name, f.name) }) {
			out = append(out, f)
		}
	}
	return out
}

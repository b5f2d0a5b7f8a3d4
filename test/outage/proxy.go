package outage

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialWithin bounds a connection to the server.
const dialWithin = 10 * time.Second

// Proxy passes connections on to a server. While it is off, its port refuses connections.
type Proxy struct {
	address, server string

	mu       sync.Mutex
	listener net.Listener // nil while it is off
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// NewProxy listens at an address, HOST:PORT, and passes each connection on to the server's address.
func NewProxy(ctx context.Context, address, server string) (*Proxy, error) {
	p := &Proxy{address: address, server: server, open: map[net.Conn]bool{}}
	return p, p.On(ctx)
}

// Address is the HOST:PORT at which the proxy listens.
func (p *Proxy) Address() string { return p.address }

// On listens. Its port is the same after each Off.
func (p *Proxy) On(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("proxy of %s: %w", p.server, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // Off
			}
			p.serving.Go(func() { p.serve(ctx, client, l) })
		}
	})
	return nil
}

// Off resets all connections and stops listening. Where it is off already it does nothing.
func (p *Proxy) Off(context.Context) error {
	p.mu.Lock()
	if p.listener == nil {
		p.mu.Unlock()
		return nil
	}
	err := p.listener.Close()
	p.listener = nil
	for c := range p.open {
		cut(c)
	}
	p.mu.Unlock()
	p.serving.Wait()
	return err
}

// serve passes one connection on until either end closes it.
func (p *Proxy) serve(ctx context.Context, client net.Conn, from net.Listener) {
	defer p.forget(client)
	if !p.keep(client, from) {
		return
	}
	server, err := (&net.Dialer{Timeout: dialWithin}).DialContext(context.WithoutCancel(ctx), "tcp", p.server)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.keep(server, from) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// pass copies one direction and then ends both.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // the other ends notice
	_ = to.Close()
	_ = from.Close()
}

// keep remembers a connection, unless the proxy went off since its listener accepted it.
func (p *Proxy) keep(c net.Conn, from net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return p.listener == from
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	cut(c)
}

// cut ends a connection by a reset, as the end of a server's process does.
func cut(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

package sqlservertest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy stands between a client and the server: it cuts connections, it loses answers, and it can be away.
type Proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	done    bool
	away    bool
	swallow bool
	cuts    []*cut
	came    []time.Time
	group   sync.WaitGroup
}

// NewProxy starts a proxy on loopback in front of server (HOST:PORT). The end of the test stops it.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: l, server: server, conns: map[net.Conn]struct{}{}}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		p.Cut()
		p.group.Wait()
	})
	return p
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut drops every connection at once, without a close to either side, and those that come later.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	p.closeAll()
}

// Away ends every connection at once and resets those that come later, as a server that is down does, until Back. What
// came is counted all the same: see Came.
func (p *Proxy) Away() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = true
	p.closeAll()
}

// Back ends what Away began.
func (p *Proxy) Back() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
}

// Came gives the times of all connections, oldest first.
func (p *Proxy) Came() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.came...)
}

// closeAll ends every connection. p.mu is held.
func (p *Proxy) closeAll() {
	for c := range p.conns {
		_ = c.Close() // that is the point
	}
}

// SwallowReply loses the next answer: at its first byte the client's connection ends, and the rest of the answer is
// dropped.
func (p *Proxy) SwallowReply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = true
}

// swallows reports whether a reply that begins now is to be lost.
func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.swallow
	p.swallow = false
	return was
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.arrives() {
			reset(client)
			continue
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			continue
		}
		l := &link{proxy: p}
		p.group.Go(func() { p.carry(server, client, l.request) })
		p.group.Go(func() { p.carry(client, server, l.reply) })
	}
}

// arrives records a connection and reports whether the proxy is away.
func (p *Proxy) arrives() (away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came = append(p.came, time.Now())
	return p.away
}

// reset ends a connection as a server does that does not know it.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // what is not sent is thrown away, and the other end gets a reset
	}
	_ = conn.Close()
}

// keep notes connections so that Cut and Away find them; after a Cut there are no more.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.done || p.away {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.done && !p.away
}

// carry moves bytes one way. pass tells how many of those that were read go on; fewer than all mean that the line
// breaks behind them.
func (p *Proxy) carry(to, from net.Conn, pass func(read []byte) int) {
	defer p.forget(from)
	defer func() { _ = to.Close() }() // a blocked read returns
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		lost := false
		if n > 0 {
			going := pass(buffer[:n])
			_, failed := to.Write(buffer[:going])
			lost = going < n || failed != nil
		}
		if lost {
			_ = to.Close()
			_, _ = io.Copy(io.Discard, from) // until the other end has ended, or Cut
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close()
			}
			return
		}
	}
}

// forget lets go of a connection that is over.
func (p *Proxy) forget(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

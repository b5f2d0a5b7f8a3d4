package sqlservertest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy stands between a client and the server: it cuts connections, and it loses answers.
type Proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	done    bool
	swallow bool
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

// Cut ends every connection at once, without a word to either side, and those that come later.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	for c := range p.conns {
		_ = c.Close() // that is the point
	}
}

// SwallowReply loses the next answer: at its first byte the client's connection ends, and the server may say what it
// wants to nobody.
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
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			continue
		}
		p.group.Go(func() { p.carry(server, client, false) })
		p.group.Go(func() { p.carry(client, server, true) })
	}
}

// keep notes connections so that Cut finds them; after a Cut there are no more.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.done {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.done
}

// carry moves bytes one way.
func (p *Proxy) carry(to, from net.Conn, reply bool) {
	defer func() { _ = to.Close() }() // whoever reads there learns that it is over
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		lost := n > 0 && reply && p.swallows()
		if n > 0 && !lost {
			_, failed := to.Write(buffer[:n])
			lost = failed != nil
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

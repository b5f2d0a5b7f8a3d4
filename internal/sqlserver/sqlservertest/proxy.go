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

// Proxy stands between a client and the server: it adds distance, and it cuts. It counts the requests that pass.
type Proxy struct {
	listener net.Listener
	server   string
	delay    time.Duration

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	done    bool
	swallow bool
	group   sync.WaitGroup
}

// NewProxy starts a proxy on loopback in front of server (HOST:PORT); delay is the time that each direction takes, so a
// round trip is twice that. The end of the test stops it.
func NewProxy(t testing.TB, server string, delay time.Duration) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: l, server: server, delay: delay, conns: map[net.Conn]struct{}{}}
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

// parcel is what was read and when it is to arrive.
type parcel struct {
	data []byte
	due  time.Time
}

// carry moves bytes one way, each as late as the distance makes it; what follows does not wait for what went before.
func (p *Proxy) carry(to, from net.Conn, reply bool) {
	parcels := make(chan parcel, 1024)
	p.group.Go(func() {
		defer func() { _ = to.Close() }() // whoever reads there learns that it is over
		for parcel := range parcels {
			wait(time.Until(parcel.due))
			if _, err := to.Write(parcel.data); err != nil {
				for range parcels { //nolint:revive // the reader must not block
				}
				return
			}
		}
	})
	defer close(parcels)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && reply && p.swallows() {
			_ = to.Close()
			_, _ = io.Copy(io.Discard, from) // until the server has ended, or Cut
			return
		}
		if n > 0 {
			parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(p.delay)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close()
			}
			return
		}
	}
}

// wait lets a distance pass; timers are too coarse for the last part of a millisecond.
func wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// Package loopback gives tests ports for servers that go down and come back.
package loopback

import (
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Systems hand out ports above these, to connections and to servers that name none.
const first, last = 15_000, 32_000

// A process owns blocks of so many ports.
const block = 100

// process has the ports of this process. Processes begin their search apart: what an ended one left behind is seldom
// met.
var process = ports{search: os.Getpid()} //nolint:gochecknoglobals // the ports of a process are one for all of its tests

// Address gives HOST:PORT of the loopback address where nobody listens. It is given once, to one of all test processes:
// while a server is down, no other server answers in its place.
func Address(t testing.TB) string {
	t.Helper()
	return address(Port(t))
}

// Port is the port of an Address.
func Port(t testing.TB) int {
	t.Helper()
	port := process.take()
	if port == 0 {
		t.Fatalf("no port from %d to %d is free", first, last)
	}
	return port
}

// ports are the ports of one process. It owns a block while it listens at the block's first port, which is until it
// ends: a port that was only tried could be taken by another process before the test listens there.
type ports struct {
	mu     sync.Mutex
	owned  []net.Listener
	search int // the number of the block that is looked at next, modulo their count
	next   int // the next port to give
	end    int // the end of the newest block
}

// take gives a port, or 0 if all blocks are owned by others.
func (p *ports) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for p.next < p.end {
			port := p.next
			p.next++
			// A program that is no test may have it.
			if l := listen(port); l != nil {
				_ = l.Close()
				return port
			}
		}
		if !p.another() {
			return 0
		}
	}
}

// another makes another block this process's own.
func (p *ports) another() bool {
	const blocks = (last - first) / block
	for range blocks {
		start := first + p.search%blocks*block
		p.search++
		if l := listen(start); l != nil {
			p.owned = append(p.owned, l)
			p.next, p.end = start+1, start+block
			return true
		}
	}
	return false
}

func listen(port int) net.Listener {
	l, err := net.Listen("tcp", address(port)) //nolint:noctx // it listens at once or not at all
	if err != nil {
		return nil
	}
	return l
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

package bench

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// link stands between a client and the server: it makes the way longer, and it counts the requests. A request is what a
// client sends after it has heard from the server: the protocol answers each message before it takes the next one, and
// that shows whatever is in the messages, encrypted or not.
type link struct {
	listener net.Listener
	server   string
	// delay is the time that each direction takes.
	delay    time.Duration
	requests atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	group sync.WaitGroup
}

// newLink starts a link on loopback to server (HOST:PORT) that makes a round trip longer by distance, half of it each
// way. The end of the test stops it.
func newLink(t testing.TB, server string, distance time.Duration) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	k := &link{listener: l, server: server, delay: distance / 2}
	k.group.Go(k.accept)
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		k.mu.Lock()
		for _, c := range k.conns {
			_ = c.Close() // ends what carries
		}
		k.mu.Unlock()
		k.group.Wait()
	})
	return k
}

// address is where clients connect.
func (k *link) address() string { return k.listener.Addr().String() }

func (k *link) accept() {
	for {
		client, err := k.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", k.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		k.mu.Lock()
		k.conns = append(k.conns, client, server)
		k.mu.Unlock()
		heard := &atomic.Bool{}
		heard.Store(true) // what a client sends first is a request too
		k.group.Go(func() {
			k.carry(server, client, func() {
				if heard.Swap(false) {
					k.requests.Add(1)
				}
			})
		})
		k.group.Go(func() { k.carry(client, server, func() { heard.Store(true) }) })
	}
}

// parcel is what was read and when it is to arrive.
type parcel struct {
	data []byte
	due  time.Time
}

// carry moves bytes one way, each as late as the distance makes it; what follows does not wait for what went before. It
// says so before it hands on what it has read.
func (k *link) carry(to, from net.Conn, say func()) {
	parcels := make(chan parcel, 1024)
	k.group.Go(func() {
		defer func() { _ = to.Close() }() // whoever reads there learns that it is over
		failed := false
		for p := range parcels {
			if failed {
				continue // the reader must not block
			}
			waitUntil(p.due)
			_, err := to.Write(p.data)
			failed = err != nil
		}
	})
	defer close(parcels)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			say()
			parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(k.delay)}
		}
		if err != nil {
			_ = from.Close()
			return
		}
	}
}

// waitUntil lets a distance pass. Timers are late by up to a millisecond when nothing else happens, so the last part is
// waited for on the processor: the client waits for an answer meanwhile, and the server for a request.
func waitUntil(due time.Time) {
	const late = 1200 * time.Microsecond
	if d := time.Until(due) - late; d > 0 {
		time.Sleep(d)
	}
	for time.Now().Before(due) {
		runtime.Gosched()
	}
}

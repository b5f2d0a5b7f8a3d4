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

// newLink stands between clients and server (HOST:PORT) until the end of the test: it makes a round trip longer by
// distance, half of it each way, and counts the requests. A request is what a client sends after it has heard from the
// server: the protocol answers each message before it takes the next one, and that shows whatever is in the messages,
// encrypted or not. It answers where clients connect.
func newLink(t testing.TB, server string, distance time.Duration, requests *atomic.Int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var group sync.WaitGroup
	var mu sync.Mutex
	ends := []net.Conn{}
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			ends = append(ends, client, behind)
			mu.Unlock()
			answered := &atomic.Bool{} // whether it is the client's turn
			answered.Store(true)
			group.Go(func() {
				carry(behind, client, distance/2, func() (turned bool) {
					if turned = answered.Swap(false); turned {
						requests.Add(1)
					}
					return turned
				})
			})
			group.Go(func() { carry(client, behind, distance/2, func() bool { return !answered.Swap(true) }) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop
		mu.Lock()
		for _, c := range ends {
			_ = c.Close() // ends what carries
		}
		mu.Unlock()
		group.Wait()
	})
	return listener.Addr().String()
}

// carry moves bytes one way. What comes first after the other side has spoken is late by delay; what follows it is on
// the way meanwhile.
func carry(to, from net.Conn, delay time.Duration, turned func() bool) {
	defer func() { _, _ = to.Close(), from.Close() }() // a blocked read returns
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && turned() {
			wait(delay)
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// wait lets a distance pass. Timers are late by up to a millisecond when nothing else happens, so the last part is
// waited for on the processor: the client waits for an answer meanwhile, and the server for a request.
func wait(delay time.Duration) {
	const late = 1200 * time.Microsecond
	due := time.Now().Add(delay)
	if delay > late {
		time.Sleep(delay - late)
	}
	for time.Now().Before(due) {
		runtime.Gosched()
	}
}

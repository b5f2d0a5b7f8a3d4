// Package loopback gives tests ports for servers that go down and come back.
package loopback

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// Systems hand out ports above these, to connections and to servers that name none.
const first, last = 15_000, 32_000

// given counts the ports of this process. Processes that run at once begin apart.
var given atomic.Int64 //nolint:gochecknoglobals // the ports of a process are one for all of its tests

const apart = 97

// Address gives HOST:PORT of the loopback address where nobody listens. A test process gives each one once: while a server
// is down, no other server answers in its place.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}

// Port is the port of an Address.
func Port(t testing.TB) int {
	t.Helper()
	for range last - first {
		port := first + (os.Getpid()*apart+int(given.Add(1)))%(last-first)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // it listens at once or not at all
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port")
	return 0
}

package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/sample"
)

// faultsVariable turns the long campaigns on: `make faults`.
const faultsVariable = "SQLWRITER_FAULTS"

// campaign reports whether the long campaigns are wanted.
func campaign() bool { return os.Getenv(faultsVariable) != "" }

// onlyInACampaign skips a test that takes real minutes.
func onlyInACampaign(t *testing.T) {
	t.Helper()
	if !campaign() {
		t.Skip("takes real minutes: make faults")
	}
}

// silence is how the listener in place of SQL Server treats a client.
type silence int

const (
	// refuses: nothing listens at the port.
	refuses silence = iota
	// resets: the connection is taken and reset.
	resets
	// hangs: the connection is accepted, and never answered.
	hangs
)

// deafServer listens in place of SQL Server and counts the clients.
type deafServer struct {
	address string
	how     silence

	mu       sync.Mutex
	listener net.Listener
	held     []net.Conn
	came     []time.Time
	group    sync.WaitGroup
}

// newDeafServer takes a port. One that refuses does not listen, and so sees no clients, until watch.
func newDeafServer(t *testing.T, how silence) *deafServer {
	t.Helper()
	n := &deafServer{how: how}
	for range 100 { // below the ports that systems hand out: no outgoing connection may take it meanwhile
		n.address = fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(17_000))
		if n.listen() == nil {
			break
		}
	}
	require.NotNil(t, n.listener, "no free port")
	if how == refuses {
		n.stop()
	}
	t.Cleanup(n.stop)
	return n
}

// watch makes one that refused reset instead, so that it sees the clients.
func (n *deafServer) watch(t *testing.T) {
	t.Helper()
	if n.how == refuses {
		n.how = resets
		require.NoError(t, n.listen())
	}
}

func (n *deafServer) listen() error {
	l, err := net.Listen("tcp", n.address)
	if err != nil {
		return err
	}
	n.listener = l
	n.group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.take(conn)
		}
	})
	return nil
}

func (n *deafServer) take(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came = append(n.came, time.Now())
	if n.how == hangs {
		n.held = append(n.held, conn)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset, not a polite end
	}
	_ = conn.Close()
}

func (n *deafServer) stop() {
	if err := n.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return
	}
	n.group.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, conn := range n.held {
		_ = conn.Close()
	}
	n.held = nil
}

// since counts the connections that came after a moment.
func (n *deafServer) since(at time.Time) (after []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.came {
		if c.After(at) {
			after = append(after, c.Sub(at).Round(time.Millisecond))
		}
	}
	return after
}

// mostPerMinute is the most of these moments that lie within one minute. A second of it is left out: what is a minute
// apart is the leave to connect, and the connection comes a little later, more or less.
func mostPerMinute(at []time.Duration) int {
	const minute = 59 * time.Second
	most := 0
	for i := range at {
		n := 0
		for _, later := range at[i:] {
			if later-at[i] < minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// settleTime is how long after its opening a breaker may still count as closed for an instance that read it just
// before.
const settleTime = 5 * time.Second

// Must show: plain listeners in place of SQL Server, with the real driver and the real binary. It starts, answers every
// batch with 503 in time, stops the flow after five failures and says so, leaves SQL alone after that, and changes
// nothing.
func TestNoSQLServerAtItsAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how    silence
		extra  string // of the connection string
		window time.Duration
	}{
		"refuses": {refuses, "", 20 * time.Second},
		"resets":  {resets, "", 20 * time.Second},
		"hangs":   {hangs, "&dial timeout=1&connection timeout=1", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for deadlines
			nobodyThere(t, c.how, c.extra, "connection", c.window)
		})
	}
}

// The same for three minutes: one attempt a minute, and with the driver's own timeout where nothing answers.
func TestCampaignNoSQLServerAtItsAddress(t *testing.T) {
	onlyInACampaign(t)
	t.Parallel()
	for name, c := range map[string]struct {
		how  silence
		code string
	}{"refuses": {refuses, "connection"}, "resets": {resets, "connection"}, "hangs": {hangs, "timeout"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nobodyThere(t, c.how, "", c.code, 185*time.Second)
		})
	}
}

func nobodyThere(t *testing.T, how silence, extra, code string, window time.Duration) {
	docs := sample.Generate(sample.Options{Seed: 35, Count: 20, Clean: true})
	n := newDeafServer(t, how)
	s := newContainers(t)
	s.connection = "sqlserver://sa:x@" + n.address + "?database=d&encrypt=disable" + extra
	s.submit(jsons(docs)...)
	before := s.all()
	s.startHost()
	var flow handlers.FlowHealth
	require.Eventually(t, func() bool {
		flow = s.handler.health().Flow
		return flow.State == string(breaker.StoppedFlow)
	}, 4*time.Minute, 50*time.Millisecond, "the flow does not stop")
	n.watch(t)
	require.Equal(t, []string{"infrastructure", code}, []string{flow.Kind, flow.Code})
	require.Eventually(t, func() bool {
		return len(s.handler.log(isOpening)) > 0
	}, patience, 20*time.Millisecond, "the log does not say why")

	settled := flow.Since.Add(settleTime)
	select {
	case <-time.After(time.Until(settled.Add(window))): // what is measured is that nothing happens meanwhile
	case <-t.Context().Done():
	}
	came := n.since(settled)
	if window < time.Minute-settleTime {
		require.Empty(t, came, "SQL was asked within a minute after the flow had stopped")
	}
	require.LessOrEqual(t, mostPerMinute(came), 1, "%v", came)
	if window > 2*time.Minute {
		require.GreaterOrEqual(t, len(came), 2, "SQL is probed: %v", came)
	}
	health := s.handler.health()
	require.Equal(t, string(breaker.StoppedFlow), health.Flow.State)
	require.Equal(t, "live", health.Status)

	_, err := s.host.WaitEvent(s.patiently(), 0, func(e funchost.Event) bool {
		return e.Kind == funchost.InvocationFailed
	})
	require.NoError(t, err)
	statuses, slowest := s.handler.refused()
	for _, status := range statuses {
		require.Equal(t, http.StatusServiceUnavailable, status)
	}
	require.Less(t, slowest, 20*time.Second+busy, "the app waits 20 s for what is not there")
	s.handler.requireNeverRestarted()
	require.Equal(t, before, s.all(), "no document was touched")
	t.Logf(
		"flow stopped %s after the start; then, from 5 s after that and for %s, %d connections (%v); %d batches answered 503, the slowest after %s",
		flow.Since.Sub(s.host.Events(0)[0].Time).Round(time.Millisecond), window, len(came), came, len(statuses),
		slowest.Round(time.Millisecond))
}

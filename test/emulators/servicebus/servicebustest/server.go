// Package servicebustest starts the Service Bus emulator for a test. Call Start with the queues; the end of the test
// stops the emulator. Server.Client gives an azservicebus client. Install the emulator once with `make servicebus`.
package servicebustest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/loopback"
	"sqlwriter/test/emulators/servicebus"
)

// Server is an emulator that runs until the test ends. Its methods fail the test where those of Process give an error.
type Server struct {
	t       testing.TB
	options servicebus.Options

	*servicebus.Process
}

// Start starts an emulator with the given queues.
func Start(t testing.TB, queues ...servicebus.Queue) *Server {
	t.Helper()
	dir, err := programDir()
	require.NoError(t, err)
	s := &Server{t: t, options: servicebus.Options{Dir: dir, Queues: queues, AMQP: loopback.Address(t)}}
	s.start()
	t.Cleanup(func() { s.Kill() }) // the one that runs then
	return s
}

func (s *Server) start() {
	s.t.Helper()
	p, err := servicebus.Start(s.t.Context(), s.options)
	require.NoError(s.t, err)
	s.Process = p
}

// Restart kills the emulator and starts it again on the same ports. It is empty then.
func (s *Server) Restart() {
	s.t.Helper()
	s.options.AMQP = s.AMQP
	s.Kill()
	s.start()
}

// Client gives an azservicebus client with quick retries, closed when the test ends.
func (s *Server) Client() *azservicebus.Client {
	s.t.Helper()
	// Not fewer: without a retry a client never recovers from a dropped connection.
	return s.ClientWith(
		azservicebus.RetryOptions{
			MaxRetries: 2, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: 100 * time.Millisecond,
		})
}

// ClientWith gives a client with retries of your choice.
func (s *Server) ClientWith(retry azservicebus.RetryOptions) *azservicebus.Client {
	s.t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(),
		&azservicebus.ClientOptions{RetryOptions: retry})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = client.Close(ctx) // its server may be gone
	})
	return client
}

// Fail adds a fault.
func (s *Server) Fail(f servicebus.Fault) {
	s.t.Helper()
	require.NoError(s.t, s.Control.Fail(s.t.Context(), f))
}

// Faults gives all faults with what became of them.
func (s *Server) Faults() []servicebus.FaultState {
	s.t.Helper()
	all, err := s.Control.Faults(s.t.Context())
	require.NoError(s.t, err)
	return all
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.t.Helper()
	require.NoError(s.t, s.Control.Heal(s.t.Context()))
}

// Down ends all connections and refuses new ones, until Up.
func (s *Server) Down() {
	s.t.Helper()
	require.NoError(s.t, s.Control.Down(s.t.Context()))
}

// Up accepts connections again.
func (s *Server) Up() {
	s.t.Helper()
	require.NoError(s.t, s.Control.Up(s.t.Context()))
}

// Disconnect ends all connections.
func (s *Server) Disconnect() {
	s.t.Helper()
	require.NoError(s.t, s.Control.Disconnect(s.t.Context()))
}

// Advance moves the clock of the emulator on; what was due has happened when it returns.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.Control.Advance(s.t.Context(), d))
}

// Now is the time of the emulator.
func (s *Server) Now() time.Time {
	s.t.Helper()
	now, err := s.Control.Now(s.t.Context())
	require.NoError(s.t, err)
	return now
}

// Counts says what is in a queue and what happened to it.
func (s *Server) Counts(queue string) servicebus.Counts {
	s.t.Helper()
	counts, err := s.Control.Counts(s.t.Context(), queue)
	require.NoError(s.t, err)
	return counts
}

// Peek gives the messages of a queue or of a servicebus.DeadLetterPath: the 10,000 oldest.
func (s *Server) Peek(path string) []servicebus.Peeked {
	s.t.Helper()
	const all = 10_000
	found, err := s.Control.Peek(s.t.Context(), path, all)
	require.NoError(s.t, err)
	return found
}

// Send puts a message into a queue, without the faults, and gives its sequence number.
func (s *Server) Send(queue string, m servicebus.Outgoing) int64 {
	s.t.Helper()
	n, err := s.Control.Send(s.t.Context(), queue, m)
	require.NoError(s.t, err)
	return n
}

// Purge removes all messages of a queue or of a servicebus.DeadLetterPath and says how many.
func (s *Server) Purge(path string) int {
	s.t.Helper()
	n, err := s.Control.Purge(s.t.Context(), path)
	require.NoError(s.t, err)
	return n
}

// programDir finds the folder of the program in the module that the test is in.
func programDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "test", "emulators", "servicebus"), nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

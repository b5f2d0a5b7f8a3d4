package sqlserver

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// A server that accepts a connection and never answers must not block longer than the caller's deadline. The error
// concerns no document.
func TestALoginWithoutAnAnswerEndsAtTheDeadline(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the client disconnects
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, "sqlserver://sa:x@"+listener.Addr().String()+"?database=d&encrypt=disable", Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, codeTimeout, fault.CodeOf(err))
	require.NoError(t, listener.Close()) // ends the accept loop if no client has connected
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the connection is still held")
	}
}

// A write that the server does not read must end too.
func TestAWriteThatTheServerDoesNotReadEnds(t *testing.T) {
	here, there := net.Pipe()
	t.Cleanup(func() {
		require.NoError(t, here.Close())
		require.NoError(t, there.Close())
	})
	_, err := boundedSender{here, time.Millisecond}.Write([]byte("a request"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

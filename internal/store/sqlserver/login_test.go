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

// A server that takes the connection and never says a word holds nobody for longer than he wants to wait, and it is nobody's
// document that pays.
func TestALoginThatIsNeverAnsweredEndsWithTheCallersTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the client goes
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, "sqlserver://sa:x@"+listener.Addr().String()+"?database=d&encrypt=disable", Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, codeTimeout, fault.CodeOf(err))
	require.NoError(t, listener.Close()) // on a machine so slow that nobody has come yet, nobody is waited for
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the connection is still held")
	}
}

// A request that the other end does not take in ends too.
func TestWhatTheOtherEndDoesNotTakeIsNotSentForEver(t *testing.T) {
	here, there := net.Pipe()
	t.Cleanup(func() {
		require.NoError(t, here.Close())
		require.NoError(t, there.Close())
	})
	_, err := boundedSender{here, time.Millisecond}.Write([]byte("a request"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

package outage_test

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/outage"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestAProxyRefusesWhileItIsOff(t *testing.T) {
	p, err := outage.NewProxy(t.Context(), "127.0.0.1:0", echo(t))
	require.NoError(t, err)
	ask := func(c net.Conn) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	for range 2 {
		c, err := net.Dial("tcp", p.Address())
		require.NoError(t, err)
		require.NoError(t, ask(c))
		require.NoError(t, p.Off(t.Context()))
		require.Error(t, ask(c), "a connection that was open")
		_, err = net.Dial("tcp", p.Address())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, p.On(t.Context()))
		require.NoError(t, c.Close())
	}
	require.NoError(t, p.Off(t.Context()))
}

package neterr_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/neterr"
)

// at wraps an error with the address of a request that has a signature.
func at(err error) error {
	return &url.Error{Op: "Put", URL: "https://acct.test" + private, Err: err}
}

// DO show the host and the system's message, DON'T show an address or an unknown text.
func TestDescribeTellsWhatHelpsAndNoMore(t *testing.T) {
	dial := &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Err: syscall.ECONNREFUSED,
	}
	dns := &net.DNSError{Err: "no such host", Name: "acct.test", IsNotFound: true}
	for _, c := range []struct {
		err  error
		says string
	}{
		{dial, "dial tcp 127.0.0.1:9: connection refused"},
		{at(dial), "dial tcp 127.0.0.1:9: connection refused"},
		{at(fmt.Errorf("SIGNATURE: %w", dial)), "dial tcp 127.0.0.1:9: connection refused"},
		{errors.Join(errors.New("SIGNATURE"), at(dial)), "dial tcp 127.0.0.1:9: connection refused"},
		{at(&net.OpError{Op: "dial", Err: dns}), "lookup acct.test: no such host"},
		{at(io.ErrUnexpectedEOF), "*errors.errorString"},
		{at(context.DeadlineExceeded), "context.deadlineExceededError"},
		{errors.New("SIGNATURE"), "*errors.errorString"},
		{errors.Join(errors.New("SIGNATURE"), io.EOF), "*errors.joinError"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: at(io.EOF)}, "*errors.errorString"},
	} {
		require.Equal(t, c.says, neterr.Describe(c.err), "%v", c.err)
	}
}

func TestRootTypeIsTheFirstCausesOfAll(t *testing.T) {
	require.Equal(t, "*errors.errorString", neterr.RootType(at(fmt.Errorf("a: %w", io.EOF))))
	require.Equal(t, "syscall.Errno", neterr.RootType(fmt.Errorf("a: %w", syscall.EPIPE)))
}

func TestARedactedErrorKeepsItsCauseAndNotItsText(t *testing.T) {
	err := fmt.Errorf("keeping: %w", neterr.Redact(at(io.EOF), "cut"))
	require.Equal(t, "keeping: cut", err.Error())
	require.NotContains(t, fmt.Sprintf("%v %+v %s %q", err, err, err, err), "SIGNATURE")
	require.ErrorIs(t, err, io.EOF)
	var address *url.Error
	require.ErrorAs(t, err, &address)
}

func TestRetryAfterReadsTheHeadersInAzcoresOrder(t *testing.T) {
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{nil, 0},
		{map[string]string{"retry-after-ms": "2750"}, 2750 * time.Millisecond},
		{map[string]string{"x-ms-retry-after-ms": "2750"}, 2750 * time.Millisecond},
		{map[string]string{"Retry-After": "3"}, 3 * time.Second},
		{map[string]string{"retry-after-ms": "1", "x-ms-retry-after-ms": "2", "Retry-After": "3"}, time.Millisecond},
		{map[string]string{"x-ms-retry-after-ms": "2", "Retry-After": "3"}, 2 * time.Millisecond},
		{map[string]string{"retry-after-ms": "soon", "Retry-After": "3"}, 3 * time.Second},
		{map[string]string{"Retry-After": "0"}, 0},
		{map[string]string{"Retry-After": "-5"}, 0},
	} {
		header := http.Header{}
		for name, value := range c.header {
			header.Set(name, value)
		}
		require.Equal(t, c.want, neterr.RetryAfter(header), "%v", c.header)
	}
}

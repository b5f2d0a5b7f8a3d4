package neterr_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/neterr"
)

// matches returns the classes that match an error.
func matches(err error) []string {
	sorts := []string{}
	for _, q := range []struct {
		sort string
		is   func(error) bool
	}{
		{"cancelled", neterr.IsCancelled},
		{"dns", neterr.IsDNS},
		{"tls", neterr.IsTLS},
		{"refused", neterr.IsRefused},
		{"unreachable", neterr.IsUnreachable},
		{"reset", neterr.IsReset},
		{"timeout", neterr.IsTimeout},
		{"eof", neterr.IsEOF},
	} {
		if q.is(err) {
			sorts = append(sorts, q.sort)
		}
	}
	return sorts
}

// timeoutError is an error like net/http's own time-out, without a known type.
type timeoutError struct{}

func (timeoutError) Error() string { return "late" }
func (timeoutError) Timeout() bool { return true }

// syscallError returns an errno as package net wraps it.
func syscallError(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, errno)}
}

func TestEveryErrorIsOfItsSorts(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		sorts []string
	}{
		{"the caller gave up", context.Canceled, []string{"cancelled"}},
		{"a context's deadline", context.DeadlineExceeded, []string{"timeout"}},
		{"a connection's deadline", os.ErrDeadlineExceeded, []string{"timeout"}},
		{"a type that says so", timeoutError{}, []string{"timeout"}},
		{"the system's patience", syscallError("connect", syscall.ETIMEDOUT), []string{"timeout"}},
		{"no such name", &net.DNSError{Err: "no such host", IsNotFound: true}, []string{"dns"}},
		{
			"a name's lookup took too long", &net.DNSError{Err: "i/o timeout", IsTimeout: true},
			[]string{"dns", "timeout"},
		},
		{
			"a dial whose lookup took too long", &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}},
			[]string{"dns", "timeout"},
		},
		{
			"a lookup given up", &net.DNSError{Err: "canceled", UnwrapErr: context.Canceled},
			[]string{"cancelled", "dns"},
		},
		{"unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, []string{"tls"}},
		{
			"expired",
			&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}},
			[]string{"tls"},
		},
		{
			"wrong host",
			&tls.CertificateVerificationError{
				Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"},
			},
			[]string{"tls"},
		},
		{"no TLS at the other end", tls.RecordHeaderError{Msg: "x"}, []string{"tls"}},
		{"alert", tls.AlertError(42), []string{"tls"}},
		{"refused", syscallError("connect", syscall.ECONNREFUSED), []string{"refused"}},
		{"no way to the host", syscallError("connect", syscall.EHOSTUNREACH), []string{"unreachable"}},
		{"no way to the net", syscallError("connect", syscall.ENETUNREACH), []string{"unreachable"}},
		{"no net", syscallError("connect", syscall.ENETDOWN), []string{"unreachable"}},
		{"reset while reading", syscallError("read", syscall.ECONNRESET), []string{"reset"}},
		{"reset while writing", syscallError("write", syscall.EPIPE), []string{"reset"}},
		{"end", io.EOF, []string{"eof"}},
		{"end in the middle", io.ErrUnexpectedEOF, []string{"eof"}},
		{"closed by us", net.ErrClosed, []string{}},
		{"no text decides", errors.New("connection refused, EOF, timeout, x509: certificate"), []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := errors.New("another")
			for shape, err := range map[string]error{
				"bare": c.err, "wrapped": fmt.Errorf("wrapped: %w", c.err),
				"by net/http":  &url.Error{Op: "Put", URL: "https://x", Err: c.err},
				"joined first": errors.Join(c.err, other),
				"joined last":  fmt.Errorf("deep: %w", errors.Join(other, c.err)),
			} {
				require.Equal(t, c.sorts, matches(err), shape)
			}
		})
	}
}

func TestNoErrorIsOfNoSort(t *testing.T) {
	require.Empty(t, matches(nil))
}

// A url.Error reports a time-out first and looks no deeper than its own cause.
func TestADeadlineIsFoundUnderATypeThatDoesNotSaySo(t *testing.T) {
	for _, deadline := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT} {
		err := &url.Error{Op: "Put", URL: "https://x", Err: fmt.Errorf("wrapped: %w", deadline)}
		require.False(t, err.Timeout())
		require.Equal(t, []string{"timeout"}, matches(err), "%v", deadline)
	}
}

// Package azuretest is the suite of internal/azure: each adapter runs it on its table.
package azuretest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/fault"
)

// TestService checks that each row of a service's table of errors decides: for an answer with its code, and for a call
// without an answer that failed with its type of error. answer makes the SDK's error; word is the service's word beside
// the status.
func TestService(t *testing.T, s azure.Service, answer func(status int, word string) *azcore.ResponseError) {
	t.Helper()
	rows := s.Faults()
	for i := range s.Answers {
		row := rows[i]
		status, word := exampleOf(t, row.Code)
		got := fault.As(s.Translate("test", row.About, answer(status, word)))
		require.Equal(t, row.Reason, got.Reason, "another row decides for %s", got.Code)
		require.Equal(t, row.Kind, got.Kind, row.Code)
		require.Equal(t, row.Condition, got.Condition, row.Code)
		require.Equal(t, strings.TrimSuffix(strconv.Itoa(status)+"/"+word, "/"), got.Code)
		require.True(t, row.StandsFor(got.Code), "%s stands for %s", row.Code, got.Code)
		require.Equal(t, s.Adapter, row.Adapter)
		require.NotEmpty(t, row.Source)
	}
	lost := lost()
	for _, row := range rows[len(s.Answers) : len(s.Answers)+len(lost)] {
		code := row.Code
		require.Contains(t, lost, code)
		require.Equal(t, fault.Infrastructure, row.Kind, code)
		for _, cause := range lost[code] {
			for _, err := range []error{
				cause, &url.Error{Op: "Put", URL: "https://acct/a", Err: fmt.Errorf("wrapped: %w", cause)},
			} {
				got := fault.As(s.Translate("test", "", err))
				require.Equal(t, code, got.Code, "%v", err)
				require.Equal(t, fault.Infrastructure, got.Kind, code)
				require.Equal(t, row.Reason, got.Reason)
				require.ErrorIs(t, got, cause)
			}
		}
	}
}

// lost are errors of calls that had no answer, by the code that they must have.
func lost() map[string][]error {
	during := func(op string, err error) error { return &net.OpError{Op: op, Err: err} }
	return map[string][]error{
		"cancelled": {context.Canceled},
		"timeout":   {context.DeadlineExceeded, during("dial", syscall.ETIMEDOUT)},
		"dns": {
			&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true},
			during("dial", &net.DNSError{Err: "timed out", Name: "x", IsTimeout: true}),
		},
		"tls":         {tls.AlertError(42)},
		"refused":     {during("dial", syscall.ECONNREFUSED)},
		"unreachable": {during("dial", syscall.EHOSTUNREACH), during("dial", syscall.ENETUNREACH)},
		"identity":    {&azidentity.AuthenticationFailedError{}},
		"reset": {
			during("read", syscall.ECONNRESET), during("write", syscall.EPIPE), during("readfrom", net.ErrClosed),
		},
		"eof":     {io.EOF, io.ErrUnexpectedEOF},
		"unknown": {errors.New("connection refused, EOF, timeout, 429")},
	}
}

// exampleOf is a status and a word that no row before one with this code fits.
func exampleOf(t *testing.T, code string) (status int, word string) {
	t.Helper()
	if status := map[string]int{"400-499": 418, "500-599": 502, "100-999": 306}[code]; status > 0 {
		return status, "4711"
	}
	text, word, _ := strings.Cut(code, "/")
	status, err := strconv.Atoi(text)
	require.NoError(t, err, code)
	if word == "*" {
		word = "4711"
	}
	return status, word
}

// Package azuretest is the suite of internal/azure: each adapter runs it on its table.
package azuretest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
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
	native := map[string]error{
		"cancelled": context.Canceled, "dns": &net.DNSError{Err: "no such host"}, "tls": tls.AlertError(42),
		"refused": syscall.ECONNREFUSED, "unreachable": syscall.ENETUNREACH,
		"identity": &azidentity.AuthenticationFailedError{},
		"reset":    syscall.ECONNRESET, "timeout": context.DeadlineExceeded, "eof": io.ErrUnexpectedEOF,
		"unknown": errors.New("x"),
	}
	for _, row := range rows[len(s.Answers) : len(s.Answers)+len(native)] {
		require.Contains(t, native, row.Code)
		got := fault.As(s.Translate("test", "", &net.OpError{Op: "read", Err: native[row.Code]}))
		require.Equal(t, row.Code, got.Code)
		require.Equal(t, fault.Infrastructure, got.Kind, row.Code)
		require.Equal(t, row.Reason, got.Reason)
		require.Equal(t, got.Kind, row.Kind)
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

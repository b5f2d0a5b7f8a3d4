package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// Every rule for answers holds for the SDK's error.
func TestTranslateEveryStatusRow(t *testing.T) {
	for i, r := range statusRules() {
		row := Faults()[i]
		status := r.from
		if n, ok := map[string]int{"500-599": 502, "100-999": 306}[r.codes()]; ok { // no earlier row matches these
			status = n
		}
		answer := &azcore.ResponseError{StatusCode: status, ErrorCode: string(r.code)}
		if r.code == anyCode {
			answer.ErrorCode = "Unheard"
		}
		op := operation{"blob: test", onContainer}
		if r.files {
			op.target = onFile
		}
		got := fault.As(translate(op, answer))
		require.Equal(t, row.Kind, got.Kind, row.Code)
		require.Equal(t, row.Condition, got.Condition, row.Code)
		require.Equal(t, row.Reason, got.Reason, "another row decides for %s", got.Code)
		require.Equal(t, strconv.Itoa(status)+"/"+answer.ErrorCode, got.Code)
		require.True(t, row.StandsFor(got.Code), "%s stands for %s", row.Code, got.Code)
		require.Equal(t, "blob", row.Adapter)
		require.NotContains(t, []string{"common", "blob", ""}, row.Source, "a source is written out")
	}
}

// Every rule for calls without an answer holds for an error of its type.
func TestTranslateEveryTransportRow(t *testing.T) {
	native := map[string]error{
		"cancelled": context.Canceled, "dns": &net.DNSError{Err: "no such host"}, "tls": tls.AlertError(42),
		"refused": syscall.ECONNREFUSED, "unreachable": syscall.ENETUNREACH, "identity": &azidentity.AuthenticationFailedError{},
		"reset": syscall.ECONNRESET, "timeout": context.DeadlineExceeded, "eof": io.ErrUnexpectedEOF, "unknown": errors.New("x"),
	}
	require.Len(t, native, len(transportRules()))
	for i, r := range transportRules() {
		require.Contains(t, native, r.code)
		got := fault.As(translate(operation{"blob: test", onContainer}, &net.OpError{Op: "read", Err: native[r.code]}))
		row := Faults()[len(statusRules())+i]
		require.Equal(t, fault.Infrastructure, got.Kind, r.code)
		require.Equal(t, fault.Infrastructure, row.Kind, r.code)
		require.Equal(t, row.Code, got.Code)
		require.Equal(t, row.Reason, got.Reason)
	}
}

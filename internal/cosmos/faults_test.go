package cosmos

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// example is a status and substatus of a rule that no earlier rule matches.
func (r statusRule) example() (int, string) {
	status := map[string]int{"400-499": 418, "500-599": 503, "100-999": 306}[r.codes()]
	if status == 0 {
		status = r.from
	}
	if r.substatus == anySubstatus {
		return status, "4711"
	}
	return status, r.substatus
}

// Every rule for answers holds for the SDK's error.
func TestTranslateEveryStatusRow(t *testing.T) {
	for i, r := range statusRules() {
		row := Faults()[i]
		status, sub := r.example()
		answer := &azcore.ResponseError{StatusCode: status, RawResponse: &http.Response{Header: http.Header{}}}
		code := strconv.Itoa(status)
		if sub != noSubstatus {
			answer.RawResponse.Header.Set("x-ms-substatus", sub)
			code += "/" + sub
		}
		op := operation{"cosmos: test", onContainer}
		if r.documents {
			op.target = onDocument
		}
		got := fault.As(translate(op, answer))
		require.Equal(t, row.Kind, got.Kind, row.Code)
		require.Equal(t, row.Condition, got.Condition, row.Code)
		require.Equal(t, row.Reason, got.Reason, "another row decides for %s", code)
		require.Equal(t, code, got.Code)
		require.True(t, row.StandsFor(got.Code), "%s stands for %s", row.Code, got.Code)
		require.Equal(t, "cosmos", row.Adapter)
		require.Equal(t, r.documents, row.About != "", row.Code)
		require.NotEmpty(t, row.Source)
		require.NotContains(t, []string{"rest", "stack"}, row.Source, "a source is written out")
	}
}

// The answers of docs/requirements.md R32 and docs/facts.md F70 for one document, written down independently.
// TestEveryAnswerHasItsKind checks the others through the SDK.
func TestTranslateTheNamedAnswers(t *testing.T) {
	const infra = fault.Infrastructure
	for code, want := range map[string]struct {
		kind      fault.Kind
		condition fault.Condition
	}{
		"429/3200": {fault.Throttled, ""}, "429/0": {fault.Throttled, ""}, "449/0": {fault.Contention, ""},
		"403/3": {infra, ""}, "403/1008": {infra, ""}, "404/1002": {infra, ""}, "408/0": {infra, ""}, "410/0": {infra, ""},
		"500/0": {infra, ""}, "502/0": {infra, ""}, "503/0": {infra, ""}, "504/0": {infra, ""}, "401/0": {infra, ""},
		"404/0": {fault.Document, fault.Gone}, "412/0": {fault.Contention, fault.Changed}, "413/0": {fault.Document, fault.TooLarge},
		"400/0": {fault.Document, ""}, "409/0": {fault.Document, ""},
	} {
		text, sub, _ := strings.Cut(code, "/")
		status, err := strconv.Atoi(text)
		require.NoError(t, err)
		answer := &azcore.ResponseError{StatusCode: status, RawResponse: &http.Response{Header: http.Header{}}}
		answer.RawResponse.Header.Set("x-ms-substatus", sub)
		got := fault.As(translate(operation{"cosmos: test", onDocument}, answer))
		require.Equal(t, want.kind, got.Kind, code)
		require.Equal(t, want.condition, got.Condition, code)
	}
}

// The codes that the rows for several codes cover, and some that they do not.
func TestRowsStandForTheirCodes(t *testing.T) {
	rows := map[string]fault.Row{}
	for _, row := range Faults() {
		rows[row.Code] = row
	}
	for code, covered := range map[string]string{"429/*": "429/3200", "500-599": "503", "404/*": "404/1013", "100-999": "306/1"} {
		require.True(t, rows[code].StandsFor(covered), "%s: %s", code, covered)
	}
	for code, other := range map[string]string{"429/*": "430", "500-599": "600", "404": "404/1013", "404/1002": "404/1003", "100-999": "word"} {
		require.False(t, rows[code].StandsFor(other), "%s: %s", code, other)
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
	for _, r := range transportRules() {
		require.Contains(t, native, r.code)
		got := fault.As(translate(operation{"cosmos: test", onDocument}, &net.OpError{Op: "read", Err: native[r.code]}))
		require.Equal(t, fault.Infrastructure, got.Kind, r.code)
		require.Equal(t, r.code, got.Code)
		require.Equal(t, r.reason, got.Reason)
	}
	words := 0
	for _, row := range Faults()[len(statusRules()):] {
		if native[row.Code] != nil {
			words++
			require.Equal(t, fault.Infrastructure, row.Kind)
		}
		require.False(t, strings.Contains(row.Code, "/"))
	}
	require.Equal(t, len(native), words)
}

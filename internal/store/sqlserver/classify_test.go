package sqlserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
)

// The test repeats the numbers of docs/requirements.md R32 and docs/facts.md F77 independently of the product.
func TestErrorsByNumber(t *testing.T) {
	for number, want := range map[int32]fault.Kind{
		18456: fault.Infrastructure, 4060: fault.Infrastructure, 916: fault.Infrastructure, 229: fault.Infrastructure,
		207: fault.Infrastructure, 208: fault.Infrastructure, 2812: fault.Infrastructure, 3906: fault.Infrastructure,
		978: fault.Infrastructure, 983: fault.Infrastructure, 6005: fault.Infrastructure, 40613: fault.Infrastructure,
		926: fault.Infrastructure, 4221: fault.Infrastructure, 615: fault.Infrastructure, 40197: fault.Infrastructure,
		40143: fault.Infrastructure, 40540: fault.Infrastructure, 42108: fault.Infrastructure,
		42109: fault.Infrastructure,
		1204:  fault.Infrastructure, 8645: fault.Infrastructure, 8651: fault.Infrastructure,
		0: fault.Infrastructure, -2: fault.Infrastructure, 20: fault.Infrastructure, 64: fault.Infrastructure,
		121: fault.Infrastructure, 233: fault.Infrastructure, 997: fault.Infrastructure, 10053: fault.Infrastructure,
		10054: fault.Infrastructure, 10060: fault.Infrastructure,
		40501: fault.Throttled, 10928: fault.Throttled, 10929: fault.Throttled, 10936: fault.Throttled,
		49918: fault.Throttled, 49919: fault.Throttled, 49920: fault.Throttled,
		9002: fault.Quota, 1105: fault.Quota, 40544: fault.Quota,
		1205: fault.Contention, 1222: fault.Contention, 3960: fault.Contention,
		2627: fault.Contention, 2601: fault.Contention,
		41301: fault.Contention, 41302: fault.Contention, 41305: fault.Contention, 41325: fault.Contention,
		41839: fault.Contention,
		52740: fault.Contention, 52741: fault.Contention,
		8152: fault.Document, 2628: fault.Document, 547: fault.Document, 515: fault.Document, 245: fault.Document,
		8114: fault.Document, 50000: fault.Document, 987654: fault.Document,
		// These numbers concern no document: resources, damage, our statements and parameters, the user's schema.
		3958: fault.Infrastructure, 3959: fault.Infrastructure, 3966: fault.Infrastructure, 3967: fault.Infrastructure,
		8642: fault.Infrastructure, 1203: fault.Infrastructure, 8646: fault.Infrastructure, 3313: fault.Infrastructure,
		137: fault.Infrastructure, 201: fault.Infrastructure, 451: fault.Infrastructure, 457: fault.Infrastructure,
		468: fault.Infrastructure, 4104: fault.Infrastructure, 4145: fault.Infrastructure, 8120: fault.Infrastructure,
		8178: fault.Infrastructure, 8618: fault.Infrastructure, 8621: fault.Infrastructure, 8630: fault.Infrastructure,
		8632: fault.Infrastructure, 13607: fault.Infrastructure, 13608: fault.Infrastructure,
		13609: fault.Infrastructure,
		35250: fault.Infrastructure, 13535: fault.Contention,
	} {
		err := sqlserver.Classify(fmt.Errorf("wrapped: %w", mssql.Error{Number: number, Message: "secret"}))
		require.Equal(t, want, fault.KindOf(err), number)
		code := fmt.Sprint(number)
		if own, ok := map[int32]string{52740: "verdict_without_evidence", 52741: "row_count"}[number]; ok {
			code = own
		}
		require.Equal(t, code, fault.CodeOf(err))
		require.NotEmpty(t, fault.As(err).Reason)
		own := number == 2627 || number == 2601 || number == 52741
		require.Equal(t, own, fault.Has(err, fault.OwnWhenAlone), number)
	}
}

// A number without a row follows its severity. A row decides for every severity.
func TestUnlistedErrorsBySeverity(t *testing.T) {
	of := func(number int32, severity uint8) fault.Kind {
		return fault.KindOf(sqlserver.Classify(mssql.Error{Number: number, Class: severity}))
	}
	for severity := uint8(11); severity <= 25; severity++ {
		want := fault.Document
		if severity >= 17 {
			want = fault.Infrastructure
		}
		require.Equal(t, want, of(987654, severity), "severity %d", severity)
		require.Equal(t, fault.Document, of(50000, severity), "a trigger of the user's may choose any")
		require.Equal(t, fault.Contention, of(1205, severity))
	}
	// In one answer it outranks an error of the document.
	err := sqlserver.Classify(
		mssql.Error{Number: 547, Class: 16, All: []mssql.Error{{Number: 547, Class: 16}, {Number: 987654, Class: 21}}})
	require.Equal(t, "987654", fault.CodeOf(err))
}

// Every row has a reason and a source, and no number occurs twice.
func TestTheTableOfErrors(t *testing.T) {
	seen := map[int32]bool{}
	for _, r := range sqlserver.Rules() {
		require.NotEmpty(t, r.Numbers)
		require.NotEmpty(t, r.Reason)
		require.NotEmpty(t, r.Source)
		for _, n := range r.Numbers {
			require.False(t, seen[n], "%d occurs twice", n)
			seen[n] = true
		}
	}
}

// An answer may have several errors. "The statement has been terminated" comes last and is ignored. An error without
// a document outranks one with a document.
func TestTheErrorWithTheWidestScopeWins(t *testing.T) {
	all := func(numbers ...int32) error {
		e := mssql.Error{Number: numbers[len(numbers)-1]}
		for _, n := range numbers {
			e.All = append(e.All, mssql.Error{Number: n})
		}
		return sqlserver.Classify(e)
	}
	require.Equal(t, "547", fault.CodeOf(all(547, 3621)))
	require.Equal(t, "50000", fault.CodeOf(all(50000, 3609)))
	require.Equal(t, "1205", fault.CodeOf(all(547, 1205)))
	require.Equal(t, "3906", fault.CodeOf(all(547, 1205, 3906)))
	require.Equal(t, "3609", fault.CodeOf(all(3609)))
	require.Equal(t, fault.Document, fault.KindOf(all(3621, 3621)))
}

func TestErrorsWithoutANumber(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"deadline":    {context.DeadlineExceeded, "timeout"},
		"cancelled":   {fmt.Errorf("x: %w", context.Canceled), "cancelled"},
		"eof":         {io.EOF, "connection"},
		"half an eof": {io.ErrUnexpectedEOF, "connection"},
		"reset":       {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "connection"},
		"refused": {
			&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection",
		},
		"no such host":  {&net.DNSError{Name: "nowhere"}, "connection"},
		"bad conn":      {driver.ErrBadConn, "connection"},
		"broken stream": {mssql.StreamError{InnerError: errors.New("x")}, "connection"},
		// The driver has some causes as text only: "failed to send RPC: write tcp ...: broken pipe".
		"text only":   {errors.New("failed to send RPC"), "connection"},
		"certificate": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate"},
		"host name":   {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, "certificate"},
	} {
		err := sqlserver.Classify(c.err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), name)
		require.Equal(t, c.code, fault.CodeOf(err), name)
		require.ErrorIs(t, err, c.err, name)
	}
	require.NoError(t, sqlserver.Classify(nil))
	own := fault.New(fault.Quota, "x", "y", "z")
	require.Same(t, own, sqlserver.Classify(own))
}

// A cancellation outranks the server's error.
func TestACancelledRequestIsTheCallers(t *testing.T) {
	err := sqlserver.Classify(errors.Join(context.Canceled, mssql.Error{Number: 547}))
	require.Equal(t, "cancelled", fault.CodeOf(err))
}

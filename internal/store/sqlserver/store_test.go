package sqlserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

func TestOpenNamesTheError(t *testing.T) {
	dsn := sqlservertest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := sqlserver.Open(ctx, sqlservertest.WithAddress(t, dsn, "127.0.0.1:1"), sqlserver.Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "connection", fault.CodeOf(err))
	_, err = sqlserver.Open(ctx, sqlservertest.WithDatabase(t, dsn, "no_such_database_here"), sqlserver.Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = sqlserver.Open(ended, dsn, sqlserver.Options{})
	require.Equal(t, "cancelled", fault.CodeOf(err), "%v", err)
}

// Whatever their number, refusals of a login, a firewall or a starting server come before any document is sent.
func TestConnectingIsNeverADocumentsError(t *testing.T) {
	for _, number := range []int32{40615, 18456, 17187, 987654} {
		err := sqlserver.ClassifyDependency(mssql.Error{Number: number})
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), number)
		require.Equal(t, fmt.Sprint(number), fault.CodeOf(err), "the number stays")
	}
	require.Equal(t, fault.Throttled, fault.KindOf(sqlserver.ClassifyDependency(mssql.Error{Number: 40501})))
	require.Equal(t, fault.Contention, fault.KindOf(sqlserver.ClassifyDependency(mssql.Error{Number: 1222})))
	ours := fault.New(fault.Internal, "test", "no_answer", "our own mistake")
	require.Equal(t, fault.Internal, fault.KindOf(sqlserver.ClassifyDependency(ours)))
}

// A result set of a user's trigger comes before our answer.
func TestATriggerThatSelectsIsNotTakenForTheAnswer(t *testing.T) {
	d := newDatabase(t)
	for _, selects := range []string{
		"SELECT 1 AS n, 1 AS m", "SELECT COUNT(*) AS n FROM inserted", "SELECT 7 AS sqlwriter_stamped, 7 AS x",
	} {
		h := d.harness(t)
		h.AddLines(t, 1, 2)
		d.spy.Exec(t, `CREATE TRIGGER dbo.selects ON dbo.IVCE_DTL AFTER UPDATE AS `+selects)
		a := sqltest.Item("a", 10, 1, 2)
		for _, want := range []invoice.Outcome{invoice.OutcomeApplied, invoice.OutcomeUnchanged} {
			out, err := h.Sink.Apply(t.Context(), []commit.Item{a}, commit.Write, breaker.Heartbeat{})
			require.NoError(t, err, selects)
			require.Equal(t, want, out[0].Verdict, selects)
			require.Len(t, out[0].Rows, 2)
		}
	}
}

// Outcomes count only if the stream ends without an error.
func TestAnErrorAfterTheOutcomesVoidsThem(t *testing.T) {
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	late, err := d.store.With(t.Context(), "outcomes", "THROW 52999, N'late', 1;")
	require.NoError(t, err)
	out, err := late.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.ErrorContains(t, err, "late")
	require.Nil(t, out)
}

func TestThePoolIsBounded(t *testing.T) {
	s, err := sqlserver.Open(t.Context(), sqlservertest.Server(t), sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.Equal(t, 10, s.DB().Stats().MaxOpenConnections)
}

// After a lost acknowledgement the request is carried out, and the driver must not send it again. A second request
// returns unchanged.
func TestTheDriverNeverRepeatsARequestAfterALostAnswer(t *testing.T) {
	d := newDatabase(t)
	h := d.harness(t)
	h.AddLines(t, 1)
	count := h.CountWrites(t)
	h.LoseReply(t)
	_, err := h.Sink.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	out, err := h.Sink.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeUnchanged, out[0].Verdict)
	detail, tracking := count(1)
	require.Equal(t, []int{1, 1}, []int{detail, tracking})
}

// The other idle connections broke too, and each would cost another request.
func TestABrokenConnectionTakesItsIdleSiblingsWithIt(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, dsn))
	s := openStore(t, sqlservertest.WithAddress(t, dsn, proxy.Address()))
	var group sync.WaitGroup
	meet := make(chan struct{})
	for range 3 { // opens three connections
		conn, err := s.DB().Conn(t.Context())
		require.NoError(t, err)
		group.Go(func() {
			<-meet
			_ = conn.Close() // returns the connection to the pool
		})
	}
	close(meet)
	group.Wait()
	require.Equal(t, 3, s.DB().Stats().Idle)
	proxy.Cut()
	_, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.Equal(t, "connection", fault.CodeOf(err), "%v", err)
	require.Zero(t, s.DB().Stats().Idle)
}

// Encryption and the check of the certificate are on by default. No password may go to a server with an untrusted
// certificate.
func TestTheCertificateIsChecked(t *testing.T) {
	dsn := sqlservertest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := sqlserver.Open(ctx,
		sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "", "TrustServerCertificate": ""}),
		sqlserver.Options{})
	if err == nil {
		t.Log("this server's certificate is trusted here")
		require.NoError(t, s.Close())
		return
	}
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "certificate", "the cause says it (as text: the driver keeps no more of it)")
	s, err = sqlserver.Open(ctx,
		sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "true", "TrustServerCertificate": "true"}),
		sqlserver.Options{})
	require.NoError(t, err, "encrypted, with TrustServerCertificate")
	require.NoError(t, s.Close())
}

package sqlserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/migration"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/porttest"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/sqlserver/sqlservertest"
	"sqlwriter/internal/writer"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
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

// Refusals of a login, of a firewall or of a starting server are nobody's document, whatever their number: nothing was
// sent yet.
func TestConnectingIsNeverADocumentsError(t *testing.T) {
	for _, number := range []int32{40615, 18456, 17187, 987654} {
		err := sqlserver.Outside(mssql.Error{Number: number})
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), number)
		require.Equal(t, fmt.Sprint(number), fault.CodeOf(err), "the number stays")
	}
	require.Equal(t, fault.Throttled, fault.KindOf(sqlserver.Outside(mssql.Error{Number: 40501})))
	require.Equal(t, fault.Contention, fault.KindOf(sqlserver.Outside(mssql.Error{Number: 1222})))
	ours := fault.New(fault.Internal, "test", "no_answer", "our own mistake")
	require.Equal(t, fault.Internal, fault.KindOf(sqlserver.Outside(ours)))
}

// What a trigger of the user's selects comes before our answer and is not taken for it.
func TestATriggerThatSelectsIsNotTakenForTheAnswer(t *testing.T) {
	d := newDatabase(t)
	for _, selects := range []string{"SELECT 1 AS n, 1 AS m", "SELECT COUNT(*) AS n FROM inserted", "SELECT 7 AS sqlwriter_stamped, 7 AS x"} {
		h := d.harness(t)
		h.AddLines(t, 1, 2)
		d.exec(t, `CREATE TRIGGER dbo.selects ON dbo.IVCE_DTL AFTER UPDATE AS `+selects)
		a := item("a", 10, 1, 2)
		for _, want := range []writer.Verdict{writer.Applied, writer.Unchanged} {
			out, err := h.Sink.Apply(t.Context(), []writer.Item{a}, writer.Write, breaker.Heartbeat{})
			require.NoError(t, err, selects)
			require.Equal(t, want, out[0].Verdict, selects)
			require.Len(t, out[0].Rows, 2)
		}
	}
}

// Outcomes count only when the stream ended cleanly.
func TestAnErrorAfterTheOutcomesTakesThemBack(t *testing.T) {
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	late, err := d.store.With("outcomes", "THROW 52999, N'late', 1;")
	require.NoError(t, err)
	out, err := late.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write, breaker.Heartbeat{})
	require.ErrorContains(t, err, "late")
	require.Nil(t, out)
}

func TestThePoolIsBounded(t *testing.T) {
	s, err := sqlserver.Open(t.Context(), sqlservertest.Server(t), sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.Equal(t, 10, s.DB().Stats().MaxOpenConnections)
}

// A lost acknowledgement on the wire: the request was carried out, the answer never arrives, and the driver does not send
// it again by itself. The same request again answers unchanged.
func TestALostAnswerIsNeverSentAgainBehindOurBack(t *testing.T) {
	d := newDatabase(t)
	h := d.harness(t)
	h.AddLines(t, 1)
	count := h.CountWrites(t)
	h.LoseReply(t)
	_, err := h.Sink.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write, breaker.Heartbeat{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	out, err := h.Sink.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, writer.Unchanged, out[0].Verdict)
	detail, tracking := count(1)
	require.Equal(t, []int{1, 1}, []int{detail, tracking})
}

// After a break every idle connection is let go: its siblings broke with it, and each would cost another request.
func TestABrokenConnectionTakesItsIdleSiblingsWithIt(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, dsn))
	s := openStore(t, sqlservertest.WithAddress(t, dsn, proxy.Address()))
	var group sync.WaitGroup
	meet := make(chan struct{})
	for range 3 { // three connections at once
		conn, err := s.DB().Conn(t.Context())
		require.NoError(t, err)
		group.Go(func() {
			<-meet
			_ = conn.Close() // back to the pool
		})
	}
	close(meet)
	group.Wait()
	require.Equal(t, 3, s.DB().Stats().Idle)
	proxy.Cut()
	_, err := s.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write, breaker.Heartbeat{})
	require.Equal(t, "connection", fault.CodeOf(err), "%v", err)
	require.Zero(t, s.DB().Stats().Idle)
}

// The request is one text whatever it carries: the server keeps one plan for it.
func TestTheTextIsConstant(t *testing.T) {
	d := newDatabase(t)
	before := d.store.WriteText()
	h := d.harness(t)
	h.AddLines(t, 1, 2, 3)
	for _, items := range [][]writer.Item{{item("a", 1, 1)}, {item("b", 1, 2, 3), item("c", 2, 2)}} {
		_, err := d.store.Apply(t.Context(), items, writer.Write, breaker.Heartbeat{})
		require.NoError(t, err)
	}
	require.Equal(t, before, d.store.WriteText())
	require.NotContains(t, before, "--", "comments stay in the files")
}

// The rights in deploy/sql are enough for what each of the two does, and for nothing else.
func TestTheRightsOfTheScriptsAreEnough(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	const password = "Test!only-5c1e"
	login := "sqlwriter_test_" + strings.ToLower(t.Name()[:6]) + fmt.Sprint(time.Now().UnixNano()%1e6)
	d.exec(t, fmt.Sprintf(`CREATE LOGIN %s WITH PASSWORD = '%s'`, login, password))
	t.Cleanup(func() { // somebody who is still logged in cannot be dropped
		require.Eventually(t, func() bool {
			_, err := d.db.Exec(`DROP USER IF EXISTS sqlwriter_app; DROP LOGIN ` + login)
			return err == nil
		}, 30*time.Second, 100*time.Millisecond)
	})
	d.exec(t, fmt.Sprintf(`CREATE USER sqlwriter_app FOR LOGIN %s`, login))
	script, err := os.ReadFile(filepath.Join("..", "..", "deploy", "sql", "app_rights.sql"))
	require.NoError(t, err)
	for line := range strings.Lines(string(script)) {
		if (strings.Contains(line, "VIEW DEFINITION") || strings.HasPrefix(line, "DENY")) && !sqlservertest.IsReal(d.version) {
			t.Log("not to be had on this engine: " + line)
			continue
		}
		if !strings.HasPrefix(line, "--") {
			d.exec(t, line)
		}
	}

	s := openStore(t, sqlservertest.As(t, d.dsn, login, password))
	require.NoError(t, s.Check(ctx))
	for _, mode := range []writer.Mode{writer.Preview, writer.Write, writer.Rewrite} {
		_, err := s.Apply(ctx, []writer.Item{item("a", 10, 1)}, mode, breaker.Heartbeat{})
		require.NoError(t, err, mode)
	}
	_, err = s.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	useJournal(t, s)
	require.NoError(t, s.Journal("web").Start(ctx, ops.Run{ID: "old"}, ops.Audit{Action: "reprocess"}))
	porttest.UseRunStore(t, s.Runs("web"), s.Journal("web"))
	forbidden := []string{
		`DELETE FROM dbo.IVCE_DTL`, `DELETE FROM sqlwriter.ledger`, `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID) VALUES (2)`,
		`DROP TABLE sqlwriter.ledger`, `CREATE TABLE sqlwriter.mine (a int)`, `DELETE FROM sqlwriter.audit_log`, `DELETE FROM sqlwriter.run`,
		`DELETE FROM sqlwriter.heartbeat`,
	}
	if sqlservertest.IsReal(d.version) { // by DENY
		forbidden = append(forbidden, `UPDATE sqlwriter.audit_log SET why = N'another'`, `DELETE FROM sqlwriter.migration`)
	}
	for _, forbidden := range forbidden {
		_, err := s.DB().Exec(forbidden)
		require.Error(t, err, forbidden)
	}
	require.Error(t, s.MigrateWith(ctx, append(ownMigrations(t), migration.New(len(ownMigrations(t))+1, "x", "CREATE TABLE sqlwriter.x (a int)"))...))
}

// Encryption is on and the certificate is checked unless the connection string says otherwise: a server that shows one
// that nobody signed is not talked to, and no password is sent.
func TestTheCertificateIsChecked(t *testing.T) {
	dsn := sqlservertest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := sqlserver.Open(ctx, sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "", "TrustServerCertificate": ""}), sqlserver.Options{})
	if err == nil {
		t.Log("this server's certificate is trusted here")
		require.NoError(t, s.Close())
		return
	}
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "certificate", "the cause says it (as text: the driver keeps no more of it)")
	s, err = sqlserver.Open(ctx, sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "true", "TrustServerCertificate": "true"}), sqlserver.Options{})
	require.NoError(t, err, "encrypted, when it is told to trust")
	require.NoError(t, s.Close())
}

package app

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

// The app has no right to change a server's schema. It names the missing objects and the command that creates them.
func TestADatabaseWithoutOurSchemaIsNotMigratedByTheApp(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	server, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), server.DB(), sqlserver.Options{}))

	c := config.Config{
		SQL: config.SQL{Engine: config.SQLServer, Connection: config.Secret(dsn), Schema: "dbo", MaxOpen: 2},
	}
	ready := func() (*App, error) {
		a := onSQL(t, c)
		return a, a.sql.Ready(t.Context())
	}
	_, err = ready()
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
	require.Contains(t, whyNotOpen(err), "sqlwriterctl migrate up", "Health says it")
	var tables int
	require.NoError(t, server.DB().QueryRowContext(t.Context(),
		`SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'sqlwriter'`).Scan(&tables))
	require.Zero(t, tables)

	require.NoError(t, server.Migrate(t.Context()))
	_, err = ready()
	require.Equal(t, "ledger_not_adopted", fault.CodeOf(err), "%v", err)
	require.NoError(t, server.MarkEmpty(t.Context(), "the test"))
	a, err := ready()
	require.NoError(t, err)
	_, err = a.sql.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)

	c.SQL.OneWriter = true
	a, err = ready()
	require.NoError(t, err)
	sqltest.Holding(t, server.DB(), `EXEC sp_getapplock
		@Resource = N'sqlwriter.one_writer', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 0`)
	_, err = a.sql.Apply(t.Context(), []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.True(t, breaker.IsRefusal(err), "%v", err)

	c.SQL.Schema = "elsewhere"
	_, err = ready()
	require.Equal(t, "schema", fault.CodeOf(err))
	require.Contains(t, whyNotOpen(err), "elsewhere.IVCE_DTL")
}

// On a server: who does what doctor's row of SQL says comes to an app that works, from a database without our tables,
// and again after a right was revoked and after the procedures became those of another build.
func TestDoctorsRowOfAServer(t *testing.T) {
	admin := sqlservertest.NewDatabase(t)
	db, err := sql.Open("sqlserver", admin)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), db, sqlserver.Options{}))
	login, password := fmt.Sprintf("doctor_%d", time.Now().UnixNano()%1e9), "Test!only-5c1e"
	exec("CREATE LOGIN " + login + " WITH PASSWORD = '" + password + "'")
	exec("CREATE USER sqlwriter_app FOR LOGIN " + login) // without one, engines say different things
	d := newDeployment(t)
	d.server = nil
	as := func(dsn string) {
		d.settings["SQL_CONNECTION"], d.settings["SQL_CERTIFICATE"] = dsn, "any"
	}
	// follow does what doctor says until the row is ok, and gives the commands.
	follow := func() (did []string) {
		for range 20 {
			as(sqlservertest.As(t, admin, login, password))
			r := d.rows()[ops.DepSQL]
			t.Logf("%+v", r)
			if r.State == ops.RowOK {
				require.Contains(t, r.Found, "user sqlwriter_app; ")
				return did
			}
			if r.Do == "sqlwriterctl status" { // a slow engine does not answer in time
				continue
			}
			did = append(did, r.Do)
			if as(admin); r.Do != "sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID" {
				d.ctl(r.Do)
				continue
			}
			d.ctl("sqlwriterctl migrate up") // the user of an identity needs Azure: its part is done by hand
			text, err := os.ReadFile("../../deploy/sql/app_rights.sql")
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(line, "--") && !strings.Contains(line, "VIEW DEFINITION") {
					exec(line)
				}
			}
			if !sqlservertest.IsReal(sqlservertest.Version(t, db)) { // it has no chain of owners
				exec("GRANT UPDATE ON OBJECT::sqlwriter.procedure_set TO sqlwriter_writers")
			}
		}
		require.Fail(t, "the commands lead nowhere", "%v", did)
		return nil
	}
	const user, up, adopt = "sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID", "sqlwriterctl migrate up",
		"sqlwriterctl ledger adopt"
	require.Equal(t, []string{user, adopt}, follow())
	exec("REVOKE EXECUTE ON SCHEMA::sqlwriter FROM sqlwriter_writers")
	require.Equal(t, []string{user}, follow())
	var one string
	require.NoError(t, db.QueryRowContext(t.Context(),
		`SELECT name FROM sys.procedures WHERE name LIKE 'heartbeat%'`).Scan(&one))
	exec("DROP PROCEDURE sqlwriter." + one)
	exec("DELETE FROM sqlwriter.procedure_set") // as a build that was not migrated for
	require.Equal(t, []string{up}, follow())
}

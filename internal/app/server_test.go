package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
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

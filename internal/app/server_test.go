package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/sqlserver/sqlservertest"
	"sqlwriter/internal/writer"
)

// The app has no right to change a server's schema: it says what is missing and who can mend it.
func TestADatabaseWithoutOurSchemaIsNotMigratedByTheApp(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	store, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), store.DB(), sqlserver.Options{}))

	c := config.Config{SQL: config.SQL{Engine: config.SQLServer, Connection: config.Secret(dsn), Schema: "dbo", MaxOpen: 2}}
	a := &adapters{}
	open := func() (func() error, error) { return openSQL(t.Context(), c, invoice.DefaultLayout(), a) }
	_, err = open()
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
	require.Contains(t, explain(err), "sqlwriterctl migrate up", "Health says it")
	require.Nil(t, a.sink)
	var tables int
	require.NoError(t, store.DB().QueryRowContext(t.Context(),
		`SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'sqlwriter'`).Scan(&tables))
	require.Zero(t, tables)

	require.NoError(t, store.Migrate(t.Context()))
	_, err = open()
	require.Equal(t, "ledger_not_adopted", fault.CodeOf(err), "%v", err)
	require.NoError(t, store.MarkEmpty(t.Context(), "the test"))
	closeFn, err := open()
	require.NoError(t, err)
	_, err = a.sink.Apply(t.Context(), nil, writer.Write)
	require.NoError(t, err)
	require.NoError(t, closeFn())

	c.SQL.Schema = "elsewhere"
	_, err = open()
	require.Equal(t, "schema", fault.CodeOf(err))
	require.Contains(t, explain(err), "elsewhere.IVCE_DTL")
}

package main

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/sqlservertest"
)

// onServer is a bench whose connection is an empty database on a server.
func onServer(t *testing.T) (*bench, *sqlserver.Store) {
	t.Helper()
	dsn := sqlservertest.NewDatabase(t)
	store, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b := newBench(t)
	b.env["SQL_CONNECTION"] = dsn
	return b, store
}

func TestMigrateOnAServer(t *testing.T) {
	b, store := onServer(t)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"), b.errors)
	require.Regexp(t, `1\s+0001_ledger\s+pending`, b.out)
	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	script := b.out

	// A database tool sends the text between two GO lines as one batch.
	ctx := t.Context()
	conn, err := store.DB().Conn(ctx)
	require.NoError(t, err)
	for _, batch := range regexp.MustCompile(`(?m)^GO$`).Split(script, -1) {
		_, err := conn.ExecContext(ctx, batch)
		require.NoError(t, err, batch)
	}
	require.NoError(t, conn.Close())
	require.Equal(t, exitOK, b.run(t, "migrate", "status"), b.out+b.errors)
	require.Equal(t, exitOK, b.run(t, "migrate", "up"))
	require.Contains(t, b.out, "nothing to do")

	other, _ := onServer(t)
	require.Equal(t, exitOK, other.run(t, "migrate", "up"), other.errors)
	require.Contains(t, other.out, "0001_ledger: done")
	require.Equal(t, exitOK, other.run(t, "migrate", "status"))
}

func TestShowOnAServer(t *testing.T) {
	b, store := onServer(t)
	documents := cosmosdbtest.Start(t)
	b.env["COSMOS_CONNECTION"], b.env["COSMOS_DATABASE"] = documents.ConnectionString, "invoices"
	container, err := cosmos.Open(cosmos.Options{Connection: documents.ConnectionString, Database: "invoices", Container: "AI_PROCESS_LOGS"})
	require.NoError(t, err)
	t.Cleanup(container.Close)
	documents.Results(t, "invoices", "AI_PROCESS_LOGS")
	require.Equal(t, exitOK, b.run(t, "document", "submit", filepath.FromSlash(example)), b.errors)
	require.Equal(t, exitOK, b.run(t, "migrate", "up"), b.errors)
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), store.DB(), sqlserver.Options{}))
	_, err = store.DB().ExecContext(t.Context(), `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID, CLN_MFR_AI_NM) VALUES (1421549, N'OLD')`)
	require.NoError(t, err)
	require.Equal(t, exitOK, b.run(t, "document", "show", exampleID), b.errors)
	require.Contains(t, b.out, "no result was written to this line yet")
	require.Regexp(t, `≠\s+IVCE_DTL.CLN_MFR_AI_NM\s+"THOMAS & BETTS"\s+"OLD"`, b.out)

	ctx := context.WithoutCancel(t.Context())
	raw, err := container.Read(ctx, exampleID)
	require.NoError(t, err)
	doc, err := invoice.Read(raw, time.Now())
	require.NoError(t, err)
	_, err = store.Apply(ctx, []commit.Item{commit.ItemOf(doc)}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, exitOK, b.run(t, "document", "show", exampleID), b.errors)
	require.Contains(t, b.out, "the row equals the document")
	require.Regexp(t, `ledger: applied by .*, version 2025-12-17 16:30:00.000000Z, at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, b.out)
	require.NotContains(t, b.out, "≠")

	require.Equal(t, exitFailed, b.run(t, "--schema=elsewhere", "show", exampleID), "the user's tables are in dbo")
}

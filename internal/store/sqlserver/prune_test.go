package sqlserver_test

import (
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/mapping"
)

// Two other builds have their procedures in the database. Only the one that nobody started with for 90 days loses them.
func TestPruneDropsWhatNoBuildUses(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t)
	own, err := d.store.ProcedureState(ctx)
	require.NoError(t, err)
	hashes := map[string]string{}
	for _, name := range []string{"REQUEST_TIME", "OTHER_TIME"} {
		d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR ADD `+name+` datetime2(6) NULL`)
		renamed := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
			tables[invoice.Tracking].Column("RQST_TS")["name"] = name
		})
		other, err := sqlserver.Open(ctx, d.dsn, sqlserver.Options{Mapping: renamed, LockTimeout: lockTimeout})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, other.Close()) })
		require.NoError(t, other.Migrate(ctx))
		state, err := other.ProcedureState(ctx)
		require.NoError(t, err)
		require.Empty(t, state.Missing)
		hashes[name] = state.Hash
	}
	dropped, err := d.store.Prune(ctx)
	require.NoError(t, err)
	require.Empty(t, dropped, "all are of today")

	age := func(hash string, days int) {
		d.spy.Exec(t,
			`UPDATE sqlwriter.procedure_set SET used_on = DATEADD(DAY, -@p2, CAST(SYSUTCDATETIME() AS date)) WHERE set_hash = @p1`, hash, days)
	}
	age(own.Hash, 1000)
	age(hashes["REQUEST_TIME"], 90)
	age(hashes["OTHER_TIME"], 91)
	dropped, err = d.store.Prune(ctx)
	require.NoError(t, err)
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	require.Len(t, dropped, len(set))
	var names []string
	for _, p := range dropped {
		require.Equal(t, hashes["OTHER_TIME"], p.Set)
		require.WithinDuration(t, time.Now(), p.UsedOn, 93*24*time.Hour)
		names = append(names, p.Procedure)
	}
	require.Contains(t, names, "sqlwriter.apply_"+hashes["OTHER_TIME"])
	require.Contains(t, names, "sqlwriter_preview.preview_"+hashes["OTHER_TIME"])

	var left, sets int
	require.NoError(t,
		d.db.QueryRow(`SELECT COUNT(*) FROM sys.procedures AS p WHERE RIGHT(p.name, 12) IN (@p1, @p2)`, own.Hash,
			hashes["REQUEST_TIME"]).Scan(&left))
	require.Equal(t, 2*len(set), left)
	require.NoError(t, d.db.QueryRow(`SELECT COUNT(*) FROM sqlwriter.procedure_set`).Scan(&sets))
	require.Equal(t, 2, sets)

	require.NoError(t, d.store.Check(ctx), "a start says that the set is used")
	var today bool
	require.NoError(t,
		d.db.QueryRow(
			`SELECT CASE WHEN used_on = CAST(SYSUTCDATETIME() AS date) THEN 1 ELSE 0 END FROM sqlwriter.procedure_set WHERE set_hash = @p1`,
			own.Hash).Scan(&today))
	require.True(t, today)
}

func TestAMigrationNamesTheObjectThatItWaitsFor(t *testing.T) {
	const script = "-- A comment.\nCREATE TABLE sqlwriter.one (\n    id int NOT NULL\n);\nALTER TABLE sqlwriter.two ADD x int NULL;\nCREATE INDEX ix_three ON sqlwriter.three (x);\n"
	for line, object := range map[int32]string{
		1: "an object", 3: "sqlwriter.one", 5: "sqlwriter.two", 6: "sqlwriter.three", 9: "sqlwriter.three",
	} {
		server := mssql.Error{Number: 1222, LineNo: line, Message: "Lock request time out period exceeded."}
		err := sqlserver.WaitedFor(script, server)
		require.ErrorAs(t, err, &mssql.Error{})
		require.ErrorContains(t, sqlserver.ClassifyDependency(err), "waited for a lock on "+object+": ")
	}
	other := mssql.Error{Number: 208, LineNo: 5}
	require.Equal(t, other, sqlserver.WaitedFor(script, other))
}

package sqlserver_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

// checked is the result of Check after changes of the schema.
func checked(t *testing.T, d *database, changes ...string) string {
	t.Helper()
	d.harness(t) // resets the sample schema
	for _, c := range changes {
		d.spy.Exec(t, c)
	}
	err := d.store.Check(t.Context())
	if err == nil {
		return ""
	}
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "no document is blamed: %v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
	return err.Error()
}

func TestTheCheckNamesEveryDifferenceAndItsFix(t *testing.T) {
	d := newDatabase(t)
	require.Empty(t, checked(t, d), "the sample schema is what the statements need")
	all := checked(t, d,
		`ALTER TABLE dbo.IVCE_DTL DROP COLUMN UPC_CD`,
		`ALTER TABLE dbo.IVCE_TRKG_MSTR DROP COLUMN MFR_STG_NM`,
		`ALTER TABLE dbo.IVCE_DTL ALTER COLUMN CLN_MFR_AI_NM nvarchar(100)`,
		`ALTER TABLE dbo.IVCE_TRKG_MSTR ADD must int NOT NULL`)
	for _, part := range []string{
		"4 differences",
		"dbo.IVCE_DTL: expected a column UPC_CD nvarchar(20), found none",
		"ALTER TABLE dbo.IVCE_DTL ADD UPC_CD nvarchar(20) NULL",
		"dbo.IVCE_TRKG_MSTR: expected a column MFR_STG_NM", "MAPPING",
		"dbo.IVCE_DTL.CLN_MFR_AI_NM: expected nvarchar(255) or wider, found nvarchar(100)",
		"dbo.IVCE_TRKG_MSTR.must: expected that a row can be inserted without it",
	} {
		require.Contains(t, all, part)
	}
	require.Contains(t, checked(t, d, `DROP TABLE dbo.IVCE_TRKG_MSTR`), "dbo.IVCE_TRKG_MSTR: expected a table")
	require.Contains(t, checked(t, d, `DROP TABLE dbo.IVCE_DTL`,
		`SELECT * INTO dbo.IVCE_DTL FROM (SELECT CAST(1 AS int) AS IVCE_DTL_UID) AS x`),
		"expected a primary key or unique index")
}

func TestTheCheckLooksAtTypes(t *testing.T) {
	d := newDatabase(t)
	for column, want := range map[string]string{
		"UNSPSC_CD int":                   "expected nvarchar(10) or wider, found int",
		"UNSPSC_CD nvarchar(9)":           "expected nvarchar(10) or wider, found nvarchar(9)",
		"UNSPSC_CD nvarchar(max)":         "",
		"UNSPSC_CD nvarchar(10) NOT NULL": "expected a column that takes NULL",
		"MFR_CNFDC_SCR decimal(5, 3)":     "expected decimal(5, 4) or wider, found decimal(5, 3)",
		"MFR_CNFDC_SCR decimal(4, 4)":     "expected decimal(5, 4) or wider",
		"MFR_CNFDC_SCR decimal(18, 9)":    "",
		"MFR_CNFDC_SCR float":             "",
		"MFR_CNFDC_SCR real":              "expected decimal(5, 4) or wider, found real",
		"PRNT_IVCE_DTL_ID nvarchar(50)":   "expected bigint or wider",
	} {
		name, _, _ := strings.Cut(column, " ")
		errorText := checked(t, d, `ALTER TABLE dbo.IVCE_DTL DROP COLUMN `+name, `ALTER TABLE dbo.IVCE_DTL ADD `+column)
		if want == "" {
			require.Empty(t, errorText, column)
		} else {
			require.Contains(t, errorText, want, column)
			require.Contains(t, errorText, "1 differences", column)
		}
	}
}

// A unique index of a partitioned table has the partition column, too. Where each write sets that column, two rows of
// one key cannot stay beside each other.
func TestAPartitionedTableNeedsAColumnThatEachWriteSets(t *testing.T) {
	d := newDatabase(t)
	for _, statement := range []string{
		`CREATE PARTITION FUNCTION times (datetime2(6)) AS RANGE RIGHT FOR VALUES ('2025-01-01', '2026-01-01')`,
		`CREATE PARTITION SCHEME times AS PARTITION times ALL TO ([PRIMARY])`,
		`CREATE PARTITION FUNCTION texts (nvarchar(20)) AS RANGE RIGHT FOR VALUES (N'DS1', N'RC-AI')`,
		`CREATE PARTITION SCHEME texts AS PARTITION texts ALL TO ([PRIMARY])`,
	} {
		d.spy.Exec(t, statement)
	}
	sample, err := os.ReadFile("testdata/sample.sql")
	require.NoError(t, err)
	partitioned := func(table, columns, on string) []string {
		create := regexp.MustCompile(`(?s)CREATE TABLE [^;]*` + table + `[^;]*;`).FindString(string(sample))
		create, ends := strings.CutSuffix(create, "PRIMARY KEY ([IVCE_DTL_UID])\n    );")
		require.True(t, ends, "%s", create)
		return []string{
			"DROP TABLE dbo." + table, create + "MADE_TS datetime2(6) NULL)" + on,
			"CREATE UNIQUE INDEX ux_parted ON dbo." + table + " (" + columns + ")" + on,
		}
	}
	for _, c := range []struct{ table, columns, on, refused string }{
		{"IVCE_TRKG_MSTR", "IVCE_DTL_UID, RQST_TS", " ON times (RQST_TS)", ""},
		{"IVCE_TRKG_MSTR", "IVCE_DTL_UID, MADE_TS", " ON times (MADE_TS)", "IVCE_TRKG_MSTR.IVCE_DTL_UID: expected"},
		{"IVCE_DTL", "IVCE_DTL_UID, MADE_TS", " ON times (MADE_TS)", "IVCE_DTL.IVCE_DTL_UID: expected"},
		{"IVCE_DTL", "IVCE_DTL_UID, UPC_CD", " ON texts (UPC_CD)", ""},
		{
			"IVCE_DTL", "IVCE_DTL_UID, IVCE_LNE_STAT", " ON texts (IVCE_LNE_STAT)",
			"the table's partition column, which each write must set: a column of docs/rules.md but the status",
		},
		{"IVCE_DTL", "IVCE_DTL_UID, UPC_CD", "", "IVCE_DTL.IVCE_DTL_UID: expected"}, // several rows are meant
		{"IVCE_DTL", "UPC_CD, IVCE_DTL_UID", " ON texts (UPC_CD)", "IVCE_DTL.IVCE_DTL_UID: expected"},
		{"IVCE_DTL", "IVCE_DTL_UID, UPC_CD, MADE_TS", " ON texts (UPC_CD)", "IVCE_DTL.IVCE_DTL_UID: expected"},
	} {
		t.Run(c.table+" "+c.columns+c.on, func(t *testing.T) {
			h := d.harness(t) // makes the tables anew
			for _, statement := range partitioned(c.table, c.columns, c.on) {
				d.spy.Exec(t, statement)
			}
			err := d.store.Check(t.Context())
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			h.AddLines(t, 1, 2)
			for version := range 2 {
				it := sqltest.Item(fmt.Sprint("a", version), int64(version+10), 1, 2)
				for i, column := range mapping.InUse().Columns() {
					switch column.Name {
					case "RQST_TS":
						it.Values[i] = invoice.Of(fmt.Sprintf("202%d-12-17T16:30:15.123456Z", version+4))
					case "UPC_CD":
						it.Values[i] = invoice.Of([]string{"A", "Z"}[version]) // the row changes its partition
					}
				}
				out, err := d.store.Apply(t.Context(), []commit.Item{it}, commit.Write, breaker.Heartbeat{})
				require.NoError(t, err)
				require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
			}
			// two rows of one key, in two partitions
			other := strings.TrimPrefix(c.columns, "IVCE_DTL_UID, ")
			d.spy.Exec(t, "INSERT INTO dbo."+c.table+" (IVCE_DTL_UID, "+other+") VALUES (1, '2027-01-01')")
			_, err = d.store.Apply(t.Context(), []commit.Item{sqltest.Item("b", 20, 1)}, commit.Write,
				breaker.Heartbeat{})
			require.Equal(t, fault.Contention, fault.KindOf(err), "%v", err)
			require.True(t, fault.Has(err, fault.OwnWhenAlone), "it is told of this document alone: %v", err)
		})
	}
}

func TestTheCheckNotesTriggersAndRounding(t *testing.T) {
	d := newDatabase(t)
	d.harness(t)
	d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR DROP COLUMN RQST_TS`)
	d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR ADD RQST_TS datetime`)
	d.spy.Exec(t, `CREATE TRIGGER dbo.their_trigger ON dbo.IVCE_DTL AFTER UPDATE AS SELECT 1 AS nothing WHERE 1 = 0`)
	f, err := d.store.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, f.Differences)
	notes := strings.ToLower(strings.Join(f.Notes, "\n"))
	require.Contains(t, notes, "their_trigger")
	require.Contains(t, notes, "dbo.ivce_trkg_mstr.rqst_ts: datetime rounds")
	require.NoError(t, d.store.Check(t.Context()))
	require.Equal(t, f.Notes, d.store.Notes())
}

// SQL Server would replace characters that the code page lacks. The document is refused instead, and the others of
// its request are written. A column that was widened meanwhile refuses nothing.
func TestNoCharacterIsLostInAVarcharColumn(t *testing.T) {
	d := newDatabase(t)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		h := d.harness(t)
		h.AddLines(t, 1, 2, 3)
		for column, kind := range map[string]string{"CLN_MFR_AI_NM": "varchar(255)", "UNSPSC_CD": "char(12)"} {
			d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN %s`, table, column))
			d.spy.Exec(t,
				fmt.Sprintf(`ALTER TABLE dbo.%s ADD %s %s COLLATE Latin1_General_CI_AS NULL`, table, column, kind))
		}
		store := openStore(t, d.dsn)
		f, err := store.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, f.Notes, 2)
		require.Contains(t, strings.Join(f.Notes, "\n"), "code page 1252")
		require.NoError(t, store.Check(t.Context()))
		good, bad, infinite := sqltest.Item("good", 10, 1), sqltest.Item("bad", 10, 2), sqltest.Item("infinite", 10, 3)
		setText(t, &good, "CLN_MFR_AI_NM", "Is it? 5 €")
		setText(t, &bad, "CLN_MFR_AI_NM", "\u6f22\u5b57")
		setText(t, &infinite, "CLN_MFR_AI_NM", "\u221e") // SQL Server would store 8
		out, err := store.Apply(t.Context(), []commit.Item{bad, good, infinite}, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[1].Verdict)
		require.Equal(t, "validation.code_page", fault.CodeOf(out[0].Refused))
		require.ErrorContains(t, out[2].Refused,
			fmt.Sprintf(
				"document infinite: %s.CLN_MFR_AI_NM: expected characters of the column's code page 1252, found U+221E",
				table))
		for _, line := range []int64{2, 3} {
			_, inLedger := h.Ledger(t, line)
			require.False(t, inLedger)
		}
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN CLN_MFR_AI_NM`, table))
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD CLN_MFR_AI_NM nvarchar(255) NULL`, table))
		out, err = store.Apply(t.Context(), []commit.Item{bad}, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	}
}

func TestAMappingOfTheDeployments(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	renamed := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Key = "DTL_ID"
		tables[invoice.Tracking].Column("RQST_TS")["name"] = "REQUEST TIME"
	})
	o := sqlserver.Options{Mapping: renamed, Schema: "billing"}
	s, err := sqlserver.Open(ctx, dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(ctx))
	_, err = s.DB().Exec(`CREATE SCHEMA billing`)
	require.NoError(t, err)
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, s.DB(), o))
	require.NoError(t, s.Check(ctx))
	_, err = s.DB().Exec(`INSERT INTO billing.IVCE_DTL (IVCE_DTL_UID) VALUES (7)`)
	require.NoError(t, err)
	for _, want := range []invoice.Outcome{invoice.OutcomeApplied, invoice.OutcomeUnchanged} {
		out, err := s.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 7)}, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, want, out[0].Verdict)
	}
	var n int
	require.NoError(t,
		s.DB().QueryRow(
			`SELECT COUNT(*) FROM billing.IVCE_TRKG_MSTR WHERE DTL_ID = 7 AND [REQUEST TIME] IS NULL`).Scan(&n))
	require.Equal(t, 1, n)
	out, err := s.Apply(ctx, []commit.Item{sqltest.Item("b", 11, 7)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Len(t, out[0].Rows[0].Before, len(mapping.InUse().Columns()))
}

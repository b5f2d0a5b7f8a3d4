package sqlserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// spies read and change the database from another session.
type spies struct {
	*database
	sink *hooked
}

func (h *spies) addLines(t testing.TB, lines ...int64) {
	t.Helper()
	const atOnce = 500
	for len(lines) > 0 {
		n := min(len(lines), atOnce)
		values := make([]string, 0, n)
		for _, line := range lines[:n] {
			values = append(values, fmt.Sprintf("(%d)", line))
		}
		key := sqltest.Key(invoice.Detail)
		h.spy.Exec(t, `INSERT INTO dbo.IVCE_DTL (`+key+`, IVCE_NUM, ITM_LDSC)
			SELECT v.line, N'N', N'D' FROM (VALUES `+strings.Join(values, ",")+`) AS v (line)
			WHERE NOT EXISTS (SELECT 1 FROM dbo.IVCE_DTL AS d WHERE d.`+key+` = v.line)`)
		lines = lines[n:]
	}
}

// notNull is a change of a deployment that the present rows satisfy and the next one does not. An engine that cannot
// change the column gets a check instead.
func (h *spies) notNull(t testing.TB) func() {
	t.Helper()
	column := sqltest.Quote(conformance.NotNullColumn().Name)
	h.spy.Exec(t, fmt.Sprintf(`UPDATE dbo.IVCE_DTL SET %[1]s = N'-' WHERE %[1]s IS NULL`, column))
	alter := `ALTER TABLE dbo.IVCE_DTL ALTER COLUMN ` + column + ` nvarchar(20) `
	if _, err := h.db.Exec(alter + "NOT NULL"); err == nil {
		return func() { h.spy.Exec(t, alter+"NULL") }
	}
	h.spy.Exec(t, `ALTER TABLE dbo.IVCE_DTL ADD CONSTRAINT upc_not_null CHECK (`+column+` IS NOT NULL)`)
	return func() { h.spy.Exec(t, `ALTER TABLE dbo.IVCE_DTL DROP CONSTRAINT upc_not_null`) }
}

func (h *spies) narrow(t testing.TB, to int) func() {
	t.Helper()
	c := conformance.NarrowedColumn()
	alter := func(length int) {
		h.spy.Exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.IVCE_DTL ALTER COLUMN %s nvarchar(%d)`, sqltest.Quote(c.Name), length))
	}
	alter(to)
	return func() { alter(c.Max) }
}

func (h *spies) refuse(t testing.TB, value string) {
	t.Helper()
	for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		var rules []string
		for _, c := range mapping.InUse().Columns() {
			if c.Table == table && c.Kind == invoice.Text {
				rules = append(rules, fmt.Sprintf("COALESCE(%s, N'') <> N'%s'", sqltest.Quote(c.Name), value))
			}
		}
		h.spy.Exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.%s ADD CONSTRAINT refuse_%d CHECK (%s)`, table, i,
				strings.Join(rules, " AND ")))
	}
}

func (h *spies) constrain(t testing.TB, table invoice.Table, r conformance.Rule) {
	t.Helper()
	const refused = conformance.RefusedCode
	column := sqltest.Quote(conformance.RuledColumn(table).Name)
	switch r {
	case conformance.TriggerThrows:
		h.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.rule_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			IF EXISTS (SELECT 1 FROM inserted WHERE %[2]s = N'%[3]s') RAISERROR (N'not this value', 16, 1)`, table, column, refused))
	case conformance.TriggerRollsBack:
		h.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.rule_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			IF EXISTS (SELECT 1 FROM inserted WHERE %[2]s = N'%[3]s')
			BEGIN
				RAISERROR (N'not this value', 16, 1);
				ROLLBACK TRANSACTION;
			END`, table, column, refused))
	case conformance.CheckRefuses:
		h.spy.Exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.%s ADD CONSTRAINT rule_check CHECK (%s <> N'%s')`, table, column, refused))
	case conformance.ForeignKey:
		h.spy.Exec(t, `CREATE TABLE dbo.allowed (code nvarchar(10) NOT NULL PRIMARY KEY)`)
		h.spy.Exec(t, `INSERT INTO dbo.allowed (code) VALUES (N'`+conformance.AllowedCode+`')`)
		h.spy.Exec(t,
			fmt.Sprintf(
				`ALTER TABLE dbo.%s ADD CONSTRAINT rule_fk FOREIGN KEY (%s) REFERENCES dbo.allowed (code)`, table,
				column))
	case conformance.Unique:
		h.spy.Exec(t,
			fmt.Sprintf(`CREATE UNIQUE INDEX rule_unique ON dbo.%[1]s (%[2]s) WHERE %[2]s IS NOT NULL`, table, column))
	case conformance.UnwrittenNotNull:
		// SQL Server adds a column without a default only to an empty table.
		h.spy.Exec(t, fmt.Sprintf(`SELECT * INTO dbo.kept FROM dbo.%[1]s; DROP TABLE dbo.%[1]s`, table))
		require.NoError(t, sqlserver.CreateSampleSchema(context.Background(), h.db,
			sqlserver.Options{Mapping: mapping.InUse()}))
		h.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD nobody_writes_it int NOT NULL`, table))
		h.spy.Exec(t, fmt.Sprintf(`INSERT INTO dbo.%s SELECT k.*, 0 FROM dbo.kept AS k; DROP TABLE dbo.kept`, table))
	default:
		require.Fail(t, "no such rule", r)
	}
}

func (h *spies) hide(t testing.TB, table invoice.Table, column string) func() {
	t.Helper()
	name := "dbo." + string(table)
	if table == conformance.LedgerTable {
		name = "sqlwriter.ledger"
	}
	schema, bare, _ := strings.Cut(name, ".")
	if column != "" {
		h.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.[%s]', N'hidden', N'COLUMN'`, name, column))
		return func() {
			h.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.hidden', N'%s', N'COLUMN'`, name, column))
		}
	}
	h.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'%s', N'hidden_%s', N'OBJECT'`, name, bare))
	return func() {
		h.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.hidden_%s', N'%s', N'OBJECT'`, schema, bare, bare))
	}
}

func (h *spies) countWrites(t testing.TB) func(int64) (int, int) {
	t.Helper()
	h.spy.Exec(t, `CREATE TABLE dbo.counted (tbl nvarchar(50), line bigint)`)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		h.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.count_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			INSERT INTO dbo.counted (tbl, line) SELECT N'%[1]s', i.%[2]s FROM inserted AS i`, table, sqltest.Key(table)))
	}
	return h.spy.Counted(t)
}

func (h *spies) lock(t testing.TB, line int64) func() {
	t.Helper()
	return sqltest.Holding(t, h.db, `UPDATE dbo.IVCE_DTL SET ITM_LDSC = N'locked' WHERE `+sqltest.Key(invoice.Detail)+` = @p1`,
		line)
}

func (h *spies) lockHeartbeat(t testing.TB, sysName string) func() {
	t.Helper()
	return sqltest.Holding(t, h.db, `UPDATE sqlwriter.heartbeat SET number = number + 100 WHERE sys_name = @p1`, sysName)
}

// oddColumns gives the user's tables columns of fixed length, of less precision and of other scales.
func (h *spies) oddColumns(t testing.TB) (edits []func(line int64)) {
	t.Helper()
	texts := []string{"nchar(%d)", "varchar(%d)", "nvarchar(%d)"}
	times := []string{"datetime", "datetime2(3)", "datetimeoffset(0)"}
	numbers := []string{"float", "decimal(18, 8)", "numeric(9, 4)"}
	for n, c := range mapping.InUse().Columns() {
		var kind string
		switch c.Kind {
		case invoice.Text:
			if kind = fmt.Sprintf(texts[n%len(texts)], c.Max); c.Max >= 4000 {
				kind = "nvarchar(max)"
			}
		case invoice.Flag:
			kind = fmt.Sprintf("char(%d)", c.Max)
		case invoice.Integer:
			kind = "decimal(19, 0)"
		case invoice.Decimal:
			kind = numbers[n%len(numbers)]
		case invoice.Time:
			if kind = times[n%len(times)]; c.Local {
				kind = "datetime"
			}
		}
		h.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN %s`, c.Table, sqltest.Quote(c.Name)))
		h.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD %s %s NULL`, c.Table, sqltest.Quote(c.Name), kind))
	}
	require.NoError(t, h.store.KnowColumnsAnew(context.Background()))
	const later = "DATEADD(second, 1, %s)"
	for _, change := range []struct {
		table      invoice.Table
		name, form string
	}{
		{invoice.Detail, "CLN_MFR_AI_NM", "UPPER(%s)"},
		{invoice.Detail, "CLN_MFR_PRT_NUM", "%s + ' '"},
		{invoice.Detail, "MFR_CNFDC_SCR", "%s / 2"},
		{invoice.Detail, "PRT_NUM_CNFDC_SCR", "%s / 2"},
		{invoice.Tracking, "RQST_TS", later},
		{invoice.Tracking, "PRCS_STRT_TS", later},
		{invoice.Tracking, "PRCS_END_TS", later},
		{invoice.Tracking, "PRNT_IVCE_DTL_ID", "COALESCE(%s, 7) + 7"},
	} {
		if mapping.Place(change.table, change.name) < 0 {
			continue
		}
		column := sqltest.Column(change.table, change.name)
		edits = append(edits, func(line int64) {
			h.spy.Exec(t, fmt.Sprintf("UPDATE dbo.%s SET %s = "+change.form+" WHERE %s = @p1", change.table, column,
				column, sqltest.Key(change.table)), line)
		})
	}
	return edits
}

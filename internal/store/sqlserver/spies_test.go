package sqlserver_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
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
		h.exec(t, `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC)
			SELECT v.line, N'N', N'D' FROM (VALUES `+strings.Join(values, ",")+`) AS v (line)
			WHERE NOT EXISTS (SELECT 1 FROM dbo.IVCE_DTL AS d WHERE d.IVCE_DTL_UID = v.line)`)
		lines = lines[n:]
	}
}

// notNull is a change of a deployment that the present rows satisfy and the next one does not. An engine that cannot
// change the column gets a check instead.
func (h *spies) notNull(t testing.TB) func() {
	t.Helper()
	h.exec(t, `UPDATE dbo.IVCE_DTL SET UPC_CD = N'-' WHERE UPC_CD IS NULL`)
	if _, err := h.db.Exec(`ALTER TABLE dbo.IVCE_DTL ALTER COLUMN UPC_CD nvarchar(20) NOT NULL`); err == nil {
		return func() { h.exec(t, `ALTER TABLE dbo.IVCE_DTL ALTER COLUMN UPC_CD nvarchar(20) NULL`) }
	}
	h.exec(t, `ALTER TABLE dbo.IVCE_DTL ADD CONSTRAINT upc_not_null CHECK (UPC_CD IS NOT NULL)`)
	return func() { h.exec(t, `ALTER TABLE dbo.IVCE_DTL DROP CONSTRAINT upc_not_null`) }
}

func (h *spies) narrow(t testing.TB, to int) func() {
	t.Helper()
	alter := func(length int) {
		h.exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.IVCE_DTL ALTER COLUMN %s nvarchar(%d)`, conformance.NarrowedColumn, length))
	}
	alter(to)
	return func() { alter(255) }
}

// columnsOf lists a table's columns and their places in the column table.
func columnsOf(table invoice.Table) (names []string, places []int) {
	for i, c := range invoice.Columns() {
		if c.Table == table {
			names, places = append(names, c.Name), append(places, i)
		}
	}
	return names, places
}

func (h *spies) row(t testing.TB, line int64) conformance.SinkRow {
	t.Helper()
	r := conformance.SinkRow{Values: make([]invoice.Value, len(invoice.Columns()))}
	r.Detail = h.readTable(t, invoice.Detail, line, r.Values)
	r.Tracking = h.readTable(t, invoice.Tracking, line, r.Values)
	if r.Detail {
		var num, desc string
		require.NoError(t,
			h.db.QueryRow(`SELECT IVCE_NUM, ITM_LDSC FROM dbo.IVCE_DTL WHERE IVCE_DTL_UID = @p1`,
				line).Scan(&num, &desc))
		require.Equal(t, "N D", num+" "+desc, "the user's other columns stay as they are")
	}
	return r
}

// readTable reads a line's columns with its own conversion of types. It knows the types of the sample schema only.
func (h *spies) readTable(t testing.TB, table invoice.Table, line int64, into []invoice.Value) bool {
	t.Helper()
	names, places := columnsOf(table)
	found := make([]any, len(names))
	to := make([]any, len(names))
	for i := range found {
		to[i] = &found[i]
	}
	err := h.db.QueryRow(
		fmt.Sprintf(`SELECT %s FROM dbo.%s WHERE IVCE_DTL_UID = @p1`, strings.Join(names, ", "), table),
		line).Scan(to...)
	for i, p := range places {
		switch v := found[i].(type) {
		case nil:
			into[p] = invoice.Null()
		case time.Time:
			into[p] = invoice.Of(v.Format("2006-01-02T15:04:05.000000") + "Z")
		case []byte:
			into[p] = invoice.Of(string(v))
		default:
			into[p] = invoice.Of(fmt.Sprint(v))
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	require.NoError(t, err)
	return true
}

func (h *spies) setRow(t testing.TB, line int64, r conformance.SinkRow) {
	t.Helper()
	require.True(t, r.Detail)
	now := h.row(t, line)
	switch {
	case now.Tracking && !r.Tracking:
		h.exec(t, `DELETE FROM dbo.IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = @p1`, line)
	case r.Tracking && !now.Tracking:
		h.exec(t, `INSERT INTO dbo.IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (@p1)`, line)
	}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		names, places := columnsOf(table)
		var sets []string
		args := []any{line}
		for i, p := range places {
			if r.Values[p] == now.Values[p] {
				continue // as a person changes one value
			}
			if r.Values[p].Null {
				sets = append(sets, names[i]+" = NULL")
				continue
			}
			args = append(args, strings.TrimSuffix(r.Values[p].Text, "Z"))
			if invoice.Columns()[p].Kind != invoice.Time {
				args[len(args)-1] = r.Values[p].Text
			}
			sets = append(sets, fmt.Sprintf("%s = @p%d", names[i], len(args)))
		}
		if len(sets) == 0 {
			continue
		}
		h.exec(t,
			fmt.Sprintf(`UPDATE dbo.%s SET %s WHERE IVCE_DTL_UID = @p1`, table, strings.Join(sets, ", ")), args...)
	}
}

func (h *spies) ledger(t testing.TB, line int64) (conformance.LedgerRow, bool) {
	t.Helper()
	var l conformance.LedgerRow
	var key, hash, detail, tracking shared.Hash
	var version sql.NullInt64
	var writeID string
	var at time.Time
	err := h.db.QueryRow(`SELECT version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
		detail_row_hash, tracking_row_hash, outcome, CONVERT(varchar(36), write_id), applied_at FROM sqlwriter.ledger WHERE detail_id = @p1`, line).Scan(&l.Version.US,
		&key, &l.DocumentID, &l.SourceTS, &hash, &version, &l.SysName, &detail, &tracking, &l.Outcome, &writeID, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false
	}
	require.NoError(t, err)
	l.Version.Key, l.Hash, l.DetailHash, l.TrackingHash, l.HashVersion = string(key), string(hash), string(detail),
		string(tracking), int(version.Int64)
	if l.Outcome != "adopted" {
		require.Regexp(t, `^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`, writeID)
		require.WithinDuration(t, time.Now(), at, 10*time.Minute, "by the database's clock, in UTC")
	}
	return l, true
}

func (h *spies) heartbeat(t testing.TB, sysName string) (conformance.HeartbeatRow, bool) {
	t.Helper()
	var row conformance.HeartbeatRow
	var at time.Time
	err := h.db.QueryRow(
		`SELECT LOWER(CONVERT(varchar(36), database_id)), number, raised_at FROM sqlwriter.heartbeat WHERE sys_name = @p1`,
		sysName).Scan(&row.DatabaseID, &row.Number, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false
	}
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, 10*time.Minute, "by the database's clock, in UTC")
	return row, true
}

func (h *spies) setLedger(t testing.TB, line int64, l conformance.LedgerRow) {
	t.Helper()
	h.exec(t, `DELETE FROM sqlwriter.ledger WHERE detail_id = @p1`, line)
	h.exec(t, `INSERT INTO sqlwriter.ledger (detail_id, version_us, document_key, document_id, source_ts,
		content_hash, hash_version, detail_row_hash, tracking_row_hash, sys_name, outcome, write_id, applied_at)
		VALUES (@p1, @p2, @p3, @p4, @p5, @p6, CASE WHEN @p6 IS NULL THEN NULL ELSE @p7 END, @p8, @p9, @p10, @p11, NEWID(), DATEADD(DAY, -@p12, SYSUTCDATETIME()))`,
		line, l.Version.US, bytesOf(t, l.Version.Key), l.DocumentID, l.SourceTS, bytesOf(t, l.Hash), l.HashVersion,
		bytesOf(t, l.DetailHash), bytesOf(t, l.TrackingHash), l.SysName, l.Outcome,
		l.DaysAgo)
}

// bytesOf are the bytes of a hash; nil for none.
func bytesOf(t testing.TB, hash string) []byte {
	t.Helper()
	if hash == "" {
		return nil
	}
	b, err := hex.DecodeString(hash)
	require.NoError(t, err)
	return b
}

func (h *spies) refuse(t testing.TB, value string) {
	t.Helper()
	for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		var rules []string
		for _, c := range invoice.Columns() {
			if c.Table == table && c.Kind == invoice.Text {
				rules = append(rules, fmt.Sprintf("COALESCE(%s, N'') <> N'%s'", c.Name, value))
			}
		}
		h.exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.%s ADD CONSTRAINT refuse_%d CHECK (%s)`, table, i,
				strings.Join(rules, " AND ")))
	}
}

func (h *spies) constrain(t testing.TB, table invoice.Table, r conformance.Rule) {
	t.Helper()
	const column, refused = conformance.RuledColumn, conformance.RefusedCode
	switch r {
	case conformance.TriggerThrows:
		h.exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.rule_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			IF EXISTS (SELECT 1 FROM inserted WHERE %[2]s = N'%[3]s') RAISERROR (N'not this value', 16, 1)`, table, column, refused))
	case conformance.TriggerRollsBack:
		h.exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.rule_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			IF EXISTS (SELECT 1 FROM inserted WHERE %[2]s = N'%[3]s')
			BEGIN
				RAISERROR (N'not this value', 16, 1);
				ROLLBACK TRANSACTION;
			END`, table, column, refused))
	case conformance.CheckRefuses:
		h.exec(t,
			fmt.Sprintf(`ALTER TABLE dbo.%s ADD CONSTRAINT rule_check CHECK (%s <> N'%s')`, table, column, refused))
	case conformance.ForeignKey:
		h.exec(t, `CREATE TABLE dbo.allowed (code nvarchar(10) NOT NULL PRIMARY KEY)`)
		h.exec(t, `INSERT INTO dbo.allowed (code) VALUES (N'`+conformance.AllowedCode+`')`)
		h.exec(t,
			fmt.Sprintf(
				`ALTER TABLE dbo.%s ADD CONSTRAINT rule_fk FOREIGN KEY (%s) REFERENCES dbo.allowed (code)`, table,
				column))
	case conformance.Unique:
		h.exec(t,
			fmt.Sprintf(`CREATE UNIQUE INDEX rule_unique ON dbo.%[1]s (%[2]s) WHERE %[2]s IS NOT NULL`, table, column))
	case conformance.UnwrittenNotNull:
		// SQL Server adds a column without a default only to an empty table.
		h.exec(t, fmt.Sprintf(`SELECT * INTO dbo.kept FROM dbo.%[1]s; DROP TABLE dbo.%[1]s`, table))
		require.NoError(t, sqlserver.CreateSampleSchema(context.Background(), h.db, sqlserver.Options{}))
		h.exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD nobody_writes_it int NOT NULL`, table))
		h.exec(t, fmt.Sprintf(`INSERT INTO dbo.%s SELECT k.*, 0 FROM dbo.kept AS k; DROP TABLE dbo.kept`, table))
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
		h.exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.%s', N'hidden_%s', N'COLUMN'`, name, column, column))
		return func() {
			h.exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.hidden_%s', N'%s', N'COLUMN'`, name, column, column))
		}
	}
	h.exec(t, fmt.Sprintf(`EXEC sp_rename N'%s', N'hidden_%s', N'OBJECT'`, name, bare))
	return func() { h.exec(t, fmt.Sprintf(`EXEC sp_rename N'%s.hidden_%s', N'%s', N'OBJECT'`, schema, bare, bare)) }
}

func (h *spies) countWrites(t testing.TB) func(int64) (int, int) {
	t.Helper()
	h.exec(t, `CREATE TABLE dbo.counted (tbl nvarchar(50), line bigint)`)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		h.exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.count_%[1]s ON dbo.%[1]s AFTER INSERT, UPDATE AS
			INSERT INTO dbo.counted (tbl, line) SELECT N'%[1]s', i.IVCE_DTL_UID FROM inserted AS i`, table))
	}
	return func(line int64) (int, int) {
		var n [2]int
		for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			require.NoError(t,
				h.db.QueryRow(`SELECT COUNT(*) FROM dbo.counted WHERE tbl = @p1 AND line = @p2`,
					string(table), line).Scan(&n[i]))
		}
		return n[0], n[1]
	}
}

func (h *spies) setHeartbeat(t testing.TB, sysName string, row conformance.HeartbeatRow) {
	t.Helper()
	_, err := h.db.Exec(`DELETE FROM sqlwriter.heartbeat WHERE sys_name = @p1`, sysName)
	require.NoError(t, err)
	if row.Number > 0 {
		_, err = h.db.Exec(
			`INSERT INTO sqlwriter.heartbeat (sys_name, database_id, number, raised_at) VALUES (@p1, @p2, @p3, SYSUTCDATETIME())`,
			sysName, row.DatabaseID, row.Number)
		require.NoError(t, err)
	}
}

func (h *spies) lock(t testing.TB, line int64) func() {
	t.Helper()
	return h.holding(t, `UPDATE dbo.IVCE_DTL SET ITM_LDSC = N'locked' WHERE IVCE_DTL_UID = @p1`, line)
}

func (h *spies) lockHeartbeat(t testing.TB, sysName string) func() {
	t.Helper()
	return h.holding(t, `UPDATE sqlwriter.heartbeat SET number = number + 100 WHERE sys_name = @p1`, sysName)
}

// holding runs a statement in another session's transaction that stays open until unlock.
func (h *spies) holding(t testing.TB, statement string, args ...any) func() {
	t.Helper()
	tx, err := h.db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(statement, args...)
	require.NoError(t, err)
	var once sync.Once
	unlock := func() { once.Do(func() { _ = tx.Rollback() }) }
	t.Cleanup(unlock)
	return unlock
}

// oddColumns gives the user's tables columns of fixed length, of less precision and of other scales.
func (h *spies) oddColumns(t testing.TB) (edits []func(line int64)) {
	t.Helper()
	texts := []string{"nchar(%d)", "varchar(%d)", "nvarchar(%d)"}
	times := []string{"datetime", "datetime2(3)", "datetimeoffset(0)"}
	numbers := []string{"float", "decimal(18, 8)", "numeric(9, 4)"}
	for n, c := range invoice.Columns() {
		var kind string
		switch c.Kind {
		case invoice.Text:
			kind = fmt.Sprintf(texts[n%len(texts)], c.Max)
		case invoice.Flag:
			kind = "char(1)"
		case invoice.Integer:
			kind = "decimal(19, 0)"
		case invoice.Decimal:
			kind = numbers[n%len(numbers)]
		case invoice.Time:
			kind = times[n%len(times)]
		}
		h.exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN %s`, c.Table, c.Name))
		h.exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD %s %s NULL`, c.Table, c.Name, kind))
	}
	require.NoError(t, h.store.KnowColumnsAnew(context.Background()))
	for _, change := range []string{
		"IVCE_DTL SET CLN_MFR_AI_NM = UPPER(CLN_MFR_AI_NM)", "IVCE_DTL SET CLN_MFR_PRT_NUM = CLN_MFR_PRT_NUM + ' '",
		"IVCE_DTL SET MFR_CNFDC_SCR = MFR_CNFDC_SCR / 2", "IVCE_DTL SET PRT_NUM_CNFDC_SCR = PRT_NUM_CNFDC_SCR / 2",
		"IVCE_TRKG_MSTR SET RQST_TS = DATEADD(second, 1, RQST_TS)",
		"IVCE_TRKG_MSTR SET PRCS_STRT_TS = DATEADD(second, 1, PRCS_STRT_TS)",
		"IVCE_TRKG_MSTR SET PRCS_END_TS = DATEADD(second, 1, PRCS_END_TS)", "IVCE_TRKG_MSTR SET PRNT_IVCE_DTL_ID = 7",
	} {
		edits = append(edits, func(line int64) { h.exec(t, "UPDATE dbo."+change+" WHERE IVCE_DTL_UID = @p1", line) })
	}
	return edits
}

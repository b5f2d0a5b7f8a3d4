// Package sqltest reads and changes the database of an SQL adapter from outside. The tests of both adapters share it.
package sqltest

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/conformance"
	"sqlwriter/test/mapping"
)

// Spy is another session of a database.
type Spy struct {
	// Read and Write may be the same.
	Read, Write *sql.DB
	// User and Ours stand before the names of the user's tables and of ours.
	User, Ours string
	// UUID has %s for a column and gives its id as text. NewUUID makes an id.
	UUID, NewUUID string
	// Earlier has %[1]s for a column and %[2]d for the seconds that it goes back.
	Earlier string
	// Time is the form in which the database takes a time.
	Time string
}

// named are the arguments @p1, @p2 and so on, which both engines take.
func named(args []any) []any {
	list := make([]any, len(args))
	for i, arg := range args {
		list[i] = sql.Named(fmt.Sprintf("p%d", i+1), arg)
	}
	return list
}

// Exec runs a statement whose parameters are @p1, @p2 and so on.
func (s *Spy) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := s.Write.ExecContext(context.Background(), query, named(args)...)
	require.NoError(t, err, query)
}

// row scans a row; it reports whether there is one.
func (s *Spy) row(t testing.TB, into []any, query string, args ...any) bool {
	t.Helper()
	err := s.Read.QueryRowContext(context.Background(), query, named(args)...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	require.NoError(t, err, query)
	return true
}

// Each calls f for each row.
func (s *Spy) Each(t testing.TB, query string, f func(rows *sql.Rows) error) {
	t.Helper()
	rows, err := s.Read.QueryContext(context.Background(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		require.NoError(t, f(rows))
	}
	require.NoError(t, rows.Err())
}

// Quote is an identifier of a name, on either engine.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Key is the key of one of the user's tables.
func Key(table invoice.Table) string { return Quote(mapping.InUse().Key(table)) }

// Column is the column in use that has the value of a column of the default mapping.
func Column(table invoice.Table, name string) string { return Quote(mapping.Of(table, name).Name) }

// Columns lists a table's columns, quoted, and their places in the mapping.
func Columns(table invoice.Table) (names []string, places []int) {
	for i, c := range mapping.InUse().Columns() {
		if c.Table == table {
			names, places = append(names, Quote(c.Name)), append(places, i)
		}
	}
	return names, places
}

// tables are the user's.
func tables() []invoice.Table { return []invoice.Table{invoice.Detail, invoice.Tracking} }

// Row reads a line with its own conversion of types. It knows the types of the sample schema only.
func (s *Spy) Row(t testing.TB, line int64) conformance.SinkRow {
	t.Helper()
	r := conformance.SinkRow{Values: make([]invoice.Value, len(mapping.InUse().Columns()))}
	r.Detail = s.readTable(t, invoice.Detail, line, r.Values)
	r.Tracking = s.readTable(t, invoice.Tracking, line, r.Values)
	if r.Detail {
		var num, desc string
		s.row(t, []any{&num, &desc}, `SELECT IVCE_NUM, ITM_LDSC FROM `+s.User+`IVCE_DTL WHERE `+Key(invoice.Detail)+` = @p1`, line)
		require.Equal(t, "N D", num+" "+desc, "the user's other columns stay as they are")
	}
	return r
}

func (s *Spy) readTable(t testing.TB, table invoice.Table, line int64, into []invoice.Value) bool {
	t.Helper()
	names, places := Columns(table)
	found, to := make([]any, len(names)), make([]any, len(names))
	for i := range found {
		to[i] = &found[i]
	}
	there := s.row(t, to, fmt.Sprintf(`SELECT %s FROM %s%s WHERE %s = @p1`, strings.Join(names, ", "),
		s.User, table, Key(table)), line)
	for i, p := range places {
		switch v := found[i].(type) {
		case nil:
			into[p] = invoice.Null()
		case time.Time:
			into[p] = invoice.Of(v.Format(invoice.LocalLayout))
			if !mapping.InUse().Columns()[p].Local {
				into[p].Text += "Z"
			}
		case bool:
			into[p] = invoice.Of(map[bool]string{true: "1", false: "0"}[v])
		case []byte:
			into[p] = invoice.Of(string(v))
		default:
			into[p] = invoice.Of(fmt.Sprint(v))
		}
	}
	return there
}

// SetRow changes a line's values, as a person does.
func (s *Spy) SetRow(t testing.TB, line int64, r conformance.SinkRow) {
	t.Helper()
	require.True(t, r.Detail)
	now := s.Row(t, line)
	switch {
	case now.Tracking && !r.Tracking:
		s.Exec(t, `DELETE FROM `+s.User+`IVCE_TRKG_MSTR WHERE `+Key(invoice.Tracking)+` = @p1`, line)
	case r.Tracking && !now.Tracking:
		s.Exec(t, `INSERT INTO `+s.User+`IVCE_TRKG_MSTR (`+Key(invoice.Tracking)+`) VALUES (@p1)`, line)
	}
	for _, table := range tables() {
		names, places := Columns(table)
		var sets []string
		args := []any{line}
		for i, p := range places {
			value := r.Values[p]
			switch {
			case value == now.Values[p]:
				continue
			case value.Null:
				sets = append(sets, names[i]+" = NULL")
				continue
			case mapping.InUse().Columns()[p].Kind == invoice.Time && !strings.HasSuffix(s.Time, "Z"):
				args = append(args, strings.TrimSuffix(value.Text, "Z"))
				sets = append(sets, fmt.Sprintf("%s = CAST(@p%d AS datetime2(7))", names[i], len(args)))
				continue
			}
			args = append(args, value.Text)
			sets = append(sets, fmt.Sprintf("%s = @p%d", names[i], len(args)))
		}
		if len(sets) > 0 {
			s.Exec(t, fmt.Sprintf(`UPDATE %s%s SET %s WHERE %s = @p1`, s.User, table,
				strings.Join(sets, ", "), Key(table)), args...)
		}
	}
}

// recent checks a time that the database's clock gave, in UTC.
func (s *Spy) recent(t testing.TB, at any) {
	t.Helper()
	if text, ok := at.(string); ok {
		parsed, err := time.Parse(s.Time, text)
		require.NoError(t, err)
		at = parsed
	}
	found, ok := at.(time.Time)
	require.True(t, ok, "%T", at)
	require.WithinDuration(t, time.Now(), found, 10*time.Minute, "by the database's clock, in UTC")
}

// Ledger reads a line's row of the ledger.
func (s *Spy) Ledger(t testing.TB, line int64) (l conformance.LedgerRow, found bool) {
	t.Helper()
	var key, hash, detail, tracking shared.Hash
	var version sql.NullInt64
	var writeID string
	var at any
	found = s.row(t, []any{
		&l.Version.US, &key, &l.DocumentID, &l.SourceTS, &hash, &version, &l.SysName, &detail, &tracking, &l.Outcome,
		&writeID, &at,
	}, `SELECT version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, detail_row_hash,
		tracking_row_hash, outcome, `+fmt.Sprintf(s.UUID, "write_id")+`, applied_at FROM `+s.Ours+
		`ledger WHERE detail_id = @p1`, line)
	l.Version.Key, l.Hash, l.DetailHash, l.TrackingHash = string(key), string(hash), string(detail), string(tracking)
	l.HashVersion = int(version.Int64)
	if found && l.Outcome != "adopted" {
		require.Regexp(t, `^[0-9A-Fa-f]{32}$`, strings.ReplaceAll(writeID, "-", ""))
		s.recent(t, at)
	}
	return l, found
}

// SetLedger replaces a line's row of the ledger.
func (s *Spy) SetLedger(t testing.TB, line int64, l conformance.LedgerRow) {
	t.Helper()
	bytesOf := func(hash string) []byte { // nil for none
		if hash == "" {
			return nil
		}
		b, err := hex.DecodeString(hash)
		require.NoError(t, err)
		return b
	}
	s.Exec(t, `DELETE FROM `+s.Ours+`ledger WHERE detail_id = @p1`, line)
	s.Exec(t, `INSERT INTO `+s.Ours+`ledger (detail_id, version_us, document_key, document_id, source_ts, content_hash,
		hash_version, detail_row_hash, tracking_row_hash, sys_name, outcome, write_id, applied_at)
		VALUES (@p1, @p2, @p3, @p4, @p5, @p6, CASE WHEN @p6 IS NULL THEN NULL ELSE @p7 END, @p8, @p9, @p10, @p11, `+
		s.NewUUID+`, @p12)`,
		line, l.Version.US, bytesOf(l.Version.Key), l.DocumentID, l.SourceTS, bytesOf(l.Hash), l.HashVersion,
		bytesOf(l.DetailHash), bytesOf(l.TrackingHash), l.SysName, l.Outcome,
		s.at(time.Now().AddDate(0, 0, -l.DaysAgo)))
}

// at is a time as the database takes it.
func (s *Spy) at(when time.Time) string { return when.UTC().Format(s.Time) }

// Heartbeat reads an environment's heartbeat.
func (s *Spy) Heartbeat(t testing.TB, sysName string) (row conformance.HeartbeatRow, found bool) {
	t.Helper()
	var at any
	found = s.row(t, []any{&row.DatabaseID, &row.Number, &at}, `SELECT LOWER(`+fmt.Sprintf(s.UUID, "database_id")+
		`), number, raised_at FROM `+s.Ours+`heartbeat WHERE sys_name = @p1`, sysName)
	if found {
		require.Regexp(t, `^[0-9a-f]{32}$`, strings.ReplaceAll(row.DatabaseID, "-", ""))
		s.recent(t, at)
	}
	return row, found
}

// SetHeartbeat replaces an environment's heartbeat; a row without a number is none.
func (s *Spy) SetHeartbeat(t testing.TB, sysName string, row conformance.HeartbeatRow) {
	t.Helper()
	s.Exec(t, `DELETE FROM `+s.Ours+`heartbeat WHERE sys_name = @p1`, sysName)
	if row.Number > 0 {
		s.Exec(t, `INSERT INTO `+s.Ours+`heartbeat (sys_name, database_id, number, raised_at) VALUES (@p1, @p2, @p3, @p4)`,
			sysName, row.DatabaseID, row.Number, s.at(time.Now()))
	}
}

// Counted reads the table "counted" of the triggers that count writes: its columns are tbl and line.
func (s *Spy) Counted(t testing.TB) func(line int64) (detail, tracking int) {
	return func(line int64) (int, int) {
		var n [2]int
		for i, table := range tables() {
			s.row(t, []any{&n[i]}, `SELECT COUNT(*) FROM `+s.User+`counted WHERE tbl = @p1 AND line = @p2`,
				string(table), line)
		}
		return n[0], n[1]
	}
}

// Holding runs a statement in a transaction that stays open until unlock.
func Holding(t testing.TB, db *sql.DB, statement string, args ...any) (unlock func()) {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(context.Background(), statement, named(args)...)
	require.NoError(t, err)
	unlock = func() { _ = tx.Rollback() } // again is nothing
	t.Cleanup(unlock)
	return unlock
}

// Age moves all times of runs, findings and the audit log back.
func (s *Spy) Age(t testing.TB, by time.Duration) {
	t.Helper()
	for table, columns := range map[string][]string{
		"run": {"started_at", "ended_at", "heartbeat_at", "handed_off_at", "next_at"},
		"batch": {
			"heartbeat_at", "queued_at", "claimed_at", "process_start_time", "process_end_time", "created_at",
			"updated_at",
		},
		"worker": {"started_at", "completed_at", "heartbeat_at"}, "finding": {"first_seen", "last_seen"},
		"comparison": {"begun_at", "moved_at", "ended_at"}, "error_detail": {"created_at"}, "audit_log": {"done_at"},
	} {
		set := slices.Clone(columns)
		for i, c := range columns {
			set[i] = c + " = " + fmt.Sprintf(s.Earlier, c, int(by.Seconds()))
		}
		s.Exec(t, "UPDATE "+s.Ours+table+" SET "+strings.Join(set, ", "))
	}
}

// Audits are all entries of the audit log, oldest first.
func (s *Spy) Audits(t testing.TB) (list []run.Audit) {
	t.Helper()
	s.Each(t, `SELECT action, COALESCE(level, ''), done_by, why, subject, COALESCE(run_id, ''), COALESCE(batch_id, ''),
		detail FROM `+s.Ours+`audit_log ORDER BY audit_id`, func(rows *sql.Rows) error {
		var a run.Audit
		var detail sql.NullString
		err := rows.Scan(&a.Action, &a.Level, &a.By, &a.Why, &a.Subject, &a.Run, &a.Batch, &detail)
		a.Batch = strings.TrimSpace(a.Batch)
		if detail.Valid {
			a.Detail = []byte(detail.String)
		}
		list = append(list, a)
		return err
	})
	return list
}

// Workers are all workers.
func (s *Spy) Workers(t testing.TB) (list []conformance.RunWorker) {
	t.Helper()
	s.Each(t, `SELECT worker_id, instance, kind, status, documents_processed FROM `+s.Ours+`worker`,
		func(rows *sql.Rows) error {
			var w conformance.RunWorker
			err := rows.Scan(&w.ID, &w.Instance, &w.Kind, &w.Status, &w.Processed)
			list = append(list, w)
			return err
		})
	return list
}

// Row1 are the first row's values as texts.
func (s *Spy) Row1(t testing.TB, query string, columns int) []string {
	t.Helper()
	values, into := make([]sql.NullString, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	require.True(t, s.row(t, into, query), query)
	list := make([]string, columns)
	for i, v := range values {
		list[i] = v.String
	}
	return list
}

// Insert adds a row to one of our tables.
func (s *Spy) Insert(t testing.TB, table string, row map[string]any) {
	t.Helper()
	var columns, places []string
	var values []any
	for column, value := range row {
		if value == nil {
			continue
		}
		if when, ok := value.(time.Time); ok {
			value = s.at(when)
		}
		columns, values = append(columns, column), append(values, value)
		places = append(places, fmt.Sprintf("@p%d", len(values)))
	}
	s.Exec(t, fmt.Sprintf(`INSERT INTO %s%s (%s) VALUES (%s)`, s.Ours, table, strings.Join(columns, ", "),
		strings.Join(places, ", ")), values...)
}

// Text has all values of some of our tables.
func (s *Spy) Text(t testing.TB, tables ...string) (text string) {
	t.Helper()
	for _, table := range tables {
		s.Each(t, `SELECT * FROM `+s.Ours+table, func(rows *sql.Rows) error {
			columns, err := rows.Columns()
			require.NoError(t, err)
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			err = rows.Scan(into...)
			text += fmt.Sprintln(values...)
			return err
		})
	}
	return text
}

// Counts counts the rows of the tables that a purge is about.
func (s *Spy) Counts(t testing.TB) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, table := range conformance.PurgedTables() {
		var rows int
		s.row(t, []any{&rows}, `SELECT COUNT(*) FROM `+s.Ours+table)
		n[table] = rows
	}
	return n
}

// KeepAudits sets how long the audit log is kept; 0 days for none.
func (s *Spy) KeepAudits(t testing.TB, sysName string, days int) {
	t.Helper()
	s.Exec(t, `DELETE FROM `+s.Ours+`audit_retention WHERE sys_name = @p1`, sysName)
	if days > 0 {
		s.Exec(t, `INSERT INTO `+s.Ours+`audit_retention (sys_name, kept_days) VALUES (@p1, @p2)`, sysName, days)
	}
}

// Item is a plain document whose content depends on its id.
func Item(id string, us int64, lines ...int64) commit.Item {
	values := make([]invoice.Value, len(mapping.InUse().Columns()))
	for i, c := range mapping.InUse().Columns() {
		values[i] = invoice.Null()
		if c.Source == invoice.FromDocument && c.Kind == invoice.Text {
			values[i] = invoice.Of(
				fmt.Sprintf("%s, %s, as long as such texts usually are", id, c.From())[:min(c.Max, 40)])
			if c.Status {
				values[i] = invoice.Of("RC-AI")
			}
		}
	}
	return commit.Item{
		DocumentID: id, Version: invoice.Version{US: us, Key: invoice.Key(id)}, SourceTS: 1,
		Hash: invoice.Key("content" + id), HashVersion: mapping.InUse().Version(),
		Main: lines[0], Duplicates: lines[1:], Values: values,
	}
}

package sqlserver_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
)

// runDeviations are cases of TestRunStore that fail on the one other T-SQL server.
func runDeviations() map[string]string {
	return map[string]string{"ids and words of any characters": unescape}
}

func TestRunStore(t *testing.T) {
	d := newDatabase(t)
	var err error // the suite has many races, for which the tests' lock timeout is too short
	d.store, err = sqlserver.Open(t.Context(), d.dsn, sqlserver.Options{MaxOpen: 30, LockTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.store.Close()) })
	conformance.TestRunStore(t, func(t testing.TB) conformance.RunStoreFixture {
		_, name, _ := strings.Cut(t.Name(), "/")
		if why := runDeviations()[strings.ReplaceAll(name, "_", " ")]; why != "" && !sqlservertest.IsReal(d.version) {
			t.Skip(d.version + ": " + why)
		}
		return d.runs(t)
	})
}

// runs empties the tables for a case.
func (d *database) runs(t testing.TB) conformance.RunStoreFixture {
	for _, table := range []string{"run", "batch", "batch_item", "worker", "error_detail", "audit_log"} {
		d.exec(t, `DELETE FROM sqlwriter.`+table)
	}
	return conformance.RunStoreFixture{
		Store: d.store.RunStore("web"), For: d.store.RunStore, Now: time.Now, Age: d.age,
		Audits: d.audits, Workers: d.workers,
		HideAudits: func(t testing.TB) func() { return d.rename(t, "audit_log") },
	}
}

// agedColumns are the times that ages start from.
func agedColumns() map[string][]string {
	return map[string][]string{
		"run": {"started_at", "ended_at", "heartbeat_at", "handed_off_at", "next_at"},
		"batch": {
			"heartbeat_at", "queued_at", "claimed_at", "process_start_time", "process_end_time",
			"created_at", "updated_at",
		},
		"worker": {"started_at", "completed_at", "heartbeat_at"}, "finding": {"first_seen", "last_seen"},
		"comparison":   {"begun_at", "moved_at", "ended_at"},
		"error_detail": {"created_at"}, "audit_log": {"done_at"},
	}
}

// age moves all times back.
func (d *database) age(t testing.TB, by time.Duration) {
	t.Helper()
	for table, columns := range agedColumns() {
		var set []string
		for _, c := range columns {
			set = append(set, fmt.Sprintf("%[1]s = DATEADD(SECOND, -%[2]d, %[1]s)", c, int(by.Seconds())))
		}
		d.exec(t, "UPDATE sqlwriter."+table+" SET "+strings.Join(set, ", "))
	}
}

func (d *database) rows(t testing.TB, query string, scan func(rows *sql.Rows) error) {
	t.Helper()
	rows, err := d.db.Query(query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		require.NoError(t, scan(rows))
	}
	require.NoError(t, rows.Err())
}

// audits returns all entries of the audit log, oldest first.
func (d *database) audits(t testing.TB) (list []run.Audit) {
	t.Helper()
	d.rows(t,
		`SELECT action, COALESCE(level, ''), done_by, why, subject, COALESCE(run_id, N''), COALESCE(batch_id, ''), detail
FROM sqlwriter.audit_log ORDER BY audit_id`, func(rows *sql.Rows) error {
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

func (d *database) workers(t testing.TB) (list []conformance.RunWorker) {
	t.Helper()
	d.rows(t, `SELECT worker_id, instance, kind, status, documents_processed FROM sqlwriter.worker`,
		func(rows *sql.Rows) error {
			var w conformance.RunWorker
			err := rows.Scan(&w.ID, &w.Instance, &w.Kind, &w.Status, &w.Processed)
			list = append(list, w)
			return err
		})
	return list
}

// The golden has the shared statements in this engine's syntax, with the parameters that the driver declares.
func TestRunStatementsGolden(t *testing.T) {
	texts, err := sqlserver.Texts(sqlserver.Options{}, shared.OfRuns)
	require.NoError(t, err)
	golden(t, "runs.sql", declared(t, texts))
}

func TestTheViewHasTheNamesOfTheOriginalQueries(t *testing.T) {
	d := newDatabase(t)
	conformance.UseRunStore(t, d.store.RunStore("web"), d.store.AuditLog("web"))
	conformance.SeeRunViews(t, d.row1, "sqlwriter.")
}

func (d *database) row1(t testing.TB, query string, columns int) []string {
	t.Helper()
	values, into := make([]sql.NullString, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	require.NoError(t, d.db.QueryRow(query).Scan(into...))
	list := make([]string, columns)
	for i, v := range values {
		list[i] = v.String
	}
	return list
}

func TestStatementsAboutRunsAndFindingsHaveNoLockHint(t *testing.T) {
	texts, err := sqlserver.Texts(sqlserver.Options{}, shared.OfRuns, shared.OfFindings)
	require.NoError(t, err)
	for name, text := range texts {
		for _, word := range []string{"UPDLOCK", "HOLDLOCK", "NOLOCK", "MERGE", "OUTPUT"} {
			require.NotContains(t, statementsIn(text), word, name)
		}
	}
}

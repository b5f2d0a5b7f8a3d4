package sqlite_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestRunStore(t *testing.T) {
	t.Parallel()
	conformance.TestRunStore(t, func(t testing.TB) conformance.RunStoreFixture { return db{newStore(t)}.runs() })
}

// runs is the run store with the fixture of the conformance suite.
func (d db) runs() conformance.RunStoreFixture {
	return conformance.RunStoreFixture{
		Store: d.RunStore("web"), For: d.RunStore, Now: time.Now, Age: d.age, Audits: d.audits, Workers: d.workers,
		HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
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
func (d db) age(t testing.TB, by time.Duration) {
	t.Helper()
	for table, columns := range agedColumns() {
		var set []string
		for _, c := range columns {
			set = append(set,
				fmt.Sprintf(
					"%[1]s = strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %[1]s, '-%[2]d seconds')", c, int(by.Seconds())))
		}
		d.exec(t, "UPDATE sqlwriter_"+table+" SET "+strings.Join(set, ", "))
	}
}

func (d db) rows(t testing.TB, query string, scan func(rows *sql.Rows) error) {
	t.Helper()
	rows, err := d.Reader().Query(query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		require.NoError(t, scan(rows))
	}
	require.NoError(t, rows.Err())
}

// audits returns all entries of the audit log, oldest first.
func (d db) audits(t testing.TB) (list []run.Audit) {
	t.Helper()
	d.rows(t,
		`SELECT action, COALESCE(level, ''), done_by, why, subject, COALESCE(run_id, ''), COALESCE(batch_id, ''), detail
FROM sqlwriter_audit_log ORDER BY audit_id`, func(rows *sql.Rows) error {
			var a run.Audit
			var detail sql.NullString
			err := rows.Scan(&a.Action, &a.Level, &a.By, &a.Why, &a.Subject, &a.Run, &a.Batch, &detail)
			if detail.Valid {
				a.Detail = []byte(detail.String)
			}
			list = append(list, a)
			return err
		})
	return list
}

func (d db) workers(t testing.TB) (list []conformance.RunWorker) {
	t.Helper()
	d.rows(t, `SELECT worker_id, instance, kind, status, documents_processed FROM sqlwriter_worker`,
		func(rows *sql.Rows) error {
			var w conformance.RunWorker
			err := rows.Scan(&w.ID, &w.Instance, &w.Kind, &w.Status, &w.Processed)
			list = append(list, w)
			return err
		})
	return list
}

// The tables only grow. Every statement must find its rows by a key or an index, starting from its list if it has one.
func TestNoStatementAboutRunsScansATable(t *testing.T) {
	s := newStore(t)
	texts, err := sqlite.Texts(shared.OfRuns)
	require.NoError(t, err)
	conn, err := s.Writer().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for name, text := range texts {
		text, _, _ = strings.Cut(text, ";\nINSERT") // worker_begin has two statements
		var args []any
		for _, parameter := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(text, -1) {
			args = append(args, sql.Named(parameter[1], "0"))
		}
		plan := planOf(t, conn, text, args...)
		for _, step := range plan {
			require.True(t, !strings.HasPrefix(step, "SCAN") || step == "SCAN e VIRTUAL TABLE INDEX 1:" ||
				step == "SCAN CONSTANT ROW",
				"%s: %s", name, strings.Join(plan, "; "))
		}
		if name == "run_batches" { // runs every two seconds for every run, so it reads the index only
			require.Equal(t,
				[]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_batch_status (status=? AND run_id=?)"}, plan)
		}
		if strings.Contains(text, "json_each") && !strings.Contains(text, "INSERT") && name != "items_page_by_outcome" {
			require.Equal(t, "SCAN e VIRTUAL TABLE INDEX 1:", plan[0], "%s: %s", name, strings.Join(plan, "; "))
		}
	}
}

func TestTheViewHasTheNamesOfTheOriginalQueries(t *testing.T) {
	d := db{newStore(t)}
	conformance.UseRunStore(t, d.RunStore("web"), d.AuditLog("web"))
	conformance.SeeRunViews(t, d.row1, "sqlwriter_")
}

func (d db) row1(t testing.TB, query string, columns int) []string {
	t.Helper()
	values, into := make([]sql.NullString, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	require.NoError(t, d.Reader().QueryRow(query).Scan(into...))
	list := make([]string, columns)
	for i, v := range values {
		list[i] = v.String
	}
	return list
}

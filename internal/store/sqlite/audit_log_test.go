package sqlite_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestAuditLog(t *testing.T) {
	t.Parallel()
	conformance.TestAuditLog(t, func(t testing.TB) conformance.AuditLogHarness {
		d := db{newStore(t)}
		return conformance.AuditLogHarness{
			AuditLog: d.AuditLog(conformance.AuditLogSysName), Store: d.RunStore(conformance.AuditLogSysName),
			Other: d.AuditLog(conformance.AuditLogOtherSysName), OtherStore: d.RunStore(conformance.AuditLogOtherSysName), Now: time.Now,
			HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
		}
	})
}

// The audit log only grows, and most entries are steps of workers. Each query must read a range of an index.
func TestEntriesArePartsOfAnIndex(t *testing.T) {
	texts, err := sqlite.AuditLogTexts()
	require.NoError(t, err)
	conn, err := newStore(t).Reader().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for name, c := range map[string]struct {
		args []any
		seek []string
	}{
		"audits_of_action": {[]any{sql.Named("action", "pause")}, []string{"SEARCH a USING INDEX sqlwriter_ix_audit_log_action (action=? AND audit_id<?)"}},
		"audits_of_action_of_run": {
			[]any{sql.Named("run", "r"), sql.Named("action", "pause")},
			[]string{"SEARCH a USING INDEX sqlwriter_ix_audit_log_run_action (run_id=? AND action=? AND audit_id<?)"},
		},
		"audits_of_run": {[]any{sql.Named("run", "r")}, slices.Repeat([]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_audit_log_run (run_id=? AND level=? AND audit_id<?)"}, 4)},
		"audits_notable_of_run": {
			[]any{sql.Named("run", "r")},
			append(slices.Repeat([]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_audit_log_run (run_id=? AND level=? AND audit_id<?)"}, 3),
				slices.Repeat([]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_audit_log_run_action (run_id=? AND action=? AND audit_id<?)"}, len(ops.PeopleCodes()))...),
		},
		"audits_notable": {nil, append(slices.Repeat([]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_audit_log_level (level=? AND audit_id<?)"}, 3),
			slices.Repeat([]string{"SEARCH b USING COVERING INDEX sqlwriter_ix_audit_log_action (action=? AND audit_id<?)"}, len(ops.PeopleCodes()))...)},
	} {
		var seek []string
		for _, step := range planOf(t, conn, texts[name], append(c.args, sql.Named("before", 1000), sql.Named("sys_name", "web"), sql.Named("limit", 20))...) {
			require.NotContains(t, step, "SCAN a", name)
			require.NotContains(t, step, "SCAN b", name)
			if strings.Contains(step, "sqlwriter_ix_") {
				seek = append(seek, step)
			}
			if strings.Contains(step, "TEMP B-TREE") {
				require.Contains(t, []string{"audits_notable", "audits_notable_of_run", "audits_of_run"}, name, "what is read is in order, but for the few that come together")
			}
		}
		require.Equal(t, c.seek, seek, name)
	}
}

func TestAFailedCommitOfTheAuditLogIsAnError(t *testing.T) {
	d := db{newStore(t)}
	d.exec(t, `CREATE TABLE parent (id INTEGER PRIMARY KEY)`)
	d.exec(t, `CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
	d.exec(t, `CREATE TRIGGER orphan AFTER INSERT ON sqlwriter_audit_log WHEN NEW.action = 'orphan' BEGIN INSERT INTO child VALUES (1); END`)
	runs := d.RunStore("web")
	start := func(code string) error {
		return runs.StartRun(t.Context(), run.Run{ID: "r", SysName: "web", Pattern: run.TwoPhase}, run.Audit{Code: code, Level: run.LevelInfo, Run: "r"})
	}
	err := start("orphan")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "no document is blamed: %v", err)
	list, err := runs.ListRuns(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, start(run.CodeRunStart), "the connection is as before")
}

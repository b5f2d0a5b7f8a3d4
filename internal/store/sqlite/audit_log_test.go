package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestAuditLog(t *testing.T) {
	t.Parallel()
	conformance.TestAuditLog(t, func(t testing.TB) conformance.AuditLogHarness {
		d := spying(newStore(t))
		return conformance.AuditLogHarness{
			AuditLog: d.AuditLog(conformance.AuditLogSysName), Store: d.RunStore(conformance.AuditLogSysName),
			Other:      d.AuditLog(conformance.AuditLogOtherSysName),
			OtherStore: d.RunStore(conformance.AuditLogOtherSysName), Now: time.Now,
			HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
		}
	})
}

// The audit log only grows. The list of an action, and that of a run, must read a range of an index; the others read
// from the end of the log, and so stop at their limit.
func TestEntriesArePartsOfAnIndex(t *testing.T) {
	s := newStore(t)
	texts, err := sqlite.Texts(shared.OfAuditLog)
	require.NoError(t, err)
	const (
		action = "SEARCH a USING INDEX sqlwriter_ix_audit_log_action (sys_name=? AND action=? AND audit_id<?)"
		since  = "SEARCH a USING INDEX sqlwriter_ix_audit_log_done (sys_name=? AND done_at>?)"
		end    = "SEARCH a USING INTEGER PRIMARY KEY (rowid<?)"
	)
	for name, want := range map[string]string{
		"audits_of_action": action, "audits_of_action_of_run": action, "audits_of_run": since,
		"audits_notable_of_run": since, "audits": end, "audits_notable": end,
	} {
		var steps []string
		for _, step := range planOf(t, s, texts[name]) {
			if strings.Contains(step, " a ") {
				steps = append(steps, step)
			}
			require.Equal(t, want == since && strings.Contains(step, "TEMP B-TREE"),
				strings.Contains(step, "TEMP B-TREE"), "%s: what is read is in order", name)
		}
		require.Equal(t, []string{want}, steps, name)
	}
}

func TestAFailedCommitOfTheAuditLogIsAnError(t *testing.T) {
	d := spying(newStore(t))
	d.spy.Exec(t, `CREATE TABLE parent (id INTEGER PRIMARY KEY)`)
	d.spy.Exec(t, `CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
	d.spy.Exec(t,
		`CREATE TRIGGER orphan AFTER INSERT ON sqlwriter_audit_log WHEN NEW.action = 'orphan' BEGIN INSERT INTO child VALUES (1); END`)
	runs := d.RunStore("web")
	start := func(code string) error {
		return runs.StartRun(t.Context(), run.Run{ID: "r", SysName: "web"},
			run.Audit{Action: code, Level: run.LevelInfo, Run: "r"})
	}
	err := start("orphan")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "no document is blamed: %v", err)
	list, err := runs.ListRuns(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, start(run.CodeRunStart), "the connection is as before")
}

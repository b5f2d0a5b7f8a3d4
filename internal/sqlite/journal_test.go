package sqlite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/porttest"
)

func TestJournal(t *testing.T) {
	porttest.TestJournal(t, func(t testing.TB) porttest.JournalHarness {
		d := db{newStore(t)}
		return porttest.JournalHarness{
			Journal: d.Journal(), Now: time.Now,
			HideRuns:   func(t testing.TB) func() { return d.hide(t, "sqlwriter_run", "") },
			HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
		}
	})
}

// The last word of a transaction is the commit's.
func TestACommitOfTheJournalThatFailsIsAnError(t *testing.T) {
	d := db{newStore(t)}
	d.exec(t, `CREATE TABLE parent (id INTEGER PRIMARY KEY)`)
	d.exec(t, `CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
	d.exec(t, `CREATE TRIGGER orphan AFTER INSERT ON sqlwriter_audit_log WHEN NEW.action = 'orphan' BEGIN INSERT INTO child VALUES (1); END`)
	err := d.Journal().Start(t.Context(), ops.Run{ID: "r"}, ops.Audit{Action: "orphan"})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "no document is blamed: %v", err)
	runs, err := d.Journal().Runs(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, runs)
	require.NoError(t, d.Journal().Start(t.Context(), ops.Run{ID: "r"}, ops.Audit{Action: "reprocess"}), "the connection is as before")
}

package sqlite_test

import (
	"testing"
	"time"

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

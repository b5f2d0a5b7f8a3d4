package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestRunStore(t *testing.T) {
	t.Parallel()
	conformance.TestRunStore(t, func(t testing.TB) conformance.RunStoreFixture { return spying(newStore(t)).runs() })
}

// runs is the run store with the fixture of the conformance suite.
func (d db) runs() conformance.RunStoreFixture {
	return conformance.RunStoreFixture{
		Store: d.RunStore("web"), For: d.RunStore, Now: time.Now, Age: d.spy.Age,
		Audits: d.spy.Audits, Workers: d.spy.Workers,
		HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
	}
}

// The tables only grow. Every statement must find its rows by a key or an index, starting from its list if it has one.
func TestNoStatementAboutRunsScansATable(t *testing.T) {
	s := newStore(t)
	texts, err := sqlite.Texts(shared.OfRuns)
	require.NoError(t, err)
	for name, text := range texts {
		text, _, _ = strings.Cut(text, ";\nINSERT") // worker_begin has two statements
		plan := planOf(t, s, text)
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
	d := spying(newStore(t))
	conformance.UseRunStore(t, d.RunStore("web"), d.AuditLog("web"))
	conformance.SeeRunViews(t, d.spy.Row1, "sqlwriter_")
}

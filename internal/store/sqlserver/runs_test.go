package sqlserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		d.spy.Exec(t, `DELETE FROM sqlwriter.`+table)
	}
	return conformance.RunStoreFixture{
		Store: d.store.RunStore("web"), For: d.store.RunStore, Now: time.Now, Age: d.spy.Age,
		Audits: d.spy.Audits, Workers: d.spy.Workers,
		HideAudits: func(t testing.TB) func() { return d.rename(t, "audit_log") },
	}
}

// The goldens have the shared statements in this engine's syntax, with the parameters that the driver declares.
func TestSharedStatementsGolden(t *testing.T) {
	for file, folder := range map[string]string{
		"runs.sql": shared.OfRuns, "audit_log.sql": shared.OfAuditLog, "findings.sql": shared.OfFindings,
	} {
		texts, err := sqlserver.Texts(sqlserver.Options{}, folder)
		require.NoError(t, err)
		golden(t, file, declared(t, texts))
	}
}

func TestTheViewHasTheNamesOfTheOriginalQueries(t *testing.T) {
	d := newDatabase(t)
	conformance.UseRunStore(t, d.store.RunStore("web"), d.store.AuditLog("web"))
	conformance.SeeRunViews(t, d.spy.Row1, "sqlwriter.")
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

package sqlserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
)

// findingsDeviations are cases of TestFindings that fail on the one other T-SQL server.
func findingsDeviations() map[string]string {
	return map[string]string{"any letters, any line, and details that are too long": unescape}
}

func TestFindings(t *testing.T) {
	d := newDatabase(t)
	var err error // concurrent calls wait for each other
	d.store, err = sqlserver.Open(t.Context(), d.dsn, sqlserver.Options{MaxOpen: 30, LockTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.store.Close()) })
	conformance.TestFindings(t, func(t testing.TB) conformance.FindingsFixture {
		_, name, _ := strings.Cut(t.Name(), "/")
		if why := findingsDeviations()[strings.ReplaceAll(name, "_", " ")]; why != "" &&
			!sqlservertest.IsReal(d.version) {
			t.Skip(d.version + ": " + why)
		}
		for _, table := range []string{"finding", "comparison", "adoption", "audit_log"} {
			d.spy.Exec(t, `DELETE FROM sqlwriter.`+table)
		}
		return conformance.FindingsFixture{
			Findings: d.store.Findings("web"), Other: d.store.Findings("dev"),
			AuditLog: d.store.AuditLog("web"), Now: time.Now, Age: d.spy.Age, Ledger: d.store,
			HideAudits: func(t testing.TB) func() { return d.rename(t, "audit_log") },
		}
	})
}

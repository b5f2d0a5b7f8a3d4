package sqlite_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	conformance.TestFindings(t, func(t testing.TB) conformance.FindingsFixture {
		d := spying(newStore(t))
		d.spy.Exec(t, "DELETE FROM sqlwriter_adoption")
		return conformance.FindingsFixture{
			Findings: d.Findings("web"), Other: d.Findings("dev"), AuditLog: d.AuditLog("web"),
			Now: time.Now, Age: d.spy.Age, Ledger: d,
			HideAudits: func(t testing.TB) func() { return d.hide(t, "sqlwriter_audit_log", "") },
		}
	})
}

// Every statement must find its rows by a key or an index, starting from its list if it has one.
func TestNoStatementAboutFindingsScansATable(t *testing.T) {
	s := newStore(t)
	texts, err := sqlite.Texts(shared.OfFindings)
	require.NoError(t, err)
	for name, text := range texts {
		plan := planOf(t, s, text)
		for _, step := range plan {
			table := strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN (subquery")
			require.True(t, !table ||
				slices.Contains([]string{"SCAN e VIRTUAL TABLE INDEX 1:", "SCAN n", "SCAN CONSTANT ROW"}, step),
				"%s: %s", name, strings.Join(plan, "; "))
			if strings.Contains(text, "json_each") &&
				(strings.HasPrefix(step, "SEARCH f") || strings.HasPrefix(step, "SEARCH x")) {
				require.Regexp(t,
					`PRIMARY KEY \(sys_name=\? AND class=\? AND detail_id=\? AND document_key=\?\)`, step, name)
			}
		}
	}
}

package sqlserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/porttest"
	"sqlwriter/internal/sqlserver/sqlservertest"
)

// mutant is a write without one of its rules.
type mutant struct {
	name string
	// cut are the texts of the rule and what stands there without it.
	cut []change
	// noticed is the case of the suite that fails without the rule.
	noticed string
	// covered says what else holds the rule on an engine that is not SQL Server; nobody notices there.
	covered string
}

type change struct{ rule, instead string }

func mutants() []mutant {
	xactAbort := change{"SET XACT_ABORT ON;", ""}
	try := []change{{"BEGIN TRY", ""}, {"END TRY\nBEGIN CATCH\nIF @@TRANCOUNT > 0\nROLLBACK TRANSACTION;\nTHROW;\nEND CATCH;", ""}}
	const refused = "a refused value in the only document"
	return []mutant{
		{
			name: "without the guard", cut: []change{{"l.version_us < s.version_us\nOR (", "1 = 1\nOR ("}},
			noticed: "the newer result wins: newer first, and names itself",
		},
		{
			name: "without the source_ts rule", cut: []change{{"AND l.source_ts <= s.source_ts", ""}},
			noticed: "equal version, earlier snapshot, other content: superseded by itself",
		},
		{
			name: "without the evidence rule", cut: []change{{"ELSE 'none'", "ELSE 'superseded'"}},
			noticed: "newer's UPDATE, the older one whole, newer's INSERT: contention, and then the newer",
		},
		{
			name: "without the row count of IVCE_TRKG_MSTR",
			cut: []change{{
				"IF @written <> @content\nBEGIN\nSET @note = CONCAT(N'sqlwriter: IVCE_TRKG", "IF 1 = 0\nBEGIN\nSET @note = CONCAT(N'sqlwriter: IVCE_TRKG",
			}},
			noticed: "a tracking row that somebody else makes in between is contention, and then updated",
		},
		{
			name: "without the row count of IVCE_DTL", cut: []change{{"SET @written = @@ROWCOUNT;\nIF @written <> @content", "SET @written = @@ROWCOUNT;\nIF 1 = 0"}},
			noticed: "a detail row that somebody else deletes in between is contention, and nothing is written",
		},
		{
			name: "without the row count of a mark", cut: []change{{"IF @written <> @marks", "IF 1 = 0"}},
			noticed: "a detail row that somebody else deletes before a mark is contention, and nothing is marked",
		},
		{name: "without XACT_ABORT, TRY and CATCH", cut: append(try, xactAbort), noticed: refused},
		{
			name: "without TRY and CATCH", cut: try, noticed: "the user's trigger on IVCE_DTL refuses a row",
			covered: "RAISERROR ends the batch there as THROW does",
		},
	}
}

// Every rule of the write has a case that fails without it: not the golden, but what a line then holds.
func TestEveryRuleOfTheWriteIsHeldByACase(t *testing.T) {
	d := newDatabase(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			require.Empty(t, porttest.CaseFailure(t, d.harness(t), m.noticed), "the case passes with the rule")
			failure := porttest.CaseFailure(t, d.without(t, m.cut).harness(t), m.noticed)
			if m.covered != "" && !sqlservertest.IsReal(d.version) {
				require.Empty(t, failure, "noticed here too: it is no longer true that %s", m.covered)
				t.Logf("not noticed on this engine: %s", m.covered)
				return
			}
			require.NotEmpty(t, failure, "nobody notices")
		})
	}
}

// A request that failed leaves no transaction open on its connection, which goes back to the pool as it is: the locks of
// one would stay until somebody happens to use that connection again. XACT_ABORT sees to it where TRY catches nothing: a
// table that vanished is such an error.
func TestAFailedRequestLeavesNothingLocked(t *testing.T) {
	d := newDatabase(t)
	require.NoError(t, leftover(t, d))
	left := leftover(t, d.without(t, []change{{"SET XACT_ABORT ON;", ""}}))
	if !sqlservertest.IsReal(d.version) {
		require.NoError(t, left, "this engine undoes every failed batch by itself")
		return
	}
	require.Error(t, left, "without XACT_ABORT nobody notices")
}

// without is the database whose writes lack some texts.
func (d *database) without(t testing.TB, cut []change) *database {
	t.Helper()
	other := *d
	other.change = func(text string) string {
		for _, c := range cut {
			require.Equal(t, 1, strings.Count(text, c.rule), "%q is in the write once", c.rule)
			text = strings.Replace(text, c.rule, c.instead, 1)
		}
		return text
	}
	return &other
}

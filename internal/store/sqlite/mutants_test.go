package sqlite_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

// Without a rule of the write its case must fail, as in internal/store/sqlserver. The count of tracking rows and the
// transaction are Go code here, so no text can be removed for them.
func TestEveryRuleOfTheWriteIsHeldByACase(t *testing.T) {
	write, _, err := sqlite.Statements()
	require.NoError(t, err)
	for _, m := range []struct{ name, statement, rule, instead, noticed string }{
		{
			"without the guard", "ledger_update",
			"(l.version_us, l.document_key) < (s.version_us, s.document_key)", "1 = 1",
			"the newer result wins: newer first, and names itself",
		},
		{
			"without the source_ts rule", "ledger_update", "AND l.source_ts <= s.source_ts", "",
			"equal version, earlier snapshot, other content: superseded by itself",
		},
		{
			"without the evidence rule", "verdict", "ELSE 'none'", "ELSE 'superseded'",
			"newer's UPDATE, the older one whole, newer's INSERT: contention, and then the newer",
		},
	} {
		t.Run(m.name, func(t *testing.T) {
			require.Empty(t, conformance.CaseFailure(t, harness(t), m.noticed), "the case passes with the rule")
			require.Equal(t, 1, strings.Count(write[m.statement], m.rule))
			h := changedHarness(t, func(s *sqlite.Store) {
				s.SetStatement(m.statement, strings.Replace(write[m.statement], m.rule, m.instead, 1))
			})
			require.NotEmpty(t, conformance.CaseFailure(t, h, m.noticed), "the case passes without the rule")
		})
	}
}

package invoice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Every validation code occurs in docs/rules.md with the kind and condition of its row, and every code there has a row.
func TestEveryValidationCode(t *testing.T) {
	type key struct {
		code      string
		condition fault.Condition
		recorded  bool
	}
	rows := map[key]bool{}
	for _, row := range invoice.Faults() {
		require.Equal(t, fault.Document, row.Kind, row.Code)
		require.NotEmpty(t, row.Source)
		rows[key{row.Code, row.Condition, row.About != "a document without an id"}] = false
	}
	for _, g := range ruleGroups() {
		for _, r := range g.rules {
			d, err := invoice.Reader{}.Read(r.document(t), rulesNow())
			recorded := err == nil
			if recorded {
				err = d.Problem
			}
			if err == nil {
				continue
			}
			e := fault.As(err)
			require.Equal(t, fault.Document, e.Kind, r.name)
			k := key{e.Code, e.Condition, recorded}
			require.Contains(t, rows, k, "%s/%s: invoice.Faults has no such row", g.id, r.name)
			rows[k] = true
		}
	}
	// Unreachable in this build: no column's path is inside another value, none holds whole numbers, and all kinds are
	// known.
	for _, code := range []string{"not_an_object", "not_whole", "kind"} {
		k := key{"validation." + code, fault.NoCondition, true}
		require.False(t, rows[k], "%s is met now", code)
		delete(rows, k)
	}
	for k, met := range rows {
		require.True(t, met, "no rule of docs/rules.md meets %v", k)
	}
}

package sqlserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// setText sets every column of a name to another value.
func setText(t testing.TB, it *commit.Item, column, text string) {
	t.Helper()
	found := false
	for i, c := range mapping.InUse().Columns() {
		if c.Name == column {
			it.Values[i], found = invoice.Of(text), true
		}
	}
	require.True(t, found, column)
}

package sqlserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// item is a plain document whose content depends on its id.
func item(id string, us int64, lines ...int64) commit.Item {
	values := make([]invoice.Value, len(invoice.Columns()))
	for i, c := range invoice.Columns() {
		values[i] = invoice.Null()
		if c.Source == invoice.FromDocument && c.Kind == invoice.Text {
			values[i] = invoice.Of(
				fmt.Sprintf("%s, %s, as long as such texts usually are", id, c.Path)[:min(c.Max, 40)])
			if c.Name == invoice.StatusColumn {
				values[i] = invoice.Of("RC-AI")
			}
		}
	}
	return commit.Item{
		DocumentID: id, Version: invoice.Version{US: us, Key: invoice.Key(id)}, SourceTS: 1,
		Hash:        invoice.Key("content" + id),
		HashVersion: invoice.HashVersion, Main: lines[0], Duplicates: lines[1:], Values: values,
	}
}

// setText sets every column of a name to another value.
func setText(t testing.TB, it *commit.Item, column, text string) {
	t.Helper()
	found := false
	for i, c := range invoice.Columns() {
		if c.Name == column {
			it.Values[i], found = invoice.Of(text), true
		}
	}
	require.True(t, found, column)
}

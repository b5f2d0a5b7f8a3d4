package invoice_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// Levels are objects and lists, the document itself counted, and no brackets in texts (docs/facts.md F45).
func TestADocumentOf64LevelsIsTooDeepForTheFeed(t *testing.T) {
	lists := func(n int) string { return `{"id":"a","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, c := range map[string]struct {
		document string
		want     bool
	}{
		"63 levels":               {lists(62), false},
		"64 levels":               {lists(63), true},
		"63 objects":              {objects(63), false},
		"64 objects":              {objects(64), true},
		"many, none deep":         {`{"x":[` + strings.Repeat(`[{}],`, 100) + `1]}`, false},
		"brackets in a text":      {`{"x":"` + strings.Repeat("[{", 100) + `"}`, false},
		"brackets behind a quote": {`{"x":"\"` + strings.Repeat("[", 100) + `\\"}`, false},
		"brackets in a name":      {`{"` + strings.Repeat("{", 100) + `":1}`, false},
		"128 levels":              {lists(127), true},
	} {
		require.Equal(t, c.want, invoice.TooDeep([]byte(c.document)), name)
	}
}

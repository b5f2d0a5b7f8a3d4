package arch_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/store/sqlserver"
)

// A file that names most rows of a table is a second list: each new row costs an edit by hand there. These are all of
// them; docs/architecture.md, "How to add ...", counts the edits. Pages for readers and produced files do not count.
func TestEachListBesideATableIsKnown(t *testing.T) {
	const table, filled = "the table", "a document that test/fill completes: no edit"
	columns, members, settings, numbers := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range invoice.DefaultMapping().Columns() {
		columns[c.Name] = true
		for _, path := range c.Paths {
			if _, member, ok := strings.Cut(path, "."); ok {
				members[member] = true
			}
		}
	}
	for _, s := range config.Settings() {
		settings[s.Name] = true
	}
	for _, r := range sqlserver.Faults() {
		if strings.Trim(r.Code, "-0123456789") == "" {
			numbers[r.Code] = true
		}
	}
	files, words := read(t).text, regexp.MustCompile(`\w+`)
	calls := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\t(\w+) += (?:reads|readsContent|acts)\(`).FindAllStringSubmatch(
		files["internal/opsapi/table.go"], -1) {
		calls[row[1]] = true
	}
	require.Len(t, calls, len(opsapi.Table()), "each row of the table is a call")
	for _, c := range []struct {
		what  string
		names map[string]bool
		known map[string]string
	}{
		{"columns", columns, map[string]string{
			"internal/invoice/mapping.json": table,
			"test/expect/mapping.go":        "the second mapping, which shares nothing with the first",
		}},
		{"members of a document", members, map[string]string{
			"internal/invoice/mapping.json": table, "test/expect/mapping.go": "as above",
			"internal/invoice/rules_test.go": filled, "test/expect/check_test.go": filled,
			"examples/02-duplicates.json": "an example: no edit",
		}},
		{"operators' calls", calls, map[string]string{"internal/opsapi/table.go": table}},
		{"settings", settings, map[string]string{"internal/config/setting.go": table}},
		{"SQL Server's numbers", numbers, map[string]string{"internal/store/sqlserver/classify.go": table}},
	} {
		found := map[string]string{}
		for file, text := range files {
			named := map[string]bool{}
			for _, word := range words.FindAllString(text, -1) {
				if c.names[word] {
					named[word] = true
				}
			}
			if !page(file) && !strings.Contains(file, "/testdata/") && len(named)*4 >= len(c.names)*3 {
				found[file] = c.known[file]
			}
		}
		require.Equal(t, c.known, found, "lists of %s", c.what)
	}
}

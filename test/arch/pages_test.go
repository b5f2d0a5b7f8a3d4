package arch_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// The table "Where is ..." of docs/architecture.md names files that exist, and names that are declared in them.
func TestTheWhereTableIsTrue(t *testing.T) {
	files := tracked(t)
	_, table, found := strings.Cut(string(files["docs/architecture.md"]), "\n## Where is ...\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	quoted, word := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`^\w+$`)
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "`") {
			continue
		}
		rows++
		var text strings.Builder
		for _, file := range quoted.FindAllStringSubmatch(cells[2], -1) {
			require.Contains(t, files, file[1], line)
			text.Write(files[file[1]])
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[3], -1) {
			pattern := regexp.QuoteMeta(name[1])
			if strings.Contains(cells[2], ".go`") && word.MatchString(name[1]) && !unicode.IsDigit(rune(name[1][0])) && !strings.Contains(cells[2], ".sql`") {
				pattern = `(?m)^(func (\([^)]*\) )?|type |const |\t)` + pattern + `\b`
			}
			require.True(t, regexp.MustCompile(pattern).MatchString(text.String()), "%s is not there: %s", name[1], line)
		}
	}
	require.Greater(t, rows, 20)
}

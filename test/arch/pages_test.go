package arch_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
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
			if strings.Contains(cells[2], ".go`") && word.MatchString(name[1]) && !unicode.IsDigit(rune(name[1][0])) &&
				!strings.Contains(cells[2], ".sql`") {
				pattern = declared(name[1])
			}
			require.True(t, regexp.MustCompile(pattern).MatchString(text.String()),
				"%s is not there: %s", name[1], line)
		}
	}
	require.Greater(t, rows, 20)
}

// The table of packages in docs/architecture.md names each package of the product once, and no other.
func TestTheTableOfPackagesIsComplete(t *testing.T) {
	files := tracked(t)
	_, table, found := strings.Cut(string(files["docs/architecture.md"]), "\n## Packages and directions\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				named = append(named, name[1])
			}
		}
	}
	there := map[string]bool{}
	for file := range files {
		if regexp.MustCompile(`^(cmd|handlers|internal)/`).MatchString(file) && strings.HasSuffix(file, ".go") &&
			product(file) {
			there[path.Dir(file)] = true
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(there)), named)
}

// declared is the pattern of a declaration of the name.
func declared(name string) string {
	return `(?m)^(func (\([^)]*\) )?|type |const |\t)` + name + `\b`
}

// "How to add ..." names files that exist, and names that are declared in the file beside them.
func TestTheStepsToAddSomethingAreTrue(t *testing.T) {
	files := tracked(t)
	_, steps, found := strings.Cut(string(files["docs/architecture.md"]), "\n## How to add ...\n")
	require.True(t, found)
	for _, file := range regexp.MustCompile(
		"`([a-z][a-z0-9_/]+/[a-z0-9_]+\\.[a-z]+)`").FindAllStringSubmatch(steps, -1) {
		require.Contains(t, files, file[1])
	}
	named := 0
	check := func(file, names string) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(names, -1) {
			named++
			require.Regexp(t, declared(name[1]), string(files[file]), "%s is not in %s", name[1], file)
		}
	}
	for _, m := range regexp.MustCompile("`([^`]+\\.go)` \\(((?:`\\w+`(?:, )?)+)\\)").FindAllStringSubmatch(steps, -1) {
		check(m[1], m[2])
	}
	for _, m := range regexp.MustCompile(
		"(`\\w+`) (?:in|of|\\()\\s?`([^`]+/[^`]+\\.go)`").FindAllStringSubmatch(steps, -1) {
		check(m[2], m[1])
	}
	require.Greater(t, named, 6)
}

// Each test that a page names is there, so that docs/requirements.md says what holds a rule. Suites are exported
// functions.
func TestTheTestsThatPagesNameAreThere(t *testing.T) {
	there, named := map[string]bool{}, regexp.MustCompile(`\bTest[A-Z]\w+`)
	files := tracked(t)
	for name, content := range files {
		if strings.HasSuffix(name, ".go") {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(content), -1) {
				there[m[1]] = true
			}
		}
	}
	require.Greater(t, len(there), 1000)
	for name, content := range files {
		if strings.HasSuffix(name, ".md") {
			for _, test := range named.FindAllString(string(content), -1) {
				require.True(t, there[test], "%s names %s, which is not there", name, test)
			}
		}
	}
}

package arch_test

import (
	"path"
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

// Every link of a page to the repository leads to a file, and to a heading of it.
func TestLinksOfThePagesResolve(t *testing.T) {
	files := tracked(t)
	link, heading := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`(?m)^#+ (.+)$`)
	for page, content := range files {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		for _, m := range link.FindAllSubmatch(content, -1) {
			target, anchor, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			require.True(t, isThere(files, file), "%s links to %s, which is not there", page, m[1])
			if anchor == "" {
				continue
			}
			var anchors []string
			for _, h := range heading.FindAllSubmatch(files[file], -1) {
				anchors = append(anchors, anchorOf(string(h[1])))
			}
			require.Contains(t, anchors, anchor, "%s links to %s", page, m[1])
		}
	}
}

// isThere reports whether a path is a file or a folder of the repository.
func isThere(files map[string][]byte, name string) bool {
	if _, ok := files[name]; ok {
		return true
	}
	for file := range files {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

// anchorOf is what GitHub makes of a heading.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

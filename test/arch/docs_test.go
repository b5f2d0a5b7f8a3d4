package arch_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// tracked lists the repository's files with their contents; without git it is every file but what git would ignore.
func tracked(t *testing.T) map[string][]byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git lists the files of a checkout, and this is not one: %v", err)
	}
	files := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if content, err := os.ReadFile(filepath.Join(root, name)); err == nil { // deleted and not yet committed
			files[name] = content
		}
	}
	return files
}

// repository is the checkout: its text files, and every file and folder by its path.
type repository struct {
	text  map[string]string
	paths map[string]bool
}

func read(t *testing.T) repository {
	t.Helper()
	r := repository{map[string]string{}, map[string]bool{}}
	for name, content := range tracked(t) {
		for p := name; p != "."; p = path.Dir(p) {
			r.paths[p] = true
		}
		if !bytes.ContainsRune(content, 0) && path.Base(name) != "package-lock.json" {
			r.text[name] = string(content)
		}
	}
	return r
}

// matches reports whether a file or folder has this path, or a path that ends so; * and NAME stand for any characters
// but a slash.
func (r repository) matches(pattern string) bool {
	pattern = strings.ReplaceAll(pattern, "NAME", "*")
	depth := strings.Count(pattern, "/") + 1
	for p := range r.paths {
		parts := strings.Split(p, "/")
		if ok, err := path.Match(pattern, strings.Join(parts[max(0, len(parts)-depth):], "/")); ok && err == nil {
			return true
		}
	}
	return false
}

// broken lists every match of the pattern, in files that belong says, that resolves does not find. It is given the file
// and the first group of the pattern. There must be some matches, or the pattern is wrong.
func (r repository) broken(
	t *testing.T, pattern string, belongs func(file string) bool, resolves func(file, found string) bool,
) {
	t.Helper()
	expression, met := regexp.MustCompile(pattern), 0
	var wrong []string
	for _, file := range slices.Sorted(maps.Keys(r.text)) {
		if !belongs(file) {
			continue
		}
		for _, m := range expression.FindAllStringSubmatch(r.text[file], -1) {
			if met++; !resolves(file, m[1]) {
				wrong = append(wrong, fmt.Sprintf("%s: %s", file, m[1]))
			}
		}
	}
	assert.Empty(t, wrong)
	assert.NotZero(t, met, "nothing matches %s", pattern)
}

func anywhere(string) bool { return true }

func page(file string) bool { return strings.HasSuffix(file, ".md") }

// product says that a file is not a test and not its data: those name files that are made up, or another project's.
func product(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/testdata/")
}

// anchors are the names by which a page's headings are linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(
			regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

func TestEveryLinkOfAPageResolves(t *testing.T) {
	r := read(t)
	r.broken(t, `\]\(([^)\s]+)\)`, page, func(file, link string) bool {
		if strings.Contains(link, "://") {
			return true
		}
		target, anchor, _ := strings.Cut(link, "#")
		if target = path.Join(path.Dir(file), target); strings.HasPrefix(link, "#") {
			target = file
		}
		return r.paths[target] && (anchor == "" || anchors(r.text[target])[anchor])
	})
}

// Alerts, attention and explain name a section of the runbook: each name is one section's.
func TestEachSectionOfTheRunbookHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, heading := range headings(read(t).text["docs/runbook.md"]) {
		require.False(t, seen[heading], "two sections are called %s", heading)
		seen[heading] = true
	}
	require.NotEmpty(t, seen)
}

// Paths, names of pages and decisions, and make's targets, in code, SQL and pages.
func TestEveryReferenceResolves(t *testing.T) {
	r := read(t)
	t.Run("path", func(t *testing.T) {
		const top = `(?:^|[^\w/.:$}{%-])((?:cmd|deploy|docs|examples|functions|handlers|internal|test)/[\w./*-]*[\w*])`
		wildcard := regexp.MustCompile(`\*|NAME`)
		r.broken(t, top, product, func(_, p string) bool {
			return strings.Contains(p, "node_modules") || r.paths[strings.TrimSuffix(p, "/...")] ||
				wildcard.MatchString(p) && r.matches(p)
		})
	})
	t.Run("file in backticks", func(t *testing.T) {
		others := []string{
			"mapping.json", "message.json", // the reader's own
			"original.json", "error.json", "metadata.json", // blobs (ADR 0021)
			"mssql.go", "error.go", "token.go", // go-mssqldb's
		}
		r.broken(t, "`([\\w./*-]+\\.(?:go|sql|mjs|json|yaml|py|tmpl))`", page, func(_, p string) bool {
			return slices.Contains(others, p) || r.matches(p)
		})
	})
	t.Run("page", func(t *testing.T) {
		const foreign = "COSMOS.md" // of xo/dbimp, which is named beside it
		r.broken(t, `([\w./-]*[\w-]\.md)\b`, anywhere, func(_, p string) bool {
			p = strings.TrimLeft(p, "./")
			return p == foreign || r.matches(p) || r.matches(p+".tmpl")
		})
	})
	t.Run("decision", func(t *testing.T) {
		r.broken(t, `ADR (\d+)`, anywhere, func(_, number string) bool {
			return len(number) == 4 && r.matches("docs/adr/"+number+"-*.md")
		})
	})
	t.Run("make", func(t *testing.T) {
		r.broken(t, "(?m)(?:`|^)make ([a-z0-9]+)", anywhere, func(_, target string) bool {
			return regexp.MustCompile(`(?m)^` + target + `:`).MatchString(r.text["Makefile"])
		})
	})
}

// Requirements and facts are cited by number; each number stands once, and none is left out.
func TestEveryRuleAndFactThatIsCitedIsThere(t *testing.T) {
	r := read(t)
	lineEnd := regexp.MustCompile(`\s*\n\s*(?://|--|#|\*)?\s*`)
	for file, text := range r.text {
		r.text[file] = lineEnd.ReplaceAllString(text, " ")
	}
	for file, letter := range map[string]string{"docs/requirements.md": "R", "docs/facts.md": "F"} {
		there, last := map[string]bool{}, 0
		for _, m := range regexp.MustCompile(`- \*\*`+letter+`(\d+)\*\*`).FindAllStringSubmatch(r.text[file], -1) {
			number, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			require.Greater(t, number, last, "%s: numbers ascend, and none is used twice", file)
			last, there[letter+m[1]] = number, true
		}
		list := regexp.MustCompile(letter + `\d+`)
		r.broken(t, regexp.QuoteMeta(file)+`((?:,? (?:and |to )?`+letter+`\d+)+)`, anywhere,
			func(_, cited string) bool {
				return !slices.ContainsFunc(list.FindAllString(cited, -1), func(one string) bool { return !there[one] })
			})
		r.broken(t, `\b(`+letter+`\d+)\b`, func(f string) bool { return f == file }, func(_, cited string) bool {
			return there[cited]
		})
	}
}

// A word in capitals that occurs only in a page is a placeholder that was not filled in.
func TestNoPageHasAPlaceholder(t *testing.T) {
	r := read(t)
	const name = `\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`
	known := map[string]bool{
		// SQL Server's
		"ANSI_WARNINGS": true, "MAX_GRANT_PERCENT": true, "READ_COMMITTED_SNAPSHOT": true, "RESOURCE_SEMAPHORE": true,
		// the original's
		"CIRCUIT_BREAKER_THRESHOLD": true, "CIRCUIT_BREAKER_TIMEOUT": true, "MAX_RETRIES": true,
		"INITIAL_BACKOFF": true, "MAX_BACKOFF": true,
		// the host's, an SDK's, the network's
		"FUNCTIONS_EXTENSION_VERSION": true, "APPLICATIONINSIGHTS_CONNECTION_STRING": true,
		"AZURE_SDK_GO_LOGGING": true, "TCP_NODELAY": true,
	}
	for file, text := range r.text {
		if page(file) || file == "test/arch/docs_test.go" {
			continue
		}
		for _, word := range regexp.MustCompile(name).FindAllString(text, -1) {
			known[word] = true
		}
	}
	r.broken(t, name, page, func(_, word string) bool { return known[word] })
	for file, text := range r.text {
		if page(file) {
			require.NotRegexp(t, `\b(TODO|TBD|FIXME|XXX)\b`, text, file)
		}
	}
}

// Nothing cites a document that is not in the repository. TestEveryReferenceResolves checks the names of pages.
func TestNothingCitesADocumentThatIsNotHere(t *testing.T) {
	private := regexp.MustCompile(`azure` + `-facts|local` + `-stack\b|requirements/` + `0\d|\b[Ww]ork ` +
		`order\b|\brecorded` + `/|// [Ii]ssue \d`)
	for file, text := range read(t).text {
		assert.Empty(t, private.FindAllString(text, -1), file)
	}
}

func TestEveryDecisionHasItsParts(t *testing.T) {
	r := read(t)
	for file, text := range r.text {
		if path.Dir(file) != "docs/adr" || path.Base(file) == "README.md" {
			continue
		}
		title, rest, _ := strings.Cut(text, "\n")
		number := path.Base(file)[:4]
		require.Regexp(t, `^# `+number+` `, title, file)
		require.Regexp(t,
			`(?s)^\n- Date: \d{4}-\d\d-\d\d\n.*\*\*Context\.\*\*.*\*\*Decision\.\*\*.*\*\*Rejected options\.\*\*.*\*\*Consequences\.\*\*`, rest, file)
		require.LessOrEqual(t, strings.Count(text, "\n"), 45, "%s: one screen", file)
		require.Contains(t, r.text["docs/adr/README.md"],
			fmt.Sprintf("- [%s %s](%s)\n", number, title[7:], path.Base(file)), "the index")
	}
}

// Every test that a page names exists: the pages say which test shows which promise.
func TestThePagesNameTestsThatExist(t *testing.T) {
	name, declared := regexp.MustCompile(`\bTest[A-Z]\w+`), regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	exists := map[string]bool{}
	files := tracked(t)
	for file, content := range files {
		if strings.HasSuffix(file, ".go") {
			for _, m := range declared.FindAllSubmatch(content, -1) {
				exists[string(m[1])] = true
			}
		}
	}
	named := 0
	for file, content := range files {
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		for _, m := range name.FindAll(content, -1) {
			named++
			require.True(t, exists[string(m)], "%s names %s, which is not a test", file, m)
		}
	}
	require.Greater(t, named, 10)
}

// Nothing in the repository names the machine that it was written on.
func TestNoFileNamesThisMachine(t *testing.T) {
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for file, content := range tracked(t) {
		for _, path := range []string{here + "/", home + "/"} {
			require.False(t, bytes.Contains(content, []byte(path)), "%s names %s", file, path)
		}
	}
}

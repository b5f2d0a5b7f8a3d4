package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/reconcile"
)

// grammar is the tool's grammar.
func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{}, environment{stdout: io.Discard, stderr: io.Discard}, func(int) {})
	require.NoError(t, err)
	return parser
}

const root = "../.."

// cited finds commands of the tool: the rest of a line, or of a text in backticks or quotes, behind its name.
var cited = regexp.MustCompile("(?:^|[\\s`\"'(/])sqlwriterctl(?: +([^`\n]*))?")

// Every command that a page or a text of the product names is one that the tool has, with the flags that are named.
func TestEveryCitedCommandIsThere(t *testing.T) {
	found := 0
	for _, path := range sources(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
			words := shellWords(m[1])
			if len(words) == 0 ||
				!slices.ContainsFunc(grammar(t).Model.Children, func(n *kong.Node) bool {
					return n.Name == words[0]
				}) && !old(words[0]) {
				continue // prose, or a flag before the command
			}
			found++
			if err := parses(t, words); err != nil {
				t.Errorf("%s: sqlwriterctl %s: %v", strings.TrimPrefix(path, root+"/"), strings.Join(words, " "), err)
			}
		}
	}
	require.Greater(t, found, 60)
}

// old are the commands that a page of an earlier day may name.
func old(word string) bool {
	return slices.Contains(
		[]string{"why", "show", "submit", "pause", "resume", "audits", "columns", "mark-committed"}, word)
}

// sources are the pages, and the product's own texts.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root &&
				(strings.HasPrefix(d.Name(), ".") ||
					slices.Contains([]string{"node_modules", "testdata", "bin"}, d.Name())) {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, "_test.go"), d.Name() == "help.go": // the examples have a test of their own
		case slices.Contains([]string{".md", ".go", ".sql", ".tmpl", ".yaml"}, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

// shellWords divides a command line as a shell does, as far as pages need it. It ends at a comment, a pipe or a
// redirection.
func shellWords(line string) (words []string) {
	word, quote, open := "", rune(0), false
	end := func() {
		if open {
			words = append(words, strings.TrimRight(word, ".,;:)")) // in a sentence
		}
		word, open = "", false
	}
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '"' || r == '\'':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case !open && strings.ContainsRune("#|>&;<(", r):
			return words
		default:
			word, open = word+string(r), true
		}
	}
	return words
}

// parses reports whether the tool understands the words. What is missing may be missing in a sentence: an id, a value.
func parses(t *testing.T, words []string) error {
	t.Helper()
	if i := slices.IndexFunc(words, func(w string) bool {
		return strings.Contains(w, "|") || strings.Contains(w, `\`) || strings.Contains(w, "%")
	}); i >= 0 {
		words = words[:i] // alternatives, or a value that is put in
	}
	parser := grammar(t)
	_, err := parser.Parse(words)
	var parse *kong.ParseError
	if err == nil || !errors.As(err, &parse) {
		return err
	}
	for _, fine := range []string{
		"expected \"", "expected one of", "missing ", "expected string value", "expected a valid", "must be one of",
	} {
		if strings.Contains(err.Error(), fine) {
			return nil
		}
	}
	if strings.Contains(err.Error(), "unexpected argument") && leads(parser.Model.Node, words) {
		return nil // a sentence goes on
	}
	return err
}

// leads reports whether words begin with a command, and what follows is no flag and no command-like word.
func leads(node *kong.Node, words []string) bool {
	for len(words) > 0 && !node.Leaf() {
		if node = child(node, words[0]); node == nil {
			return false
		}
		words = words[1:]
	}
	return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
}

func TestEveryExampleParses(t *testing.T) {
	for path, lines := range examples() {
		for _, line := range lines {
			m := cited.FindStringSubmatch(line)
			require.NotNil(t, m, line)
			words := shellWords(m[1])
			_, err := grammar(t).Parse(words)
			require.NoError(t, err, line)
			require.True(t, strings.HasPrefix(strings.Join(words, " "), path), line)
		}
	}
}

// The page that explain names for each code exists, and so do the pages in its source.
func TestExplainCitesWhatIsThere(t *testing.T) {
	headings := map[string][]string{}
	anchors := func(path string) []string {
		if _, ok := headings[path]; !ok {
			text, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err, path)
			for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
				name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
				headings[path] = append(headings[path], strings.ReplaceAll(name, " ", "-"))
			}
		}
		return headings[path]
	}
	entries := codes().All()
	for _, c := range condition.Table() {
		found, _ := codes().Look(c.Code)
		entries = append(entries, found...)
	}
	for _, m := range reconcile.Meanings() {
		found, _ := codes().Look(string(m.Class))
		entries = append(entries, found...)
	}
	for _, e := range entries {
		require.NotEmpty(t, e.Reason, e.Code)
		require.NotEmpty(t, e.Do, e.Code)
		path, anchor, _ := strings.Cut(e.Page, "#")
		require.Contains(t, anchors(path), anchor, e.Code)
		for _, word := range regexp.MustCompile(`(docs|internal|cmd|deploy)/[\w./-]*\w`).FindAllString(e.Source+" "+
			e.Reason+" "+e.Next+" "+e.Do, -1) {
			require.FileExists(t, filepath.Join(root, word), e.Code)
		}
		for _, m := range regexp.MustCompile(`ADR (\d{4})`).FindAllStringSubmatch(e.Source, -1) {
			found, err := filepath.Glob(filepath.Join(root, "docs/adr", m[1]+"-*.md"))
			require.NoError(t, err)
			require.Len(t, found, 1, e.Source)
		}
	}
}

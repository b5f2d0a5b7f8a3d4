package sqlserver_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder.
const root = "../../.."

// statement matches the first word of a statement. Texts of errors, rights and parts of scripts do not match.
var statement = regexp.MustCompile(
	`^(ALTER|BEGIN|CREATE|DECLARE|DELETE|DROP|EXEC|GRANT|IF|INSERT|MERGE|SELECT|SET|TRUNCATE|UPDATE|WITH)\s`)

// place is a verb of package fmt.
var place = regexp.MustCompile(`%(\[\d+\])?[dqsv]\b`)

// The T-SQL lint reads files, so this test writes the statements of the Go code to one.
func TestStatementsInCodeGolden(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	var parsed []*ast.File
	constants := map[string]string{}
	for _, f := range files {
		p, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, p)
		addConstants(constants, p)
	}
	var b strings.Builder
	for i, f := range files {
		for _, d := range parsed[i].Decls {
			for _, text := range statementsOf(d, constants) {
				where := f + ", " + nameOf(d)
				require.NotRegexp(t, place, text,
					"%s: a statement with places to fill belongs in a template that has a golden", where)
				b.WriteString("-- " + where + "\n" + strings.TrimSuffix(strings.TrimSpace(text), ";") + ";\nGO\n")
			}
		}
	}
	golden(t, "other.sql", b.String())
}

// addConstants adds the texts of a file's constants in their order.
func addConstants(to map[string]string, f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, e := range v.Values {
				if text, ok := textOf(e, to); ok {
					to[v.Names[i].Name] = text
				}
			}
		}
	}
}

// nameOf is the name of a function, or the first name of a declaration.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}

// statementsOf returns the constant part of each statement of a declaration, in their order.
func statementsOf(d ast.Decl, constants map[string]string) (found []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if _, name := e.(*ast.Ident); name { // its declaration has the text
			return false
		}
		text, ok := textOf(e, constants)
		if ok && statement.MatchString(text) {
			found = append(found, text)
		}
		return !ok
	})
	return found
}

// textOf is the text of a constant expression.
func textOf(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.Ident:
		text, ok := constants[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := textOf(e.X, constants)
		if !ok || e.Op != token.ADD {
			return "", false
		}
		right, ok := textOf(e.Y, constants)
		return left + right, ok
	}
	return "", false
}

// unlinted has the folders whose .sql files are not linted, with the reason.
var unlinted = map[string]string{
	"internal/store/sqlite": "another dialect, and SQLite runs each of them in every make test",
	"test/bench":            "what others write, for comparison: never sent to a user's database",
}

// Every .sql file is linted directly, or as the golden of its template.
func TestEveryStatementIsLinted(t *testing.T) {
	linted := lintedFolders(t)
	goldens := linesOf(t, "testdata/*.sql")
	var templates int
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && path != root
			if hidden || unlinted[name] != "" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".sql" {
			return nil
		}
		for folder := range linted {
			if strings.HasPrefix(name, folder+"/") {
				linted[folder]++
				return nil
			}
		}
		templates++
		for line := range linesOf(t, path) {
			if !strings.Contains(line, "{{") {
				require.True(t, goldens[line],
					"%s is neither in a folder that make sqllint reads nor in a golden: %s", name, line)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, templates)
	for folder, files := range linted {
		require.NotZero(t, files, "make sqllint reads %s, where no .sql file is", folder)
	}
}

// lintedFolders are the folders that the Makefile passes to sqlfluff.
func lintedFolders(t *testing.T) map[string]int {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^TSQL := (.+)$`).FindSubmatch(makefile)
	require.NotNil(t, list, "the Makefile has no list TSQL")
	folders := map[string]int{}
	for _, f := range strings.Fields(string(list[1])) {
		folders[f] = 0
	}
	return folders
}

// linesOf are the trimmed lines of files.
func linesOf(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	lines := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	return lines
}

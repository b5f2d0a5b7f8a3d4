package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

// A new kind of run is a row of a table: no other file of the product may know a kind by its name.
func TestOnlyTheTableOfKindsNamesAKind(t *testing.T) {
	const root, table = "../..", "internal/run/kinds.go"
	var constants, words []string
	for _, k := range run.Kinds() {
		word := string(k.Kind)
		constants, words = append(constants, strings.ToUpper(word[:1])+word[1:]), append(words, word)
	}
	read := 0
	for _, dir := range []string{"internal", "handlers", "cmd/sqlwriterctl", "cmd/handler"} {
		require.NoError(t,
			filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
					return err
				}
				name, err := filepath.Rel(root, path)
				require.NoError(t, err)
				if filepath.ToSlash(name) == table {
					return nil
				}
				read++
				files := token.NewFileSet()
				file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
				require.NoError(t, err)
				inRun := file.Name.Name == "run"
				ast.Inspect(file, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "run" {
							require.NotContains(t, constants, n.Sel.Name, "%s: only %s may name a kind",
								files.Position(n.Pos()), table)
						}
					case *ast.Ident:
						require.False(t, inRun && slices.Contains(constants, n.Name), "%s: only %s may name a kind",
							files.Position(n.Pos()), table)
					case *ast.BasicLit:
						if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
							require.NotContains(t, words, text, "%s: only %s may name a kind",
								files.Position(n.Pos()), table)
						}
					}
					return true
				})
				return nil
			}))
	}
	require.Greater(t, read, 100)
}

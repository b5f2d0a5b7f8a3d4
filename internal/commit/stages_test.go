package commit

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// way is a batch's way through this package: the files in their order, each with its stage.
func way() [][2]string {
	return [][2]string{
		{"parse.go", "parser"},
		{"select.go", "selector"},
		{"refresh.go", "refresher"},
		{"version.go", "versioner"},
		{"write.go", "writer"},
		{"judge.go", "judge"},
		{"poison.go", "poisoner"},
		{"record.go", "recorder"},
	}
}

// A batch passes each file once: commit.go alone calls the stages, in their order, and no stage uses another one's
// functions or methods.
func TestABatchPassesEachStageOnce(t *testing.T) {
	set := token.NewFileSet()
	methods := map[string]string{} // the file of each function of a stage
	files := map[string]*ast.File{}
	for _, stage := range way() {
		name := stage[0]
		file, err := goparser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		files[name] = file
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				key := f.Name.Name
				if f.Recv != nil {
					key = receiver(f) + "." + key
				}
				methods[key] = name
			}
		}
	}
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok {
				if in, there := methods[id.Name]; there {
					require.Equal(t, name, in, "%s calls %s", name, id.Name)
				}
			}
			return true
		})
		for _, stage := range way() {
			if stage[0] != name {
				require.NotContains(t, fieldsOf(file), stage[1], "a stage of %s holds another one", name)
			}
		}
	}

	conductor, err := os.ReadFile("commit.go")
	require.NoError(t, err)
	at := -1
	for _, call := range []string{
		`s\.parser\.parse\(`, `s\.selector\.choose\(`, `s\.refresh\.refresh\(`, `s\.version\.version\(`,
		`write\(ctx, works\)`, `s\.judge\.judge\b`, `s\.poison\.poison\b`, `s\.record\.record\b`,
	} {
		found := regexp.MustCompile(call).FindAllIndex(conductor, -1)
		require.Len(t, found, 1, "commit.go calls the stage once: %s", call)
		require.Less(t, at, found[0][0], "the stages are called in their order: %s", call)
		at = found[0][0]
	}
}

func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	return kind.(*ast.Ident).Name
}

// fieldsOf lists the types of the fields of a file's structs.
func fieldsOf(file *ast.File) (types []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				if id, ok := f.Type.(*ast.Ident); ok {
					types = append(types, strings.TrimPrefix(id.Name, "*"))
				} else if star, ok := f.Type.(*ast.StarExpr); ok {
					if id, ok := star.X.(*ast.Ident); ok {
						types = append(types, id.Name)
					}
				}
			}
		}
		return true
	})
	return types
}

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/events"
)

// Each log line of the handler is an event of the table: nothing else ends a line of zerolog or prints, every event is
// written somewhere, and a line has no other fields than the table lists for it.
func TestTheTableOfEventsHasEveryLogLine(t *testing.T) {
	const root, own = "../..", "internal/events"
	rows, fields := map[string]events.Row{}, map[string]string{}
	constants := eventConstants(t, filepath.Join(root, own, "table.go"))
	for _, r := range events.Table() {
		rows[constants[string(r.Name)]] = r
	}
	require.Len(t, rows, len(events.Table()))
	for f := range reflect.TypeFor[events.Fields]().Fields() {
		fields[f.Name] = f.Tag.Get("log")
	}
	written := map[string]bool{"Panic": true} // by events.Log.Panic
	for _, dir := range []string{"internal", "handlers", "cmd/handler"} {
		require.NoError(t,
			filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
					filepath.Dir(path) == filepath.Join(root, own) {
					return err
				}
				files := token.NewFileSet()
				file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
				require.NoError(t, err)
				ast.Inspect(file, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						if name, of := selected(n); of == "events" && rows[name].Name != "" {
							written[name] = true
						}
					case *ast.CallExpr:
						require.False(t, bypasses(n), "%s: only package events writes lines", files.Position(n.Pos()))
						event, members := eventOf(n)
						for _, m := range members {
							require.Contains(t,
								append(rows[event].Fields, "run", "batch", "function", "invocation", "condition"),
								fields[m], "%s: the table does not list it for %s", files.Position(n.Pos()), event)
						}
					}
					return true
				})
				return nil
			}))
	}
	for name := range rows {
		require.True(t, written[name], "nothing writes %s", name)
	}
}

func selected(e ast.Expr) (name, of string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return s.Sel.Name, x.Name
		}
		return s.Sel.Name, ""
	}
	return "", ""
}

// bypasses reports whether a call ends a line of zerolog, or prints to a standard stream.
func bypasses(call *ast.CallExpr) bool {
	name, of := selected(call.Fun)
	switch {
	case slices.Contains([]string{"Msg", "Msgf", "MsgFunc"}, name), name == "Send" && len(call.Args) == 0:
		return true
	case of == "fmt" && strings.HasPrefix(name, "Print"):
		return true
	}
	return slices.ContainsFunc(call.Args, func(a ast.Expr) bool {
		stream, of := selected(a)
		return of == "os" && strings.HasPrefix(stream, "Std") && name != "Main"
	})
}

// eventOf gives the event of a call of Write, and the members of Fields that it names.
func eventOf(call *ast.CallExpr) (event string, members []string) {
	if name, _ := selected(call.Fun); name != "Write" || len(call.Args) != 2 {
		return "", nil
	}
	event, of := selected(call.Args[0])
	if of != "events" {
		return "", nil
	}
	ast.Inspect(call.Args[1], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name, of := selected(n.Type); of == "events" && name == "Fields" {
				for _, e := range n.Elts {
					members = append(members, e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name)
				}
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "Of" {
				members = append(members, "Kind", "Code", "Reason")
			}
		}
		return true
	})
	return event, members
}

// eventConstants are the names of the constants of type Name by their values.
func eventConstants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if value, ok := v.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				found[strings.Trim(value.Value, `"`)] = v.Names[0].Name
			}
		}
		return true
	})
	return found
}

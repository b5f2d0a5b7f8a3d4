package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
)

// given is the code of an error in the source.
type given struct {
	adapter, code, place string
	// kind is empty if the source does not name it at this place.
	kind fault.Kind
}

// Every named code in the source has a row with its kind, and every row with a name is used in the source. So `explain`
// knows every code that an operator reads in a log or a document.
func TestEveryCodeInTheSourceIsExplained(t *testing.T) {
	codes, texts := codesInSource(t)
	require.Greater(t, len(codes), 60)
	rows := map[string][]fault.Kind{}
	for _, r := range open.Faults() {
		rows[r.Adapter+" "+r.Code] = append(rows[r.Adapter+" "+r.Code], r.Kind)
	}
	for _, c := range codes {
		adapters := []string{c.adapter}
		switch {
		case c.code == fault.CodeBug:
			adapters = []string{"writer"} // one row for all
		case c.adapter == engines && !slices.Contains(rows["writer "+c.code], c.kind):
			adapters = []string{"sqlserver", "sqlite"}
		case c.adapter == engines:
			adapters = []string{"writer"}
		}
		for _, adapter := range adapters {
			kinds, ok := rows[adapter+" "+c.code]
			if !ok {
				t.Errorf("%s gives the code %q: add a row to Faults() of %s", c.place, c.code, adapter)
			} else if c.kind != "" && !slices.Contains(kinds, c.kind) {
				t.Errorf("%s gives %q the kind %s, its row in Faults() of %s says %v", c.place, c.code,
					c.kind, adapter, kinds)
			}
		}
	}
	for _, r := range open.Faults() {
		word := strings.TrimPrefix(r.Code, "validation.")
		if fault.IsNumber(word) || strings.ContainsAny(word, "/- ") {
			continue // given by a number
		}
		shared := texts[r.Adapter] + texts["writer"] + texts[engines]
		somewhere := strings.Contains(shared, strconv.Quote(word)) || strings.Contains(shared, strconv.Quote(r.Code))
		require.True(t, somewhere, "%s: nothing gives the code %q any more", r.Adapter, r.Code)
	}
}

// codesInSource reads the product's source: the codes, and its text by adapter without the tables of rows.
func codesInSource(t *testing.T) (codes []given, texts map[string]string) {
	t.Helper()
	texts = map[string]string{}
	constants := map[string]string{} // "package.name"
	type source struct {
		path string
		file *ast.File
	}
	var sources []source
	set := token.NewFileSet()
	for _, root := range []string{"../../internal", "../../handlers"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || d.Name() == "faults.go" {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			texts[adapterOf(path)] += string(text)
			sources = append(sources, source{path, file})
			for _, d := range file.Decls {
				collectConstants(d, file.Name.Name, constants)
			}
			return nil
		}))
	}
	for _, s := range sources {
		for _, d := range s.file.Decls {
			local := map[string]string{}
			ast.Inspect(d, func(n ast.Node) bool {
				if g, ok := n.(*ast.GenDecl); ok {
					collectConstants(g, "", local)
				}
				return true
			})
			r := resolver{s.file.Name.Name, local, constants}
			ast.Inspect(d, func(n ast.Node) bool {
				if code, kind, ok := r.codeOf(n); ok {
					codes = append(codes, given{adapterOf(s.path), code, set.Position(n.Pos()).String(), kind})
				}
				return true
			})
		}
	}
	return codes, texts
}

// engines is the code that both databases share: its errors are explained by writer's row, or by a row of each.
const engines = "engines"

// adapterOf returns the adapter that a file belongs to.
func adapterOf(path string) string {
	for _, adapter := range []string{"sqlserver", "sqlite", "cosmos", "blob", "servicebus"} {
		if strings.Contains(filepath.ToSlash(path), "/"+adapter+"/") {
			return adapter
		}
	}
	switch {
	case strings.Contains(filepath.ToSlash(path), "/internal/run/"):
		return "run"
	case strings.Contains(filepath.ToSlash(path), "/internal/store/"):
		return engines
	}
	return "writer"
}

// collectConstants collects the text constants of a declaration by name, with the package's name if there is one.
func collectConstants(d ast.Decl, pkg string, into map[string]string) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return
	}
	for _, spec := range g.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range values.Names {
			if i < len(values.Values) {
				if text, ok := literal(values.Values[i]); ok {
					into[strings.TrimPrefix(pkg+"."+name.Name, ".")] = text
				}
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// resolver resolves the constants that a function can use.
type resolver struct {
	pkg              string
	local, constants map[string]string
}

// text returns the text of an expression that is a literal or a constant.
func (r resolver) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return literal(e)
	case *ast.Ident:
		if text, ok := r.local[e.Name]; ok {
			return text, true
		}
		text, ok := r.constants[r.pkg+"."+e.Name]
		return text, ok
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			text, ok := r.constants[pkg.Name+"."+e.Sel.Name]
			return text, ok
		}
	}
	return "", false
}

// codeOf finds the code and kind of an error that a call or a literal creates.
func (r resolver) codeOf(n ast.Node) (code string, kind fault.Kind, ok bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch called(n.Fun) {
		case "fault.New", "fault.Wrap":
			code, ok = r.text(n.Args[2])
			return code, kindOf(n.Args[0]), ok
		case "refused", "unrecordable":
			if r.pkg == "invoice" {
				code, ok = r.text(n.Args[0])
				return "validation." + code, fault.Document, ok
			}
		}
	case *ast.CompositeLit:
		switch name := called(n.Type); {
		case name == "fault.Error", name == "errorDetail", name == "FieldError", name == "Error" && r.pkg == "fault":
			for _, element := range n.Elts {
				pair, isPair := element.(*ast.KeyValueExpr)
				if !isPair {
					continue
				}
				switch called(pair.Key) {
				case "Code":
					code, ok = r.text(pair.Value)
				case "Kind":
					kind = kindOf(pair.Value)
				}
			}
			if name == "FieldError" {
				code = "validation." + code
			}
		}
	}
	return code, kind, ok && code != "validation"
}

// called returns the name of a function or type, with its package.
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return pkg.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// kindOf returns the kind that an expression names; empty if it names none.
func kindOf(e ast.Expr) fault.Kind {
	for _, r := range fault.Rules() {
		name := strings.ToUpper(string(r.Kind[:1])) + string(r.Kind[1:])
		if called(e) == "fault."+name || called(e) == name {
			return r.Kind
		}
	}
	return ""
}

package opsapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

var update = flag.Bool("update", false, "rewrite openapi.json and the table of docs/api.md")

type object = map[string]any

// describer makes the description of the table. Texts are the comments of the source.
type describer struct {
	t        testing.TB
	schemas  object
	comments map[string]string // by "package.Type" and "package.Type.Field"
	parsed   map[string]bool
}

// load reads the comments of a package's types.
func (d *describer) load(pkg string) {
	if d.parsed[pkg] || !strings.HasPrefix(pkg, "sqlwriter/internal/") {
		return
	}
	d.parsed[pkg] = true
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(pkg, "sqlwriter/internal/"), "*.go"))
	require.NoError(d.t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(d.t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if general, ok := n.(*ast.GenDecl); ok && len(general.Specs) == 1 {
				if spec, ok := general.Specs[0].(*ast.TypeSpec); ok && spec.Doc == nil {
					spec.Doc = general.Doc
				}
			}
			if spec, ok := n.(*ast.TypeSpec); ok {
				name := parsed.Name.Name + "." + spec.Name.Name
				d.comments[name] = textOf(spec.Doc)
				if structure, ok := spec.Type.(*ast.StructType); ok {
					d.fields(name, structure)
				}
			}
			return true
		})
	}
}

// fields keeps the comment of each field; one comment may describe the fields that follow it and that it names.
func (d *describer) fields(of string, structure *ast.StructType) {
	last := ""
	for _, f := range structure.Fields.List {
		if f.Doc != nil {
			last = textOf(f.Doc)
		}
		for _, name := range f.Names {
			if f.Doc != nil || regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(last) {
				d.comments[of+"."+name.Name] = last
			}
		}
	}
}

func textOf(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

// comment is the text of a member: that of its field, in the struct that has it.
func (d *describer) comment(t reflect.Type, index []int) string {
	for _, i := range index[:len(index)-1] {
		t = t.Field(i).Type
	}
	d.load(t.PkgPath())
	return d.comments[t.String()+"."+t.Field(index[len(index)-1]).Name]
}

// schema describes a type. wanted means that it stands in a request: unknown members and values are refused there.
func (d *describer) schema(t reflect.Type, wanted bool) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() { //nolint:exhaustive // the others fail below
	case reflect.Pointer:
		return d.schema(t.Elem(), wanted)
	case reflect.String:
		s := object{"type": "string"}
		if values := enum(t); wanted && values != nil {
			s["enum"] = values
		}
		return s
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Slice:
		s := object{"type": "array", "items": d.schema(t.Elem(), wanted)}
		if !wanted { // an empty list may be null
			s["type"] = []string{"array", "null"}
		}
		return s
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": d.schema(t.Elem(), wanted)}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return d.structure(t, wanted)
	}
	require.Fail(d.t, "a type that openapi_test.go does not know", t.String())
	return nil
}

// enum are the values of a type of texts; nil if any will do.
func enum(t reflect.Type) (values []string) {
	switch t {
	case reflect.TypeFor[run.Kind]():
		for _, k := range run.Kinds() {
			values = append(values, string(k.Kind))
		}
	case reflect.TypeFor[run.BatchStatus]():
		for _, s := range run.BatchStatuses() {
			values = append(values, string(s))
		}
	case reflect.TypeFor[invoice.Outcome]():
		for _, o := range invoice.Outcomes() {
			values = append(values, string(o))
		}
	case reflect.TypeFor[fault.Kind]():
		for _, r := range fault.Rules() {
			values = append(values, string(r.Kind))
		}
	}
	return values
}

// structure describes a struct once, under its name, and refers to it.
func (d *describer) structure(t reflect.Type, wanted bool) object {
	name := t.String()
	if _, there := d.schemas[name]; !there {
		d.load(t.PkgPath())
		s := object{"type": "object"}
		d.schemas[name] = s
		properties, required := object{}, []string{}
		for _, m := range opsapi.Members(t) {
			p := d.schema(m.Type, wanted)
			if text := d.comment(t, m.Index()); text != "" {
				p["description"] = text
			}
			if role := t.FieldByIndex(m.Index()).Tag.Get(opsapi.RoleTag); role != "" {
				p["x-role"] = role
			}
			properties[m.Name] = p
			if m.Required {
				required = append(required, m.Name)
			}
		}
		s["properties"], s["required"] = properties, required
		if text := d.comments[name]; text != "" {
			s["description"] = text
		}
		if wanted {
			s["additionalProperties"] = false
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// operation describes a row.
func (d *describer) operation(r opsapi.Row) object {
	noun, _, _ := strings.Cut(r.Name, ".")
	responses := object{
		"200": object{
			"description": "done", "content": object{"application/json": object{"schema": d.schema(r.Answer, false)}},
		},
	}
	for _, status := range []int{400, 401, 403, 404, 409, 413, 415, 500, 503} {
		responses[fmt.Sprint(status)] = object{"$ref": "#/components/responses/Problem"}
	}
	o := object{
		"operationId": r.Name, "tags": []string{noun}, "summary": strings.TrimSuffix(r.Says, "."),
		"description": "Role: " + string(r.Role) + ".",
		"x-role":      r.Role, "responses": responses,
	}
	if r.Method != http.MethodGet {
		o["requestBody"] = object{
			"required": true, "content": object{"application/json": object{"schema": d.schema(r.Request, true)}},
		}
		return o
	}
	parameters := []object{}
	for _, p := range r.Parameters() {
		one := object{
			"name": p.Name, "in": "query", "required": p.Required, "schema": d.schema(p.Type, true),
			"description": d.comment(r.Request, p.Index()),
		}
		if p.Type.Kind() == reflect.Slice { // separated by commas
			one["explode"] = false
		}
		parameters = append(parameters, one)
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	return o
}

func describe(t testing.TB) (string, *describer) {
	d := &describer{t: t, schemas: object{}, comments: map[string]string{}, parsed: map[string]bool{}}
	paths := object{}
	for _, r := range opsapi.Table() {
		path, _ := paths["/"+r.Path].(object)
		if path == nil {
			path = object{}
			paths["/"+r.Path] = path
		}
		path[strings.ToLower(r.Method)] = d.operation(r)
	}
	problem := d.schema(reflect.TypeFor[opsapi.Problem](), false)
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Operators' API of the SQL Writer", "version": "1", "description": "Made from internal/opsapi. " +
				"Unknown parameters are refused. Lists have pages: next is the page of the next request. A member with x-role is left out for others.",
		},
		"servers": []object{
			{"url": "/api/ops/v1", "description": "with a function key"},
			{"url": "/api/ui/api/v1", "description": "with a sign-in of Microsoft Entra"},
		},
		"security": []object{{"key": []string{}}, {"entra": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas": d.schemas,
			"responses": object{"Problem": object{
				"description": "refused or failed (RFC 9457)",
				"content":     object{opsapi.ProblemType: object{"schema": problem}},
			}},
			"securitySchemes": object{
				"key":   object{"type": "apiKey", "in": "header", "name": "x-functions-key"},
				"entra": object{"type": "http", "scheme": "bearer"},
			},
		},
	}, "", "  ")
	require.NoError(t, err)
	return string(text) + "\n", d
}

func TestOpenAPIGolden(t *testing.T) {
	const file = "openapi.json"
	got, d := describe(t)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		require.NoError(t, os.Chmod(file, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "make update writes it")

	const page, begin, end = "../../docs/api.md", "<!-- calls:begin -->\n", "<!-- calls:end -->"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, begin)
	_, tail, found := strings.Cut(rest, end)
	require.True(t, found, end)
	produced := head + begin + d.table() + end + tail
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(produced), 0o600))
		require.NoError(t, os.Chmod(page, 0o644))
		return
	}
	require.Equal(t, string(text), produced, "make update writes it")
}

// table is the calls for readers, then their parameters.
func (d *describer) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| call | method, path | role | parameters (**required**) | does |\n|---|---|---|---|---|\n")
	for _, r := range opsapi.Table() {
		var names []string
		for _, p := range r.Parameters() {
			name := "`" + p.Name + "`"
			if p.Required {
				name = "**" + name + "**"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "| %s | `%s %s` | %s | %s | %s |\n", r.Name, r.Method, r.Path, r.Role,
			strings.Join(names, ", "), r.Says)
	}
	return b.String()
}

// The description is valid OpenAPI 3.1 by the specification's own schema, and its schemas are valid JSON Schema
// 2020-12.
func TestOpenAPIIsValid(t *testing.T) {
	open := func(file string) any {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		v, err := jsonschema.UnmarshalJSON(f)
		require.NoError(t, err)
		return v
	}
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("openapi-3.1.json", open("testdata/openapi-3.1.json")))
	specification, err := c.Compile("openapi-3.1.json")
	require.NoError(t, err)
	description := open("openapi.json")
	require.NoError(t, specification.Validate(description))
	require.Error(t, specification.Validate(map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "x"}}),
		"the schema refuses what is wrong")
	require.NoError(t, c.AddResource("openapi.json", description))
	for name := range description.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		_, err := c.Compile("openapi.json#/components/schemas/" + name)
		require.NoError(t, err, name)
	}
}

func TestTheTableIsSound(t *testing.T) {
	names, routes := map[string]bool{}, map[string]bool{}
	roles := map[string]opsapi.Role{http.MethodGet: opsapi.Reader, http.MethodPost: opsapi.Operator}
	content := []string{"document.diff", "evidence.get"} // values of documents and rows are not for readers
	for _, r := range opsapi.Table() {
		require.False(t, names[r.Name] || routes[r.Method+r.Path], "%s: twice", r.Name)
		names[r.Name], routes[r.Method+r.Path] = true, true
		require.Regexp(t, `^[a-z]+\.[a-z-]+$`, r.Name)
		require.Regexp(t, `^[a-z]+([/.-][a-z]+)*$`, r.Path)
		if slices.Contains(content, r.Name) {
			require.Equal(t, opsapi.Operator, r.Role, r.Name)
		} else {
			require.Equal(t, roles[r.Method], r.Role, r.Name)
		}
		require.Regexp(t, `^[A-Z].*\.$`, r.Says)
		var seen []string
		for _, p := range r.Parameters() {
			require.NotContains(t, seen, p.Name, r.Name)
			require.NotContains(t, []string{"by", "sys", "req"}, p.Name, "%s: who asks is no parameter", r.Name)
			if r.Method == http.MethodGet {
				require.NotEqual(t, opsapi.KeyParameter, p.Name, "%s: the host takes it for the key", r.Name)
			}
			seen = append(seen, p.Name)
		}
		require.False(t, r.Method == http.MethodPost && !slices.Contains(seen, "why") && r.Name != opsapi.Doctor.Name,
			"%s: an action has a reason; a look that needs the right to write has none", r.Name)
	}
}

// A member that has values is emptied for a reader wherever it stands in an answer. Below a map or an interface it
// could not be.
func TestNoTaggedMemberIsOutOfReach(t *testing.T) {
	tagged := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(at string, of reflect.Type, reach bool)
	walk = func(at string, of reflect.Type, reach bool) {
		switch of.Kind() { //nolint:exhaustive // the others have no members
		case reflect.Pointer, reflect.Slice:
			walk(at, of.Elem(), reach)
		case reflect.Map:
			walk(at, of.Elem(), false)
		case reflect.Struct:
			if seen[of] && reach {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				f := of.Field(i)
				if role := f.Tag.Get(opsapi.RoleTag); role != "" {
					require.True(t, reach, "%s.%s", at, f.Name)
					require.Equal(t, string(opsapi.Operator), role, "%s.%s", at, f.Name)
					tagged[of.String()+"."+f.Name] = true
				} else if f.IsExported() {
					walk(at+"."+f.Name, f.Type, reach)
				}
			}
		}
	}
	for _, r := range opsapi.Table() {
		walk(r.Name, r.Answer, true)
	}
	require.Subset(t, slices.Collect(maps.Keys(tagged)),
		[]string{
			"ops.Tried.Error", "ops.Explanation.Error", "ops.Explanation.FinalError", "ops.Explanation.ProblemFound",
		})
}

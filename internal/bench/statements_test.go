package bench

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

//go:embed sql/*/*.sql
var files embed.FS

// value is what a person who writes the statements by hand would send: a value that goes to both tables is sent once.
type value struct {
	// Staged is its name in the temp table, Type its type there in T-SQL: that of the user's column.
	Staged, Type string
	// PerLine tells the lines of one document apart.
	PerLine bool
	// Nested is its place in the array of its document or line, Flat that in an array of a line with everything.
	Nested, Flat int
	// column is its place in the column table.
	column int
}

// target is a column of one of the user's tables, and where its value is staged.
type target struct{ Name, Type, Staged string }

// statements is what the templates are filled with.
type statements struct {
	Values           []value
	Detail, Tracking []target
	// Table and Columns are for one table's statement.
	Table   invoice.Table
	Columns []target
}

// newStatements draws the lists from the column table.
func newStatements() statements {
	s, known, nested := statements{}, map[string]string{}, map[bool]int{}
	for i, c := range invoice.Columns() {
		perLine := c.Source == invoice.FromParent || c.Source == invoice.FromDuplicate
		content := fmt.Sprint(c.Source, c.Path, typeOf(c))
		if known[content] == "" {
			known[content] = fmt.Sprintf("v%d", len(s.Values))
			nested[perLine]++
			s.Values = append(s.Values, value{
				Staged: known[content], Type: typeOf(c), PerLine: perLine,
				Nested: nested[perLine], Flat: 1 + len(s.Values), column: i,
			})
		}
		to := target{Name: c.Name, Type: typeOf(c), Staged: known[content]}
		if c.Table == invoice.Detail {
			s.Detail = append(s.Detail, to)
		} else {
			s.Tracking = append(s.Tracking, to)
		}
	}
	return s
}

// typeOf is the type of the user's column.
func typeOf(c invoice.Column) string {
	switch c.Kind {
	case invoice.Integer:
		return "bigint"
	case invoice.Decimal:
		return fmt.Sprintf("decimal(%d, %d)", c.Precision, c.Scale)
	case invoice.Time:
		return "datetime2(6)"
	case invoice.Text, invoice.Flag:
		return fmt.Sprintf("nvarchar(%d)", c.Max)
	}
	return ""
}

// text fills one template of an engine's folder.
func (s statements) text(t testing.TB, engine, name string) string {
	t.Helper()
	parsed, err := template.New("").Option("missingkey=error").ParseFS(files, "sql/"+engine+"/*.sql")
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, parsed.ExecuteTemplate(&b, name+".sql", s))
	return withoutComments(b.String())
}

// withoutComments leaves what the product sends: comments stay in the files.
func withoutComments(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// of narrows the statements down to one table.
func (s statements) of(table invoice.Table) statements {
	s.Table, s.Columns = table, s.Detail
	if table == invoice.Tracking {
		s.Columns = s.Tracking
	}
	return s
}

// lineIDs lists a document's lines, the main one first.
func lineIDs(it writer.Item) []int64 { return append([]int64{it.Main}, it.Duplicates...) }

// member is a value as it stands in a request.
type member func(c invoice.Column, v invoice.Value) any

// nested is the request with one array per document: its lines, then the values that they share.
func (s statements) nested(docs []doc, m member) ([]byte, error) {
	columns, request := invoice.Columns(), make([]any, 0, len(docs))
	for _, d := range docs {
		lines := make([]any, 0, d.item.Rows())
		for _, id := range lineIDs(d.item) {
			values, line := invoice.RowValues(d.item.Values, d.item.Main, id), []any{id}
			for _, v := range s.Values {
				if v.PerLine {
					line = append(line, m(columns[v.column], values[v.column]))
				}
			}
			lines = append(lines, line)
		}
		item := append(make([]any, 0, 1+len(s.Values)), lines)
		for _, v := range s.Values {
			if !v.PerLine {
				item = append(item, m(columns[v.column], d.item.Values[v.column]))
			}
		}
		request = append(request, item)
	}
	return json.Marshal(request)
}

// flat is the request with one array per line.
func (s statements) flat(docs []doc, m member) ([]byte, error) {
	columns, request := invoice.Columns(), make([]any, 0, linesOf*len(docs))
	for _, d := range docs {
		for _, id := range lineIDs(d.item) {
			values := invoice.RowValues(d.item.Values, d.item.Main, id)
			line := append(make([]any, 0, 1+len(s.Values)), id)
			for _, v := range s.Values {
				line = append(line, m(columns[v.column], values[v.column]))
			}
			request = append(request, line)
		}
	}
	return json.Marshal(request)
}

// objects is the request with one object per line, for one table: its members are named as the columns.
func (s statements) objects(docs []doc, table invoice.Table, m member) ([]byte, error) {
	columns, request := invoice.Columns(), make([]any, 0, linesOf*len(docs))
	for _, d := range docs {
		for _, id := range lineIDs(d.item) {
			values := invoice.RowValues(d.item.Values, d.item.Main, id)
			row := map[string]any{invoice.KeyColumn: id}
			for i, c := range columns {
				if c.Table == table {
					row[c.Name] = m(c, values[i])
				}
			}
			request = append(request, row)
		}
	}
	return json.Marshal(request)
}

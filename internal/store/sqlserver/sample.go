package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // the schema's template
	"fmt"
	"strings"
	"text/template"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

//go:embed sample/schema.sql
var sampleSchema string

// columnType is the smallest type of a user's column. columns.go accepts others too.
func columnType(c invoice.Column) (string, error) {
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		switch {
		case inBit(c):
			return "bit", nil
		case c.Max > maxFixedText:
			return "nvarchar(max)", nil
		}
		return fmt.Sprintf("nvarchar(%d)", c.Max), nil
	case invoice.Integer:
		return "bigint", nil
	case invoice.Decimal:
		return fmt.Sprintf("decimal(%d, %d)", c.Precision, c.Scale), nil
	case invoice.Time:
		return "datetime2(6)", nil
	}
	return "", fmt.Errorf("column %s.%s: no SQL type for kind %q", c.Table, c.Name, c.Kind)
}

// inBit reports whether a column is a flag that a bit holds.
func inBit(c invoice.Column) bool {
	return c.Kind == invoice.Flag && (c.Flags == [2]string{"1", "0"} || c.Flags == [2]string{"0", "1"})
}

// CreateSampleSchema makes samples of IVCE_DTL and IVCE_TRKG_MSTR for tests and trials; every deployment has its own.
// Existing tables stay as they are. Errors by kind: see classify.
func CreateSampleSchema(ctx context.Context, db *sql.DB, o Options) error {
	t, err := tablesOf(o)
	if err != nil {
		return err
	}
	text, err := t.sampleText()
	if err != nil {
		return fault.Wrap(fault.Internal, "sqlserver: sample schema", fault.CodeBug,
			"the schema cannot be produced", err)
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return classifyDependency("sqlserver: sample schema", err)
	}
	return nil
}

type sampleColumn struct{ Name, Type string }

func (t tables) sampleText() (string, error) {
	parsed, err := template.New("schema").Option("missingkey=error").Parse(sampleSchema)
	if err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	base, err := t.dataOf(ledgerTable, false)
	if err != nil {
		return "", err
	}
	data := struct {
		templateData
		Detail, Tracking []sampleColumn
	}{templateData: base}
	for _, c := range t.mapping.Columns() {
		kind, err := columnType(c)
		if err != nil {
			return "", err
		}
		s := sampleColumn{Name: quote(c.Name), Type: kind}
		if c.Table == invoice.Detail {
			data.Detail = append(data.Detail, s)
		} else {
			data.Tracking = append(data.Tracking, s)
		}
	}
	var b strings.Builder
	if err := parsed.Execute(&b, data); err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	return b.String(), nil
}

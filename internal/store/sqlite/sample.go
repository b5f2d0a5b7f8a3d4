package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // the schema's template
	"fmt"
	"strings"
	"text/template"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

//go:embed sample/schema.sql
var sampleSchema string

// sqlTypes maps kinds to SQLite's types. SQLite has no decimals and dates, so their canonical text is stored; it is
// exact, and times sort by it.
//
//nolint:gochecknoglobals // a table of constants
var sqlTypes = map[invoice.Kind]string{
	invoice.Text:    "TEXT",
	invoice.Integer: "INTEGER",
	invoice.Decimal: "TEXT",
	invoice.Flag:    "TEXT",
	invoice.Time:    "TEXT",
}

// CreateSampleSchema makes samples of IVCE_DTL and IVCE_TRKG_MSTR for tests and trials; every deployment has its own.
// Existing tables stay as they are. Errors by kind: infrastructure.
func CreateSampleSchema(ctx context.Context, db *sql.DB) error {
	return CreateSampleSchemaAs(ctx, db, nil)
}

// CreateSampleSchemaAs is CreateSampleSchema of a mapping.
func CreateSampleSchemaAs(ctx context.Context, db *sql.DB, m *invoice.Mapping) error {
	text, err := sampleText(m)
	if err != nil {
		return fault.Wrap(fault.Internal, "sqlite: sample schema", fault.CodeBug, "the schema cannot be produced", err)
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return classify("sqlite: sample schema", err)
	}
	return nil
}

// MakeSample is CreateSampleSchemaAs with a row of each line. It refuses a database whose IVCE_DTL is no sample. Errors
// by kind: infrastructure; those of shared.NoSample.
func MakeSample(ctx context.Context, db *sql.DB, m *invoice.Mapping, lines []int64) error {
	const op = "sqlite: sample schema"
	var others int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_master WHERE name = ? AND instr(sql, ?) = 0`,
		string(invoice.Detail), shared.SampleKey).Scan(&others); err != nil {
		return classify(op, err)
	}
	if others > 0 {
		return shared.NoSample(op)
	}
	if err := CreateSampleSchemaAs(ctx, db, m); err != nil {
		return err
	}
	d := dataOf(m, names{})
	for _, line := range lines {
		if _, err := db.ExecContext(ctx,
			fmt.Sprintf("INSERT OR IGNORE INTO %s (%s) VALUES (?)", d.DetailTable, d.DetailKey), line); err != nil {
			return classify(op, err)
		}
	}
	return nil
}

// sampleColumn is a column with its type and the check of its width.
type sampleColumn struct {
	Name, Type, Check string
}

func sampleText(m *invoice.Mapping) (string, error) {
	t, err := template.New("schema").Parse(sampleSchema)
	if err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	data := struct {
		templateData
		Detail, Tracking []sampleColumn
	}{templateData: dataOf(m, names{})}
	for _, c := range m.Columns() {
		kind, ok := sqlTypes[c.Kind]
		if !ok {
			return "", fmt.Errorf("column %s: no SQL type for kind %q", c.Name, c.Kind)
		}
		if c.Kind == invoice.Flag && (c.Flags == [2]string{"1", "0"} || c.Flags == [2]string{"0", "1"}) {
			kind = "INTEGER" // as a bit, which reads as a number
		}
		s := sampleColumn{Name: quote(c.Name), Type: kind, Check: widthCheck(c)}
		if c.Table == invoice.Detail {
			data.Detail = append(data.Detail, s)
		} else {
			data.Tracking = append(data.Tracking, s)
		}
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	return b.String(), nil
}

// widthCheck refuses values that are too wide for the column on SQL Server: too many characters or too many digits.
func widthCheck(c invoice.Column) string {
	switch {
	case c.Max > 0:
		return fmt.Sprintf(" CHECK (length(%s) <= %d)", quote(c.Name), c.Max)
	case c.Kind == invoice.Decimal:
		return fmt.Sprintf(" CHECK (abs(CAST(%s AS REAL)) < 1e%d)", quote(c.Name), c.Precision-c.Scale)
	default:
		return ""
	}
}

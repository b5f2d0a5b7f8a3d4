package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // the templates
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

//go:embed sample/schema.sql
var sampleSchema string

//go:embed sample/rows.sql
var sampleRows string

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
	text, err := t.sampleText(sampleSchema)
	if err != nil {
		return fault.Wrap(fault.Internal, "sqlserver: sample schema", fault.CodeBug,
			"the schema cannot be produced", err)
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return classifyDependency("sqlserver: sample schema", err)
	}
	return nil
}

// makeSample makes the sample and its rows of lines. It refuses a database with another IVCE_DTL.
func (t tables) makeSample(ctx context.Context, tx *sql.Tx, lines []int64) error {
	var there, ours sql.NullInt64
	key := quote(t.schema) + "." + shared.SampleKey
	if err := tx.QueryRowContext(ctx, `SELECT OBJECT_ID(@table, N'U'), OBJECT_ID(@key, N'PK')`,
		sql.Named("table", t.table(invoice.Detail)), sql.Named("key", key)).Scan(&there, &ours); err != nil {
		return err
	}
	if there.Valid && !ours.Valid {
		return shared.NoSample(opMigrate)
	}
	list, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	for _, text := range []string{sampleSchema, sampleRows} {
		if text, err = t.sampleText(text); err != nil {
			return fault.Wrap(fault.Internal, opMigrate, fault.CodeBug, "the sample cannot be produced", err)
		}
		if _, err := tx.ExecContext(ctx, text, sql.Named("lines", mssql.NVarCharMax(list))); err != nil {
			return fmt.Errorf("sample: %w", err)
		}
	}
	return nil
}

type sampleColumn struct{ Name, Type string }

// sampleText fills a template of the sample.
func (t tables) sampleText(text string) (string, error) {
	parsed, err := template.New("sample").Option("missingkey=error").Parse(text)
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

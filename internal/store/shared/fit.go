package shared

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"sqlwriter/internal/fit"
)

// UserRows reads columns of the rows of a table whose key is one of lines (fit.Database). before is sent before the
// query; names are quoted by quote. Errors are the driver's.
func UserRows(
	ctx context.Context, db *sql.DB, before, table string, quote func(string) string, key string, columns []string,
	lines []int64,
) (all []fit.Row, err error) {
	names := []string{"CAST(" + quote(key) + " AS bigint)"}
	for _, c := range columns {
		names = append(names, quote(c))
	}
	query := fmt.Sprintf("%sSELECT %s FROM %s WHERE %s IN (%s)", before, //nolint:gosec // quoted names, and numbers
		strings.Join(names, ", "), table, quote(key),
		strings.Trim(strings.ReplaceAll(fmt.Sprint(lines), " ", ", "), "[]"))
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row := fit.Row{Values: make([]any, len(columns))}
		into := []any{&row.Line}
		for i := range row.Values {
			into = append(into, &row.Values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

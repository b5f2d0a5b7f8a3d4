package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

const opFit = "sqlite: read the user's tables"

// UserColumns implements fit.Database. SQLite holds no column to its declared type: of those, only lengths count.
func (s *Store) UserColumns(ctx context.Context) (map[invoice.Table][]fit.Column, error) {
	all := map[invoice.Table][]fit.Column{}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		columns, err := s.userColumns(ctx, table)
		if err != nil {
			return nil, classifyDependency(opFit, err)
		}
		all[table] = columns
	}
	return all, nil
}

func (s *Store) userColumns(ctx context.Context, table invoice.Table) (all []fit.Column, err error) {
	rows, err := s.reader.QueryContext(ctx, `SELECT name, type, "notnull" AND dflt_value IS NULL AND hidden = 0, pk = 1
FROM pragma_table_xinfo(?1) ORDER BY cid`, string(table))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c fit.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.Fed, &c.Unique); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		c.Integer, c.Large = strings.Contains(strings.ToLower(c.Type), "int"), strings.EqualFold(c.Type, "blob")
		length := 0
		_, err := fmt.Sscanf(c.Type, "nvarchar(%d)", &length)
		c.Refuses = func(of invoice.Column) (says, takes string) {
			if err != nil || of.Kind != invoice.Text || length >= of.Max {
				return "", ""
			}
			return fmt.Sprintf("expected %d characters or more, found %s", of.Max, c.Type),
				fmt.Sprintf("text(%d)", length)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// UserRows implements fit.Database.
func (s *Store) UserRows(
	ctx context.Context, table invoice.Table, key string, columns []string, lines []int64,
) ([]fit.Row, error) {
	rows, err := shared.UserRows(ctx, s.reader, "", quote(string(table)), quote, key, columns, lines)
	return rows, classifyDependency(opFit, err)
}

package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

const opFit = "sqlserver: read the user's tables"

// UserColumns implements fit.Database. It needs SELECT on both tables and nothing of ours.
func (s *Store) UserColumns(ctx context.Context) (map[invoice.Table][]fit.Column, error) {
	tables, err := s.readColumns(ctx)
	if err != nil {
		return nil, err
	}
	all := map[invoice.Table][]fit.Column{}
	for table, t := range tables {
		unique, err := s.uniqueColumns(ctx, table)
		if err != nil {
			return nil, classifyDependency(opFit, err)
		}
		for _, name := range t.order {
			c, _ := t.column(name)
			f := Findings{}
			checkKey(string(table), c, &f)
			all[table] = append(all[table], fit.Column{
				Name: c.name, Type: c.String(), Fed: !c.nullable && !c.hasDefault && !c.computed && !c.identity,
				Integer: len(f.Differences) == 0, Unique: unique[strings.ToLower(c.name)], Large: large(c),
				Refuses: func(of invoice.Column) (string, string) {
					f := Findings{}
					checkColumn(s.tables.schema+"."+string(table), of, c, &f)
					return strings.Join(f.Differences, "; "), takes(of, c)
				},
			})
		}
	}
	return all, nil
}

// large reports a column that may have megabytes, or a type that only its programs read.
func large(c dbColumn) bool {
	return c.length < 0 || slices.Contains([]string{
		"varbinary", "binary", "image", "text", "ntext", "xml", "sql_variant", "geography", "geometry", "hierarchyid",
	}, c.kind)
}

// takes is the type in a mapping that a column takes in place of another; empty where only a person knows.
func takes(of invoice.Column, has dbColumn) string {
	switch {
	case columnTakes(of, has):
	case of.Kind == invoice.Flag && has.kind == "bit":
		return "flag(1,0)"
	case of.Kind == invoice.Text && isText(has.kind):
		return fmt.Sprintf("text(%d)", has.length)
	case of.Kind == invoice.Decimal && (has.kind == "decimal" || has.kind == "numeric"):
		return fmt.Sprintf("decimal(%d,%d)", has.precision, has.scale)
	}
	return ""
}

// uniqueColumns are the columns of a table with a unique index on each alone, in lower case.
func (s *Store) uniqueColumns(ctx context.Context, table invoice.Table) (map[string]bool, error) {
	unique := map[string]bool{}
	var names string
	err := s.db.QueryRowContext(ctx, `SELECT COALESCE(STRING_AGG(u.name, '/'), '') FROM (
    SELECT MAX(LOWER(COL_NAME(k.object_id, k.column_id))) AS name
    FROM sys.indexes AS i
    INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
    WHERE i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
    GROUP BY i.index_id
    HAVING COUNT(*) = 1
) AS u`, sql.Named("table", s.tables.table(table))).Scan(&names)
	for name := range strings.SplitSeq(names, "/") {
		unique[name] = true
	}
	return unique, err
}

// UserRows implements fit.Database. It waits no longer for a lock than a check does.
func (s *Store) UserRows(
	ctx context.Context, table invoice.Table, key string, columns []string, lines []int64,
) ([]fit.Row, error) {
	const before = "SET LOCK_TIMEOUT 5000; "
	rows, err := shared.UserRows(ctx, s.db, before, s.tables.table(table), quote, key, columns, lines)
	return rows, classifyDependency(opFit, err)
}

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/invoice"
)

// dbColumn is a column as the database has it.
type dbColumn struct {
	name, kind           string
	length               int // UTF-16 units of an nvarchar or nchar, bytes of a varchar or char; -1 for max
	precision, scale     int // digits of a number; scale is also the digits of a time's second
	nullable, hasDefault bool
	computed, identity   bool // the server fills the column
	codePage             int  // of a text's collation; 0 if unknown
}

// String is the column's type in T-SQL.
func (c dbColumn) String() string {
	switch {
	case isText(c.kind) && c.length < 0:
		return c.kind + "(max)"
	case isText(c.kind):
		return fmt.Sprintf("%s(%d)", c.kind, c.length)
	case c.kind == "decimal" || c.kind == "numeric":
		return fmt.Sprintf("%s(%d, %d)", c.kind, c.precision, c.scale)
	case c.kind == "datetime2" || c.kind == "datetimeoffset":
		return fmt.Sprintf("%s(%d)", c.kind, c.scale)
	}
	return c.kind
}

func isText(kind string) bool {
	return slices.Contains([]string{"nvarchar", "nchar", "varchar", "char"}, kind)
}

// userTable is one of the user's tables as the database has it.
type userTable struct {
	// byName has the columns by lower-case name; order has the names in their order.
	byName map[string]dbColumn
	order  []string
}

func (t userTable) column(name string) (c dbColumn, ok bool) {
	c, ok = t.byName[strings.ToLower(name)]
	return c, ok
}

// selectColumns reads the columns of both tables. It also asks sys.columns about defaults, because their text is
// hidden from a login without VIEW DEFINITION. The lock timeout bounds the wait for an ALTER TABLE.
const selectColumns = `SET LOCK_TIMEOUT 5000;
SELECT
    CASE WHEN c.TABLE_NAME = @tracking THEN 1 ELSE 0 END,
    c.COLUMN_NAME, LOWER(c.DATA_TYPE), COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(c.NUMERIC_PRECISION, 0),
    COALESCE(c.NUMERIC_SCALE, c.DATETIME_PRECISION, 0), CASE WHEN c.IS_NULLABLE = 'YES' THEN 1 ELSE 0 END,
    CASE WHEN c.COLUMN_DEFAULT IS NOT NULL OR s.default_object_id <> 0 THEN 1 ELSE 0 END,
    CASE
        WHEN c.DATA_TYPE IN ('timestamp', 'rowversion') OR s.is_computed = 1 OR s.generated_always_type <> 0 THEN 1
        ELSE 0
    END,
    COALESCE(s.is_identity, 0),
    COALESCE(CAST(COLLATIONPROPERTY(c.COLLATION_NAME, 'CodePage') AS int), 0)
FROM INFORMATION_SCHEMA.COLUMNS AS c
LEFT JOIN sys.columns AS s
    ON s.object_id = OBJECT_ID(QUOTENAME(c.TABLE_SCHEMA) + N'.' + QUOTENAME(c.TABLE_NAME)) AND s.name = c.COLUMN_NAME
WHERE c.TABLE_SCHEMA = @schema AND c.TABLE_NAME IN (@detail, @tracking)
ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION`

// readColumns reads the columns of the user's tables in one request. A missing table has no columns.
func (s *Store) readColumns(ctx context.Context) (map[invoice.Table]userTable, error) {
	tables, err := s.scanColumns(ctx)
	if err != nil {
		return nil, s.closeIdleIfBroken(classifyDependency("sqlserver: read columns", err))
	}
	return tables, nil
}

func (s *Store) scanColumns(ctx context.Context) (tables map[invoice.Table]userTable, err error) {
	rows, err := s.db.QueryContext(ctx, selectColumns, sql.Named("schema", s.tables.schema),
		sql.Named("detail", string(invoice.Detail)), sql.Named("tracking", string(invoice.Tracking)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	tables = map[invoice.Table]userTable{}
	for rows.Next() {
		var tracking bool
		var c dbColumn
		err := rows.Scan(&tracking, &c.name, &c.kind, &c.length, &c.precision, &c.scale, &c.nullable, &c.hasDefault,
			&c.computed, &c.identity, &c.codePage)
		if err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		name := invoice.Detail
		if tracking {
			name = invoice.Tracking
		}
		t := tables[name]
		if t.byName == nil {
			t.byName = map[string]dbColumn{}
		}
		t.byName[strings.ToLower(c.name)] = c
		t.order = append(t.order, c.name)
		tables[name] = t
	}
	return tables, rows.Err()
}

// checkKey checks the type of a table's key. The staged key is bigint; a key of another family would be converted row
// by row without the index (docs/facts.md F74).
func checkKey(table string, c dbColumn, f *Findings) {
	switch {
	case c.kind == "bigint" || c.kind == "int":
	case (c.kind == "decimal" || c.kind == "numeric") && c.scale == 0:
	default:
		f.differ(
			"%s.%s: expected a key of type bigint, int or decimal(n, 0), found %s (fix: another key in MAPPING)", table, c.name, c)
	}
}

// checkColumn compares one column with its place in the mapping.
func checkColumn(table string, c invoice.Column, has dbColumn, f *Findings) {
	needs, err := columnType(c)
	if err != nil {
		f.differ("%s.%s: %v", table, c.Name, err)
		return
	}
	switch {
	case has.computed || has.identity:
		f.differ(
			"%s.%s: expected a column that can be written, found a computed one or an identity (fix: another column in MAPPING)", table, c.Name)
		return
	case !columnTakes(c, has):
		f.differ("%s.%s: expected %s or wider, found %s (fix: ALTER TABLE %s ALTER COLUMN %s %s NULL)", table, c.Name,
			needs, has, table, c.Name, needs)
		return
	case !has.nullable && writesNull(c):
		f.differ(
			"%s.%s: expected a column that takes NULL, found NOT NULL (fix: ALTER TABLE %s ALTER COLUMN %s %s NULL)",
			table, c.Name, table, c.Name, has)
	}
	switch {
	case !has.singleCodePage():
	case encodingOf(has.codePage) == nil:
		f.note("%s.%s: %s of code page %d, which this build does not know: missing characters are not noticed", table,
			c.Name, has, has.codePage)
	default:
		f.note("%s.%s: %s has the characters of code page %d only; a document with others is refused", table,
			c.Name, has, has.codePage)
	}
	if loses := roundingNote(c, has); loses != "" {
		f.note("%s.%s: %s", table, c.Name, loses)
	}
}

// writesNull reports whether a column may get NULL. A column that keeps its value gets it in a row that is inserted.
func writesNull(c invoice.Column) bool {
	switch c.Source {
	case invoice.FromDuplicate, invoice.FromMapping:
		return false
	case invoice.FromDocument, invoice.FromParent, invoice.FromRequestTime:
	}
	return !c.Required && (!c.Keep || c.Table == invoice.Tracking)
}

// columnTakes reports whether a column takes every value of the kind. Rounding that roundingNote describes is accepted.
func columnTakes(c invoice.Column, has dbColumn) bool {
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		return (has.kind == "bit" && inBit(c)) || (isText(has.kind) && (has.length < 0 || has.length >= c.Max))
	case invoice.Integer:
		return has.kind == "bigint" || has.kind == "int" ||
			((has.kind == "decimal" || has.kind == "numeric") && has.scale == 0)
	case invoice.Decimal:
		switch has.kind {
		case "decimal", "numeric":
			if c.Keep && has.scale > stagedScale {
				return false // the server would round what it keeps to the staged scale
			}
			return has.scale >= c.Scale && has.precision-has.scale >= c.Precision-c.Scale
		case "float":
			return true
		}
		return false
	case invoice.Time:
		// a local time has no offset, and the server would give it that of UTC
		return has.kind == "datetime" || has.kind == "datetime2" || (has.kind == "datetimeoffset" && !c.Local)
	}
	return false
}

// singleCodePage reports a text column with the characters of one code page only.
func (c dbColumn) singleCodePage() bool {
	return (c.kind == "varchar" || c.kind == "char") && c.codePage != codePageUTF8
}

// roundingNote describes the precision that an accepted column loses; empty if it loses none.
func roundingNote(c invoice.Column, has dbColumn) string {
	switch {
	case c.Kind == invoice.Time && has.kind == "datetime":
		return "datetime rounds to 1/300 of a second"
	case c.Kind == invoice.Time && has.scale < 6:
		return fmt.Sprintf("%s rounds to %d digits of a second", has, has.scale)
	case c.Kind == invoice.Decimal && has.kind == "float":
		return "float stores the nearest double, not the decimal"
	}
	return ""
}

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/migration"
)

const opCheck = "sqlserver: check"

// codeSchema marks a database that is not what the statements need.
const codeSchema = "schema"

// Findings is what a look at the database's schema found.
type Findings struct {
	// Differences keep the app from working, each with its fix.
	Differences []string
	// Notes are worth knowing and harm nobody: triggers, columns that round or do not hold every character.
	Notes []string
	// lossy are the texts that do not hold every character.
	lossy map[string]bool
}

func (f *Findings) differ(format string, args ...any) {
	f.Differences = append(f.Differences, fmt.Sprintf(format, args...))
}

func (f *Findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Check compares the database with what the statements need, and adds to them what it makes necessary: where the user's
// texts are of one code page, a write looks whether they were kept. Errors by kind: infrastructure, code "schema", with every
// difference and its fix in the cause (no document is at fault); else as classify.go says.
func (s *Store) Check(ctx context.Context) error {
	f, err := s.Inspect(ctx)
	if err != nil {
		return err
	}
	if len(f.Differences) == 0 {
		s.notes.Store(&f.Notes)
		t := s.tables
		t.lossy = f.lossy
		return s.produce(t)
	}
	return fault.Wrap(fault.Infrastructure, opCheck, codeSchema,
		fmt.Sprintf("the database is not what the statements need, %d differences", len(f.Differences)),
		errors.New(strings.Join(f.Differences, "\n")))
}

// Notes is what the last Check that found no difference noted: worth a line in the log when the app starts.
func (s *Store) Notes() []string {
	if notes := s.notes.Load(); notes != nil {
		return *notes
	}
	return nil
}

// Inspect looks at everything that Check compares and answers the notes too.
func (s *Store) Inspect(ctx context.Context) (Findings, error) {
	f := Findings{lossy: map[string]bool{}}
	if err := s.inspectOwn(ctx, &f); err != nil {
		return Findings{}, err
	}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		if err := s.inspectTable(ctx, table, &f); err != nil {
			return Findings{}, outside(opCheck, err)
		}
	}
	return f, nil
}

// inspectOwn looks at schema sqlwriter.
func (s *Store) inspectOwn(ctx context.Context, f *Findings) error {
	states, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if n := migration.Count(states, migration.Pending); n > 0 {
		f.differ("schema sqlwriter: expected %d migrations, found %d (fix: sqlwriterctl migrate up)", len(states), len(states)-n)
	}
	if err := s.inspectServer(ctx, f); err != nil {
		return outside(opCheck, err)
	}
	for _, st := range states {
		if st.Status == migration.Changed {
			f.differ("schema sqlwriter: migration %s was run from another file (fix: deploy the build that ran it, or ask its authors)", st.Name)
		}
	}
	return nil
}

// oldestLevel is the compatibility level that OPENJSON needs.
const oldestLevel = 130

// inspectServer looks at what the statements need of the database itself, and at our rights on the ledger.
func (s *Store) inspectServer(ctx context.Context, f *Findings) error {
	var version string
	var level int
	err := s.db.QueryRowContext(ctx, `SELECT @@VERSION, d.compatibility_level FROM sys.databases AS d WHERE d.name = DB_NAME()`).Scan(&version, &level)
	if err != nil {
		return err
	}
	if strings.HasPrefix(version, "Microsoft") && level < oldestLevel { // other engines' levels mean something else
		f.differ("the database: expected compatibility level %d or more (OPENJSON), found %d (fix: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = %d)",
			oldestLevel, level, oldestLevel)
	}
	var ledger sql.NullInt64
	if err := s.db.QueryRowContext(ctx, `SELECT OBJECT_ID(N'sqlwriter.ledger', N'U')`).Scan(&ledger); err != nil || !ledger.Valid {
		return err // that it is not there is said already
	}
	for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
		has, err := s.hasRight(ctx, ledgerTable, right)
		if err != nil {
			return err
		}
		if !has {
			f.differ("sqlwriter.ledger: expected the right %s, found none (fix: deploy/sql/app_rights.sql)", right)
		}
	}
	return nil
}

// found is a column as the database has it.
type found struct {
	name, kind        string
	length            int // characters, -1 for max; of a text
	precision, scale  int // digits of a number; of a time scale is the digits of its second
	nullable, dflt    bool
	computed, counted bool // filled by the server: nobody can write it
	collation         string
}

// String is the column's type as T-SQL writes it.
func (c found) String() string {
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

// selectColumns reads a table's columns as they are. Whether there is a default is asked of sys.columns too: its text is
// hidden from a login that may not see definitions.
const selectColumns = `SELECT
    c.COLUMN_NAME, LOWER(c.DATA_TYPE), COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(c.NUMERIC_PRECISION, 0),
    COALESCE(c.NUMERIC_SCALE, c.DATETIME_PRECISION, 0), CASE WHEN c.IS_NULLABLE = 'YES' THEN 1 ELSE 0 END,
    CASE WHEN c.COLUMN_DEFAULT IS NOT NULL OR s.default_object_id <> 0 THEN 1 ELSE 0 END,
    CASE
        WHEN c.DATA_TYPE IN ('timestamp', 'rowversion') OR s.is_computed = 1 OR s.generated_always_type <> 0 THEN 1
        ELSE 0
    END,
    COALESCE(s.is_identity, 0),
    COALESCE(c.COLLATION_NAME, '')
FROM INFORMATION_SCHEMA.COLUMNS AS c
LEFT JOIN sys.columns AS s ON s.object_id = OBJECT_ID(@table) AND s.name = c.COLUMN_NAME
WHERE c.TABLE_SCHEMA = @schema AND c.TABLE_NAME = @name
ORDER BY c.ORDINAL_POSITION`

// columns reads a table's columns by lower-case name, and the names in their order.
func (s *Store) columns(ctx context.Context, table invoice.Table) (byName map[string]found, order []string, err error) {
	rows, err := s.db.QueryContext(ctx, selectColumns, sql.Named("table", s.tables.table(table)),
		sql.Named("schema", s.tables.schema), sql.Named("name", string(table)))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	byName = map[string]found{}
	for rows.Next() {
		var c found
		if err := rows.Scan(&c.name, &c.kind, &c.length, &c.precision, &c.scale, &c.nullable, &c.dflt, &c.computed, &c.counted, &c.collation); err != nil {
			return nil, nil, fmt.Errorf("scan: %w", err)
		}
		byName[strings.ToLower(c.name)] = c
		order = append(order, c.name)
	}
	return byName, order, rows.Err()
}

// inspectTable compares one of the user's tables with the column table.
func (s *Store) inspectTable(ctx context.Context, table invoice.Table, f *Findings) error {
	there, order, err := s.columns(ctx, table)
	if err != nil {
		return err
	}
	name := s.tables.schema + "." + string(table)
	if len(there) == 0 {
		f.differ("%s: expected a table that this login may read, found none (fix: set SQL_SCHEMA, or see deploy/sql/app_rights.sql)", name)
		return nil
	}
	key := s.tables.layout.Key(table)
	ours := map[string]bool{strings.ToLower(key): true}
	keyColumn, ok := there[strings.ToLower(key)]
	if ok {
		checkKey(name, keyColumn, f)
		if table == invoice.Tracking && (keyColumn.computed || keyColumn.counted) {
			f.differ("%s.%s: expected a key that can be inserted, found a computed one or an identity (fix: another key column by COLUMN_NAMES)", name, keyColumn.name)
		}
	} else {
		f.differ("%s: expected the key column %s, found none of that name (fix: name it in COLUMN_NAMES)", name, key)
	}
	for _, c := range s.tables.layout.Columns {
		if c.Table != table {
			continue
		}
		ours[strings.ToLower(c.Name)] = true
		column, ok := there[strings.ToLower(c.Name)]
		if !ok {
			kind, err := columnType(c)
			if err != nil {
				return err
			}
			f.differ("%s: expected a column %s %s, found none of that name (fix: ALTER TABLE %s ADD %s %s NULL, or name the column that has it in COLUMN_NAMES)",
				name, c.Name, kind, name, c.Name, kind)
			continue
		}
		checkColumn(name, c, column, f)
	}
	if table == invoice.Tracking { // we insert rows there
		for _, n := range order {
			c := there[strings.ToLower(n)]
			if !ours[strings.ToLower(n)] && !c.nullable && !c.dflt && !c.computed && !c.counted {
				f.differ("%s.%s: expected that a row can be inserted without it, found %s NOT NULL without a default (fix: give it a default)", name, n, c)
			}
		}
	}
	if ok {
		if err := s.checkUnique(ctx, table, name, keyColumn, f); err != nil {
			return err
		}
	}
	if err := s.checkRights(ctx, table, name, f); err != nil {
		return err
	}
	return s.noteTriggers(ctx, table, name, f)
}

// checkKey looks at the type of a table's key: the staged line's is bigint, and another family would be converted row by
// row, without the index (azure-facts 6.1).
func checkKey(table string, c found, f *Findings) {
	switch {
	case c.kind == "bigint" || c.kind == "int":
	case (c.kind == "decimal" || c.kind == "numeric") && c.scale == 0:
	default:
		f.differ("%s.%s: expected a key of type bigint, int or decimal(n, 0), found %s (fix: another key column by COLUMN_NAMES)", table, c.name, c)
	}
}

// checkColumn compares one column with what it is to hold.
func checkColumn(table string, c invoice.Column, has found, f *Findings) {
	needs, err := columnType(c)
	if err != nil {
		f.differ("%s.%s: %v", table, c.Name, err)
		return
	}
	switch {
	case has.computed || has.counted:
		f.differ("%s.%s: expected a column that can be written, found a computed one or an identity (fix: another column by COLUMN_NAMES)", table, c.Name)
		return
	case !takes(c, has):
		f.differ("%s.%s: expected %s or wider, found %s (fix: ALTER TABLE %s ALTER COLUMN %s %s NULL)", table, c.Name, needs, has, table, c.Name, needs)
		return
	case !has.nullable && !c.Required && c.Source != invoice.FromDuplicate:
		f.differ("%s.%s: expected a column that takes NULL, found NOT NULL (fix: ALTER TABLE %s ALTER COLUMN %s %s NULL)", table, c.Name, table, c.Name, has)
	}
	if oneCodePage(has) {
		f.lossy[label(c)] = true
		f.note("%s.%s: %s holds the characters of its code page only; a document with others is refused", table, c.Name, has)
	}
	if loses := rounds(c, has); loses != "" {
		f.note("%s.%s: %s", table, c.Name, loses)
	}
}

// takes reports whether a column holds every value of the kind, or rounds it in a way that rounds says.
func takes(c invoice.Column, has found) bool {
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		return isText(has.kind) && (has.length < 0 || has.length >= c.Max)
	case invoice.Integer:
		return has.kind == "bigint" || has.kind == "int" || ((has.kind == "decimal" || has.kind == "numeric") && has.scale == 0)
	case invoice.Decimal:
		switch has.kind {
		case "decimal", "numeric":
			return has.scale >= c.Scale && has.precision-has.scale >= c.Precision-c.Scale
		case "float":
			return true
		}
		return false
	case invoice.Time:
		return slices.Contains([]string{"datetime", "datetime2", "datetimeoffset"}, has.kind)
	}
	return false
}

// oneCodePage reports a text that turns characters into question marks.
func oneCodePage(has found) bool {
	return (has.kind == "varchar" || has.kind == "char") && !strings.HasSuffix(strings.ToUpper(has.collation), "_UTF8")
}

// rounds says what a column that is good enough does not keep; empty when it keeps everything.
func rounds(c invoice.Column, has found) string {
	switch {
	case c.Kind == invoice.Time && has.kind == "datetime":
		return "datetime rounds to 1/300 of a second"
	case c.Kind == invoice.Time && has.scale < 6:
		return fmt.Sprintf("%s rounds to %d digits of a second", has, has.scale)
	case c.Kind == invoice.Decimal && has.kind == "float":
		return "float keeps the nearest double, not the decimal"
	}
	return ""
}

// checkUnique looks for an index that lets the key stand once: with two rows of one key, half a write would be right.
func (s *Store) checkUnique(ctx context.Context, table invoice.Table, name string, key found, f *Findings) error {
	var n int
	err := s.db.QueryRowContext(ctx, `SELECT COUNT(*)
FROM sys.indexes AS i
INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id
WHERE
    i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0 AND k.key_ordinal = 1
    AND COL_NAME(k.object_id, k.column_id) = @key
    AND NOT EXISTS (
        SELECT 1 FROM sys.index_columns AS o
        WHERE o.object_id = k.object_id AND o.index_id = k.index_id AND o.key_ordinal > 1
    )`, sql.Named("table", s.tables.table(table)), sql.Named("key", key.name)).Scan(&n)
	if err != nil {
		return err
	}
	if n == 0 {
		f.differ("%s.%s: expected a primary key or unique index on it alone, found none (fix: CREATE UNIQUE INDEX ux_%s ON %s (%s))",
			name, key.name, key.name, name, key.name)
	}
	return nil
}

// checkRights asks for the rights that the statements need. Rights on single columns count where there is none on the table.
func (s *Store) checkRights(ctx context.Context, table invoice.Table, name string, f *Findings) error {
	rights := []string{"SELECT", "UPDATE"}
	if table == invoice.Tracking {
		rights = append(rights, "INSERT")
	}
	for _, right := range rights {
		has, err := s.hasRight(ctx, s.tables.table(table), right)
		if err != nil {
			return err
		}
		if !has && right != "INSERT" { // which is given on tables only
			has, err = s.hasRightOnColumns(ctx, table, right)
			if err != nil {
				return err
			}
		}
		if !has {
			f.differ("%s: expected the right %s, found none (fix: deploy/sql/app_rights.sql)", name, right)
		}
	}
	return nil
}

// hasRight asks for a right on a table.
func (s *Store) hasRight(ctx context.Context, table, right string) (bool, error) {
	var has sql.NullBool
	err := s.db.QueryRowContext(ctx, `SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right)`,
		sql.Named("table", table), sql.Named("right", right)).Scan(&has)
	return has.Valid && has.Bool, err
}

// hasRightOnColumns asks for a right on every column that the statements name.
func (s *Store) hasRightOnColumns(ctx context.Context, table invoice.Table, right string) (bool, error) {
	for _, c := range s.tables.layout.Columns {
		if c.Table != table {
			continue
		}
		var has sql.NullBool
		err := s.db.QueryRowContext(ctx, `SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right, @column, N'COLUMN')`,
			sql.Named("table", s.tables.table(table)), sql.Named("right", right), sql.Named("column", c.Name)).Scan(&has)
		if err != nil || !has.Valid || !has.Bool {
			return false, err
		}
	}
	return true, nil
}

// noteTriggers names the user's triggers: they are part of every write and of how long it takes.
func (s *Store) noteTriggers(ctx context.Context, table invoice.Table, name string, f *Findings) (err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT g.name, g.is_disabled, g.is_instead_of_trigger
FROM sys.triggers AS g WHERE g.parent_id = OBJECT_ID(@table) ORDER BY g.name`, sql.Named("table", s.tables.table(table)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var trigger string
		var disabled, instead bool
		if err := rows.Scan(&trigger, &disabled, &instead); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		switch {
		case disabled:
			f.note("%s: trigger %s is disabled", name, trigger)
		case instead:
			f.note("%s: trigger %s runs instead of the statement: it decides what is written", name, trigger)
		default:
			f.note("%s: trigger %s runs within every write", name, trigger)
		}
	}
	return rows.Err()
}

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
	"sqlwriter/internal/store/migration"
)

const opCheck = "sqlserver: check"

// codeSchema is the code of a database that the statements cannot use.
const codeSchema = "schema"

// Findings are the result of an inspection.
type Findings struct {
	// Differences keep the app from working. Each names its fix.
	Differences []string
	// Notes are harmless facts for an operator: triggers, and columns that round or lack characters.
	Notes []string
}

func (f *Findings) differ(format string, args ...any) {
	f.Differences = append(f.Differences, fmt.Sprintf(format, args...))
}

func (f *Findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Check compares the database with the needs of the statements. Where nothing differs, the record of the procedures
// says that a build started with them today. Errors by kind: infrastructure, code "schema", with every difference and
// its fix in the cause; others as in classify.
func (s *Store) Check(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	f, err := s.Inspect(ctx)
	if err != nil {
		return err
	}
	if len(f.Differences) == 0 {
		s.notes.Store(&f.Notes)
		if s.previewOnly {
			return nil
		}
		return s.markStarted(ctx)
	}
	return fault.Wrap(fault.Infrastructure, opCheck, codeSchema,
		fmt.Sprintf("the database differs from the needs of the statements, %d differences", len(f.Differences)),
		errors.New(strings.Join(f.Differences, "\n")))
}

// Notes returns the notes of the last Check that found no difference. The app logs them at the start.
func (s *Store) Notes() []string {
	if notes := s.notes.Load(); notes != nil {
		return *notes
	}
	return nil
}

// Inspect compares like Check and returns all differences and notes.
func (s *Store) Inspect(ctx context.Context) (Findings, error) {
	f := Findings{}
	inspect := s.inspectOwn
	if s.previewOnly {
		inspect = s.inspectPreview
	}
	if err := inspect(ctx, &f); err != nil {
		return Findings{}, err
	}
	known, err := s.limits.refresh(ctx)
	if err != nil {
		return Findings{}, err
	}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		if err := s.inspectTable(ctx, table, known.tables[table], &f); err != nil {
			return Findings{}, classifyDependency(opCheck, err)
		}
	}
	if len(f.Differences) > 0 {
		return f, nil
	}
	return f, s.tryPreview(ctx, &f)
}

// inspectOwn checks the schemas sqlwriter and sqlwriter_preview.
func (s *Store) inspectOwn(ctx context.Context, f *Findings) error {
	states, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if n := migration.Count(states, migration.Pending); n > 0 {
		f.differ("schema sqlwriter: expected %d migrations, found %d (fix: sqlwriterctl migrate up)",
			len(states), len(states)-n)
	}
	if err := s.inspectServer(ctx, f); err != nil {
		return classifyDependency(opCheck, err)
	}
	for _, st := range states {
		if st.Status == migration.Changed {
			f.differ(
				"schema sqlwriter: migration %s was run from another file (fix: deploy the build that ran it, or ask its authors)", st.Name)
		}
	}
	return s.inspectProcedures(ctx, f)
}

// oldestLevel is the compatibility level that OPENJSON needs.
const oldestLevel = 130

// inspectServer checks the database's compatibility level and our rights on our own tables.
func (s *Store) inspectServer(ctx context.Context, f *Findings) error {
	var version string
	var level int
	err := s.db.QueryRowContext(ctx,
		`SELECT @@VERSION, d.compatibility_level FROM sys.databases AS d WHERE d.name = DB_NAME()`).Scan(&version,
		&level)
	if err != nil {
		return err
	}
	if strings.HasPrefix(version, "Microsoft") && level < oldestLevel { // levels of other engines have another meaning
		f.differ(
			"the database: expected compatibility level %d or more (OPENJSON), found %d (fix: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = %d)",
			oldestLevel, level, oldestLevel)
	}
	for _, table := range []struct {
		name   string
		rights []string
	}{
		{"migration", []string{"SELECT"}},
		{"mapping", []string{"SELECT"}},
		{"procedure_set", []string{"SELECT"}},
		{"ledger", []string{"SELECT"}}, // procedures write it
		{"adoption", []string{"SELECT"}},
		{"run", []string{"SELECT", "INSERT", "UPDATE"}},
		{"audit_log", []string{"SELECT"}}, // sqlwriter.audit_add writes it
		{"batch", []string{"SELECT", "INSERT", "UPDATE"}},
		{"batch_item", []string{"SELECT", "INSERT", "UPDATE"}},
		{"worker", []string{"SELECT", "INSERT", "UPDATE"}},
		{"error_detail", []string{"SELECT", "INSERT"}},
		{"finding", []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{"comparison", []string{"SELECT", "INSERT", "UPDATE"}},
		{"processing_job", []string{"SELECT"}},
	} {
		if err := s.inspectOwnRights(ctx, table.name, table.rights, f); err != nil {
			return err
		}
	}
	return nil
}

// inspectOwnRights checks the rights on one of our tables.
func (s *Store) inspectOwnRights(ctx context.Context, table string, rights []string, f *Findings) error {
	var there sql.NullInt64
	err := s.db.QueryRowContext(ctx, `SELECT OBJECT_ID(@table)`, sql.Named("table", "sqlwriter."+table)).Scan(&there)
	if err != nil || !there.Valid {
		return err // the missing migration is reported already
	}
	for _, right := range rights {
		has, err := s.hasRight(ctx, "[sqlwriter]."+quote(table), right)
		if err != nil {
			return err
		}
		if !has {
			f.differ("sqlwriter.%s: expected the right %s, found none (fix: deploy/sql/app_rights.sql)", table, right)
		}
	}
	return nil
}

// inspectTable compares one of the user's tables with the mapping.
func (s *Store) inspectTable(ctx context.Context, table invoice.Table, there userTable, f *Findings) error {
	name := s.tables.schema + "." + string(table)
	if len(there.order) == 0 {
		f.differ(
			"%s: expected a table that this login may read, found none (fix: set SQL_SCHEMA, or see deploy/sql/app_rights.sql)", name)
		return nil
	}
	key := s.tables.mapping.Key(table)
	ours := map[string]bool{strings.ToLower(key): true}
	keyColumn, ok := there.column(key)
	if ok {
		checkKey(name, keyColumn, f)
		if table == invoice.Tracking && (keyColumn.computed || keyColumn.identity) {
			f.differ(
				"%s.%s: expected a key that can be inserted, found a computed one or an identity (fix: another key in MAPPING)", name, keyColumn.name)
		}
	} else {
		f.differ("%s: expected the key column %s, found none of that name (fix: name it in MAPPING)", name, key)
	}
	for _, c := range s.tables.mapping.Columns() {
		if c.Table != table {
			continue
		}
		ours[strings.ToLower(c.Name)] = true
		column, ok := there.column(c.Name)
		if !ok {
			kind, err := columnType(c)
			if err != nil {
				return err
			}
			f.differ(
				"%s: expected a column %s %s, found none of that name (fix: ALTER TABLE %s ADD %s %s NULL, or name the column that has it in MAPPING, or take it out there)",
				name, c.Name, kind, name, c.Name, kind)
			continue
		}
		checkColumn(name, c, column, f)
	}
	if table == invoice.Tracking { // rows are inserted there
		for _, n := range there.order {
			c, _ := there.column(n)
			if !ours[strings.ToLower(n)] && !c.nullable && !c.hasDefault && !c.computed && !c.identity {
				f.differ(
					"%s.%s: expected that a row can be inserted without it, found %s NOT NULL without a default (fix: give it a default)", name, n, c)
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

// checkUnique requires a unique index on the key. With two rows of one key a write would change only part of a line. A
// partitioned table cannot have one without its partition column. That may be a column that each write sets: two rows
// of one key would get the same value, which the index refuses. A rewrite may keep the status, so that is none.
func (s *Store) checkUnique(ctx context.Context, table invoice.Table, name string, key dbColumn, f *Findings) (
	err error,
) {
	rows, err := s.db.QueryContext(ctx, `SELECT
    COALESCE(MAX(CASE WHEN k.key_ordinal = 2 THEN COL_NAME(k.object_id, k.column_id) END), ''),
    COALESCE(MAX(CASE WHEN k.partition_ordinal = 1 THEN COL_NAME(k.object_id, k.column_id) END), '')
FROM sys.indexes AS i
INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id
WHERE i.object_id = OBJECT_ID(@table) AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
GROUP BY i.index_id
HAVING MAX(CASE WHEN k.key_ordinal = 1 THEN COL_NAME(k.object_id, k.column_id) END) = @key AND MAX(k.key_ordinal) <= 2`,
		sql.Named("table", s.tables.table(table)), sql.Named("key", key.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var second, partition string
		if err := rows.Scan(&second, &partition); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if second == "" || (second == partition && s.setByEachWrite(table, second)) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	f.differ(
		"%s.%s: expected a primary key or unique index on it alone, or on it and the table's partition column, which each write must set: "+
			"a column of the mapping but the status; found none (fix: CREATE UNIQUE INDEX ux_%s ON %s (%s))",
		name, key.name, key.name, name, key.name)
	return nil
}

// setByEachWrite reports whether each write and rewrite of content sets a column of a table.
func (s *Store) setByEachWrite(table invoice.Table, column string) bool {
	return slices.ContainsFunc(s.tables.mapping.Columns(), func(c invoice.Column) bool {
		return c.Table == table && strings.EqualFold(c.Name, column) && !c.Status && !c.Keep
	})
}

// checkRights requires the right to read; procedures do the writing. Rights on all columns are enough too.
func (s *Store) checkRights(ctx context.Context, table invoice.Table, name string, f *Findings) error {
	if s.previewOnly {
		return nil
	}
	has, err := s.hasRight(ctx, s.tables.table(table), "SELECT")
	if err == nil && !has {
		has, err = s.hasRightOnColumns(ctx, table, "SELECT")
	}
	if err == nil && !has {
		f.differ("%s: expected the right SELECT, found none (fix: deploy/sql/app_rights.sql)", name)
	}
	return err
}

// hasRight reports whether this login has a right on a table or procedure.
func (s *Store) hasRight(ctx context.Context, table, right string) (bool, error) {
	var has sql.NullBool
	err := s.db.QueryRowContext(ctx, `SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right)`,
		sql.Named("table", table), sql.Named("right", right)).Scan(&has)
	return has.Valid && has.Bool, err
}

// hasRightOnColumns reports whether this login has a right on every column that the statements use.
func (s *Store) hasRightOnColumns(ctx context.Context, table invoice.Table, right string) (bool, error) {
	for _, c := range s.tables.mapping.Columns() {
		if c.Table != table {
			continue
		}
		var has sql.NullBool
		err := s.db.QueryRowContext(ctx, `SELECT HAS_PERMS_BY_NAME(@table, N'OBJECT', @right, @column, N'COLUMN')`,
			sql.Named("table", s.tables.table(table)), sql.Named("right", right),
			sql.Named("column", c.Name)).Scan(&has)
		if err != nil || !has.Valid || !has.Bool {
			return false, err
		}
	}
	return true, nil
}

// noteTriggers notes the user's triggers. They run within every write and count in its duration.
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

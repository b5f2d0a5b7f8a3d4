package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/shared"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const opMigrate = "sqlite: migrate"

// bookkeeping creates the record of migrations.
const bookkeeping = `CREATE TABLE IF NOT EXISTS sqlwriter_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)`

// recordMigration adds a file to the record of migrations.
const recordMigration = `INSERT INTO sqlwriter_migration (number, name, checksum, applied_at)
VALUES (%s, %s, %s, strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now'))`

const mappingTable = "sqlwriter_mapping"

// chooseMapping records that a mapping is the one in use from now on.
const chooseMapping = `INSERT INTO sqlwriter_mapping (version, columns, chosen_at)
VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
ON CONFLICT (version) DO UPDATE SET chosen_at = excluded.chosen_at`

// recipes are those of the mapping in use.
func (s *Store) recipes(ctx context.Context) (shared.Recipes, error) {
	r, err := shared.ReadRecipes(ctx, s.reader, mappingTable, s.mapping)
	return r, classifyDependency("sqlite: mappings", err)
}

// Mappings returns the mappings that migrations chose, the last one first. Errors by kind: those of dependency scope.
func (s *Store) Mappings(ctx context.Context) ([]invoice.Recorded, error) {
	all, err := shared.Mappings(ctx, s.reader, mappingTable)
	return all, classifyDependency("sqlite: mappings", err)
}

// Migrate updates our tables (sqlwriter_*) in one transaction, and chooses the mapping of the store. It never changes
// the user's tables. Migrations only expand, so older and newer builds work on the result, and a database may have more
// than this build knows. Errors by kind: infrastructure, with code "migration_checksum" if a file that was run differs
// from this build's file.
func (s *Store) Migrate(ctx context.Context) error {
	files, err := migrationList()
	if err != nil {
		return err
	}
	return s.migrate(ctx, files)
}

func migrationList() ([]migration.File, error) {
	files, err := migration.Read(migrationFiles, "migrations")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, opMigrate, fault.CodeBug, "the migrations cannot be read", err)
	}
	return files, nil
}

// migrate runs the files that were not run before.
func (s *Store) migrate(ctx context.Context, files []migration.File) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return classify(opMigrate, err)
	}
	err = migrateIn(ctx, tx, files)
	if err == nil {
		_, err = tx.ExecContext(ctx, chooseMapping, s.mapping.Version(), shared.MappingText(s.mapping))
	}
	if err != nil {
		_ = tx.Rollback() // fails after the end of the transaction
		return classify(opMigrate, err)
	}
	return classify(opMigrate, tx.Commit())
}

func migrateIn(ctx context.Context, tx *sql.Tx, files []migration.File) error {
	if _, err := tx.ExecContext(ctx, bookkeeping); err != nil {
		return err
	}
	return record().Migrate(ctx, tx, files)
}

func record() migration.Record {
	return migration.Record{
		Op: opMigrate, Run: runMigration,
		Select: `SELECT number, name, checksum, applied_at FROM sqlwriter_migration ORDER BY number`,
	}
}

func runMigration(ctx context.Context, tx *sql.Tx, f migration.File) error {
	if _, err := tx.ExecContext(ctx, f.Text); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf(recordMigration, "?", "?", "?"), f.Number, f.Name, f.Checksum)
	return err
}

// MigrationStatus returns the state of each migration. A database without our tables has run none. Errors by kind:
// see classify.
func (s *Store) MigrationStatus(ctx context.Context) ([]migration.State, error) {
	files, err := migrationList()
	if err != nil {
		return nil, err
	}
	var tables int
	if err := s.reader.QueryRowContext(ctx,
		`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'sqlwriter_migration'`).Scan(&tables); err != nil {
		return nil, classify(opMigrate, err)
	}
	states, err := record().Status(ctx, s.reader, files, tables > 0)
	return states, classify(opMigrate, err)
}

// MigrationScript returns the SQL by which Migrate fills a file without our tables. It is for the sqlite3 program,
// which rejects it on any other file.
func MigrationScript(m *invoice.Mapping) (string, error) {
	files, err := migrationList()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(
		"-- SQL Writer: the tables sqlwriter_*, for a file that has none of them. Run it by sqlite3 -bail.\n" +
			"BEGIN IMMEDIATE;\n" + bookkeeping + ";\n")
	for _, f := range files {
		fmt.Fprintf(&b, "-- %s\n%s", f.Name, f.Text)
		fmt.Fprintf(&b, recordMigration+";\n", fmt.Sprint(f.Number), "'"+f.Name+"'", "'"+f.Checksum+"'")
	}
	text := strings.NewReplacer("?1", strconv.Itoa(m.Version()), "?2",
		"'"+strings.ReplaceAll(shared.MappingText(m), "'", "''")+"'").Replace(chooseMapping)
	b.WriteString(text + ";\nCOMMIT;\n")
	return b.String(), nil
}

package sqlserver

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/shared"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const opMigrate = "sqlserver: migrate"

// bookkeeping creates the schema and the record of migrations.
const bookkeeping = `IF SCHEMA_ID(N'sqlwriter') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter AUTHORIZATION dbo');
IF OBJECT_ID(N'sqlwriter.migration', N'U') IS NULL
    CREATE TABLE sqlwriter.migration (
        number int NOT NULL,
        name nvarchar(200) NOT NULL,
        checksum char(64) NOT NULL,
        applied_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
        applied_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
        CONSTRAINT pk_migration PRIMARY KEY (number)
    );`

// lockMigrations waits for other migrations, which would do the same work. A negative answer means that the lock was
// not granted.
const lockMigrations = `DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
SELECT @result AS result;`

// lockForScript is lockMigrations for a script, which cannot read an answer.
const lockForScript = `DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @result < 0
    THROW 52744, N'another migration is running', 1;`

// requireTransaction stops a batch of the script after an earlier batch failed.
const requireTransaction = "IF @@TRANCOUNT = 0\n    THROW 52744, N'an earlier batch failed: nothing was changed', 1;\n"

// recordMigration adds a file to the record of migrations.
const recordMigration = `INSERT INTO sqlwriter.migration (number, name, checksum) VALUES (@number, @name, @checksum);`

const mappingTable = "[sqlwriter].[mapping]"

// chooseMapping records that a mapping is the one in use from now on.
const chooseMapping = `UPDATE sqlwriter.mapping SET chosen_at = SYSUTCDATETIME() WHERE version = @version;
IF @@ROWCOUNT = 0
    INSERT INTO sqlwriter.mapping (version, columns) VALUES (@version, @columns);`

// recipes are those of the mapping in use.
func (s *Store) recipes(ctx context.Context) (shared.Recipes, error) {
	r, err := shared.ReadRecipes(ctx, s.db, mappingTable, s.tables.mapping)
	return r, classifyDependency("sqlserver: mappings", err)
}

// Mappings returns the mappings that migrations chose, the last one first. Errors by kind: those of dependency scope.
func (s *Store) Mappings(ctx context.Context) ([]invoice.Recorded, error) {
	all, err := shared.Mappings(ctx, s.db, mappingTable)
	return all, classifyDependency("sqlserver: mappings", err)
}

// Migrate updates schema sqlwriter and installs this build's procedures, in one transaction under a lock for
// migrations. It chooses the mapping of the store, and never changes the user's tables.
//
// Errors by kind:
//   - contention, code "migration_lock": another migration runs for over a minute
//   - contention, code "1222", which names the object: another session has locked it
//   - infrastructure, code "migration_checksum": a file that was run differs from this build's file
//   - others as in classify
func (s *Store) Migrate(ctx context.Context) error { return s.SetUp(ctx, SetUp{}) }

func migrationList() ([]migration.File, error) {
	files, err := migration.Read(migrationFiles, "migrations")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, opMigrate, fault.CodeBug, "the migrations cannot be read", err)
	}
	return files, nil
}

// migrate runs the files that were not run before, creates the missing procedures, and runs more.
func (s *Store) migrate(
	ctx context.Context, files []migration.File, p procedures, more func(tx *sql.Tx) error,
) error {
	return s.locked(ctx, func(tx *sql.Tx) error {
		if err := migrateIn(ctx, tx, files); err != nil {
			return err
		}
		if err := p.install(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, chooseMapping, sql.Named("version", s.tables.mapping.Version()),
			sql.Named("columns", mssql.NVarCharMax(shared.MappingText(s.tables.mapping)))); err != nil {
			return err
		}
		return more(tx)
	})
}

// sessionOptions are the options of a migration's session. A statement waits for a lock for five seconds, because all
// who come to the table after it wait too.
const sessionOptions = "SET QUOTED_IDENTIFIER ON;\nSET ANSI_NULLS ON;\nSET XACT_ABORT ON;\nSET LOCK_TIMEOUT 5000;\n"

// locked runs f in one transaction under the lock for migrations.
func (s *Store) locked(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return classifyDependency(opMigrate, err)
	}
	defer func() { _ = tx.Rollback() }() // fails after the end of the transaction
	var result int
	if err := tx.QueryRowContext(ctx, lockMigrations).Scan(&result); err != nil {
		return classifyDependency(opMigrate, fmt.Errorf("lock: %w", err))
	}
	if result < 0 {
		return fault.New(fault.Contention, opMigrate, "migration_lock",
			"another migration is running (sp_getapplock answered %d)", result)
	}
	if _, err := tx.ExecContext(ctx, sessionOptions); err != nil {
		return classifyDependency(opMigrate, err)
	}
	if err := f(tx); err != nil {
		return classifyDependency(opMigrate, err)
	}
	return classifyDependency(opMigrate, tx.Commit())
}

func migrateIn(ctx context.Context, tx *sql.Tx, files []migration.File) error {
	if _, err := tx.ExecContext(ctx, bookkeeping); err != nil {
		return fmt.Errorf("bookkeeping: %w", err)
	}
	return record().Migrate(ctx, tx, files)
}

func record() migration.Record {
	return migration.Record{
		Op: opMigrate, Run: runMigration,
		Select: `SELECT number, name, checksum, applied_at FROM sqlwriter.migration ORDER BY number`,
	}
}

func runMigration(ctx context.Context, tx *sql.Tx, f migration.File) error {
	if _, err := tx.ExecContext(ctx, f.Text); err != nil {
		return waitedFor(f.Text, err)
	}
	_, err := tx.ExecContext(ctx, recordMigration,
		sql.Named("number", f.Number), sql.Named("name", f.Name), sql.Named("checksum", f.Checksum))
	return err
}

// changed matches the first line of a statement that changes an object, and names the object.
var changed = regexp.MustCompile(
	`^\s*(?:(?:CREATE|ALTER|DROP) (?:TABLE|VIEW)|CREATE (?:UNIQUE )?INDEX \w+ ON|DROP INDEX \w+ ON|UPDATE|INSERT INTO) ([\w.]+)`)

// waitedFor adds the object to the error of a statement that waited too long for a lock. The server does not name it.
func waitedFor(script string, err error) error {
	var e mssql.Error
	if !errors.As(err, &e) || e.Number != numberLockTimeout {
		return err
	}
	object := "an object"
	for i, line := range strings.Split(script, "\n") {
		if found := changed.FindStringSubmatch(line); found != nil && i < int(e.LineNo) {
			object = found[1]
		}
	}
	return fmt.Errorf("it waited for a lock on %s: %w", object, err)
}

// numberLockTimeout is the server's number of an error of LOCK_TIMEOUT.
const numberLockTimeout = 1222

// MigrationStatus returns the state of each migration. A database without the schema has run none. Errors by kind:
// see classify.
func (s *Store) MigrationStatus(ctx context.Context) ([]migration.State, error) {
	files, err := migrationList()
	if err != nil {
		return nil, err
	}
	var there sql.NullInt64
	if err := s.db.QueryRowContext(ctx, `SELECT OBJECT_ID(N'sqlwriter.migration', N'U')`).Scan(&there); err != nil {
		return nil, classifyDependency(opMigrate, err)
	}
	states, err := record().Status(ctx, s.db, files, there.Valid)
	return states, classifyDependency(opMigrate, err)
}

// MigrationScript returns the SQL of SetUp but for sample tables, for a DBA. Its batches end with GO and
// run in one transaction under the lock of Migrate.
//
// A file's record keeps it from running twice. Where a tool goes on after an error, the next batch finds no
// transaction and stops. The options are those of the app, because the procedures depend on them.
func MigrationScript(o Options, u SetUp) (string, error) {
	files, err := migrationList()
	if err != nil {
		return "", err
	}
	t, err := tablesOf(o)
	if err != nil {
		return "", err
	}
	set, err := t.procedures()
	if err != nil {
		return "", fault.Wrap(fault.Internal, opMigrate, fault.CodeBug, "the procedures cannot be produced", err)
	}
	more, err := u.texts(t)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("-- SQL Writer: schema sqlwriter. Expand only; files that were run are left out.\n" +
		"-- Run it in the database of IVCE_DTL, by sqlcmd -b or another tool that stops at an error.\n" +
		sessionOptions + "BEGIN TRANSACTION;\n" + lockForScript + "\nGO\n" +
		requireTransaction + bookkeeping + "\nGO\n")
	for _, f := range files {
		fmt.Fprintf(&b,
			"-- %s\n"+requireTransaction+
				"IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = %d)\n    BEGIN\n        EXEC (N'\n%s');\n"+
				"        INSERT INTO sqlwriter.migration (number, name, checksum)\n        VALUES (%d, N'%s', '%s');\n    END;\nGO\n",
			f.Name, f.Number, escapeQuotes(f.Text), f.Number, f.Name, f.Checksum)
	}
	for _, p := range set.list {
		name := p.qualified(set.hash)
		fmt.Fprintf(&b, "-- %s\n"+requireTransaction+"IF OBJECT_ID(N'%s', N'P') IS NULL\n    EXEC (N'\n%s');\nGO\n",
			name, name, escapeQuotes(p.text(set.hash)))
	}
	b.WriteString(requireTransaction)
	b.WriteString("-- The set's record.\nDECLARE @hash varchar(12) = '" + set.hash +
		"';\nDECLARE @inputs nvarchar(max) = N'" +
		escapeQuotes(strings.Join(set.inputs, "\n")) + "';\n" + recordProcedures + "\nGO\n")
	b.WriteString(requireTransaction)
	b.WriteString("-- The mapping.\nDECLARE @version int = " + strconv.Itoa(o.Mapping.Version()) +
		";\nDECLARE @columns nvarchar(max) = N'" + escapeQuotes(shared.MappingText(o.Mapping)) + "';\n" +
		chooseMapping + "\nGO\n")
	for _, text := range more {
		b.WriteString(requireTransaction + text + "GO\n")
	}
	b.WriteString(requireTransaction + "COMMIT TRANSACTION;\nGO\n")
	return b.String(), nil
}

func escapeQuotes(text string) string { return strings.ReplaceAll(text, "'", "''") }

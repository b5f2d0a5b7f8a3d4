package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered file: migrations/0001_ledger.sql.
type migration struct {
	number   int
	name     string
	text     string
	checksum string
}

// bookkeeping is the table of what was run.
const bookkeeping = `CREATE TABLE IF NOT EXISTS sqlwriter_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)`

// Migrate brings our own tables (sqlwriter_*) up to date, in one transaction. It never touches the user's tables.
// Migrations only expand, so builds before and after this one run together on the result: a database that knows more
// than this build is fine. Errors by kind: infrastructure, with code "migration_checksum" when a file that was run is
// not the file that this build has.
func (s *Store) Migrate(ctx context.Context) error {
	list, err := migrations(migrationFiles)
	if err != nil {
		return fault.Wrap(fault.Internal, "sqlite: migrate", "files", "the migrations cannot be read", err)
	}
	return s.migrate(ctx, list)
}

// migrate runs what of list was not run before.
func (s *Store) migrate(ctx context.Context, list []migration) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return classify("sqlite: migrate", err)
	}
	if err := migrateIn(ctx, tx, list); err != nil {
		_ = tx.Rollback() // fails only when the transaction is over already
		return classify("sqlite: migrate", err)
	}
	return classify("sqlite: migrate", tx.Commit())
}

func migrateIn(ctx context.Context, tx *sql.Tx, list []migration) error {
	if _, err := tx.ExecContext(ctx, bookkeeping); err != nil {
		return err
	}
	for _, m := range list {
		var checksum string
		err := tx.QueryRowContext(ctx, `SELECT checksum FROM sqlwriter_migration WHERE number = ?`, m.number).Scan(&checksum)
		switch {
		case err == nil && checksum != m.checksum:
			return fault.New(fault.Infrastructure, "sqlite: migrate", "migration_checksum",
				"%s: expected the file that was run (%.12s), found %.12s: a migration that was run must not be changed", m.name, checksum, m.checksum)
		case err == nil:
			continue
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if _, err := tx.ExecContext(ctx, m.text); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if _, err := tx.ExecContext(ctx,
			`INSERT INTO sqlwriter_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))`,
			m.number, m.name, m.checksum); err != nil {
			return err
		}
	}
	return nil
}

// migrations reads the files in the order of their numbers, which must be 1, 2, 3 ...
func migrations(files fs.FS) ([]migration, error) {
	paths, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	list := make([]migration, 0, len(paths))
	for i, p := range paths { // Glob sorts
		text, err := fs.ReadFile(files, p)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(p, "migrations/"), ".sql")
		prefix, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(prefix); err != nil || n != i+1 {
			return nil, fmt.Errorf("%s: expected number %04d", p, i+1)
		}
		sum := sha256.Sum256(text)
		list = append(list, migration{number: i + 1, name: name, text: string(text), checksum: hex.EncodeToString(sum[:])})
	}
	return list, nil
}

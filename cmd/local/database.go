package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sqlwriter/cmd/local/expect"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// database is where the rows of the stack go: a SQLite file of its own, or a database on a server that somebody named.
type database interface {
	// make makes the sample schema and our own tables, where they are not there.
	make(ctx context.Context) error
	// pool writes: the detail rows that the samples need.
	pool() *sql.DB
	// read reads the three tables whole.
	read(ctx context.Context) (expect.Tables, error)
	// connection is SQL_CONNECTION for the handler, String the place for people, without a secret.
	connection() string
	String() string
	close() error
}

// journalName is the file of the kept documents: where it is, there are documents that rows belong to.
const journalName = "cosmosdb.journal"

// openDatabase opens the database before anything is started, so that one that must not be touched stops the run while
// there is nothing yet that would have to fit to it.
func (s *stack) openDatabase(ctx context.Context, c runCommand) (err error) {
	kept := exists(filepath.Join(s.dir, journalName))
	if c.SQL == "" {
		if kept && exists(filepath.Join(s.dir, pairName)) {
			return fmt.Errorf("the documents kept in %s belong to a database on a server: name it by %s, or FRESH=1 forgets them", s.dir, config.SQLConnection)
		}
		s.db, err = openSQLiteFile(filepath.Join(s.dir, "sqlwriter.db"))
		return err
	}
	s.db, err = openServer(ctx, s.out, serverOptions{dsn: c.SQL, dir: s.dir, kept: kept, once: c.Once, fresh: c.Fresh})
	return err
}

// checkConnection refuses what the stack cannot work with, before it touches anything.
func checkConnection(connection string) error {
	switch config.EngineOf(connection) {
	case config.SQLServer:
		return sqlserver.CheckDSN(connection)
	case config.SQLite:
		return errors.New(config.SQLConnection + ": expected sqlserver://..., found sqlite: the stack keeps a SQLite file of its own, without this setting")
	}
	if connection == "" {
		return nil
	}
	return fmt.Errorf("%s: expected sqlserver://..., found a text of %d characters that does not begin so", config.SQLConnection, len(connection))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// sqliteFile is the stack's own file.
type sqliteFile struct {
	path string
	db   *open.Database
}

func openSQLiteFile(path string) (database, error) {
	db, err := openSQL(sqlite.Scheme + path)
	if err != nil {
		return nil, err
	}
	return &sqliteFile{path: path, db: db}, nil
}

// openSQL opens the database of a connection string, with the columns as the samples have them.
func openSQL(connection string) (*open.Database, error) {
	return open.SQL(config.SQL{Engine: config.EngineOf(connection), Connection: config.Secret(connection)}, invoice.DefaultLayout(), false)
}

// madeHere is who says that nothing was written to the sample's tables before.
const madeHere = "the local stack"

func (f *sqliteFile) make(ctx context.Context) error {
	if err := sqlite.CreateSampleSchema(ctx, f.db.Writer); err != nil {
		return err
	}
	if err := f.db.Migrate(ctx); err != nil {
		return err
	}
	return f.db.MarkEmpty(ctx, madeHere)
}

func (f *sqliteFile) pool() *sql.DB { return f.db.Writer }

func (f *sqliteFile) read(ctx context.Context) (expect.Tables, error) {
	return expect.Read(ctx, f.db.Reader)
}

func (f *sqliteFile) connection() string { return sqlite.Scheme + f.path }
func (f *sqliteFile) String() string     { return f.path }
func (f *sqliteFile) close() error       { return f.db.Close() }

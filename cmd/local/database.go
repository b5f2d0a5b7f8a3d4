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
	"sqlwriter/cmd/local/outage"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// database is the stack's SQL database: a SQLite file of its own, or a database on a server.
type database interface {
	// make creates the sample schema and the app's own tables, if they do not exist.
	make(ctx context.Context) error
	// pool returns the connections for writing.
	pool() *sql.DB
	// read reads the three tables completely.
	read(ctx context.Context) (expect.Tables, error)
	// connection is SQL_CONNECTION. String names the database without a secret.
	connection() string
	// behindSwitch returns a switch, and SQL_CONNECTION for a handler whose SQL it takes away. The switch is nil if there can
	// be none.
	behindSwitch(ctx context.Context) (outage.Switch, string, error)
	String() string
	close() error
}

// journalName is the Cosmos DB emulator's file. If it exists, the state folder contains documents.
const journalName = "cosmosdb.journal"

// openDatabase opens the database before any server starts, so that a database in foreign use stops the run early.
func (s *stack) openDatabase(ctx context.Context, c runCommand) (err error) {
	hasState := exists(filepath.Join(s.dir, journalName))
	if c.SQL == "" {
		if hasState && exists(filepath.Join(s.dir, pairName)) {
			return fmt.Errorf("the documents in %s belong to a database on a server: set %s, or FRESH=1 deletes them", s.dir, config.SQLConnection)
		}
		s.db, err = openSQLiteFile(filepath.Join(s.dir, "sqlwriter.db"))
		return err
	}
	s.db, err = openServer(ctx, s.out, serverOptions{dsn: c.SQL, dir: s.dir, hasState: hasState, once: c.Once, fresh: c.Fresh})
	return err
}

// checkConnection refuses a connection that the stack cannot use.
func checkConnection(connection string) error {
	switch config.EngineOf(connection) {
	case config.SQLServer:
		return sqlserver.CheckDSN(connection)
	case config.SQLite:
		return errors.New(config.SQLConnection + ": expected sqlserver://..., found sqlite: without this setting the stack uses a SQLite file of its own")
	}
	if connection == "" {
		return nil
	}
	return fmt.Errorf("%s: expected sqlserver://..., found another text of %d characters", config.SQLConnection, len(connection))
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

// openSQL opens the database of a connection string, with the default column names.
func openSQL(connection string) (*open.Database, error) {
	return open.SQL(config.SQL{Engine: config.EngineOf(connection), Connection: config.Secret(connection)}, invoice.DefaultLayout(), false)
}

// adoptedBy is the name with which the stack records that its database has no earlier results.
const adoptedBy = "the local stack"

func (f *sqliteFile) make(ctx context.Context) error {
	if err := sqlite.CreateSampleSchema(ctx, f.db.Writer); err != nil {
		return err
	}
	if err := f.db.Migrate(ctx); err != nil {
		return err
	}
	return f.db.MarkEmpty(ctx, adoptedBy)
}

func (f *sqliteFile) pool() *sql.DB { return f.db.Writer }

func (f *sqliteFile) read(ctx context.Context) (expect.Tables, error) {
	return expect.Read(ctx, f.db.Reader)
}

func (f *sqliteFile) connection() string { return sqlite.Scheme + f.path }
func (f *sqliteFile) String() string     { return f.path }

func (f *sqliteFile) behindSwitch(context.Context) (outage.Switch, string, error) {
	return outage.NewFile(f.path, f.db.Writer), f.connection(), nil
}

func (f *sqliteFile) close() error { return f.db.Close() }

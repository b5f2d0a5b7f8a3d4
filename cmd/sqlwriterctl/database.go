package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// store is what both engines are to the commands.
type store interface {
	commit.Sink
	adoption
	Migrate(ctx context.Context) error
	MigrationStatus(ctx context.Context) ([]migration.State, error)
	Check(ctx context.Context) error
	Adopted(ctx context.Context) (bool, error)
	AuditLog(sysName string) ops.AuditLog
	RunStore(sysName string) run.Store
	Reports(sysName string) run.Reports
	Close() error
}

// database is an open database and what its engine calls things.
type database struct {
	store
	engine config.Engine
	layout invoice.Layout
	// reader reads; ledgerTable is our ledger there.
	reader      *sql.DB
	ledgerTable string
}

// openSQL opens the database that a source names. A SQLite file that is not there is an error: opening would make it.
func openSQL(ctx context.Context, s source) (*database, error) {
	connection := s.values[config.SQLConnection]
	layout, err := s.layout()
	if err != nil {
		return nil, err
	}
	switch config.EngineOf(connection) {
	case config.SQLServer:
		return openSQLServer(ctx, s, layout)
	case config.SQLite:
		return openSQLite(ctx, s, layout)
	}
	if connection == "" {
		return nil, &usageError{fmt.Errorf("%s is not set (connections: %s)", config.SQLConnection, s.name)}
	}
	// nothing of it is repeated: what has no scheme that we know may be a password from its first character on
	return nil, &usageError{fmt.Errorf("%s: expected sqlserver://... or sqlite:PATH, found a text of %d characters that does not begin so",
		config.SQLConnection, len(connection))}
}

func openSQLServer(ctx context.Context, s source, layout invoice.Layout) (*database, error) {
	dsn := s.values[config.SQLConnection]
	if err := sqlserver.CheckDSN(dsn); err != nil {
		return nil, &usageError{fmt.Errorf("%s from %s: %w", config.SQLConnection, s.name, err)}
	}
	db, err := sqlserver.Open(ctx, dsn, sqlserver.Options{Layout: layout, Schema: s.values[config.SQLSchema], MaxOpen: 2})
	if err != nil {
		return nil, err
	}
	return &database{store: db, engine: config.SQLServer, layout: layout, reader: db.DB(), ledgerTable: "sqlwriter.ledger"}, nil
}

func openSQLite(ctx context.Context, s source, layout invoice.Layout) (*database, error) {
	path := strings.TrimPrefix(s.values[config.SQLConnection], sqlite.Scheme)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.relative, path)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the SQLite file: %w", err)
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{Layout: layout})
	if err != nil {
		return nil, err
	}
	return &database{store: db, engine: config.SQLite, layout: layout, reader: db.Reader(), ledgerTable: "sqlwriter_ledger"}, nil
}

// layout reads the file of column names that the source names.
func (s source) layout() (invoice.Layout, error) {
	path := s.values[config.ColumnNames]
	if path == "" {
		return invoice.DefaultLayout(), nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.namesRelative, path)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return invoice.Layout{}, fmt.Errorf("%s: %w", config.ColumnNames, err)
	}
	layout, err := invoice.ReadLayout(file)
	if err != nil {
		return invoice.Layout{}, fmt.Errorf("%s: %s: %w", config.ColumnNames, path, err)
	}
	return layout, nil
}

// effectiveLayout is the layout of a command that needs no connection: of the flag, else of the source that the other
// commands would take, else of the environment alone.
func (a *app) effectiveLayout(ctx context.Context) (invoice.Layout, error) {
	s := source{name: "flag --column-names", values: map[string]string{config.ColumnNames: a.flags.names}}
	if a.flags.names == "" {
		var err error
		if s, err = a.baseSource(ctx); err != nil {
			return invoice.Layout{}, err
		}
		if s.name == "" {
			s.name, s.values[config.ColumnNames] = "the environment", a.env(config.ColumnNames)
		}
	}
	if s.values[config.ColumnNames] != "" {
		a.notef("column names: %s of %s", config.ColumnNames, s.name)
	}
	return s.layout()
}

// env is an environment variable; empty when it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// ledger reads the ledger's row of a line; nil when there is none.
func (d *database) ledger(ctx context.Context, line int64) (*shownLedger, error) {
	query := "SELECT document_id, version_us, outcome, applied_at FROM " + d.ledgerTable + " WHERE detail_id = @line" //nolint:gosec // one of two constants
	var l shownLedger
	var us int64
	// a server gives the time, SQLite its text
	var at any
	err := d.reader.QueryRowContext(ctx, query, sql.Named("line", line)).Scan(&l.DocumentID, &us, &l.Outcome, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil //nolint:nilnil // no row is an answer here
	case err != nil:
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l.Version, l.AppliedAt = time.UnixMicro(us).UTC(), fmt.Sprint(at)
	if t, ok := at.(time.Time); ok {
		l.AppliedAt = t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return &l, nil
}

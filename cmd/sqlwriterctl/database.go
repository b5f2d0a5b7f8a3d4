package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// connectSQL opens the database that a source names and connects.
func connectSQL(ctx context.Context, s source) (*open.Database, error) {
	db, err := openSQL(s)
	if err != nil {
		return nil, err
	}
	return db, db.Connect(ctx)
}

// openSQL opens the database that a source names. A missing SQLite file is an error, because connecting would create it.
func openSQL(s source) (*open.Database, error) {
	layout, err := s.layout()
	if err != nil {
		return nil, err
	}
	c := s.config().SQL
	c.MaxOpen = 2
	connection := c.Connection.Reveal()
	switch c.Engine {
	case config.SQLServer:
		if err := sqlserver.CheckDSN(connection); err != nil {
			return nil, &usageError{fmt.Errorf("%s from %s: %w", config.SQLConnection, s.name, err)}
		}
	case config.SQLite:
		path := strings.TrimPrefix(connection, sqlite.Scheme)
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.relative, path)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the SQLite file: %w", err)
		}
		c.Connection = config.Secret(path)
	default:
		if connection == "" {
			return nil, &usageError{fmt.Errorf("%s is not set (connections: %s)", config.SQLConnection, s.name)}
		}
		// The text is not repeated: without a known scheme it may be a password.
		return nil, &usageError{fmt.Errorf("%s: expected sqlserver://... or sqlite:PATH, found another text of %d characters",
			config.SQLConnection, len(connection))}
	}
	return open.SQL(c, layout, false)
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

// effectiveLayout is the layout of a command that needs no connection. It comes from the flag, else from the source that the
// other commands use, else from the environment.
func (a *app) effectiveLayout(ctx context.Context) (invoice.Layout, error) {
	s := source{name: "flag --column-names", values: map[string]string{config.ColumnNames: a.Names}}
	if a.Names == "" {
		var err error
		if s, err = a.baseSource(ctx, false); err != nil {
			return invoice.Layout{}, err
		}
		if s.name == "" || s.app != "" {
			s = source{name: "the environment", values: map[string]string{config.ColumnNames: a.env(config.ColumnNames)}}
		}
	}
	if s.values[config.ColumnNames] != "" {
		a.notef("column names: %s of %s", config.ColumnNames, s.name)
	}
	return s.layout()
}

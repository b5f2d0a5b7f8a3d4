package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// settings are the app settings of one place, for the commands that are needed before an app runs: they open SQL and
// Cosmos DB by themselves. A place is used as a whole, because a mixture could write one environment's documents to
// another's database.
type settings struct {
	// from describes the place. It contains no value.
	from string
	// get returns a setting; empty if it is not set.
	get func(name string) string
	// base is the folder of relative paths: that of the file; empty for the working directory.
	base string
}

// settings reads the settings: of --settings, else of the app that --app names, else of the environment if it names a
// connection, else of the app that SQLWRITER_APP names, else of the running local stack. Without any, those of the
// environment are returned, which may name columns.
func (a *app) settings(ctx context.Context) (settings, error) {
	switch {
	case a.App != "" && (a.Settings != "" || isAddress(a.App)):
		return settings{}, usagef("--app: this command opens SQL and Cosmos DB by itself: it takes the settings of an app " +
			"in Azure by the app's name, not its address, or those of --settings")
	case a.Settings != "":
		return settingsOf("--settings", a.Settings)
	case a.App != "":
		return a.settingsOfApp(ctx, "--app", a.App)
	}
	env := settings{from: "the environment", get: a.env}
	if env.connect() {
		return env, nil
	}
	if app := a.env(appVariable); app != "" && !isAddress(app) {
		return a.settingsOfApp(ctx, appVariable, app)
	}
	stack, running, err := stackfile.Read(ctx, filepath.Join(a.dir, stackfile.Dir))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return settings{}, err
	case running:
		return settingsOf("the running local stack, "+stackPath, stack.Settings)
	}
	return env, nil
}

// settingsOf reads the Values of a file in the form of a local.settings.json.
func settingsOf(from, path string) (settings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return settings{}, usagef("%s: %w", from, err)
	}
	var file struct {
		IsEncrypted bool
		Values      map[string]string
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return settings{}, usagef("%s: %s: %w", from, path, err)
	}
	if file.IsEncrypted {
		return settings{}, usagef("%s: %s is encrypted: decrypt it with `func settings decrypt`", from, path)
	}
	get := func(name string) string { return file.Values[name] }
	return settings{from: from, get: get, base: filepath.Dir(path)}, nil
}

// connect reports whether the settings name a connection.
func (s settings) connect() bool {
	return s.get(config.CosmosConnection)+s.get(config.CosmosEndpoint)+s.get(config.SQLConnection) != ""
}

// config makes the unchecked configuration.
func (s settings) config() config.Config {
	c := config.Of(s.get)
	c.Cosmos.Container = cmp.Or(c.Cosmos.Container, "AI_PROCESS_LOGS")
	return c
}

// connections returns the settings of a command that connects, and names their place on stderr.
func (a *app) connections(ctx context.Context) (settings, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return s, err
	}
	if !s.connect() {
		return s,
			noApp("nothing says how to connect: no --settings, no --app, no "+config.SQLConnection+" or "+
				config.CosmosConnection+" in the environment, and no running local stack",
				"`make run` or `make servers` starts a local stack; else name an app in Azure by --app, a file of app settings by --settings, or set "+config.SQLConnection+" and "+config.CosmosConnection)
	}
	a.notef("connections: %s", s.from)
	return s, nil
}

// documents opens the container of the results.
func (s settings) documents() (*cosmos.Container, error) {
	c, err := open.Results(s.config().Cosmos)
	if err != nil {
		return nil, usagef("connections of %s: %w", s.from, err)
	}
	return c, nil
}

// database opens the database and connects. A missing SQLite file is an error, because connecting would create it.
func (s settings) database(ctx context.Context) (*open.Database, error) {
	m, err := s.mapping()
	if err != nil {
		return nil, err
	}
	c := s.config().SQL
	c.MaxOpen = 2
	connection := c.Connection.Reveal()
	switch c.Engine {
	case config.SQLServer:
		if err := sqlserver.CheckDSN(connection, c.AnyCertificate); err != nil {
			return nil, usagef("%s of %s: %w", config.SQLConnection, s.from, err)
		}
	case config.SQLite:
		path := s.path(strings.TrimPrefix(connection, sqlite.Scheme))
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the SQLite file: %w", err)
		}
		c.Connection = config.Secret(path)
	default:
		if connection == "" {
			return nil, usagef("%s is not set (connections: %s)", config.SQLConnection, s.from)
		}
		// The text is not repeated: without a known scheme it may be a password.
		return nil, usagef("%s: expected sqlserver://... or sqlite:PATH, found another text of %d characters",
			config.SQLConnection, len(connection))
	}
	db, err := open.SQL(c, m, false)
	if err != nil {
		return nil, err
	}
	if err := db.Connect(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// mapping reads the file of MAPPING.
func (s settings) mapping() (*invoice.Mapping, error) {
	path := s.get(config.Mapping)
	if path != "" {
		path = s.path(path)
	}
	c := s.config()
	if c.Location == nil { // commands that need the zone check it
		c.Location = time.UTC
	}
	m, err := open.Mapping(path, c.Location)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", config.Mapping, path, err)
	}
	return m, nil
}

// path resolves a path of the settings.
func (s settings) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.base, path)
}

// withSQL opens the database and closes it after use.
func (a *app) withSQL(ctx context.Context, use func(*open.Database) error) (err error) {
	s, err := a.connections(ctx)
	if err != nil {
		return err
	}
	db, err := a.database(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return use(db)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
)

// flags are the connections of the command line; empty if not given.
type flags struct{ cosmos, database, container, sql, schema, names string }

// source is one place that connections come from.
type source struct {
	// name describes the source to the operator. It contains no value.
	name   string
	values map[string]string
	// relative is the base folder of a relative SQLite path, namesRelative that of the file of column names.
	// Both are the script root, unless a flag gives the value.
	relative, namesRelative string
}

const settingsFileName = "local.settings.json"

// scriptRoot is the handler's working directory, the base of relative paths in settings.
const scriptRoot = ".stage"

// connections returns the first source that names a connection: environment, running stack or local.settings.json.
// It never mixes sources, because that could write one environment's documents to another's database. Flags replace single
// values of the source.
func (a *app) connections(ctx context.Context) (source, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return source{}, err
	}
	if s.name == "" {
		return source{}, errors.New("no connections: pass --cosmos and --sql, set " + config.CosmosConnection + " and " + config.SQLConnection +
			", start the local stack (make run), or write a " + settingsFileName)
	}
	if s.values[config.CosmosContainer] == "" {
		s.values[config.CosmosContainer] = "AI_PROCESS_LOGS"
	}
	return s, nil
}

// settings returns the source with the values of the flags. Its name is empty if no source has a connection.
func (a *app) settings(ctx context.Context) (source, error) {
	s, err := a.baseSource(ctx)
	if err != nil {
		return source{}, err
	}
	var typed []string
	for _, f := range []struct{ flag, value, setting string }{
		{"--cosmos", a.flags.cosmos, config.CosmosConnection},
		{"--database", a.flags.database, config.CosmosDatabase},
		{"--container", a.flags.container, config.CosmosContainer},
		{"--sql", a.flags.sql, config.SQLConnection},
		{"--schema", a.flags.schema, config.SQLSchema},
		{"--column-names", a.flags.names, config.ColumnNames},
	} {
		if f.value == "" {
			continue
		}
		s.values[f.setting] = f.value
		typed = append(typed, f.flag)
		switch f.setting {
		case config.CosmosConnection: // the adapter refuses a key together with an identity
			delete(s.values, config.CosmosEndpoint)
			delete(s.values, config.CosmosClientID)
		case config.SQLConnection:
			s.relative = ""
		case config.ColumnNames:
			s.namesRelative = ""
		}
	}
	if len(typed) > 0 {
		from := "flags " + strings.Join(typed, " ")
		if s.name != "" {
			from += ", the rest from " + s.name
		}
		s.name = from
	}
	return s, nil
}

func (a *app) baseSource(ctx context.Context) (source, error) {
	get := func(name string) string {
		v, _ := a.lookup(name)
		return v
	}
	if s := pick("the environment", get); s.name != "" {
		return s, nil
	}
	local := filepath.Join(a.dir, stackfile.Dir)
	stack, running, err := stackfile.Read(ctx, local)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return source{}, err
	}
	if running {
		values, err := readSettings(stack.Settings)
		if err != nil {
			return source{}, fmt.Errorf("the running stack's settings: %w", err)
		}
		return pick("the running local stack ("+filepath.Join(stackfile.Dir, stackfile.Name)+")", func(name string) string { return values[name] }), nil
	}
	values, err := readSettings(filepath.Join(a.dir, settingsFileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return source{values: map[string]string{}}, nil
	case err != nil:
		return source{}, err
	}
	s := pick(settingsFileName, func(name string) string { return values[name] })
	s.relative = filepath.Join(a.dir, scriptRoot)
	s.namesRelative = s.relative
	return s, nil
}

// pick reads the settings of a source. The name stays empty if the source has no connection.
func pick(name string, get func(string) string) source {
	s := source{values: map[string]string{}}
	for _, setting := range config.Names() {
		if v := get(setting); v != "" {
			s.values[setting] = v
		}
	}
	for _, connection := range []string{config.CosmosConnection, config.CosmosEndpoint, config.SQLConnection} {
		if s.values[connection] != "" {
			s.name = name
		}
	}
	return s
}

// config makes the unchecked configuration of the source.
func (s source) config() config.Config {
	return config.Of(func(name string) string { return s.values[name] })
}

// readSettings reads the Values of a local.settings.json.
func readSettings(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f struct {
		IsEncrypted bool
		Values      map[string]string
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.IsEncrypted {
		return nil, fmt.Errorf("%s is encrypted: decrypt it with `func settings decrypt`, or pass flags", path)
	}
	return f.Values, nil
}

// openDocuments opens the container and names the source of the connection on stderr.
func (a *app) openDocuments(ctx context.Context) (*cosmos.Container, source, error) {
	s, err := a.connections(ctx)
	if err != nil {
		return nil, source{}, &usageError{err}
	}
	a.notef("connections: %s", s.name)
	c, err := s.openContainer()
	return c, s, err
}

// openContainer opens the container that a source names.
func (s source) openContainer() (*cosmos.Container, error) {
	c, err := open.Results(s.config().Cosmos)
	if err != nil {
		return nil, &usageError{fmt.Errorf("connections from %s: %w", s.name, err)}
	}
	return c, nil
}

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

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/opsapi"
)

// Environment variables of the app's address and of how it is opened.
const (
	appVariable      = "SQLWRITER_APP"
	keyVariable      = "SQLWRITER_KEY" //nolint:gosec // a name
	audienceVariable = "SQLWRITER_AUDIENCE"
)

// source is one place that connections come from: settings, or an app.
type source struct {
	// name describes the source to the operator. It contains no value.
	name   string
	values map[string]string
	// relative is the base folder of a relative SQLite path, namesRelative that of the file of column names.
	// Both are the script root, unless a flag gives the value.
	relative, namesRelative string
	// app is the address of an app, in place of settings. key or audience opens it; both are empty when none was found. keyEnv is the
	// environment variable that a context names for the key.
	app, key, keyEnv, audience string
}

const settingsFileName = "local.settings.json"

// scriptRoot is the handler's working directory, the base of relative paths in settings.
const scriptRoot = ".stage"

// typedConnections are the connection flags that were typed, with their settings.
func (a *app) typedConnections() (typed []struct{ flag, setting, value string }) {
	for _, f := range []struct{ flag, setting, value string }{
		{"--cosmos", config.CosmosConnection, a.Cosmos},
		{"--database", config.CosmosDatabase, a.Database},
		{"--container", config.CosmosContainer, a.Container},
		{"--sql", config.SQLConnection, a.SQL},
		{"--schema", config.SQLSchema, a.Schema},
		{"--column-names", config.ColumnNames, a.Names},
	} {
		if f.value != "" {
			typed = append(typed, f)
		}
	}
	return typed
}

// source returns the first source that names a connection: flags, environment, context, running stack, local.settings.json.
// It never mixes sources, because that could write one environment's documents to another's database. Connection flags
// replace single values of the source. wantApp means that an app can answer the command.
func (a *app) source(ctx context.Context, wantApp bool) (source, error) {
	typed := a.typedConnections()
	if a.App != "" {
		switch {
		case len(typed) > 0:
			return source{}, &usageError{errors.New("--app cannot be combined with flags for connections")}
		case !wantApp:
			return source{}, needsConnections("--app")
		}
		return source{
			name: "flag --app", app: a.App, key: cmp.Or(a.Key, a.env(keyVariable)), audience: cmp.Or(a.Audience, a.env(audienceVariable)),
		}, nil
	}
	s, err := a.baseSource(ctx, wantApp && len(typed) == 0)
	if err != nil || (s.app != "" && len(typed) == 0) {
		return s, err
	}
	if s.app != "" {
		s = source{values: map[string]string{}}
	}
	if a.Key != "" || a.Audience != "" {
		return source{}, &usageError{errors.New("--key, --audience: go with --app, or with " + appVariable)}
	}
	var flags []string
	for _, f := range typed {
		s.values[f.setting] = f.value
		flags = append(flags, f.flag)
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
		from := "flags " + strings.Join(flags, " ")
		if s.name != "" {
			from += ", the rest from " + s.name
		}
		s.name = from
	}
	return s, nil
}

func needsConnections(what string) error {
	return &advisedError{
		&usageError{fmt.Errorf("%s names an app, and this command needs connections to Cosmos DB or SQL", what)},
		"pass --cosmos and --sql, or --context of a context with settings",
	}
}

// baseSource returns the first source behind the flags. Its name is empty if there is none.
func (a *app) baseSource(ctx context.Context, wantApp bool) (source, error) {
	chosen, named, asked, err := a.chosenContext()
	if err != nil {
		return source{}, err
	}
	if a.Context == "" {
		if wantApp && a.env(appVariable) != "" {
			return source{
				name: appVariable, app: a.env(appVariable), key: cmp.Or(a.Key, a.env(keyVariable)), audience: cmp.Or(a.Audience, a.env(audienceVariable)),
			}, nil
		}
		if s := pick("the environment", a.env); s.name != "" && !asked {
			return s, nil
		}
	}
	if named.Settings != "" {
		return settingsSource("context "+chosen, named.Settings)
	}
	if chosen != "" {
		return source{
			name: "context " + chosen, app: named.App, key: cmp.Or(a.Key, a.env(named.KeyEnv)), keyEnv: named.KeyEnv, audience: cmp.Or(a.Audience, named.Audience),
		}, nil
	}
	stack, running, err := stackfile.Read(ctx, filepath.Join(a.dir, stackfile.Dir))
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
	s, err := settingsSource(settingsFileName, filepath.Join(a.dir, settingsFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return source{values: map[string]string{}}, nil
	}
	return s, err
}

// settingsSource is the source that a settings file names.
func settingsSource(name, path string) (source, error) {
	values, err := readSettings(path)
	if err != nil {
		return source{}, err
	}
	s := pick(name, func(name string) string { return values[name] })
	s.relative = filepath.Join(filepath.Dir(path), scriptRoot)
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

// connections returns the source of a command that connects by itself, and names it on stderr.
func (a *app) connections(ctx context.Context) (source, error) {
	s, err := a.source(ctx, false)
	switch {
	case err != nil:
		return source{}, err
	case s.app != "":
		return source{}, needsConnections(s.name)
	}
	return s, a.use(&s)
}

// use names a source with settings on stderr, and completes it.
func (a *app) use(s *source) error {
	switch {
	case s.name == "" && a.env(appVariable) != "":
		return needsConnections(appVariable)
	case s.name == "":
		return &advisedError{
			&usageError{errors.New("there is nothing to connect to")},
			"start the local stack (make run), or pass --app or --cosmos and --sql, or `sqlwriterctl context add`; `sqlwriterctl --help` lists the ways",
		}
	}
	if s.values[config.CosmosContainer] == "" {
		s.values[config.CosmosContainer] = "AI_PROCESS_LOGS"
	}
	a.notef("connections: %s", s.name)
	return nil
}

// openDocuments opens the container and names the source of the connection on stderr.
func (a *app) openDocuments(ctx context.Context) (*cosmos.Container, source, error) {
	s, err := a.connections(ctx)
	if err != nil {
		return nil, source{}, err
	}
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

// operate calls use with an app or with the use cases in this process, and names the source on stderr.
func (a *app) operate(ctx context.Context, use func(opsapi.Caller) error) error {
	s, err := a.source(ctx, true)
	if err != nil {
		return err
	}
	if s.app == "" {
		if err := a.use(&s); err != nil {
			return err
		}
		return a.asTyped(a.direct(ctx, s, use))
	}
	caller, how, err := s.caller()
	if err != nil {
		return &usageError{err}
	}
	a.notef("connections: the app of %s, %s", s.name, how)
	return a.asTyped(use(caller))
}

// caller opens the app of a source. A key wins over a sign-in.
func (s source) caller() (caller opsapi.Caller, how string, err error) {
	switch {
	case s.key != "":
		caller, err = remote(s.app, s.key)
		how = "with a function key"
	case s.audience != "":
		caller, err = signedIn(s.app, s.audience)
		how = "as the signed-in user"
	case s.keyEnv != "":
		err = fmt.Errorf("the app of %s needs a function key, and the environment variable %s is not set", s.name, s.keyEnv)
	default:
		err = fmt.Errorf("the app of %s needs a function key (%s) or a sign-in (--audience, %s)", s.name, keyVariable, audienceVariable)
	}
	return caller, how, err
}

// remote makes the caller of an app that a key opens.
func remote(address, key string) (opsapi.Caller, error) {
	return opsapi.Remote(address, opsapi.Credential{Key: key}, nil)
}

// signedIn makes the caller of an app that the user of az or azd opens.
func signedIn(address, audience string) (opsapi.Caller, error) {
	cli, err := azidentity.NewAzureCLICredential(nil)
	if err != nil {
		return nil, err
	}
	azd, err := azidentity.NewAzureDeveloperCLICredential(nil)
	if err != nil {
		return nil, err
	}
	chain, err := azidentity.NewChainedTokenCredential([]azcore.TokenCredential{cli, azd}, nil)
	if err != nil {
		return nil, err
	}
	return opsapi.Remote(address, opsapi.Credential{Token: func(ctx context.Context) (string, error) {
		token, err := chain.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{strings.TrimSuffix(audience, "/.default") + "/.default"}})
		if err != nil {
			return "", &advisedError{fmt.Errorf("nobody is signed in: %w", err), "sign in with `az login` or `azd auth login`"}
		}
		return token.Token, nil
	}}, nil)
}

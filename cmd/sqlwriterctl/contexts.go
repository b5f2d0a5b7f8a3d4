package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// contextVariable names a context in the environment.
const contextVariable = "SQLWRITER_CONTEXT"

// namedContext is a named source of connections. It holds no secret: KeyEnv names the environment variable of a key.
type namedContext struct {
	// App is the address of an app. KeyEnv or Audience says how it is opened.
	App      string `json:"app,omitempty"`
	KeyEnv   string `json:"key_env,omitempty"`
	Audience string `json:"audience,omitempty"`
	// Settings is the absolute path of a settings file, in place of App.
	Settings string `json:"settings,omitempty"`
}

// contextFile is the file of contexts, in the operator's configuration folder.
type contextFile struct {
	Current  string                  `json:"current,omitempty"`
	Contexts map[string]namedContext `json:"contexts"`
}

type contextCommands struct {
	Add    contextAddCommand    `cmd:"" help:"Add or replace a context; the first one becomes the current one."`
	Use    contextUseCommand    `cmd:"" help:"Make a context the current one."`
	List   contextListCommand   `cmd:"" help:"List the contexts."`
	Remove contextRemoveCommand `cmd:"" help:"Remove a context."`
}

type contextAddCommand struct {
	Name     string `arg:"" help:"The context's name."`
	KeyEnv   string `help:"The environment variable that holds a function key of Ops. The key itself is never stored." placeholder:"VARIABLE"`
	Settings string `help:"In place of --app: a file in the form of local.settings.json." placeholder:"FILE" type:"path"`
}

// Run adds the context. The address and the audience are those of the global flags.
func (c *contextAddCommand) Run(a *app) error {
	added := namedContext{App: a.App, KeyEnv: c.KeyEnv, Audience: a.Audience, Settings: c.Settings}
	switch {
	case (added.App == "") == (added.Settings == ""):
		return &usageError{errors.New("expected either --app with --key-env or --audience, or --settings")}
	case a.Key != "":
		return &usageError{errors.New("--key: a context stores no key: --key-env names the environment variable that holds it")}
	case added.App != "" && (added.KeyEnv == "") == (added.Audience == ""):
		return &usageError{errors.New("--app: expected either --key-env or --audience beside it")}
	case added.Settings != "" && (added.KeyEnv != "" || added.Audience != ""):
		return &usageError{errors.New("--key-env, --audience: go with --app")}
	case c.Name == "" || strings.ContainsAny(c.Name, " \t\n/"):
		return &usageError{fmt.Errorf("expected a name without spaces and slashes, found %q", c.Name)}
	}
	if added.App != "" {
		if _, err := remote(added.App, "key"); err != nil {
			return &usageError{fmt.Errorf("--app: %w", err)}
		}
	} else if _, err := readSettings(added.Settings); err != nil {
		return &usageError{fmt.Errorf("--settings: %w", err)}
	}
	return a.changeContexts(func(f *contextFile) error {
		f.Contexts[c.Name] = added
		if f.Current == "" {
			f.Current = c.Name
		}
		a.notef("context %s: %s", c.Name, added.describe())
		return nil
	})
}

func (c namedContext) describe() string {
	switch {
	case c.KeyEnv != "":
		return c.App + ", key of " + c.KeyEnv
	case c.App != "":
		return c.App + ", as the signed-in user"
	}
	return "settings of " + c.Settings
}

type contextUseCommand struct {
	Name string `arg:"" help:"The context's name." values:"contexts"`
}

// Run makes it the current context.
func (c *contextUseCommand) Run(a *app) error {
	return a.changeContexts(func(f *contextFile) error {
		f.Current = c.Name
		a.notef("the current context is %s: %s", c.Name, f.Contexts[c.Name].describe())
		return nil
	})
}

type contextRemoveCommand struct {
	Name string `arg:"" help:"The context's name." values:"contexts"`
}

// Run removes the context.
func (c *contextRemoveCommand) Run(a *app) error {
	return a.changeContexts(func(f *contextFile) error {
		delete(f.Contexts, c.Name)
		if f.Current == c.Name {
			f.Current = ""
			a.notef("no context is the current one now")
		}
		return nil
	})
}

type contextListCommand struct{}

// Run lists the contexts.
func (c *contextListCommand) Run(a *app) error {
	f, err := a.readContexts()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(f.Contexts))
	return a.emit(f, names, func() error {
		rows := [][]string{{"CURRENT", "NAME", "CONNECTS TO"}}
		for _, name := range names {
			mark := ""
			if name == f.Current {
				mark = "*"
			}
			rows = append(rows, []string{mark, name, f.Contexts[name].describe()})
		}
		return a.table(rows)
	})
}

func (e environment) contextPath() string {
	return filepath.Join(e.configDir, "sqlwriterctl", "contexts.json")
}

// readContexts reads the file of contexts; without one it is empty.
func (e environment) readContexts() (contextFile, error) {
	f := contextFile{Contexts: map[string]namedContext{}}
	if e.configDir == "" {
		return f, nil
	}
	b, err := os.ReadFile(e.contextPath())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return f, fmt.Errorf("the file of contexts: %s: %w", e.contextPath(), err)
	}
	return f, nil
}

// changeContexts changes the file of contexts. It is replaced as a whole, and only its owner may read it.
func (e environment) changeContexts(change func(*contextFile) error) error {
	if e.configDir == "" {
		return errors.New("contexts need a home folder: neither HOME nor XDG_CONFIG_HOME is set")
	}
	f, err := e.readContexts()
	if err != nil {
		return err
	}
	if err := change(&f); err != nil {
		return err
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("the file of contexts: %w", err)
	}
	path := e.contextPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("the file of contexts: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "contexts-*") // 0600
	if err != nil {
		return fmt.Errorf("the file of contexts: %w", err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // renamed
	_, err = tmp.Write(append(text, '\n'))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("the file of contexts: %w", err)
	}
	return os.Rename(tmp.Name(), path)
}

// chosenContext returns the context of --context or SQLWRITER_CONTEXT, else the current one; an empty name if there is none.
// asked means that it was named for this command.
func (a *app) chosenContext() (name string, c namedContext, asked bool, err error) {
	f, err := a.readContexts()
	if err != nil {
		return "", c, false, err
	}
	name, source := a.Context, "--context"
	if name == "" {
		name, source = a.env(contextVariable), contextVariable
	}
	asked = name != ""
	if !asked {
		name = f.Current
	}
	c, known := f.Contexts[name]
	if asked && !known {
		return "", c, false, &usageError{unknownValue(source, name, slices.Sorted(maps.Keys(f.Contexts)))}
	}
	if !known {
		name = ""
	}
	return name, c, asked, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// every is the interval of asking for the list, and within how long a function may take to appear: the host loads
	// them after the deployment has ended.
	every, within = 10 * time.Second, 3 * time.Minute
)

// check compares an app with a source. The host leaves out a function that it cannot load, goes on with the others, and
// Health says ready (docs/facts.md F35). func has the list of functions, and az the errors of each: a function with a
// missing setting is on the list (docs/facts.md F107). Without az it says that errors were not looked up.
type check struct {
	tool

	app, source string
}

// check is an error if a function is missing or has an error, or if the list cannot be had.
func (c check) check(ctx context.Context) error {
	want, err := c.functions()
	if err != nil {
		return err
	}
	missing := want
	for waited := time.Duration(0); ; waited += every {
		list, err := c.run(ctx, program{}, "func", "azure", "functionapp", "list-functions", c.app)
		if err != nil {
			return fmt.Errorf("the functions of %s cannot be listed: %w", c.app, err)
		}
		there := listed(list)
		missing = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(there, name) })
		if len(missing) == 0 || waited >= within {
			break
		}
		c.say(fmt.Sprintf("%s has no %s yet", c.app, strings.Join(missing, ", ")))
		if err := c.wait(ctx, every); err != nil {
			return err
		}
	}
	found, err := c.errors(ctx,
		slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(missing, name) }))
	for _, name := range missing {
		found = append(found,
			fmt.Sprintf("%s is missing: the host left it out, and its log says why (event 402 of Host.Startup)", name))
	}
	switch {
	case len(found) > 0:
		return fmt.Errorf("%s does not run every function:\n  %s", c.app, strings.Join(found, "\n  "))
	case err != nil:
		c.say(
			fmt.Sprintf(
				"%s has all %d functions. Whether they have errors was not looked up: %v", c.app, len(want), err))
	default:
		c.say(fmt.Sprintf("%s has all %d functions, and none of them has an error", c.app, len(want)))
	}
	return nil
}

// functions lists the folders of functions/.
func (c check) functions() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(c.source, "functions", "*", "function.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("no functions/*/function.json in " + c.source)
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(filepath.Dir(path))
	}
	return names, nil
}

// listed returns the functions that the output of list-functions names: "    NAME - [trigger]".
func listed(output []byte) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^ +(\S+) - \[`).FindAllSubmatch(output, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// errors returns the errors that the host has for functions. The error means that they could not all be asked for.
func (c check) errors(ctx context.Context, names []string) (found []string, err error) {
	var apps []struct{ ID string }
	if err := c.az(ctx, &apps, "resource", "list",
		"--resource-type", "Microsoft.Web/sites", "--name", c.app); err != nil {
		return nil, err
	}
	if len(apps) == 0 {
		return nil, fmt.Errorf("az knows no app %s in its subscription", c.app)
	}
	for _, name := range names {
		var status struct{ Errors []string }
		if err := c.az(ctx, &status, "rest", "--method", "get", "--url",
			apps[0].ID+"/hostruntime/admin/functions/"+name+"/status?api-version=2022-03-01"); err != nil {
			return found, fmt.Errorf("the status of %s: %w", name, err)
		}
		for _, text := range status.Errors {
			found = append(found, name+": "+text)
		}
	}
	return found, nil
}

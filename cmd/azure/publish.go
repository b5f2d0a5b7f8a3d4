package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Roles of Azure are in force some minutes after they were given. Until then the app's identity may not store the
// package, and the platform says 403.
const again, rolesWithin = 30 * time.Second, 5 * time.Minute

// publication publishes this source to an app.
type publication struct {
	tool

	app, migrated string
}

// publish publishes, once the database has what this build calls, and looks at what became of it.
func (p publication) publish(ctx context.Context) error {
	if p.app == "" {
		return errors.New("make publish APP=name")
	}
	if err := p.due(ctx); err != nil {
		return err
	}
	if _, err := p.run(ctx, program{shown: true}, "go", "run", "./cmd/stage",
		"-goos", "linux", "-goarch", "amd64", "-publish"); err != nil {
		return err
	}
	forbidden := regexp.MustCompile(`(?i)\b(upload|storage|blob)\b[^\n]*\b403\b`)
	for waited := time.Duration(0); ; waited += again {
		_, err := p.run(ctx, program{dir: ".stage", shown: true},
			"func", "azure", "functionapp", "publish", p.app, "--custom", "--no-build")
		if err == nil {
			break
		}
		var failed *failure
		if !errors.As(err, &failed) || !forbidden.MatchString(failed.said) || waited >= rolesWithin {
			return err
		}
		p.say("The app's identity may not store the package yet: a role is in force after some minutes. Trying again.")
		if err := p.wait(ctx, again); err != nil {
			return err
		}
	}
	return p.look(ctx)
}

// look waits for what is not yet there. What nobody may look at, or takes longer, is said and is no failure.
func (p publication) look(ctx context.Context) error {
	const attention = 3 // of sqlwriterctl
	_, err := p.run(ctx, program{shown: true}, "bin/sqlwriterctl", "doctor", "--app", p.app, "--wait", "5m")
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) && exit.ExitCode() == attention {
		p.say("Published. Look at what is not ok: bin/sqlwriterctl doctor --app " + p.app)
		return nil
	}
	return err
}

// due is an error if the database lacks what this build calls, or nobody can tell.
func (p publication) due(ctx context.Context) error {
	from, database := []string{"--app", p.app}, "the database of "+p.app
	if os.Getenv("SQL_CONNECTION") != "" { // with its SQL_SCHEMA and MAPPING
		from, database = nil, "the database of SQL_CONNECTION"
	}
	if p.migrated == "" {
		_, err := p.run(ctx, program{}, "bin/sqlwriterctl", append([]string{"migrate", "status"}, from...)...)
		if err == nil {
			p.say("migrate up is not due: " + database + " has what this build calls")
			return nil
		}
		p.say(err.Error())
	}
	script, err := p.run(ctx, program{}, "bin/sqlwriterctl",
		append([]string{"migrate", "script", "--engine", "sqlserver"}, from...)...)
	if err != nil {
		return err
	}
	set := regexp.MustCompile(`@hash varchar\(12\) = '(\w+)'`).FindSubmatch(script)
	switch {
	case set == nil:
		return errors.New("migrate script names no set of procedures")
	case p.migrated == string(set[1]):
		return nil
	}
	return fmt.Errorf("nothing was published: migrate up is due, or the database cannot be asked from here.\n"+
		"  bin/sqlwriterctl migrate up --app %s\n"+
		"This build calls the procedures %s. Where another person ran its script: make publish APP=%[1]s MIGRATED=%[2]s",
		p.app, set[1])
}

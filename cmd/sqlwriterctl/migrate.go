package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	exampleDocuments "sqlwriter/examples"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// migrateCommands groups the commands about this app's own tables. They never touch the user's tables.
type migrateCommands struct {
	Up     migrateUpCommand     `cmd:"" help:"Run the pending migrations."`
	Status migrateStatusCommand `cmd:"" help:"Show the migrations of the database. Exit code 1 if one is missing."`
	Prune  migratePruneCommand  `cmd:"" help:"Drop procedures of other builds that none has started with for 90 days, and name them."`
	Script migrateScriptCommand `cmd:"" help:"Print the SQL of all migrations, for a database administrator to run."`
}

// appUser are the flags of the database's user of the app.
type appUser struct {
	User     string `and:"user" help:"Make the database's user of this name too, with the app's rights: the app's identity." placeholder:"NAME"`
	ClientID string `name:"client-id" and:"user" help:"The client id of that identity." placeholder:"ID"`
}

// setUp is what the flags ask for. An engine without users makes none.
func (u appUser) setUp(a *app, engine config.Engine) sqlserver.SetUp {
	if u.User != "" && engine == config.SQLite {
		a.notef("SQLite has no users: --user makes none")
		u = appUser{}
	}
	return sqlserver.SetUp{User: u.User, ClientID: u.ClientID}
}

// migrateUpCommand runs the pending migrations. The login must own the schema; the app's login does not.
type migrateUpCommand struct {
	NewMapping bool `help:"Choose this mapping although the database has another one, on purpose."`
	appUser
	SampleTables bool   `help:"For a trial: make IVCE_DTL and IVCE_TRKG_MSTR too, with the rows of examples/. Refused where IVCE_DTL exists."`
	History      string `enum:",empty" default:"" help:"empty: record, as ledger adopt --empty does, that no other program has written results." placeholder:"empty"`
}

// Run runs the migrations and prints their names, and what has to follow.
func (c *migrateUpCommand) Run(ctx context.Context, a *app) (err error) {
	s, err := a.connections(ctx)
	if err != nil {
		return err
	}
	var container *cosmos.Container
	if c.History != "" {
		if container, err = s.documents(); err != nil {
			return err
		}
		defer container.Close()
	}
	db, err := a.database(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := c.migrate(ctx, a, db); err != nil {
		return err
	}
	if container != nil {
		err := (&ledgerAdoptCommand{}).empty(ctx, a, container, db, s.config())
		if fault.As(err) != nil {
			return advised(err, "the migrations are done; the same command, given again, does the rest")
		}
		return err
	}
	state, err := db.State(ctx)
	if err == nil && !state.Adopted() {
		a.notef("the app commits nothing before it knows what other programs have written: docs/cutover.md goes on " +
			"with \"2. Shadow\"; for a database with nothing in it add --history empty")
	}
	return err
}

// make runs the migrations, makes what the flags ask for, and counts the latter.
func (c *migrateUpCommand) make(ctx context.Context, a *app, db *open.Database) (made int, err error) {
	u := c.setUp(a, db.Engine)
	if c.SampleTables {
		if u.Lines, err = exampleDocuments.Lines(); err != nil {
			return 0, err
		}
	}
	if s, ok := db.Store.(*sqlserver.Store); ok {
		err = s.SetUp(ctx, u)
	} else if err = db.Migrate(ctx); err == nil && c.SampleTables {
		err = sqlite.MakeSample(ctx, db.Writer, db.Mapping, u.Lines)
	}
	if err == nil && c.SampleTables {
		a.printf("IVCE_DTL, IVCE_TRKG_MSTR: samples with the rows of examples/")
		made++
	}
	if err == nil && u.User != "" {
		a.printf("user %s: it has the app's rights", u.User)
		made++
	}
	return made, err
}

// migrate runs the migrations and prints their names.
func (c *migrateUpCommand) migrate(ctx context.Context, a *app, db *open.Database) error {
	before, err := db.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	mapping, err := chosenMapping(ctx, db, before)
	if err != nil {
		return err
	}
	if mapping.other() {
		if err := a.table(mapping.changes()); err != nil {
			return err
		}
		if !c.NewMapping {
			return mapping.refusal()
		}
	}
	had, err := procedureState(ctx, db)
	if err != nil {
		return err
	}
	ran, err := c.make(ctx, a, db)
	if err != nil {
		return err
	}
	after, err := db.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	was := map[int]migration.Status{}
	for _, s := range before {
		was[s.Number] = s.Status
	}
	for _, s := range after {
		if s.Status == migration.Applied && was[s.Number] == migration.Pending {
			a.printf("%s: done", s.Name)
			ran++
		}
	}
	is, err := procedureState(ctx, db)
	if err != nil {
		return err
	}
	if is != nil && len(had.Missing) > 0 {
		a.printf("%s", is.Describe())
		ran++
	}
	if is != nil {
		for _, line := range is.Owners {
			a.printf("%s", line)
		}
	}
	if mapping.Chosen != mapping.Version {
		a.printf("mapping: version %d is the chosen one", mapping.Version)
		ran++
	}
	if ran == 0 {
		a.printf("nothing to do: the database has all %d migrations of this build",
			migration.Count(after, migration.Applied))
	}
	return nil
}

// procedureState returns the state of the stored procedures; nil for an engine without procedures.
func procedureState(ctx context.Context, db *open.Database) (*sqlserver.ProcedureState, error) {
	s, ok := db.Store.(*sqlserver.Store)
	if !ok {
		return nil, nil //nolint:nilnil // nil means no procedures
	}
	state, err := s.ProcedureState(ctx)
	return &state, err
}

// migratePruneCommand drops the procedures that no build has used for long.
type migratePruneCommand struct{}

// Run drops the sets and names what went.
func (c *migratePruneCommand) Run(ctx context.Context, a *app) error {
	return a.withSQL(ctx, func(db *open.Database) error {
		s, ok := db.Store.(*sqlserver.Store)
		if !ok {
			a.printf("nothing to do: SQLite has no procedures")
			return nil
		}
		dropped, err := s.Prune(ctx)
		if err != nil {
			return err
		}
		for _, p := range dropped {
			a.printf("%s: dropped, last used on %s", p.Procedure, p.UsedOn.Format(time.DateOnly))
		}
		if len(dropped) == 0 {
			a.printf("nothing to do: no other build's procedures are unused for 90 days")
		}
		return nil
	})
}

type migrateStatusCommand struct{}

// shownSchema is the result for programs.
type shownSchema struct {
	Migrations []migration.State `json:"migrations"`
	// Procedures is nil for an engine without procedures.
	Procedures *sqlserver.ProcedureState `json:"procedures,omitempty"`
	Mapping    shownMapping              `json:"mapping"`
}

// Run shows every migration, and the procedures. It changes nothing.
func (c *migrateStatusCommand) Run(ctx context.Context, a *app) error {
	return a.withSQL(ctx, func(db *open.Database) error {
		states, err := db.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		procedures, err := procedureState(ctx, db)
		if err != nil {
			return err
		}
		mapping, err := chosenMapping(ctx, db, states)
		if err != nil {
			return err
		}
		if err := c.print(a, shownSchema{states, procedures, mapping}); err != nil {
			return err
		}
		if err := behind(states); err != nil {
			return err
		}
		if procedures != nil && len(procedures.Owners) > 0 {
			return errors.New(strings.Join(procedures.Owners, "; "))
		}
		if procedures != nil && len(procedures.Missing) > 0 {
			return advised(errors.New("some procedures that this build calls are missing"),
				"`sqlwriterctl migrate up` installs them")
		}
		if mapping.other() {
			return mapping.refusal()
		}
		return nil
	})
}

func (c *migrateStatusCommand) print(a *app, shown shownSchema) error {
	rows := [][]string{{"NUMBER", "NAME", "STATUS", "AT"}}
	for _, s := range shown.Migrations {
		rows = append(rows, []string{strconv.Itoa(s.Number), s.Name, string(s.Status), a.time(s.At)})
	}
	return a.emit(shown, idsOf(shown.Migrations, func(s migration.State) string { return s.Name }), func() error {
		if err := a.table(rows); err != nil {
			return err
		}
		if shown.Procedures != nil {
			a.printf("%s", a.says(shown.Procedures.Describe()))
		}
		a.printf("mapping: this one is version %d; chosen: %s", shown.Mapping.Version, shown.Mapping.chosen())
		return nil
	})
}

// behind is an error unless the database has all migrations of this build. Migrations of a newer build do no harm.
func behind(states []migration.State) error {
	if n := migration.Count(states, migration.Changed); n > 0 {
		return fmt.Errorf(
			"%d migrations were run from other files than this build's: a migration must not change after it was run", n)
	}
	if n := migration.Count(states, migration.Pending); n > 0 {
		return advised(fmt.Errorf("%d migrations are pending", n), "`sqlwriterctl migrate up` runs them")
	}
	return nil
}

type migrateScriptCommand struct {
	appUser
	Engine string `enum:"auto,sqlserver,sqlite" default:"auto" help:"sqlserver or sqlite; auto is the connection's, else sqlserver." placeholder:"NAME"`
}

// Run prints the script without connecting. Mapping and schema come from the settings.
func (c *migrateScriptCommand) Run(ctx context.Context, a *app) error {
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	engine := config.Engine(c.Engine)
	if c.Engine == "auto" {
		engine = config.EngineOf(s.get(config.SQLConnection))
	}
	m, err := s.mapping()
	if err != nil {
		return err
	}
	var text string
	if engine == config.SQLite {
		c.setUp(a, engine)
		text, err = sqlite.MigrationScript(m)
	} else {
		engine = config.SQLServer
		o := sqlserver.Options{Mapping: m, Schema: s.get(config.SQLSchema)}
		text, err = sqlserver.MigrationScript(o, c.setUp(a, engine))
	}
	a.notef("script for %s; it chooses the mapping %s", engine, open.MappingInUse(s.get(config.Mapping), m))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(a.stdout, text); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return nil
}

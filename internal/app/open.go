package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlserver"
)

// dependency is one thing that the work needs: open is called until it succeeds, close at the end. A nil close does nothing.
type dependency struct {
	name  string
	open  func(ctx context.Context) error
	close func() error
}

// clients are those that ask nothing when they are made.
type clients struct {
	results *cosmos.Container
	control breaker.ControlStore // nil in a shadow
	// evidence that is down keeps no document from being committed, only poison messages from being made; so with queues.
	evidence             commit.Evidence
	runQueue, batchQueue run.Queue
	closers              []func()
}

// newClients makes them. An adapter alone understands some of its settings (the key's form, an address that is not to be
// trusted): its problems are reported together with known, those that the settings have by themselves.
func newClients(c config.Config, known config.Problems, seen func(string, error)) (m clients, problems config.Problems) {
	results, err := open.Results(c.Cosmos)
	if err == nil {
		m.results = results
		m.closers = append(m.closers, results.Close)
	}
	problems = slices.Concat(adapterProblem(config.CosmosConnection, err, known, "COSMOS_"), sqlProblems(c, known))
	if c.Mode == config.ModeShadow { // what it looks at must not move the live app's breaker
	} else if control, err := open.Control(c.Cosmos); err == nil {
		m.control = cosmos.NewControl(control, c.SysName)
		m.closers = append(m.closers, control.Close)
	}
	evidence, err := open.Evidence(c.Blob, c.SysName)
	if err == nil {
		m.evidence = watchedEvidence{evidence, seen}
		m.closers = append(m.closers, evidence.Close)
	}
	problems = append(problems, adapterProblem(config.BlobConnection, err, known, "BLOB_", config.PoisonContainer)...)
	namespace, err := open.ServiceBus(c.ServiceBus)
	if err == nil {
		m.runQueue = watchedQueue{namespace.Queue(c.ServiceBus.RunsQueue), seen}
		m.batchQueue = watchedQueue{namespace.Queue(c.ServiceBus.BatchesQueue), seen}
		m.closers = append(m.closers, namespace.Close)
	}
	return m, append(problems, adapterProblem(config.ServiceBusConnection, err, known, config.ServiceBusConnection)...)
}

// adapterProblem says that an adapter refuses its settings. It says nothing when a setting with one of the prefixes has a known
// problem: the adapter's follows from it.
func adapterProblem(setting string, err error, known config.Problems, prefixes ...string) config.Problems {
	for _, p := range known {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p.Setting, prefix) }) {
			return nil
		}
	}
	if err == nil {
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil && e.Err != nil {
		found = strings.ReplaceAll(e.Err.Error(), "\n", "; ") // it names settings and never a key
	}
	return config.Problems{{Setting: setting, Expected: "a connection that can be used", Found: found}}
}

func (m clients) close() {
	for _, closeFn := range slices.Backward(m.closers) {
		closeFn()
	}
}

// newBreaker makes the breaker over the control document. Nothing is asked for yet.
func newBreaker(c config.Config, build string, control breaker.ControlStore, sink commit.Sink, log zerolog.Logger) *breaker.Breaker {
	o := breaker.Options{
		Instance: instance(), Build: build, MaxPoisonPerHour: c.MaxPoisonPerHour, Log: log,
		SysName: c.SysName, Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
	}
	if c.Mode == config.ModeShadow { // it writes nothing, no heartbeat either
		o.Heartbeat = func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
			_, err := sink.Apply(ctx, nil, commit.Preview, known)
			return breaker.Heartbeat{}, err
		}
	}
	return breaker.New(control, o)
}

// openCosmos reads the container's metadata once: it takes the cost of the first connection off the first batch, and a wrong
// key is seen before a batch is.
func (a *App) openCosmos(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return a.clients.results.Ping(ctx)
}

// openSQL checks SQL by the breaker's heartbeat: what is wrong with it stops the flow like any outage. Beside a pause, which
// says nothing of SQL, it is checked all the same: this instance is then as ready as the others.
func (a *App) openSQL(ctx context.Context) error {
	if a.breaker.View(ctx).Control.Breaker.Name != breaker.Paused {
		if err := a.breaker.Tick(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := a.sql.Ready(ctx); err != nil {
		return err
	}
	if a.config.Mode != config.ModeShadow {
		a.work = newWork(run.Ports{
			Store: a.db.RunStore(a.config.SysName), Selection: a.clients.results.Selection(), Documents: watchedDocuments{a.clients.results, a.status.seen},
			Commit: a.commit, Breaker: a.breaker, RunQueue: a.clients.runQueue, BatchQueue: a.clients.batchQueue, Evidence: a.clients.evidence,
		}, a.runOptions())
	}
	return nil
}

// useSQL makes the app work on db. check is called before its first request; the status learns what is wrong with it.
func (a *App) useSQL(db *open.Database, check func(ctx context.Context) error) {
	a.db = db
	a.sql = open.NewChecked(db, func(ctx context.Context) error {
		err := asInfrastructure(depSQL, check(ctx))
		if err != nil {
			a.status.seen(depSQL, err)
			a.status.lacks(depSQL, depSQL+": "+explain(err))
		}
		return err
	})
}

// checkSQL checks that the tables are what the statements need, and that the ledger may be relied on. Our own tables in a SQLite
// file are brought up to date on the way: the file is ours. On a server the app has no right to, and Check says which command to
// run.
func (a *App) checkSQL(ctx context.Context) error {
	if a.db.Engine == config.SQLite {
		if err := a.db.Migrate(ctx); err != nil {
			return err
		}
	}
	if err := a.db.Check(ctx); err != nil {
		return err
	}
	if a.config.Mode != config.ModeShadow { // a shadow writes nothing that could overwrite something newer
		if err := a.db.CheckAdopted(ctx, "app: open sql"); err != nil {
			return err
		}
	}
	if n, ok := a.db.Store.(interface{ Notes() []string }); ok {
		for _, note := range n.Notes() { // triggers, columns that round: part of every write from now on
			a.log.Info().Str("note", note).Msg("about the user's tables")
		}
	}
	return nil
}

// stores are those of the environment, in a database that was checked.
func (a *App) stores(ctx context.Context) (ops.Stores, error) {
	if err := a.sql.Ready(ctx); err != nil {
		return ops.Stores{}, err
	}
	return a.db.Stores(a.config.SysName), nil
}

// asInfrastructure makes sure that what keeps a dependency from opening is nobody else's fault: nobody can work with what is
// not open.
func asInfrastructure(name string, err error) error {
	if err == nil || fault.IsDependency(err) {
		return err
	}
	return fault.Wrap(fault.Infrastructure, "app: open "+name, fault.CodeOf(err), "it could not be opened", err)
}

// instance names this process among the others of the app.
func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// sqlProblems lets the adapter read the connection string before anything is opened.
func sqlProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if p.Setting == config.SQLConnection {
			return nil
		}
	}
	if c.SQL.Engine != config.SQLServer {
		return nil
	}
	err := sqlserver.CheckDSN(c.SQL.Connection.Reveal())
	if err == nil {
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil {
		found = "one that cannot be: " + e.Reason // our own words, no value
	}
	return config.Problems{{Setting: config.SQLConnection, Expected: "a connection that can be used", Found: found}}
}

// readLayout reads the file that COLUMN_NAMES names; without the setting everything is called as in the column table.
// The problem repeats no path: Health shows it to everybody, and anything may have been put into the wrong setting.
func readLayout(path string) (layout invoice.Layout, file []byte, problems config.Problems) {
	if path == "" {
		return invoice.DefaultLayout(), nil, nil
	}
	found := ""
	file, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found = "no such file"
	case err != nil:
		found = "a file that cannot be read"
	default:
		if layout, err = invoice.ReadLayout(file); err == nil {
			return layout, file, nil
		}
		found = "a file that cannot be one"
		if e := fault.As(err); e != nil {
			found += ": " + e.Reason
		}
	}
	return invoice.Layout{}, nil, config.Problems{{
		Setting: config.ColumnNames, Expected: "the path of a file of column names, from the script root", Found: found,
	}}
}

// explain says for Health what keeps a dependency from opening: our own words only, because a cause may hold an address.
// The causes under two codes are our own words too, or names in the schema, and it is they that help.
func explain(err error) string {
	e := fault.As(err)
	if e == nil {
		return "not open yet"
	}
	line := e.Op + ": " + string(e.Kind) + " " + e.Code + ": " + e.Reason
	if e.Err != nil && (e.Code == "settings" || e.Code == "schema") {
		line += ": " + strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	}
	return line
}

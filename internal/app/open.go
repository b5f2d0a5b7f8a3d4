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

	"sqlwriter/internal/blob"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// dependency is one thing that the work needs and how it is opened. open is called until it succeeds; it answers how to
// let go of what it opened.
type dependency struct {
	name string
	open func(ctx context.Context) (closeFn func() error, err error)
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

// newClients makes them of settings that were checked: cosmosProblems and the others have said what cannot be made.
func newClients(c config.Config, seen func(string, error)) (m clients) {
	if container, err := cosmos.Open(cosmosOptions(c)); err == nil {
		m.results = container
		m.closers = append(m.closers, container.Close)
	}
	control := cosmosOptions(c)
	control.Container = c.Cosmos.ControlContainer
	if c.Mode == config.ModeShadow { // what it looks at must not move the live app's breaker
	} else if container, err := cosmos.Open(control); err == nil {
		m.control = cosmos.NewControl(container, c.SysName)
		m.closers = append(m.closers, container.Close)
	}
	if store, err := blob.Open(blobOptions(c)); err == nil {
		m.evidence = watchedEvidence{store, seen}
		m.closers = append(m.closers, store.Close)
	}
	if namespace, err := servicebus.Open(busOptions(c)); err == nil {
		m.runQueue = watchedQueue{namespace.Queue(c.ServiceBus.RunsQueue), seen}
		m.batchQueue = watchedQueue{namespace.Queue(c.ServiceBus.BatchesQueue), seen}
		m.closers = append(m.closers, namespace.Close)
	}
	return m
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
func (a *App) openCosmos(ctx context.Context) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return func() error { return nil }, a.clients.results.Ping(ctx)
}

// openSQL opens SQL by the breaker's heartbeat: what keeps it from opening stops the flow like any outage. Beside a pause,
// which says nothing of SQL, it is opened all the same: this instance is then as ready as the others.
func (a *App) openSQL(ctx context.Context) (func() error, error) {
	if a.breaker.View(ctx).Control.Breaker.Name != breaker.Paused {
		if err := a.breaker.Tick(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s, err := a.sql.get(ctx)
	if err != nil {
		return nil, err
	}
	if a.config.Mode != config.ModeShadow {
		a.work = newWork(run.Ports{
			Store: s.RunStore(a.config.SysName), Selection: a.clients.results.Selection(), Documents: watchedDocuments{a.clients.results, a.status.seen},
			Commit: a.commit, Breaker: a.breaker, RunQueue: a.clients.runQueue, BatchQueue: a.clients.batchQueue, Evidence: a.clients.evidence,
		}, a.runOptions())
	}
	return a.sql.close, nil
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

// blobOptions are the adapter's part of the settings.
func blobOptions(c config.Config) blob.Options {
	return blob.Options{
		Connection: c.Blob.Connection.Reveal(), ServiceURI: c.Blob.ServiceURI, ClientID: c.Blob.ClientID,
		Container: c.Blob.Container, Prefix: c.SysName,
	}
}

// blobProblems lets the adapter read its settings before anything is opened, as cosmosProblems does.
func blobProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if strings.HasPrefix(p.Setting, "BLOB_") || p.Setting == config.PoisonContainer {
			return nil
		}
	}
	store, err := blob.Open(blobOptions(c))
	if err == nil {
		store.Close()
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil && e.Err != nil {
		found = strings.ReplaceAll(e.Err.Error(), "\n", "; ") // it names settings and never a key
	}
	return config.Problems{{Setting: config.BlobConnection, Expected: "a connection that can be used", Found: found}}
}

// busOptions are the adapter's part of the settings.
func busOptions(c config.Config) servicebus.Options {
	return servicebus.Options{
		Connection: c.ServiceBus.Connection.Reveal(), FullyQualifiedNamespace: c.ServiceBus.Namespace, ClientID: c.ServiceBus.ClientID,
	}
}

// busProblems lets the adapter read its settings before anything is opened, as cosmosProblems does.
func busProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if strings.HasPrefix(p.Setting, config.ServiceBusConnection) {
			return nil
		}
	}
	namespace, err := servicebus.Open(busOptions(c))
	if err == nil {
		namespace.Close()
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil && e.Err != nil {
		found = strings.ReplaceAll(e.Err.Error(), "\n", "; ") // it names settings and never a key
	}
	return config.Problems{{Setting: config.ServiceBusConnection, Expected: "a connection that can be used", Found: found}}
}

// cosmosProblems lets the adapter look at its settings before anything is opened, so that what it alone understands (the
// key's form, an address that is not to be trusted) is reported together with everything else. known are the problems
// that are named already.
func cosmosProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if strings.HasPrefix(p.Setting, "COSMOS_") {
			return nil // what the adapter would say follows from it
		}
	}
	container, err := cosmos.Open(cosmosOptions(c))
	if err == nil {
		container.Close()
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil && e.Err != nil {
		found = strings.ReplaceAll(e.Err.Error(), "\n", "; ") // it names settings and never a key
	}
	return config.Problems{{Setting: config.CosmosConnection, Expected: "a connection that can be used", Found: found}}
}

// cosmosOptions are the adapter's part of the settings.
func cosmosOptions(c config.Config) cosmos.Options {
	return cosmos.Options{
		Connection: c.Cosmos.Connection.Reveal(), AccountEndpoint: c.Cosmos.Endpoint, ClientID: c.Cosmos.ClientID,
		Database: c.Cosmos.Database, Container: c.Cosmos.Container,
	}
}

// sqlProblems lets the adapter read the connection string before anything is opened, as cosmosProblems does.
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

// store is what both engines are to the app.
type store interface {
	commit.Sink
	// Check tells whether the tables are what the statements need.
	Check(ctx context.Context) error
	// Adopted tells whether the ledger knows what was written before us.
	Adopted(ctx context.Context) (bool, error)
	// AuditLog keeps an environment's runs that one process does alone, and its audit log.
	AuditLog(sysName string) ops.AuditLog
	// RunStore keeps an environment's books of runs, Reports answers the monitoring queries about it.
	RunStore(sysName string) run.Store
	Reports(sysName string) run.Reports
	Close() error
}

// openSQL opens the database and checks that the tables are what the statements need, and that the ledger may be relied on.
func openSQL(ctx context.Context, c config.Config, layout invoice.Layout, log zerolog.Logger) (store, error) {
	s, err := openStore(ctx, c, layout)
	if err != nil {
		return nil, err
	}
	err = s.Check(ctx)
	if err == nil && c.Mode != config.ModeShadow { // a shadow writes nothing that could overwrite something newer
		err = adopted(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if n, ok := s.(interface{ Notes() []string }); ok {
		for _, note := range n.Notes() { // triggers, columns that round: part of every write from now on
			log.Info().Str("note", note).Msg("about the user's tables")
		}
	}
	return s, nil
}

// adopted is an error while nobody has said what was written before us: an older result could then overwrite what a line
// holds (docs/requirements.md R59).
func adopted(ctx context.Context, s store) error {
	switch yes, err := s.Adopted(ctx); {
	case err != nil:
		return err
	case !yes:
		return fault.New(fault.Infrastructure, "app: open sql", "ledger_not_adopted",
			"the ledger does not know what was written before: run `sqlwriterctl ledger adopt` to its end, or with --empty where nothing was (docs/cutover.md)")
	}
	return nil
}

// openStore opens the engine that the settings name. Our own tables in a SQLite file are brought up to date on the way:
// the file is ours. On a server the app has no right to, and Check says which command to run.
func openStore(ctx context.Context, c config.Config, layout invoice.Layout) (store, error) {
	if c.SQL.Engine == config.SQLServer {
		s, err := sqlserver.Open(ctx, c.SQL.Connection.Reveal(), sqlserver.Options{
			Layout: layout, Schema: c.SQL.Schema, MaxOpen: c.SQL.MaxOpen, PreviewOnly: c.Mode == config.ModeShadow,
		})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(ctx, c.SQL.Connection.Reveal(), sqlite.Options{Layout: layout})
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
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

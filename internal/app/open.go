package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/blob"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
	"sqlwriter/internal/sqlite"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/writer"
)

// dependency is one thing that the work needs and how it is opened. open is called until it succeeds; it answers how to
// let go of what it opened.
type dependency struct {
	name string
	open func(ctx context.Context) (closeFn func() error, err error)
}

// adapters are the ports, filled while the dependencies open.
type adapters struct {
	documents writer.Documents
	backlog   writer.Backlog
	sink      writer.Sink
	journal   ops.Journal
	evidence  writer.Evidence
	selection run.Selection
	runs      run.Store
	reports   run.Reports
	// runQueue and batchQueue are there from the beginning: messages are put off while nothing else is.
	runQueue, batchQueue run.Queue
	log                  zerolog.Logger
	// container is the documents' as soon as it is open: operators' questions do not wait for SQL.
	container atomic.Pointer[cosmos.Container]
}

// dependencies are those that the settings name. SQL is opened through the gate like every use of it: a server that is down
// is not knocked at by every instance that starts meanwhile.
func dependencies(c config.Config, layout invoice.Layout, a *adapters, gate *writer.Gate) []dependency {
	return []dependency{
		{depCosmos, func(ctx context.Context) (func() error, error) { return openCosmos(ctx, c, a) }},
		{depSQL, func(ctx context.Context) (closeFn func() error, err error) {
			err = guarded(ctx, gate, openSQLTimeout, func(ctx context.Context) error {
				closeFn, err = openSQL(ctx, c, layout, a)
				return err
			})
			return closeFn, err
		}},
		{depBlob, func(context.Context) (func() error, error) { return openBlob(c, a) }},
	}
}

// guarded opens SQL if the gate lets it, within a time of its own. Beside a pause and a systemic stop it is opened all the same:
// who ends them needs the audit log, also after every instance has started anew.
func guarded(ctx context.Context, gate *writer.Gate, within time.Duration, open func(context.Context) error) error {
	try := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return asInfrastructure(depSQL, open(ctx))
	}
	if gate.View(ctx).State().Reachable() {
		return try(ctx)
	}
	return gate.Guard(ctx, false, try)
}

// asInfrastructure makes sure that what keeps a dependency from opening is nobody else's fault: nobody can work with what is
// not open.
func asInfrastructure(name string, err error) error {
	if err == nil || fault.IsDependency(err) {
		return err
	}
	return fault.Wrap(fault.Infrastructure, "app: open "+name, fault.CodeOf(err), "it could not be opened", err)
}

// newGate makes the gate over the control document. Nothing is asked for yet. closeFn lets go of the container.
//
// A shadow has a gate of its own: it writes nothing anywhere, and what it looks at must not move the live app's.
func newGate(c config.Config, a *adapters) (gate *writer.Gate, closeFn func()) {
	o := writer.GateOptions{Instance: instance(), Version: Version(), MaxPoisonPerHour: c.MaxPoisonPerHour, Log: a.log, Wait: pause}
	if c.MaxPoisonPerHour == 0 {
		o.MaxPoisonPerHour = -1 // the setting's 0 means none, the option's the default
	}
	if c.Mode == config.ModeShadow {
		return writer.NewGate(nil, o), func() {}
	}
	control := cosmosOptions(c)
	control.Container = c.Cosmos.ControlContainer
	container, err := cosmos.Open(control)
	if err != nil { // cosmosProblems has said so before
		return writer.NewGate(nil, o), func() {}
	}
	return writer.NewGate(cosmos.NewControl(container, c.SysName), o), container.Close
}

// pause waits unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// instance names this process among the others of the app.
func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// openBlob makes the client. Nothing is asked: a store that is down keeps no document from being committed, only poison
// pills from being made.
func openBlob(c config.Config, a *adapters) (func() error, error) {
	store, err := blob.Open(blobOptions(c))
	if err != nil {
		return nil, err
	}
	a.evidence = store
	return func() error { store.Close(); return nil }, nil
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

// openQueues makes the senders. Nothing is asked: a queue that is away keeps no document from being committed. closeFn lets go
// of the connection.
func openQueues(c config.Config, a *adapters, seen func(string, error)) (closeFn func()) {
	namespace, err := servicebus.Open(busOptions(c))
	if err != nil { // busProblems has said so before
		return func() {}
	}
	a.runQueue = watchedQueue{namespace.Queue(c.ServiceBus.RunsQueue), seen}
	a.batchQueue = watchedQueue{namespace.Queue(c.ServiceBus.BatchesQueue), seen}
	return namespace.Close
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

// openCosmos makes the client and reads the container's metadata once: it takes the cost of the first connection off the
// first batch, and a wrong key is seen before a batch is.
func openCosmos(ctx context.Context, c config.Config, a *adapters) (func() error, error) {
	container, err := cosmos.Open(cosmosOptions(c))
	if err != nil {
		return nil, err
	}
	if err := container.Ping(ctx); err != nil {
		container.Close()
		return nil, err
	}
	a.documents, a.backlog, a.selection = container, container, container.Selection()
	a.container.Store(container)
	return func() error { container.Close(); return nil }, nil
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
func readLayout(path string) (invoice.Layout, config.Problems) {
	if path == "" {
		return invoice.DefaultLayout(), nil
	}
	problem := config.Problem{Setting: config.ColumnNames, Expected: "the path of a file of column names, from the script root"}
	file, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem.Found = "no such file"
		return invoice.Layout{}, config.Problems{problem}
	case err != nil:
		problem.Found = "a file that cannot be read"
		return invoice.Layout{}, config.Problems{problem}
	}
	layout, err := invoice.ReadLayout(file)
	if err != nil {
		problem.Found = "a file that cannot be one"
		if e := fault.As(err); e != nil {
			problem.Found += ": " + e.Reason
		}
		return invoice.Layout{}, config.Problems{problem}
	}
	return layout, nil
}

// store is what both engines are to the app.
type store interface {
	writer.Sink
	// Check tells whether the tables are what the statements need.
	Check(ctx context.Context) error
	// Adopted tells whether the ledger knows what was written before us.
	Adopted(ctx context.Context) (bool, error)
	// Journal keeps an environment's runs that one process does alone, and its audit log.
	Journal(sysName string) ops.Journal
	// Runs keeps an environment's books of runs, Reports answers the monitoring queries about it.
	Runs(sysName string) run.Store
	Reports(sysName string) run.Reports
	Close() error
}

// openSQL opens the database and checks that the tables are what the statements need, and that the ledger may be relied on.
func openSQL(ctx context.Context, c config.Config, layout invoice.Layout, a *adapters) (func() error, error) {
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
			a.log.Info().Str("note", note).Msg("about the user's tables")
		}
	}
	a.sink, a.journal, a.runs, a.reports = s, s.Journal(c.SysName), s.Runs(c.SysName), s.Reports(c.SysName)
	return s.Close, nil
}

// adopted is an error while nobody has said what was written before us: an older result could then overwrite what a line
// holds (design.md section 4).
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
			Layout: layout, Schema: c.SQL.Schema, MaxOpen: c.SQL.MaxOpen,
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

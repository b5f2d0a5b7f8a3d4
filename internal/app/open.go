package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/internal/timer"
)

// dependency is an external service. open is called until it succeeds; close is called at the end and may be nil.
type dependency struct {
	name  string
	open  func(ctx context.Context) error
	close func() error
}

// clients are the adapters that make no request when they are created.
type clients struct {
	results *cosmos.Container
	// controls is the container of control and counts.
	controls *cosmos.Container
	control  breaker.ControlStore
	counts   ops.CountsStore
	queues   []ops.NamedQueue
	leases   interface {
		HasTimeToLive(ctx context.Context) (bool, error)
		Leases(ctx context.Context, prefix string) ([]cosmos.Lease, error)
	}
	stored ops.EvidenceStore
	// lookQueues and tryFiles are Doctor's.
	lookQueues []ops.Look
	tryFiles   func(ctx context.Context, before time.Time) error
	// An outage of the evidence store or of a queue does not stop commits. It only delays poison messages and runs.
	evidence             commit.Evidence
	runQueue, batchQueue run.Queue
	closers              []func()
}

// newClients makes the clients. Some rules of a setting are known to its adapter alone, such as the form of a key.
// The adapters' problems are returned; known are the problems that config.Load has found.
func newClients(
	c config.Config, known config.Problems, seen func(context.Context, string, error),
) (m clients, problems config.Problems) {
	results, err := open.Results(c.Cosmos)
	if err == nil {
		m.results = results
		m.closers = append(m.closers, results.Close)
	}
	problems = slices.Concat(adapterProblem(config.CosmosConnection, err, known, "COSMOS_"), sqlProblems(c, known))
	if control, err := open.Control(c.Cosmos); err == nil {
		m.controls, m.control = control, cosmos.NewControl(control, c.SysName)
		m.counts = cosmos.NewCounts(control, c.SysName, c.Mode == config.ModeShadow)
		m.closers = append(m.closers, control.Close)
	}
	if leases, err := open.Leases(c.Cosmos); err == nil {
		m.leases = leases
		m.closers = append(m.closers, leases.Close)
	}
	evidence, err := open.Evidence(c.Blob, c.SysName)
	if err == nil {
		m.stored, m.tryFiles, m.evidence = evidence, evidence.TryWrites, watchedEvidence{evidence, seen}
		m.closers = append(m.closers, evidence.Close)
	}
	problems = append(problems, adapterProblem(config.BlobConnection, err, known, "BLOB_")...)
	namespace, err := open.ServiceBus(c.ServiceBus)
	if err == nil {
		m.runQueue = watchedQueue{namespace.Queue(c.ServiceBus.RunsQueue), seen}
		m.batchQueue = watchedQueue{namespace.Queue(c.ServiceBus.BatchesQueue), seen}
		for _, q := range []struct{ setting, name string }{
			{config.RunsQueue, c.ServiceBus.RunsQueue}, {config.BatchesQueue, c.ServiceBus.BatchesQueue},
		} {
			queue := namespace.Queue(q.name)
			m.queues = append(m.queues, ops.NamedQueue{Name: q.name, Messages: watchedMessages{queue, seen}})
			m.lookQueues = append(m.lookQueues, look(ops.DepServiceBus, q.setting, mayUse, queue.Try))
		}
		m.closers = append(m.closers, namespace.Close)
	}
	return m, append(problems, adapterProblem(config.ServiceBusConnection, err, known, config.ServiceBusConnection)...)
}

// adapterProblem reports that an adapter refuses its settings. It returns nothing when a setting with one of the
// prefixes has a known problem, because the adapter's problem follows from that one.
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

// openCosmos reads the definition of the results' container. The first batch is then faster, and a wrong key shows
// before it. A control container with another partition key than /id is refused, too; one that does not answer is
// waited for later.
func (a *App) openCosmos(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := a.clients.results.Ping(ctx); err != nil {
		return err
	}
	if err := a.clients.controls.Ping(ctx); fault.CodeOf(err) == cosmos.CodePartitionKey {
		return err
	}
	return nil
}

// leasePoll is the interval of looking at a lease container that is not as it must be.
const leasePoll = 10 * time.Second

// noTimeToLive is what Health says of a lease container that lacks a time to live; doctor has the command beside it.
const noTimeToLive = depLeases + ": " + lacksTimeToLive + "; switch it on: " + switchOnTimeToLive

const lacksTimeToLive = config.LeaseContainer +
	" has no time to live, so the lock of a host that was killed at its start would keep every later host from starting"

const switchOnTimeToLive = ofContainers + "update" + inDatabase + " --name " + config.LeaseContainer + " --ttl -1"

// watchLeases tells Health that the lease container is missing or has no time to live (docs/facts.md F40), until that
// is mended. The host's trigger needs it, and not this process, so everything else goes on.
func (a *App) watchLeases(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		line := ""
		set, err := a.clients.leases.HasTimeToLive(ctx)
		switch {
		case err != nil:
			line = notOpen(depLeases, err)
		case set:
			a.status.lacks(depLeases)
			return
		default:
			line = noTimeToLive
		}
		if line != last {
			a.events(ctx).Write(events.LeasesUnfit, events.Fields{Dependency: depLeases, Reason: line})
			last = line
		}
		a.status.lacks(depLeases, line)
		_ = timer.Wait(ctx, leasePoll) // the loop asks ctx
	}
}

// openSQL checks SQL by the breaker's heartbeat, so that a failure stops the flow as any outage does. During a pause
// the breaker sends no heartbeat; then openSQL checks SQL alone, so that this instance becomes ready as the others are.
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
		a.runs = newRunUseCases(a.runPorts(), a.runOptions())
		a.runs.compares = a.db.Reconcile(a.config, a.comparison())
	}
	return nil
}

func (a *App) comparison() open.Comparison {
	return open.Comparison{
		Results: a.clients.results, Reader: a.reader, Mend: a.ops.MendFindings, Breaker: a.breaker, Log: a.log,
	}
}

// useSQL makes the app use db. check runs before the first request, and its error is reported to the status.
func (a *App) useSQL(db *open.Database, check func(ctx context.Context) error) {
	a.db = db
	a.sql = open.NewChecked(db, func(ctx context.Context) error {
		err := asInfrastructure(depSQL, check(ctx))
		if err != nil {
			a.status.seen(ctx, depSQL, err)
			a.status.lacks(depSQL, notOpen(depSQL, err))
		}
		return err
	})
}

// checkSQL checks that the tables fit the statements and that the ledger is adopted. In a SQLite file it also migrates
// the app's own tables. On a server the app has no right to do that, and the error of Check names the command to run.
func (a *App) checkSQL(ctx context.Context) error {
	if a.db.Engine == config.SQLite {
		if err := a.migrate(ctx); err != nil {
			return err
		}
	}
	if err := a.db.Check(ctx); err != nil {
		return err
	}
	if a.config.Mode != config.ModeShadow { // a shadow writes nothing, so it cannot overwrite a newer result
		at, err := a.db.CheckAdopted(ctx, "app: open sql")
		if err != nil {
			return err
		}
		a.adoptedAt.Store(at)
		if _, err := a.mappings(ctx); err != nil {
			return err
		}
	}
	if n, ok := a.db.Store.(interface{ Notes() []string }); ok {
		for _, note := range n.Notes() { // triggers and columns that round: they affect every later write
			a.events(ctx).Write(events.TableNote, events.Fields{Reason: note})
		}
	}
	return nil
}

// migrate runs the migrations of a SQLite file if one is missing. Otherwise the chosen mapping stays as it is.
func (a *App) migrate(ctx context.Context) error {
	states, err := a.db.MigrationStatus(ctx)
	if err != nil || migration.Count(states, migration.Pending)+migration.Count(states, migration.Changed) == 0 {
		return err
	}
	return a.db.Migrate(ctx)
}

// mappings are those of the database. Health says whether the app's is another than the chosen one.
func (a *App) mappings(ctx context.Context) ([]invoice.Recorded, error) {
	all, err := a.db.Mappings(ctx)
	switch {
	case err != nil:
	case len(all) == 0 || all[0].Version == a.db.Mapping.Version():
		a.status.lacks(condition.OtherMapping)
	default:
		a.status.lacks(condition.OtherMapping, says(condition.OtherMapping))
	}
	return all, err
}

// runPorts are the ports of runs.
func (a *App) runPorts() run.Ports {
	return run.Ports{
		Store: a.db.RunStore(a.config.SysName), Finder: a.clients.results,
		Documents: watchedDocuments{a.clients.results, a.status.seen},
		Commit:    a.commit, Breaker: a.breaker, RunQueue: a.clients.runQueue, BatchQueue: a.clients.batchQueue,
		Evidence: a.clients.evidence,
	}
}

// stores returns the environment's stores after the database was checked.
func (a *App) stores(ctx context.Context) (ops.Stores, error) {
	if err := a.sql.Ready(ctx); err != nil {
		return ops.Stores{}, err
	}
	s := a.db.Stores(a.runPorts(), a.runOptions())
	s.Mappings = a.mappings
	return s, nil
}

// asInfrastructure gives every error of opening a dependency scope: no document is to blame for it.
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

// sqlProblems lets the adapter check the connection string before a connection is opened.
func sqlProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if p.Setting == config.SQLConnection {
			return nil
		}
	}
	if c.SQL.Engine != config.SQLServer {
		return nil
	}
	err := sqlserver.CheckDSN(c.SQL.Connection.Reveal(), c.SQL.AnyCertificate)
	if err == nil {
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil {
		found = "an invalid one: " + e.Reason // the reason repeats no value
	}
	return config.Problems{{Setting: config.SQLConnection, Expected: "a connection that can be used", Found: found}}
}

// readMapping reads the file that MAPPING names. The problem repeats no path, because Health is public and a secret may
// stand in the wrong setting.
func readMapping(c config.Config) (*invoice.Mapping, config.Problems) {
	m, err := open.Mapping(c.SQL.Mapping, c.Location)
	found := "a file that cannot be read"
	switch e := fault.As(err); {
	case err == nil:
		return m, nil
	case errors.Is(err, fs.ErrNotExist):
		found = "no such file"
	case e != nil:
		found = "an invalid file: " + e.Reason
	}
	return invoice.DefaultMapping(), config.Problems{{
		Setting: config.Mapping, Expected: "the path of a mapping, from the script root", Found: found,
	}}
}

// notOpen is Health's line of a part that is not open. Where the error begins with the part, it is named once.
func notOpen(part string, err error) string {
	return part + ": " + strings.TrimPrefix(whyNotOpen(err), part+": ")
}

// whyNotOpen describes for Health why a dependency is not open. It leaves causes out, because a cause may contain an
// address. The causes under the codes "settings" and "schema" contain none, so they are shown.
func whyNotOpen(err error) string {
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

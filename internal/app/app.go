package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/events"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/timer"
	"sqlwriter/internal/ui"
)

const (
	// readyWait is how long an invocation waits for the dependencies to open before it is answered 503.
	readyWait = 20 * time.Second
	// openTimeout bounds one attempt to open Cosmos DB, or to check SQL. The breaker bounds its own heartbeat.
	openTimeout = 40 * time.Second
	// firstBackoff and lastBackoff are the first and the longest wait between two attempts; the wait doubles.
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 5 * time.Second
	// tellEvery is how often an instance writes its status, and tellTimeout bounds that at its end.
	tellEvery   = time.Minute
	tellTimeout = 2 * time.Second
)

// App holds the functions, and the use cases behind them once they are ready.
type App struct {
	log      zerolog.Logger
	status   *status
	config   config.Config
	reader   invoice.Reader // of all that read documents
	problems config.Problems
	wait     time.Duration
	clients  clients
	db       *open.Database
	sql      *open.Checked // db, checked before its first request
	breaker  *breaker.Breaker
	// adoptedAt is the time at which the ledger was adopted, once SQL was checked.
	adoptedAt atomic.Value
	deps      []dependency

	// commit, recover and ops are nil when the settings are invalid. recover is also nil in shadow mode, which writes
	// nothing.
	commit  handlers.Committer
	recover *commit.Recover
	ops     *ops.Ops

	ready chan struct{}
	runs  *runUseCases // set before ready is closed; nil in shadow mode

	stop context.CancelFunc // of Start
	done chan struct{}      // closed when every dependency is closed
}

// New makes an App from the settings that get returns. It never fails. Problems of the settings are logged, listed by
// Health, and make every batch fail with status 503.
func New(get func(string) (string, bool), log zerolog.Logger) *App {
	a := &App{status: newStatus(Version(), time.Now), wait: readyWait, ready: make(chan struct{})}
	var err error
	if a.config, err = config.Load(get); err != nil {
		errors.As(err, &a.problems)
	}
	mapping, unreadable := readMapping(a.config)
	a.reader = open.Reader(mapping)
	made, rejected := newClients(a.config, a.problems, a.status.seen)
	a.problems = slices.Concat(a.problems, rejected, unreadable)
	a.status.mode = a.config.Mode
	a.log = log
	if level, err := zerolog.ParseLevel(a.config.LogLevel); err == nil { // the table of settings allows no other
		a.log = log.Level(level)
	}
	if len(a.problems) > 0 {
		a.status.lacks("settings", a.problems.Lines()...)
		a.events(context.Background()).Write(events.SettingsInvalid, events.Fields{Problems: a.problems.Lines()})
		a.breaker = breaker.New(nil, breaker.Options{})
		made.close()
		return a
	}
	a.status.mapping = open.MappingInUse(a.config.SQL.Mapping, mapping)
	if a.config.SQL.AnyCertificate {
		a.status.lacks("certificate", config.SQLCertificate+" is any: nobody checks whose server SQL_CONNECTION leads to")
	}
	a.clients, a.status.partitionKey = made, made.results.PartitionKey
	db, err := open.SQL(a.config.SQL, mapping, a.config.Mode == config.ModeShadow)
	a.useSQL(db, func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return a.checkSQL(ctx)
	})
	a.useBreaker(
		open.Breaker(a.config, a.clients.control, watchedSink{a.sql, a.status.seen},
			breaker.Options{Instance: instance(), Build: Build(mapping), Log: a.log}))
	a.deps = []dependency{{depCosmos, a.openCosmos, nil}, {depSQL, a.openSQL, a.sql.Close}}
	a.useCases()
	return a
}

// Functions returns all functions of the app. Each has a folder of its name under functions/.
func (a *App) Functions() []handlers.Mounted {
	o := a.runOptions()
	runs, batches := a.clients.runQueue, a.clients.batchQueue
	return []handlers.Mounted{
		handlers.CommitResults(a),
		handlers.RecoverRetries(a),
		handlers.BatchManager(
			receiver{a, run.NewDeferral(o, runs, run.RunMessage), func(w *runUseCases) handlers.Receiver {
				return w.manager
			}}),
		handlers.BatchWorker(
			receiver{a, run.NewDeferral(o, batches, run.BatchMessage), func(w *runUseCases) handlers.Receiver {
				return w.workers
			}}),
		handlers.BatchDeadLetter(
			receiver{a, run.NewDeferral(o, nil, run.BatchMessage), func(w *runUseCases) handlers.Receiver {
				return w.batchLetters
			}}),
		handlers.RunDeadLetter(
			receiver{a, run.NewDeferral(o, nil, run.RunMessage), func(w *runUseCases) handlers.Receiver {
				return w.runLetters
			}}),
		handlers.Ops(a.operations),
		a.pages(),
		handlers.Health(a.status.report),
	}
}

// pages are the operators' pages.
func (a *App) pages() handlers.Mounted {
	return handlers.UI(a.operations, ui.New(ui.Options{
		SysName: a.config.SysName, Mode: a.config.Mode, Version: a.status.version, Location: a.config.Location,
		Codes: explain.New(open.Faults()),
	}), handlers.UIAccess{SignIn: a.config.SignIn, Open: a.config.OpenUI, Origin: a.config.UIOrigin})
}

// Handler serves the functions. deadline bounds one invocation; 0 means handlers.DefaultDeadline.
func (a *App) Handler(deadline time.Duration) http.Handler {
	return handlers.Mount(a.Functions(), handlers.Options{Log: a.log, Deadline: deadline})
}

// Start opens the dependencies in the background. Close stops that.
func (a *App) Start(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	a.done = make(chan struct{})
	go a.open(ctx)
}

// Close closes the dependencies and returns when that is done. Call it after Start, when no invocation is running.
func (a *App) Close() {
	a.stop()
	<-a.done
}

// open opens every dependency, waits until ctx ends, and closes them.
func (a *App) open(ctx context.Context) {
	defer close(a.done)
	defer a.clients.close()
	if len(a.problems) > 0 {
		return
	}
	var opened sync.WaitGroup
	for _, d := range a.deps {
		opened.Go(func() { a.keepOpening(ctx, d) })
	}
	opened.Wait()
	if ctx.Err() == nil {
		close(a.ready)
		a.status.becomeReady()
		a.events(ctx).Write(events.HandlerReady,
			events.Fields{Version: a.status.version, SysName: a.config.SysName, Mode: a.config.Mode})
		if a.clients.leases != nil {
			opened.Go(func() { a.watchLeases(ctx) })
		}
		a.tell(ctx)
		opened.Wait()
	}
	for _, d := range a.deps {
		if d.close == nil {
			continue
		}
		if err := d.close(); err != nil {
			a.events(ctx).Write(events.DependencyNotClosed, events.Fields{Dependency: d.name}.Of(err))
		}
	}
}

// tell makes the breaker write this instance's status once a minute until ctx ends, and then.
func (a *App) tell(ctx context.Context) {
	for timer.Wait(ctx, tellEvery) == nil {
		a.breaker.Tell(ctx)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	a.breaker.Tell(ending)
}

// useBreaker makes the app use b, which then knows how the dependencies answer.
func (a *App) useBreaker(b *breaker.Breaker) {
	a.breaker, a.status.flow, a.status.note = b, b.Seen, b.NoteDependency
}

// useCases makes the use cases. It makes no request.
func (a *App) useCases() {
	o := a.commitOptions()
	sink := watchedSink{a.sql, a.status.seen}
	documents := watchedDocuments{a.clients.results, a.status.seen}
	if a.config.Mode == config.ModeShadow {
		a.commit = commit.NewShadow(documents, sink, o)
	} else {
		live := commit.NewCommit(documents, sink, o)
		a.commit, a.recover = live, commit.NewRecover(live, watchedFinder{a.clients.results, a.status.seen})
	}
	a.ops = ops.New(ops.Ports{
		Documents: documents, Finder: a.clients.results, Breaker: a.breaker,
		Stores: a.stores, ReportNames: shared.ReportNames(), RunQueue: a.clients.runQueue, Counts: a.clients.counts,
		Queues:   a.clients.queues,
		Evidence: a.clients.stored, Creator: a.clients.results, Doctor: a.looks(),
		Canaries:     a.clients.results,
		CanaryFailed: func(err error) ops.DoctorRow { return judged(config.CosmosContainer, "", err) },
	}, a.opsOptions())
}

func (a *App) commitOptions() commit.Options {
	return commit.Options{
		SysName: a.config.SysName, Reader: a.reader, Location: a.config.Location, Log: a.log, Breaker: a.breaker,
		AdoptedAt: func() time.Time {
			at, _ := a.adoptedAt.Load().(time.Time)
			return at
		}, PartsAtOnce: a.db.PartsAtOnce(),
		Evidence: a.clients.evidence, Container: a.config.Cosmos.Container, AppVersion: a.status.version,
		MarkSeen: a.clients.results.MarkSeen, Instance: instance(),
	}
}

func (a *App) runOptions() run.Options {
	return run.Options{SysName: a.config.SysName, Reader: a.reader, Instance: instance(), Log: a.log}
}

func (a *App) opsOptions() ops.Options {
	o := ops.Options{
		PartitionKey: a.clients.results.PartitionKey,
		SysName:      a.config.SysName, Reader: a.reader, Location: a.config.Location,
		AppVersion: a.status.version, Mapping: a.status.mapping, Faults: open.Faults(), Log: a.events,
		Now: func() time.Time { return a.status.now() },
	}
	if a.config.Mode == config.ModeShadow {
		o.ReadOnly = config.Mode + "=" + config.ModeShadow + ": nothing is written"
	}
	return o
}

// operations returns the operators' use case. It is available before any dependency is open.
func (a *App) operations(context.Context) (*ops.Ops, error) {
	if len(a.problems) > 0 {
		return nil, a.unusable()
	}
	return a.ops, nil
}

// events is the log of the work that ctx belongs to.
func (a *App) events(ctx context.Context) events.Log { return events.For(ctx, a.log) }

// unusable is the error of an app with invalid settings.
func (a *App) unusable() error {
	return fault.New(fault.Infrastructure, "app: ready", "settings",
		"the settings are invalid; Health lists them: %s", a.problems[0].Setting)
}

// keepOpening tries to open one dependency until that succeeds or ctx ends.
func (a *App) keepOpening(ctx context.Context, d dependency) {
	a.status.lacks(d.name, d.name+": not open yet")
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		err := a.tryOpening(ctx, d)
		if err == nil {
			a.status.lacks(d.name)
			return
		}
		if ctx.Err() != nil {
			return
		}
		// The breaker logs its own changes. Its text may quote an operator, and Health is anonymous.
		if !breaker.IsRefusal(err) {
			line := notOpen(d.name, err)
			f := events.Fields{Dependency: d.name, AgainMS: backoff.Milliseconds()}.Of(err)
			f.Reason = line
			a.events(ctx).Write(events.DependencyNotOpen, f)
			a.status.lacks(d.name, line)
		}
		if timer.Wait(ctx, backoff) != nil {
			return
		}
	}
}

func (a *App) tryOpening(ctx context.Context, d dependency) error {
	err := asInfrastructure(d.name, d.open(ctx))
	a.status.seen(ctx, d.name, err)
	return err
}

// Run implements handlers.Committer. It waits at most readyWait for readiness. Errors by kind: infrastructure, code
// "settings" or "starting"; those of the commit.
func (a *App) Run(ctx context.Context, b commit.Delivery) (commit.Report, error) {
	if err := a.becomesReady(ctx); err != nil {
		return commit.Report{
			Documents: len(b.Documents), Outcomes: map[invoice.Outcome]int{invoice.OutcomeWaiting: len(b.Documents)},
		}, err
	}
	return a.commit.Run(ctx, b)
}

// Recover implements handlers.Recoverer. invocationID is for the evidence, as in commit.Recover. In shadow mode it does
// nothing.
func (a *App) Recover(ctx context.Context, invocationID string) (commit.RecoveredDocuments, error) {
	if err := a.becomesReady(ctx); err != nil {
		return commit.RecoveredDocuments{Off: "not ready: nothing is recovered"}, err
	}
	if a.recover == nil {
		return commit.RecoveredDocuments{Off: config.ModeShadow + ": nothing is recovered"}, nil
	}
	return a.recover.RunAs(ctx, invocationID)
}

// RecoverRuns implements handlers.Recoverer. In shadow mode it does nothing.
func (a *App) RecoverRuns(ctx context.Context) (run.RecoveredRuns, error) {
	if err := a.becomesReady(ctx); err != nil {
		return run.RecoveredRuns{Off: "not ready: nothing is recovered"}, err
	}
	if a.runs == nil {
		return run.RecoveredRuns{Off: config.ModeShadow + ": nothing is recovered"}, nil
	}
	return a.runs.recovery.Run(ctx)
}

// PurgeRows implements handlers.Recoverer. In shadow mode, and while the breaker refuses, it does nothing.
func (a *App) PurgeRows(ctx context.Context) (int, error) {
	if err := a.becomesReady(ctx); err != nil {
		return 0, err
	}
	if a.runs == nil || a.breaker.Permit(ctx) != nil {
		return 0, nil //nolint:nilerr // the breaker tells itself why
	}
	return retention.Tick(ctx, a.db.Retention(a.config.SysName), a.config.RetentionDays, time.Now)
}

// CarryOnRuns implements handlers.Recoverer. In shadow mode it does nothing.
func (a *App) CarryOnRuns(ctx context.Context) (run.Carried, error) {
	if err := a.becomesReady(ctx); err != nil {
		return run.Carried{Off: "not ready: nothing is carried on"}, err
	}
	if a.runs == nil {
		return run.Carried{Off: config.ModeShadow + ": nothing is carried on"}, nil
	}
	return a.runs.recovery.CarryOn(ctx)
}

// Compare implements handlers.Recoverer. In shadow mode it does nothing.
func (a *App) Compare(ctx context.Context) (int, error) {
	if err := a.becomesReady(ctx); err != nil || a.runs == nil {
		return 0, err
	}
	return a.runs.compares.Tick(ctx)
}

// SaveCounts implements handlers.Recoverer. It needs no SQL, so it does not wait for readiness. A shadow counts and
// tells, too.
func (a *App) SaveCounts(ctx context.Context) error {
	if a.ops == nil {
		a.events(ctx).Write(events.SettingsInvalid, events.Fields{Problems: a.problems.Lines()})
		return a.unusable()
	}
	return cmp.Or(a.ops.SaveCounts(ctx), a.ops.TellAttention(ctx, a.events(ctx))) // what could not be counted is told
}

// TellTransitions implements handlers.Recoverer. While the breaker refuses, the transitions wait.
func (a *App) TellTransitions(ctx context.Context) error {
	if a.ops == nil || a.config.Mode == config.ModeShadow {
		return nil
	}
	err := a.ops.TellTransitions(ctx)
	if breaker.IsRefusal(err) {
		return nil
	}
	return err
}

// becomesReady waits for readiness, but not longer than a.wait.
func (a *App) becomesReady(ctx context.Context) error {
	if len(a.problems) > 0 {
		return a.unusable()
	}
	timeout := time.NewTimer(a.wait)
	defer timeout.Stop()
	select {
	case <-a.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fault.New(fault.Infrastructure, "app: ready", "starting",
			"the dependencies are not open yet after %s; Health lists them", a.wait)
	}
}

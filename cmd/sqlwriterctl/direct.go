package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// asTyped replaces the API member in a usage error by the flag that the operator typed.
func (a *app) asTyped(err error) error {
	var request *ops.RequestError
	if !errors.As(err, &request) || request.Refusal != ops.Usage {
		return err
	}
	member, rest, ok := strings.Cut(request.Message, ": ")
	var flags []string
	for one := range strings.SplitSeq(member, ", ") {
		flags = append(flags, flagsOf(a.command, one)...)
	}
	if !ok || len(flags) == 0 {
		return err
	}
	return &ops.RequestError{Refusal: request.Refusal, Message: strings.Join(flags, ", ") + ": " + rest}
}

// flagsOf returns the flags of a command that set a member of the API. It returns none for an argument, whose name is the
// member's.
func flagsOf(command *kong.Node, member string) (flags []string) {
	if command == nil || slices.ContainsFunc(command.Positional, func(arg *kong.Positional) bool { return arg.Name == member }) {
		return nil
	}
	names, other := map[string][]string{
		"error_kind": {"kind"}, "error_code": {"code"}, "statuses": {"status"}, "before": {"older-than"}, "from": {"since"}, "to": {"until"}, "classes": {"class"}, "ids": {"id", "ids-file"}, "id": {"id", "ids-file"},
	}[member]
	if !other {
		names = []string{strings.ReplaceAll(member, "_", "-")}
	}
	for _, name := range names {
		if slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			flags = append(flags, "--"+name)
		}
	}
	return flags
}

// direct makes the use case over the connections that it finds. It connects only when the use case needs to, so that usage
// errors come first, and queries of SQL alone work during an outage of Cosmos DB.
func (a *app) direct(ctx context.Context, from source, use func(opsapi.Caller) error) (err error) {
	documents, err := from.openContainer()
	if err != nil {
		return err
	}
	defer documents.Close()
	c := from.config()
	if c.Location == nil {
		return &usageError{fmt.Errorf("%s from %s: expected an IANA time zone", config.TimeZone, from.name)}
	}
	control, err := open.Control(c.Cosmos)
	if err != nil {
		return &usageError{fmt.Errorf("connections from %s: %w", from.name, err)}
	}
	defer control.Close()
	a.notef("environment: %s (%s)", c.SysName, config.SysName)
	db, missing := openSQL(from) // some operations need no SQL, so its error is reported only when SQL is used
	sql := open.NewChecked(db, func(ctx context.Context) error {
		if missing != nil {
			return missing
		}
		if err := db.Check(ctx); err != nil {
			return err
		}
		return db.CheckAdopted(ctx, "sqlwriterctl: open sql")
	})
	defer func() { err = errors.Join(err, sql.Close()) }()
	log := a.log()
	instance := fmt.Sprintf("%s-%s-%d", toolBuild, operatorName(), os.Getpid())
	flow := open.Breaker(c, cosmos.NewControl(control, c.SysName), sql, breaker.Options{
		Instance: instance, Log: log.Level(zerolog.ErrorLevel), Now: a.clock, Wait: a.pause(),
	})
	defer func() {
		flow.NoteCommitted(context.WithoutCancel(ctx))
		if flow.Seen().Lost {
			a.tellf("the control document is not available: the state of the app is unknown, and SQL was used without it")
		}
	}()
	o := ops.Options{SysName: c.SysName, Location: c.Location, AppVersion: toolBuild, Faults: open.Faults()}
	if c.Mode == config.ModeShadow {
		o.ReadOnly = config.Mode + "=" + config.ModeShadow + ": nothing is written to this environment"
	}
	leases, closeLeases := locks(c, documents, from.name)
	defer closeLeases()
	evidence, closeEvidence := a.evidence(c, from.name)
	defer closeEvidence()
	committer := commit.NewCommit(documents, sql, commit.Options{
		SysName: c.SysName, Location: c.Location, Log: log, MaxRows: c.SQL.MaxRows, Breaker: flow, Evidence: evidence,
		Container: c.Cosmos.Container, AppVersion: toolBuild,
	})
	var operators *ops.Ops
	stores := func(context.Context) (ops.Stores, error) {
		if missing != nil {
			return ops.Stores{}, missing
		}
		passes := db.Passes(c, open.Comparison{
			Results: documents, Leases: leases, Evidence: evidence, Mender: operators, Breaker: flow, Log: log, Now: a.clock, Wait: a.pause(),
		})
		return db.Stores(run.Ports{Selection: documents.Selection(), Documents: documents, Commit: committer, Breaker: flow, Passes: passes},
			run.Options{SysName: c.SysName, Instance: instance, Log: log, Now: a.clock, Wait: a.pause()}), nil
	}
	queue, closeQueue := runQueue(c.ServiceBus, from.name)
	defer closeQueue()
	operators = ops.New(ops.Ports{
		Documents: documents, Backlog: documents, Breaker: flow, Stores: stores, ReportNames: shared.ReportNames(),
		RunQueue: queue, Selection: documents.Selection(), Search: documents,
		Counts:   cosmos.NewCounts(control, c.SysName, c.Mode == config.ModeShadow),
		Evidence: evidence, Heads: documents.Reconcile(c.SysName), Creator: documents,
	}, o)
	return use(opsapi.Direct(operators, operatorName()))
}

// log writes log lines as they are with --verbose, otherwise the text of warnings and errors.
func (a *app) log() zerolog.Logger {
	if a.Verbose {
		return zerolog.New(a.stderr).With().Timestamp().Logger()
	}
	return zerolog.New(logNotes{a}).Level(zerolog.WarnLevel)
}

// logNotes prints the text of log lines.
type logNotes struct{ *app }

// Write implements io.Writer.
func (n logNotes) Write(line []byte) (int, error) {
	var event struct{ Level, Message, Code, Reason string }
	if err := json.Unmarshal(line, &event); err == nil {
		text := event.Message
		if event.Reason != "" {
			text += ": " + event.Reason
		}
		if event.Code != "" {
			text += " (" + event.Code + ")"
		}
		n.notef("%s: %s", event.Level, text)
	}
	return len(line), nil
}

// toolBuild stands where the app's version stands: in evidence and in the instance's name. The breaker here has no build, so
// its writes prove nothing about the app's build.
const toolBuild = "sqlwriterctl"

// storedEvidence is what commands do with evidence.
type storedEvidence interface {
	commit.Evidence
	reconcile.Evidence
	ops.EvidenceStore
}

// evidence opens the evidence store. If the source names no valid one, it returns a store that reports this on first use.
func (a *app) evidence(c config.Config, from string) (storedEvidence, func()) {
	store, err := open.Evidence(c.Blob, c.SysName)
	if err != nil {
		return missingEvidence{from, sync.OnceFunc(func() {
			a.notef("evidence: %s names no valid storage (%s): a document whose retries are spent stays scheduled", from, config.BlobConnection)
		})}, func() {}
	}
	return store, store.Close
}

// missingEvidence refuses every use. So no document becomes a poison pill, which it reports once, and a comparison fails.
type missingEvidence struct {
	from   string
	report func()
}

// Keep implements commit.Evidence.
func (m missingEvidence) Keep(context.Context, string, []byte) error {
	m.report()
	return fault.New(fault.Infrastructure, "sqlwriterctl: evidence", "settings", "no storage for evidence is named")
}

// none is the error of every other use. It is no outage, which would be waited for.
func (m missingEvidence) none() error {
	return fault.New(fault.Internal, "sqlwriterctl: evidence", "no_evidence", "%s names no valid storage (%s)", m.from, config.BlobConnection)
}

// Episodes implements reconcile.Evidence.
func (m missingEvidence) Episodes(context.Context, string) ([]reconcile.Episode, string, error) {
	return nil, "", m.none()
}

// Newest implements reconcile.Evidence.
func (m missingEvidence) Newest(context.Context, invoice.Document) (reconcile.Episode, bool, error) {
	return reconcile.Episode{}, false, m.none()
}

// KeepReport implements reconcile.Evidence.
func (m missingEvidence) KeepReport(context.Context, string, []byte, string) error { return m.none() }

// Remove implements ops.EvidenceStore.
func (m missingEvidence) Remove(context.Context, string) (int, error) { return 0, m.none() }

// locks opens the lease container. If the source names none, it returns leases with which a comparison fails.
func locks(c config.Config, results *cosmos.Container, from string) (reconcile.Leases, func()) {
	container, err := open.Leases(c.Cosmos)
	if err != nil || c.Cosmos.LeaseContainer == "" || c.Cosmos.LeasePrefix == "" {
		return missingLeases{from}, func() {}
	}
	return cosmos.NewLeases(container, results, c.Cosmos.LeasePrefix), container.Close
}

// missingLeases refuses every use.
type missingLeases struct{ from string }

// Locks implements reconcile.Leases.
func (m missingLeases) Locks(context.Context) ([]reconcile.Lock, error) {
	return nil, fault.New(fault.Internal, "sqlwriterctl: leases", "no_leases", "%s names no %s and %s", m.from, config.LeaseContainer, config.LeasePrefix)
}

// runQueue opens the queue of the runs' messages. Without a queue a run starts anyway, because the timer sends its message.
func runQueue(c config.ServiceBus, from string) (queue run.Queue, closeFn func()) {
	if c.RunsQueue == "" {
		return missingQueue{from}, func() {}
	}
	namespace, err := open.ServiceBus(c)
	if err != nil {
		return missingQueue{from}, func() {}
	}
	return namespace.Queue(c.RunsQueue), namespace.Close
}

// missingQueue refuses every message.
type missingQueue struct{ source string }

// Send implements run.Queue.
func (m missingQueue) Send(_ context.Context, messages []run.Outgoing) []error {
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = fault.New(fault.Infrastructure, "sqlwriterctl: queue", "settings", "%s names no valid Service Bus (%s, %s)",
			m.source, config.ServiceBusConnection, config.RunsQueue)
	}
	return errs
}

// List implements ops.EvidenceStore.
func (m missingEvidence) List(context.Context, string) ([]ops.EvidenceFile, error) {
	return nil, m.none()
}

// FilesBelow implements ops.EvidenceStore.
func (m missingEvidence) FilesBelow(context.Context, string, string) ([]ops.EvidenceFile, string, error) {
	return nil, "", m.none()
}

// Read implements ops.EvidenceStore.
func (m missingEvidence) Read(context.Context, string) ([]byte, error) {
	return nil, m.none()
}

// Put implements ops.EvidenceStore.
func (m missingEvidence) Put(context.Context, string, []byte) error {
	return m.none()
}

// Place implements ops.EvidenceStore.
func (m missingEvidence) Place() ops.EvidencePlace { return ops.EvidencePlace{} }

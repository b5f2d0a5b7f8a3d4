package main

import (
	"context"

	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
	"sqlwriter/internal/sqlstore"
)

// lazyRuns are the books of runs and their reports in a database that is opened when it is first needed. It implements
// ops.RunBooks and run.Reports.
type lazyRuns struct {
	sql *lazySQL
}

var (
	_ ops.RunBooks = lazyRuns{}
	_ run.Reports  = lazyRuns{}
)

// runStore opens the database for the books.
func (l lazyRuns) runStore(ctx context.Context) (run.Store, error) {
	db, err := l.sql.get(ctx)
	if err != nil {
		return nil, err
	}
	return db.Runs(l.sql.sysName), nil
}

// StartRun implements ops.RunBooks.
func (l lazyRuns) StartRun(ctx context.Context, r run.Run, entry run.Audit) error {
	s, err := l.runStore(ctx)
	if err != nil {
		return err
	}
	return s.StartRun(ctx, r, entry)
}

// Run implements ops.RunBooks.
func (l lazyRuns) Run(ctx context.Context, id string) (run.Run, bool, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return run.Run{}, false, err
	}
	return s.Run(ctx, id)
}

// ListRuns implements ops.RunBooks.
func (l lazyRuns) ListRuns(ctx context.Context, limit int) ([]run.Run, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return nil, err
	}
	return s.ListRuns(ctx, limit)
}

// Stats implements ops.RunBooks.
func (l lazyRuns) Stats(ctx context.Context, id string) (run.Stats, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return run.Stats{}, err
	}
	return s.Stats(ctx, id)
}

// JobCounts implements ops.RunBooks.
func (l lazyRuns) JobCounts(ctx context.Context, id string) (map[run.Status]int, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return nil, err
	}
	return s.JobCounts(ctx, id)
}

// CancelRun implements ops.RunBooks.
func (l lazyRuns) CancelRun(ctx context.Context, id string, entry run.Audit) (bool, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return false, err
	}
	return s.CancelRun(ctx, id, entry)
}

// ResumeRun implements ops.RunBooks.
func (l lazyRuns) ResumeRun(ctx context.Context, id string, entry run.Audit) (bool, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return false, err
	}
	return s.ResumeRun(ctx, id, entry)
}

// Job implements ops.RunBooks.
func (l lazyRuns) Job(ctx context.Context, id string) (run.Job, []run.ErrorDetail, bool, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return run.Job{}, nil, false, err
	}
	return s.Job(ctx, id)
}

// ListJobs implements ops.RunBooks.
func (l lazyRuns) ListJobs(ctx context.Context, runID string, status run.Status, limit int) ([]run.Job, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return nil, err
	}
	return s.ListJobs(ctx, runID, status, limit)
}

// Items implements ops.RunBooks.
func (l lazyRuns) Items(ctx context.Context, runID string, outcomes []run.Outcome, afterKey string, limit int) ([]run.ItemOutcome, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return nil, err
	}
	return s.Items(ctx, runID, outcomes, afterKey, limit)
}

// RequeueJob implements ops.RunBooks.
func (l lazyRuns) RequeueJob(ctx context.Context, id string, entry run.Audit) (bool, error) {
	s, err := l.runStore(ctx)
	if err != nil {
		return false, err
	}
	return s.RequeueJob(ctx, id, entry)
}

// Names implements run.Reports.
func (lazyRuns) Names() []run.ReportName { return sqlstore.ReportNames() }

// Report implements run.Reports.
func (l lazyRuns) Report(ctx context.Context, name string) (run.Table, error) {
	db, err := l.sql.get(ctx)
	if err != nil {
		return run.Table{}, err
	}
	return db.Reports(l.sql.sysName).Report(ctx, name)
}

// runQueue opens the queue of the runs' messages. Without one a run is begun all the same: the timer sends its message.
func runQueue(from source) (queue run.Queue, closeFn func()) {
	name := from.setting(config.RunsQueue)
	if name == "" {
		return missingQueue{from.name}, func() {}
	}
	namespace, err := servicebus.Open(servicebus.Options{
		Connection:              from.setting(config.ServiceBusConnection),
		FullyQualifiedNamespace: from.setting(config.ServiceBusNamespace),
		ClientID:                from.setting(config.ServiceBusClientID),
	})
	if err != nil {
		return missingQueue{from.name}, func() {}
	}
	return namespace.Queue(name), namespace.Close
}

// missingQueue sends nothing.
type missingQueue struct{ source string }

// Send implements run.Queue.
func (m missingQueue) Send(_ context.Context, messages []run.Message) []error {
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = fault.New(fault.Infrastructure, "sqlwriterctl: queue", "settings", "%s names no Service Bus that can be used (%s, %s)",
			m.source, config.ServiceBusConnection, config.RunsQueue)
	}
	return errs
}

package app

import (
	"context"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// database is SQL, which is opened when it is first needed: by the breaker's heartbeat, so that a server that is down is
// knocked at no more often than it is probed. It implements commit.Sink.
type database struct {
	sysName string
	open    func(ctx context.Context) (store, error)
	// seen learns how each request was answered, lacks why it cannot be opened.
	seen  func(dependency string, err error)
	lacks func(part string, lines ...string)
	// turn is held by whoever opens it or looks at store.
	turn  chan struct{}
	store store
}

func newDatabase(sysName string, s *status, open func(ctx context.Context) (store, error)) *database {
	return &database{sysName: sysName, open: open, seen: s.seen, lacks: s.lacks, turn: make(chan struct{}, 1)}
}

// get opens it if it is not open. Errors are of dependency scope.
func (d *database) get(ctx context.Context) (store, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Infrastructure, "app: open sql", "starting", "the time was over while SQL was being opened", ctx.Err())
	}
	if d.store != nil {
		return d.store, nil
	}
	s, err := d.open(ctx)
	if err != nil {
		err = asInfrastructure(depSQL, err)
		d.seen(depSQL, err)
		d.lacks(depSQL, depSQL+": "+explain(err))
		return nil, err
	}
	d.store = s
	return s, nil
}

// close lets go of it.
func (d *database) close() error {
	d.turn <- struct{}{}
	if d.store == nil {
		return nil
	}
	return d.store.Close()
}

// Apply implements commit.Sink.
func (d *database) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) (outcomes []commit.Outcome, err error) {
	s, err := d.get(ctx)
	if err != nil {
		return nil, err
	}
	outcomes, err = s.Apply(ctx, items, mode, known)
	d.seen(depSQL, err)
	return outcomes, err
}

// Heartbeat implements commit.Sink. It counts as an answer of SQL's: one that succeeds says that it is well again.
func (d *database) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return d.raise(ctx, known, store.Heartbeat)
}

// TakeOver implements commit.Sink.
func (d *database) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return d.raise(ctx, known, store.TakeOver)
}

func (d *database) raise(
	ctx context.Context, known breaker.Heartbeat, how func(store, context.Context, breaker.Heartbeat) (breaker.Heartbeat, error),
) (breaker.Heartbeat, error) {
	s, err := d.get(ctx)
	if err != nil {
		return breaker.Heartbeat{}, err
	}
	row, err := how(s, ctx, known)
	d.seen(depSQL, err)
	return row, err
}

// stores are those of the environment.
func (d *database) stores(ctx context.Context) (ops.Stores, error) {
	s, err := d.get(ctx)
	if err != nil {
		return ops.Stores{}, err
	}
	return ops.Stores{Audit: s.AuditLog(d.sysName), Runs: s.RunStore(d.sysName), Reports: s.Reports(d.sysName)}, nil
}

package scenario

import (
	"context"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// This file alone knows how the product is put together.

// control is the control document, controlStore what keeps it.
type (
	control      = breaker.Control
	controlStore = breaker.ControlStore
)

// build is what an instance runs.
type build struct {
	version string
	// misreads says that its validation refuses every document.
	misreads bool
}

// product is the product in one process.
type product struct {
	breaker *breaker.Breaker
	commit  *commit.Commit
	recover *commit.Recover
	manager *run.Manager
	workers *run.Workers
	// recovery is the part of the tick that is about runs; ops is what operators do.
	recovery *run.Recovery
	ops      *ops.Ops
}

// newProduct constructs the product over an instance's spies.
func newProduct(i *instance) product {
	w := i.w
	b := breaker.New(controlSpy{i}, breaker.Options{
		Instance: i.name, Build: i.build.version, MaxPoisonPerHour: maxPoison, Log: w.log, Now: i.now, Wait: pause,
		SysName: sysName, Heartbeat: sinkSpy{i}.Heartbeat, TakeOver: sinkSpy{i}.TakeOver,
	})
	committer := commit.NewCommit(documentsSpy{w.docs, i}, sinkSpy{i}, commit.Options{
		SysName: sysName, Location: w.zone, Log: w.log, Breaker: b, Evidence: w.evidence,
		Container: "AI_PROCESS_LOGS", AppVersion: i.build.version, Now: i.now, Wait: pause, PartsAtOnce: 4,
	})
	ports := run.Ports{
		Store: i.store(), Finder: w.docs, Documents: documentsSpy{w.docs, i}, Commit: committer, Breaker: b,
		RunQueue: w.runs, BatchQueue: w.batches, Evidence: w.evidence,
	}
	o := run.Options{SysName: sysName, Instance: i.name, Log: w.log, Now: i.now, Wait: pause}
	return product{
		breaker: b, commit: committer, recover: commit.NewRecover(committer, w.docs),
		manager: run.NewManager(ports, o), workers: run.NewWorkers(ports, o), recovery: run.NewRecovery(ports, o),
		ops: ops.New(ops.Ports{
			Documents: documentsSpy{w.docs, i}, Finder: w.docs, Breaker: b, RunQueue: w.runs,
			Stores: func(context.Context) (ops.Stores, error) {
				return ops.Stores{
					Audit: auditLogSpy{w.store.AuditLog(), i}, Runs: i.store(),
					Check: func(context.Context) error { return nil },
				}, nil
			},
		}, ops.Options{SysName: sysName, Location: w.zone, AppVersion: i.build.version, Now: i.now}),
	}
}

// newShadow constructs the product in shadow mode: its breaker is its own, and its heartbeat a preview of nothing.
func newShadow(i *instance) func(ctx context.Context, b commit.Delivery) (commit.Report, error) {
	w := i.w
	b := breaker.New(nil, breaker.Options{
		Instance: i.name, Build: i.build.version, Now: i.now, Wait: pause,
		Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
			_, err := sinkSpy{i}.Apply(ctx, nil, commit.Preview, known)
			return breaker.Heartbeat{}, err
		},
	})
	return commit.NewShadow(documentsSpy{w.docs, i}, sinkSpy{i}, commit.Options{
		SysName: sysName, Location: w.zone, Breaker: b, AppVersion: i.build.version, Now: i.now, Wait: pause,
	}).Run
}

// flowOf is what the breaker of a control document lets pass, and why.
func flowOf(c control) (is flow, why string) {
	is, why = closed, string(c.Breaker.Kind)+" "+c.Breaker.Code
	switch {
	case c.Breaker.Stopped():
		is = opened
	case c.Breaker.Name == breaker.HalfOpen:
		is = halfOpen
	}
	return is, why
}

// Heartbeat implements commit.Sink.
func (d sinkSpy) Heartbeat(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.heartbeat(ctx, func(ctx context.Context) error { row, err = d.i.w.base.Heartbeat(ctx, known); return err })
	return row, err
}

// TakeOver implements commit.Sink.
func (d sinkSpy) TakeOver(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.heartbeat(ctx, func(ctx context.Context) error { row, err = d.i.w.base.TakeOver(ctx, known); return err })
	return row, err
}

// now is the clock of an instance's machine.
func (i *instance) now() time.Time { return time.Now().Add(i.ahead) }

// resume is an operator's resume at a process.
func (i *instance) resume(ctx context.Context) (audited bool, err error) {
	change, err := i.ops.Resume(ops.WithActor(ctx, "ann"), ops.ResumeFlow{Why: "the log was backed up", Force: true})
	return change.Audited, err
}

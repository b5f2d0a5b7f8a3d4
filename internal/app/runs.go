package app

import (
	"context"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// settleBefore is the time that an invocation keeps before its deadline to defer its message. It stops waiting for the
// start by then.
const settleBefore = 30 * time.Second

// runUseCases are the use cases behind the functions on Service Bus.
type runUseCases struct {
	manager      *run.Manager
	workers      *run.Workers
	runLetters   *run.DeadLetters
	batchLetters *run.DeadLetters
	recovery     *run.Recovery
	compares     *reconcile.Reconcile
}

func newRunUseCases(p run.Ports, o run.Options) *runUseCases {
	return &runUseCases{
		manager: run.NewManager(p, o), workers: run.NewWorkers(p, o), recovery: run.NewRecovery(p, o),
		runLetters: run.NewRunDeadLetters(p, o), batchLetters: run.NewBatchDeadLetters(p, o),
	}
}

// receiver passes the messages of one queue to their use case. It defers them while the use case is not ready.
type receiver struct {
	app      *App
	deferral *run.Deferral
	to       func(*runUseCases) handlers.Receiver
}

// Receive implements handlers.Receiver.
func (r receiver) Receive(ctx context.Context, d run.Incoming) (run.Handled, error) {
	err := r.app.opensFor(ctx)
	switch {
	case err != nil:
		return r.deferral.Defer(ctx, d, err)
	case r.app.runs == nil: // the message is for the live app, however often it arrives here
		r.app.status.foreign()
		return r.deferral.Defer(ctx, d, fault.New(fault.Infrastructure, "app: shadow", config.ModeShadow,
			"a shadow takes no messages: disable its functions on Service Bus, or give it queues of its own (docs/cutover.md)"))
	}
	h, err := r.to(r.app.runs).Receive(ctx, d)
	if h.Foreign {
		r.app.status.foreign()
	}
	return h, err
}

// opensFor waits for readiness as becomesReady does, and leaves time to defer a message.
func (a *App) opensFor(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		bounded, cancel := context.WithDeadline(ctx, deadline.Add(-settleBefore))
		defer cancel()
		ctx = bounded
	}
	err := a.becomesReady(ctx)
	if err != nil && fault.As(err) == nil {
		err = fault.Wrap(fault.Infrastructure, "app: ready", "starting", "the dependencies are not open yet", err)
	}
	return err
}

// watchedQueue reports the result of every call of Service Bus to the status.
type watchedQueue struct {
	inner run.Queue
	seen  func(ctx context.Context, dependency string, err error)
}

// Send implements run.Queue.
func (w watchedQueue) Send(ctx context.Context, messages []run.Outgoing) []error {
	errs := w.inner.Send(ctx, messages)
	var worst error
	for _, err := range errs {
		if worst == nil || fault.IsDependency(err) {
			worst = err
		}
	}
	if len(errs) > 0 {
		w.seen(ctx, depServiceBus, worst)
	}
	return errs
}

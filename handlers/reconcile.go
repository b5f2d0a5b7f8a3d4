package handlers

import (
	"context"

	"sqlwriter/internal/events"
	"sqlwriter/internal/ops"
)

// Reconciler starts the nightly comparison of documents, ledger, rows and evidence.
type Reconciler interface {
	// StartReconcile starts today's run, unless it was started before. RecoverRetries executes it. Errors of scope dependency: nothing
	// was started, and the host tries again every five minutes for two hours (functions/Reconcile/function.json).
	StartReconcile(ctx context.Context) (ops.Nightly, error)
}

// Reconcile mounts functions/Reconcile, a timer.
func Reconcile(r Reconciler) Mounted {
	return Mounted{
		Name: "Reconcile", Binding: "timer", Payload: Object, Event: events.ReconcileStarted,
		Run: func(ctx context.Context, _ Invocation) (Reply, error) {
			n, err := r.StartReconcile(ctx)
			said := n.Off
			if err == nil && n.Run != "" {
				said = "run " + n.Run + ": " + n.Did
			}
			return Reply{Logs: []string{said}, Fields: events.Fields{Run: n.Run, Did: n.Did, Off: n.Off}}, err
		},
	}
}

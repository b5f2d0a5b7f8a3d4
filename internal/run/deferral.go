package run

import (
	"context"

	"sqlwriter/internal/fault"
)

// Deferral defers messages while the process has not opened SQL. It is safe for concurrent use.
type Deferral struct {
	base
	queue Queue
	kind  MessageKind
}

// NewDeferral defers messages of a queue. A nil queue stands for dead letters, which cannot be deferred.
func NewDeferral(o Options, queue Queue, kind MessageKind) *Deferral {
	return &Deferral{base{o: o.withDefaults()}, queue, kind}
}

// Defer defers a message because of cause. A message that cannot be read or deferred is held as long as its lock is
// renewed, and then abandoned. Errors by kind: infrastructure.
func (d *Deferral) Defer(ctx context.Context, in Incoming, cause error) (Handled, error) {
	if p, err := ReadPayload(in.Body, d.kind); err == nil && d.queue != nil {
		return d.deferMessage(ctx, d.queue, p, d.delayFor(cause), errorText(cause))
	}
	err := d.retryUntil(ctx, func(context.Context) error {
		return fault.Wrap(fault.Infrastructure, "run: hold", fault.CodeOf(cause),
			"the message cannot be handled yet", cause)
	})
	return Handled{Did: "held", Reason: errorText(cause)}, err
}

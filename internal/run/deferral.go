package run

import (
	"context"

	"sqlwriter/internal/fault"
)

// Deferral takes messages while nothing else can be done with them: the process has not opened SQL yet. It is safe for
// concurrent use.
type Deferral struct {
	base
	queue Queue
	kind  MessageKind
}

// NewDeferral makes the one of a queue. A nil queue stands for dead letters, which cannot be put off.
func NewDeferral(o Options, queue Queue, kind MessageKind) *Deferral {
	return &Deferral{base{o: o.withDefaults()}, queue, kind}
}

// Defer puts a message off because of cause. One that cannot be read, or be put off, is held as long as its lock is renewed and
// then given back: it is looked at when something can be done with it. Errors by kind: infrastructure.
func (d *Deferral) Defer(ctx context.Context, in Incoming, cause error) (Handled, error) {
	if p, err := ReadPayload(in.Body, d.kind); err == nil && d.queue != nil {
		return d.deferMessage(ctx, d.queue, p, d.delayFor(cause), errorText(cause))
	}
	err := d.retryUntil(ctx, func(context.Context) error {
		return fault.Wrap(fault.Infrastructure, "run: hold", fault.CodeOf(cause), "nothing can be done with the message yet", cause)
	})
	return Handled{Did: "held", Reason: errorText(cause)}, err
}
